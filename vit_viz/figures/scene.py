"""From an answer to its sheet: the type of the answer decides how it is drawn, once, for every surface.

A kind of figure is one file, which registers its function for the types that it draws: `drawn.register`. An answer whose type has
none is drawn part by part, as its fields say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
from PIL import Image

from vit_viz.answer import Answer, Provenance, leaves_of
from vit_viz.capture import Trace
from vit_viz.errors import ExportError
from vit_viz.figures import blocks
from vit_viz.figures.lettering import capital, number
from vit_viz.figures.request import DrawingOptions, Output
from vit_viz.figures.sheet import FigureBlock
from vit_viz.session.serialization import provenance_in


@dataclass(frozen=True, eq=False)
class Scene:
    """What a figure shows beside its numbers.

    Args:
        output: its format and size.
        drawing: how values become colours.
        title: first line; "" has that of the answer.
        label: what is shown, in words, where neither says.
        parameters: what the numbers were asked for with, by name.
        open_photo: the upright photo at its own size; None: there is none.
        photo_name: what the photo is called.
        open_trace: the recorded pass; None: there is none at hand.
        beside: an answer whose values share the scale.
        ringed: (layer, head) or (row, column) of the cell that is marked.
    """

    output: Output
    drawing: DrawingOptions = field(default_factory=DrawingOptions)
    title: str = ""
    label: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    open_photo: Callable[[], Image.Image] | None = None
    photo_name: str = ""
    open_trace: Callable[[], Trace] | None = None
    beside: object = None
    ringed: tuple[int, int] | None = None

    @property
    def inner(self) -> float:
        """Points across within the margins."""
        return self.output.inner

    @cached_property
    def photo(self) -> Image.Image | None:
        """The upright photo at its own size."""
        return None if self.open_photo is None else self.open_photo()

    @cached_property
    def trace(self) -> Trace:
        """The recorded pass."""
        if self.open_trace is None:
            raise ExportError("This is drawn with its photo: ask for it by `vit_viz.figure`.")
        return self.open_trace()

    def about(self, provenance: Provenance) -> str:
        """Photo, model and preprocessing in words, a sentence each."""
        photo = f"Photo: {self.photo_name}" if self.photo_name else ""
        model = "; ".join(words for words in (provenance.model_words, provenance.preprocess) if words)
        seed = next((f"Seed {value}" for name, value in provenance.parameters if "seed" in name), "")
        return " ".join(f"{words.rstrip('.')}." for words in (photo, model, seed) if words)


@dataclass(frozen=True, eq=False)
class Drawn:
    """What is drawn of an answer: its marks, and what stands above and below them."""

    blocks: list[FigureBlock]
    provenance: Provenance
    title: str
    caption: str = ""


@singledispatch
def drawn(answer: object, scene: Scene) -> Drawn:
    """What is drawn of an answer; of one whose type has no drawing of its own, its parts below each other."""
    body: list[FigureBlock] = []
    for name, part, axes in leaves_of(answer, _has_drawing, only_drawn=True):
        if isinstance(part, np.ndarray) and not part.size:
            continue
        if isinstance(part, float):
            words = f"{_part_words(name, '')}: {number(part)}"
            body.append(blocks.caption_block(words, scene.inner))
            continue
        inner = drawn(part, scene) if isinstance(part, Answer) else _array(part, axes, scene)
        above = blocks.title_block(_part_words(name, inner.title), scene.inner, size=blocks.TEXT)
        body += [above, *inner.blocks]
    if not body:
        raise ExportError(f"There is nothing to draw of this {type(answer).__name__}; please save it as NPZ.")
    provenance = provenance_in(answer) or Provenance()
    return Drawn(body, provenance, scene.label, scene.about(provenance))


def _part_words(name: str, title: str) -> str:
    """What stands above a part: its own title, or what it is called in the whole where that says more."""
    parts = [part for part in name.split(".") if part != "maps" and not part.isdigit()]
    if title and (not parts or parts[-1] in title.lower()):
        return title
    return capital(", ".join(parts).replace("_", " "))


def joined(*sentences: str) -> str:
    """Sentences after one another, each with one full stop."""
    return " ".join(f"{capital(text.strip()).rstrip('.')}." for text in sentences if text.strip())


def _has_drawing(part: object) -> bool:
    return drawn.dispatch(type(part)) is not drawn.dispatch(object)


def _array(values: Any, axes: tuple[str, ...], scene: Scene) -> Drawn:
    """An array by itself: a line of numbers as a curve, a table as cells, more axes as a row of tables."""
    names = axes or tuple(f"axis {place}" for place in range(values.ndim))
    return Drawn([blocks.array_block(values, names, scene.inner)], Provenance(), "")
