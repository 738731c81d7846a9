"""One photo as one model sees it, ready to be explored: in a file, or in a notebook (vit_viz/notebook)."""

from __future__ import annotations

import base64
import html
import io
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from vit_viz.analyses.attention import LOOK, HeadFusion, attention_map, checked_head
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.opening import opening
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.capture import Trace, trace
from vit_viz.capture.given import as_model, as_picture
from vit_viz.checkpoints import Model
from vit_viz.errors import ExportError, ParameterError
from vit_viz.figures.files import composed
from vit_viz.figures.raster import raster
from vit_viz.figures.request import Output
from vit_viz.figures.scene import Scene
from vit_viz.geometry import Query, format_query, parse_query
from vit_viz.images import Mode, decode
from vit_viz.indices import Index, layer_index
from vit_viz.lazy import Tensor, nn
from vit_viz.offline.page import page_of
from vit_viz.session.run import run

_PICTURE = Output("png", 12.0, 150)
_STILL_BYTES = 100_000


@dataclass(frozen=True)
class Selection:
    """What is looked at: a layer, one of its heads or all of them fused, and the token that asks."""

    layer: int
    head: int | HeadFusion
    query: Query

    def to_view(self) -> dict[str, object]:
        """As the explorer in the browser names it."""
        return {"layer": self.layer, "head": self.head, "query": format_query(self.query)}


@dataclass(frozen=True, eq=False)
class Explored:
    """A recorded forward pass with its photo.

    Args:
        trace: of the photo.
        photo: upright, mode RGB.
        name: what the photo is called.
        mode: how it became the model's input.
        size: of that input, as `of` takes it.
        model: that recorded it; None where only the trace is at hand.
        opening: where a first look begins.
    """

    trace: Trace
    photo: Image.Image
    name: str
    mode: Mode
    size: int = 0
    model: Model | None = None
    opening: Selection = field(init=False)

    def __post_init__(self) -> None:
        begins = opening(self.trace)
        query = self.trace.layout.default_query
        object.__setattr__(self, "opening", Selection(begins.layer, begins.head, query))

    @classmethod
    def of(
        cls, loaded: ModelLike, image: Picture, *, mode: Mode = "fit", size: int = 0, name: str = ""
    ) -> Explored:
        """Run a model on a photo."""
        picture = as_picture(image)
        if isinstance(picture, Tensor):
            raise ParameterError("The explorer draws on a photo: pass a picture (PIL.Image) or its path.")
        photo = decode(picture)
        file = getattr(picture, "filename", "") if isinstance(picture, Image.Image) else picture
        model = as_model(loaded)
        recorded = trace(model, photo, mode=mode, size=size, keep_norms=True)
        own = None if isinstance(model, nn.Module) else model
        return cls(
            recorded,
            photo,
            name or Path(file or (image if isinstance(image, str) else "photo")).stem,
            mode,
            size,
            own,
        )

    def selection(
        self, layer: Index | None = None, head: Index | HeadFusion | None = None, query: Query | None = None
    ) -> Selection:
        """A selection of this trace; what is None is as a first look begins."""
        begins = self.opening
        query = begins.query if query is None else parse_query(format_query(query))
        self.trace.query_weights(query)  # which refuses what is no token
        return Selection(
            begins.layer if layer is None else layer_index(layer, self.trace.num_layers),
            begins.head if head is None else checked_head(head, self.trace.num_heads),
            query,
        )

    def described(self, shown: Selection) -> str:
        """A selection in one line."""
        model, query = self.trace.provenance.model or "a model", self.trace.layout.describe(shown.query)
        return f"Explorer of {self.name} as {model} sees it: layer {shown.layer}, head {shown.head}, {query}"

    def run(self, shown: Selection, name: str, **options: Any) -> Any:
        """The answer to a question by its name, as `vit_viz.run` gives it, about this photo.

        A question that needs a token to start from starts from the one that is chosen, and "look" looks at the chosen layer and
        head, unless `options` say otherwise.
        """
        if self.model is None:
            raise ParameterError("Questions by name need a loaded model, which vit_viz.load returns.")
        question = QUESTIONS.named(name)
        needs_query = question.follows_pin and not question.without_query
        is_chosen = question.name not in METHODS or shown.query != self.trace.layout.default_query
        begins: dict[str, Any] = {"query": shown.query} if needs_query and is_chosen else {}
        if question.name == LOOK.name:
            begins |= {"layer": shown.layer, "head": str(shown.head)}
        photo = self.photo if question.takes_image else None
        return run(self.model, photo, name, mode=self.mode, size=self.size, **(begins | options))

    def save(self, shown: Selection, path: Path | str) -> Path:
        """Write the page of `page`."""
        file = Path(path)
        check_page_name(file)
        try:
            file.write_bytes(self.page(shown))
        except OSError as error:
            raise ExportError(f"{file} cannot be written: {error.strerror}.") from error
        return file

    def page(self, shown: Selection) -> bytes:
        """The photo as one HTML file."""
        ask = partial(self.run, shown) if self.model else None
        return page_of(
            self.trace,
            self.photo,
            name=self.name,
            mode=self.mode,
            size=self.size,
            view=shown.to_view(),
            ask=ask,
        )

    def picture(self, shown: Selection) -> Image.Image:
        """The map of a selection over the photo, with its caption and scale."""
        patch_map = attention_map(self.trace, layer=shown.layer, head=shown.head, query=shown.query)
        scene = Scene(
            _PICTURE,
            title=f"{self.name}: {patch_map.caption}",
            open_photo=lambda: self.photo,
            parameters={"query": shown.query},
        )
        return raster(composed(patch_map, scene).sheet, dpi=_PICTURE.dpi)

    def mime_bundle(self, shown: Selection, text: str) -> dict[str, Any]:
        """What a notebook shows where nothing is live, as when it is only read: the map of a selection, in 300 kB at most.

        As HTML, as a picture for what takes no HTML, and as a text for where there are no pictures.
        """
        picture = self.picture(shown).convert("RGB")
        while True:
            file = io.BytesIO()
            picture.save(file, "JPEG", quality=85)
            if file.tell() <= _STILL_BYTES:
                break
            picture = picture.resize(
                (picture.width * 3 // 4, picture.height * 3 // 4), Image.Resampling.LANCZOS
            )
        data = base64.b64encode(file.getvalue()).decode("ascii")
        words = html.escape(text)
        still = f'<img alt="{words}" style="max-width:100%" src="data:image/jpeg;base64,{data}">'
        return {"text/html": still, "image/jpeg": data, "text/plain": text}


def check_page_name(file: Path) -> None:
    """Refuse a name that is not that of a page."""
    if file.suffix.lower() not in (".html", ".htm"):
        raise ExportError(
            f"The explorer is saved as a page, so the name ends in .html, which {file.name[:60]!r} does not."
        )
