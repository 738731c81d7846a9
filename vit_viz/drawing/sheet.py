"""A figure before it has a format: marks on a sheet, in points (1/72 inch) from the top left.

The same sheet becomes PNG (vit_viz.drawing.raster), SVG (vit_viz.drawing.svg) and PDF (vit_viz.drawing.pdf), so that the three
show the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from PIL import Image

from vit_viz.drawing.typeface import text_width
from vit_viz.render.lettering import Colour

Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

POINTS_PER_CM = 72 / 2.54


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels in a rectangle.

    Args:
        sharp: whether pixels stay squares when they are enlarged.
    """

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
class Text:
    """One line of text whose baseline starts, is centred or ends at (x, y)."""

    x: float
    y: float
    text: str
    size: float
    colour: Colour
    anchor: Anchor = "start"

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


Mark = Picture | Box | Text | Path


@dataclass(frozen=True, eq=False)
class Sheet:
    """All marks of a figure, the ones behind first, on white paper of a size in points."""

    width: float
    height: float
    marks: tuple[Mark, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """Marks that belong together, from their own top left, and the height that they take."""

    height: float
    marks: tuple[Mark, ...] = ()


def stacked(blocks: Iterable[Block], *, width: float, margin: float, gap: float) -> Sheet:
    """Blocks below each other on a sheet of a width, with even gaps."""
    marks: list[Mark] = []
    top, bottom = margin, margin
    for block in blocks:
        marks += [moved(mark, margin, top) for mark in block.marks]
        bottom = top + block.height
        top = bottom + gap
    return Sheet(width, bottom + margin, tuple(marks))


def moved(mark: Mark, right: float, down: float) -> Mark:
    """A mark elsewhere."""
    if isinstance(mark, Path):
        return replace(mark, points=tuple((x + right, y + down) for x, y in mark.points))
    if isinstance(mark, Text):
        return replace(mark, x=mark.x + right, y=mark.y + down)
    return replace(mark, left=mark.left + right, top=mark.top + down)
