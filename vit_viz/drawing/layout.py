"""What a figure is before it has a format: how wide it is in print, and its parts on a sheet, words above and below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from vit_viz.analyses.options import Option, Options
from vit_viz.drawing import charts
from vit_viz.drawing.sheet import POINTS_PER_CM, Block, Sheet, stacked
from vit_viz.results import Provenance

Format = Literal["png", "svg", "pdf", "csv", "npz", "gif", "webp"]

_MARGIN, _GAP = 6.0, 6.0  # points


@dataclass(frozen=True)
class Output(Options):
    """The file that is wanted."""

    format: Annotated[Format, Option("format", "What the file is read with.")] = "png"
    width_cm: Annotated[
        float, Option("width", "Of the figure in print, in centimetres.", low=4, high=60, step=0.5)
    ] = 12.0
    dpi: Annotated[
        int, Option("dots per inch", "Of a PNG, and of the pictures in SVG and PDF.", low=72, high=1200)
    ] = 300

    @property
    def inner(self) -> float:
        """Points across within the margins."""
        return self.width_cm * POINTS_PER_CM - 2 * _MARGIN


@dataclass(frozen=True, eq=False)
class Composed:
    """A figure without a format: its sheet, and what is said of it."""

    sheet: Sheet
    provenance: Provenance
    title: str
    caption: str = ""


def composed_of(
    body: list[Block], provenance: Provenance, output: Output, *, title: str, caption: str
) -> Composed:
    """A figure of some parts, its title above and its caption below them."""
    inner = output.inner
    below = [charts.caption_block(caption, inner)] if caption else []
    return Composed(
        sheet_of([charts.title_block(title, inner), *body, *below], output), provenance, title, caption
    )


def sheet_of(blocks: list[Block], output: Output) -> Sheet:
    """Parts below each other."""
    return stacked(blocks, width=output.width_cm * POINTS_PER_CM, margin=_MARGIN, gap=_GAP)


def capital(text: str) -> str:
    """A sentence as it begins."""
    return text[:1].upper() + text[1:]
