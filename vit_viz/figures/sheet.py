"""A figure before it has a format: marks on a sheet, in points (1/72 inch) from the top left.

The same sheet becomes PNG (vit_viz.figures.raster), SVG (vit_viz.figures.svg) and PDF (vit_viz.figures.pdf), so that the three
show the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from PIL import Image

from vit_viz.errors import ExportError
from vit_viz.figures.lettering import Colour, text_width

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

POINTS_PER_CM = 72 / 2.54
MARGIN, GAP = 6.0, 6.0  # points around a figure, and between its parts
MOST_PIXELS = 1 << 25


@dataclass(frozen=True, eq=False)
class Bitmap:
    """Pixels in a rectangle; sharp ones stay squares when they are enlarged."""

    left: float
    top: float
    width: float
    height: float
    image: Image.Image
    sharp: bool = False


@dataclass(frozen=True)
class Box:
    """A rectangle, filled or outlined."""

    left: float
    top: float
    width: float
    height: float
    fill: Colour | None = None
    outline: Colour | None = None
    stroke: float = 0.5


@dataclass(frozen=True)
class TextLine:
    """One line of text whose baseline starts, is centred or ends at (x, y).

    Attributes:
        turned: it starts at (x, y) and reads upwards.
    """

    x: float
    y: float
    text: str
    size: float
    colour: Colour
    anchor: Anchor = "start"
    turned: bool = False

    @property
    def width(self) -> float:
        """Points that it takes across."""
        return text_width(self.text, self.size)

    @property
    def start(self) -> float:
        """Where its first letter begins."""
        return self.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * self.width


@dataclass(frozen=True)
class Path:
    """Straight lines from point to point, or the area within them where it is filled."""

    points: tuple[Point, ...]
    colour: Colour
    stroke: float = 0.8
    is_filled: bool = False


Mark = Bitmap | Box | TextLine | Path


@dataclass(frozen=True, eq=False)
class Sheet:
    """All marks of a figure, the ones behind first, on white paper of a size in points."""

    width: float
    height: float
    marks: tuple[Mark, ...]


@dataclass(frozen=True, eq=False)
class FigureBlock:
    """Marks that belong together, from their own top left, and the height that they take."""

    height: float
    marks: tuple[Mark, ...] = ()


def stacked(blocks: Iterable[FigureBlock], width: float) -> Sheet:
    """Blocks below each other on a sheet of a width, with even gaps."""
    marks: list[Mark] = []
    top = bottom = MARGIN
    for block in blocks:
        marks += [moved(mark, MARGIN, top) for mark in block.marks]
        bottom = top + block.height
        top = bottom + GAP
    return Sheet(width, bottom + MARGIN, tuple(marks))


def moved(mark: Mark, right: float, down: float) -> Mark:
    """A mark elsewhere."""
    if isinstance(mark, Path):
        return replace(mark, points=tuple((x + right, y + down) for x, y in mark.points))
    if isinstance(mark, TextLine):
        return replace(mark, x=mark.x + right, y=mark.y + down)
    return replace(mark, left=mark.left + right, top=mark.top + down)


def checked(width: int, height: int) -> tuple[int, int]:
    """The size of a picture in pixels, where it is not too large."""
    if width * height > MOST_PIXELS:
        raise ExportError(
            f"A figure has at most {MOST_PIXELS} pixels, not {width} x {height}: please choose fewer dots per inch."
        )
    return width, height


def printed_size(picture: Image.Image, width: float, dpi: float) -> tuple[int, int]:
    """The pixels with which a picture is printed, so many points across; as `checked`."""
    across = max(1, round(width / 72 * dpi))
    return checked(across, max(1, round(across * picture.height / picture.width)))
