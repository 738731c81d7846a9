"""The live explorer in a notebook: Jupyter, JupyterLab, VS Code, Colab; anywhere else a picture that can be saved as a page.

The widget needs the package anywidget, which the extra `notebook` of vit_viz brings; without it everything here works but the live
display.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vit_viz.analyses.attention import HeadFusion
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.images import Mode
from vit_viz.indices import Index
from vit_viz.offline.explored import Explored, Selection

__all__ = ["Exploration", "explore"]

MISSING = "The live explorer in a notebook needs the package anywidget: pip install anywidget."


def explore(
    loaded: ModelLike,
    image: Picture,
    *,
    mode: Mode = "fit",
    size: int = 0,
    layer: Index | None = None,
    head: Index | HeadFusion | None = None,
    query: Query | None = None,
    name: str = "",
) -> Any:
    """What every head of every layer looks at in one photo, live: under the pointer in a notebook, or saved as a page.

        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> explorer = vv.explore("mini", sample("lion"), layer=3, query=(7, 7))
        >>> explorer.layer, explorer.query
        (3, (7, 7))
        >>> explorer.head = "mean"
        >>> explorer.run("rollout", discard=0.5).unit
        'share of the query'

    In a notebook the last line of a cell shows it. `layer`, `head` and `query` follow what is chosen there, can be set, and are
    traits: `explorer.observe(function, names="query")`. `explorer.run(name)` asks any question of `vit_viz.run` from the query that
    is chosen. The page that `explorer.save("lion.html")` writes opens without a network.

    Args:
        loaded: a loaded model, or the name of one.
        image: a picture or its path.
        mode: how it becomes the model's input.
        size: short side of that input in patches; 0 is the checkpoint's own.
        layer, head, query: what is shown first; None is where a first look begins.
        name: what the photo is called; empty means by its file.

    Returns:
        An `anywidget.AnyWidget`; where that package is missing, an `Exploration`, which has the same names.

    Raises:
        ParameterError: layer, head or query do not exist, or the image is no picture.
        ImageError: the picture cannot be read.
        CaptureError: the model's attention cannot be recorded.
    """
    explored = Explored.of(loaded, image, mode=mode, size=size, name=name)
    shown = explored.selection(layer, head, query)
    if importlib.util.find_spec("anywidget") is None:
        return Exploration(explored, shown)
    from vit_viz.notebook.widget import ExplorerWidget

    return ExplorerWidget(explored, shown)


class Exploration:
    """A photo and what is looked at in it, where no live display is to be had.

    Args:
        explored: the recorded forward pass with its photo.
        shown: what is looked at.
    """

    def __init__(self, explored: Explored, shown: Selection) -> None:
        self.explored = explored
        self._shown = shown

    @property
    def layer(self) -> int:
        """The layer that is shown."""
        return self._shown.layer

    @layer.setter
    def layer(self, layer: Index) -> None:
        self._shown = self.explored.selection(layer, self.head, self.query)

    @property
    def head(self) -> int | HeadFusion:
        """The head that is shown, or "mean", "max" or "min" over all."""
        return self._shown.head

    @head.setter
    def head(self, head: Index | HeadFusion) -> None:
        self._shown = self.explored.selection(self.layer, head, self.query)

    @property
    def query(self) -> Query:
        """The token that asks."""
        return self._shown.query

    @query.setter
    def query(self, query: Query) -> None:
        self._shown = self.explored.selection(self.layer, self.head, query)

    def observe(self, handler: Callable[..., object], names: object = None, type: str = "change") -> None:  # noqa: A002, ARG002
        """As of a widget: call a function when the selection changes, which only a live display can."""
        raise ParameterError(MISSING)

    def run(self, name: str, **options: Any) -> Any:
        """The answer to a question about this photo by its name, with the numbers of `vit_viz.run`.

        Args:
            name: a method of `vit_viz.explain`, "look", "mosaic", "heads", ...
            options: as `vit_viz.run` takes it; what needs a token to start from starts from the chosen one unless `query` says
                otherwise, and "look" looks at the chosen layer and head.
        """
        return self.explored.run(self._shown, name, **options)

    def save(self, path: Path | str) -> Path:
        """Write the live explorer, as it is chosen here, as one HTML file that opens without a network."""
        return self.explored.save(self._shown, path)

    def __repr__(self) -> str:
        return self.explored.described(self._shown)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002
        return self.explored.mime_bundle(self._shown, f"{self!r}\n{MISSING}")
