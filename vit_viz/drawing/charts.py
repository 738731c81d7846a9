"""Parts of a figure, in points: title, caption, scale bar, picture with axes, curve, ranking.

Text has one size in print, however wide the figure is: a figure of 8 cm is read as easily as one of 17 cm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.drawing.sheet import Anchor, Block, Box, Mark, Path, Picture, Text
from vit_viz.drawing.typeface import lines_of, text_width
from vit_viz.render.captioned import ColourBar
from vit_viz.render.colormaps import Limits, Table, apply, limits
from vit_viz.render.colormaps import table as colour_table
from vit_viz.render.lettering import inks, number
from vit_viz.render.styles import bar as bar_colours
from vit_viz.results import Curve, Ranking

TITLE, TEXT = 9.0, 7.5
"""Sizes of letters."""

_INKS = inks("light")
_LINE = 1.3  # from one line of text to the next, in units of its size
_BAR = (160.0, 7.0)
_STEPS = 64  # of a scale bar
_CELL_PIXELS = 600  # of the longer side of a table at least, so that no reader blurs its cells
_MOST_NAMES = 20


def title_block(text: str, width: float) -> Block:
    """The first line of a figure."""
    return _lines(text, TITLE, width, _INKS.text)


def caption_block(text: str, width: float) -> Block:
    """What stands below a figure."""
    return _lines(text, TEXT, width, _INKS.quiet)


def picture_block(image: Image.Image, width: float) -> Block:
    """A picture as wide as the figure."""
    height = width * image.height / image.width
    return Block(height, (Picture(0, 0, width, height, image),))


def bar_block(bar: ColourBar, width: float) -> Block:
    """The scale: its colours, the numbers at its ends and in the middle, and the unit."""
    wide, tall = min(width, _BAR[0]), _BAR[1]
    colours = bar_colours(bar.style, colour_table(bar.table), count=_STEPS).tolist()
    if bar.is_constant:
        colours = [colours[_STEPS // 2]]
    marks: list[Mark] = []
    for place, (red, green, blue) in enumerate(
        colours
    ):  # each reaches to the end, so that no gap shows between two
        left = wide * place / len(colours)
        marks.append(Box(left, 0, wide - left, tall, fill=(red, green, blue)))
    marks.append(Box(0, 0, wide, tall, outline=_INKS.line))
    under = tall + TEXT
    marks += [
        Text(wide * share, under, text, TEXT, _INKS.text, anchor) for text, share, anchor in _ends(bar, wide)
    ]
    unit = lines_of(bar.unit, size=TEXT, width=width)
    marks += [
        Text(0, under + TEXT * _LINE * row, line, TEXT, _INKS.quiet) for row, line in enumerate(unit, start=1)
    ]
    return Block(under + TEXT * (_LINE * len(unit) + 0.3), tuple(marks))


def _ends(bar: ColourBar, wide: float) -> list[tuple[str, float, Anchor]]:
    """What stands under the bar: (text, place in [0, 1], anchor)."""
    low, high = (end if isinstance(end, str) else number(end) for end in (bar.low, bar.high))
    if bar.is_constant:
        return [(f"constant {low}", 0.0, "start")]
    ends: list[tuple[str, float, Anchor]] = [(low, 0.0, "start"), (high, 1.0, "end")]
    if isinstance(bar.low, str) or isinstance(bar.high, str):
        return ends
    middle = number((bar.low + bar.high) / 2)
    room = wide - sum(text_width(text, TEXT) for text, _, _ in ends) - 2 * TEXT
    return [*ends, (middle, 0.5, "middle")] if text_width(middle, TEXT) < room else ends


def cells_image(values: NDArray[np.float32], table: Table, ends: Limits) -> Image.Image:
    """A table of numbers in colours, every cell a whole number of pixels."""
    colours = apply(values, vmin=ends[0], vmax=ends[1], table=table)
    factor = max(1, -(-_CELL_PIXELS // max(values.shape)))
    return Image.fromarray(colours.repeat(factor, axis=0).repeat(factor, axis=1))


def spaced(cells: Image.Image, grid: tuple[int, int]) -> Image.Image:
    """Maps that lie side by side, with white between them."""
    rows, cols = grid
    tall, wide = cells.height // rows, cells.width // cols
    gap = max(1, min(tall, wide) // 24)
    pixels = np.array(cells).reshape(rows, tall, cols, wide, 3)
    room = ((0, 0), (0, gap), (0, 0), (0, gap), (0, 0))
    return Image.fromarray(
        np.pad(pixels, room, constant_values=255).reshape(rows * (tall + gap), cols * (wide + gap), 3)
    )


def grid_block(
    image: Image.Image,
    grid: tuple[int, int],
    width: float,
    *,
    names: tuple[str, str] = ("layer", "head"),
    ringed: tuple[int, int] | None = None,
    most: float = math.inf,
) -> Block:
    """Rows and columns of cells with their numbers beside and above, from 0.

    Args:
        image: all cells.
        grid: of cells, (rows, cols).
        names: what rows and columns count.
        ringed: the cell that is marked.
        most: points that a cell takes across at most.
    """
    rows, cols = grid
    left = text_width(names[0], TEXT) + TEXT
    top = 2 * TEXT * _LINE
    wide = min(width - left, most * cols)
    tall = wide * image.height / image.width
    across, down = wide / cols, tall / rows
    marks: list[Mark] = [Picture(left, top, wide, tall, image, sharp=True)]
    marks.append(Text(left, TEXT, names[1], TEXT, _INKS.quiet))
    marks.append(Text(0, top - 0.4 * TEXT, names[0], TEXT, _INKS.quiet))
    for col in range(0, cols, _every(cols, across, text_width(str(cols), TEXT) + 2)):
        marks.append(
            Text(left + (col + 0.5) * across, top - 0.4 * TEXT, str(col), TEXT, _INKS.text, "middle")
        )
    for row in range(0, rows, _every(rows, down, TEXT)):
        at = top + (row + 0.5) * down + 0.35 * TEXT
        marks.append(Text(left - 0.6 * TEXT, at, str(row), TEXT, _INKS.text, "end"))
    if ringed is not None:
        corner = (left + ringed[1] * across, top + ringed[0] * down)
        marks.append(Box(*corner, across, down, outline=_INKS.mark, stroke=1.2))
    return Block(top + tall, tuple(marks))


def _every(count: int, step: float, room: float) -> int:
    """Every how manieth of so many labels has room."""
    return next(
        n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, count) if n * step >= room or n >= count
    )


def curve_block(curve: Curve, width: float) -> Block:
    """A line with its axes, over its band where it has one."""
    left, top, bottom = 4.2 * TEXT, 2.2 * TEXT, 2.8 * TEXT
    wide, tall = width - left - TEXT, 0.55 * width
    edges = [curve.y, *(curve.band or ())]
    x_ends, y_ends = limits(curve.x), limits(np.concatenate(edges))

    def place(x: float, y: float) -> tuple[float, float]:
        return left + wide * _share(x, x_ends), top + tall * (1 - _share(y, y_ends))

    marks: list[Mark] = []
    if curve.band is not None:
        low, high = curve.band
        around = [*zip(curve.x, high, strict=True), *zip(curve.x[::-1], low[::-1], strict=True)]
        marks.append(Path(tuple(place(x, y) for x, y in around), (226, 226, 232), is_filled=True))
    marks.append(Path(((left, top), (left, top + tall), (left + wide, top + tall)), _INKS.line, 0.5))
    for value in _ticks(x_ends):
        at = place(value, y_ends[0])[0]
        marks.append(Text(at, top + tall + 1.3 * TEXT, number(value), TEXT, _INKS.text, "middle"))
        marks.append(Path(((at, top + tall), (at, top + tall + 2)), _INKS.line, 0.5))
    for value in _ticks(y_ends):
        at = place(x_ends[0], value)[1]
        marks.append(Text(left - 4, at + 0.35 * TEXT, number(value), TEXT, _INKS.text, "end"))
        marks.append(Path(((left - 2, at), (left, at)), _INKS.line, 0.5))
    marks.append(Text(0, TEXT * 0.9, curve.y_label, TEXT, _INKS.quiet))
    marks.append(Text(left + wide, top + tall + 2.5 * TEXT, curve.x_label, TEXT, _INKS.quiet, "end"))
    line = tuple(place(x, y) for x, y in zip(curve.x.tolist(), curve.y.tolist(), strict=True))
    marks.append(Path(line if len(line) > 1 else line * 2, _INKS.mark, 1.0))
    return Block(top + tall + bottom, tuple(marks))


def ranking_block(ranking: Ranking, width: float) -> Block:
    """Names with bars from 0 and numbers, best first."""
    names, scores = ranking.names[:_MOST_NAMES], ranking.scores[:_MOST_NAMES].tolist()
    shown = [lines_of(name, size=TEXT, width=0.42 * width) or [""] for name in names]
    first = [lines[0] + (" .." if len(lines) > 1 else "") for lines in shown]
    left = max((text_width(name, TEXT) for name in first), default=0.0) + TEXT
    room = max(text_width(number(score), TEXT) for score in [*scores, 0.0]) + TEXT
    longest, step = max([abs(score) for score in scores] or [0.0]) or 1.0, 1.7 * TEXT
    marks: list[Mark] = []
    for row, (name, score) in enumerate(zip(first, scores, strict=True)):
        wide, base = (width - left - room) * abs(score) / longest, row * step + TEXT
        marks.append(Text(left - 0.6 * TEXT, base, name, TEXT, _INKS.text, "end"))
        marks.append(Box(left, row * step + 0.15 * TEXT, max(wide, 0.3), TEXT, fill=_INKS.line))
        marks.append(Text(left + wide + 3, base, number(score), TEXT, _INKS.text))
    return Block(step * len(names), tuple(marks))


def _share(value: float, ends: Limits) -> float:
    low, high = ends
    return (float(value) - low) / (high - low) if high > low else 0.5


def _ticks(ends: Limits) -> Sequence[float]:
    """Round numbers between the ends, about five; the one there is where the ends are equal."""
    low, high = ends
    if high <= low:
        return [low]
    rough = (high - low) / 4
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    return [
        round(n * step, 12) for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def _lines(text: str, size: float, width: float, colour: tuple[int, int, int]) -> Block:
    lines = lines_of(text, size=size, width=width)
    marks: Iterable[Mark] = (
        Text(0, size * (1 + _LINE * row), line, size, colour) for row, line in enumerate(lines)
    )
    return Block(size * (1.3 + _LINE * (len(lines) - 1)), tuple(marks))
