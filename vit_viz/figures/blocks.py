"""Parts of a figure, in points: title, caption, scale bar, picture, key; tables of cells and small maps side by side.

Text has one size in print, however wide the figure is: a figure of 8 cm is read as easily as one of 17 cm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.figures.colormaps import Limits, Table, apply, limits, table as colour_table
from vit_viz.figures.lettering import Colour, inks, lines_of, number, text_width
from vit_viz.figures.sheet import Anchor, Bitmap, Box, FigureBlock, Mark, TextLine, moved
from vit_viz.figures.styles import LUMA, Look, bar as bar_colours
from vit_viz.sentences import formatted

TITLE, TEXT = 9.0, 7.5
"""Sizes of letters."""

Share = tuple[float, float, float, float]
"""Where something lies in a cell: top, left, height and width in shares of it."""

_INKS = inks("light")
_LINE = 1.3  # from one line of text to the next, in units of its size
_BAR = (160.0, 7.0)
_STEPS = 64  # of a scale bar
_DARK, _BRIGHT = (20, 20, 24), (255, 255, 255)
_CELL_PIXELS = 600  # of the longer side of a table at least, so that no reader blurs its cells
_NUMBER = 6.0  # size of the numbers in cells, and the least that is still read
_LEAST_NUMBER = 3.6
_GAP = 4.0  # points between small maps
_MOST_TABLES = 48  # of an array of many axes


@dataclass(frozen=True)
class ColourBar:
    """The scale of a picture: how values look from its low to its high end, and what the ends stand for.

    Args:
        table: name of the colour table, for heat.
        low: value at the low end, or words where every map has its own.
        high: value at the high end, or words.
        unit: what one value counts.
        clips: whether larger values share the colour of the high end.
        style: light runs from dark to light, tint from a pale pixel to the tinted one, heat through the table.
    """

    table: Table
    low: float | str
    high: float | str
    unit: str = ""
    style: Look = "heat"
    clips: bool = False

    @property
    def is_constant(self) -> bool:
        """Whether both ends are the same number, so that there is a single colour."""
        return not isinstance(self.low, str) and self.low == self.high


def title_block(text: str, width: float, *, size: float = TITLE) -> FigureBlock:
    """The first line of a figure, or of a part of it."""
    return _lines(text, size, width, _INKS.text)


def caption_block(text: str, width: float) -> FigureBlock:
    """What stands below a figure."""
    return _lines(text, TEXT, width, _INKS.quiet)


def picture_block(image: Image.Image, width: float, over: Sequence[Mark] = ()) -> FigureBlock:
    """A picture as wide as the figure, with marks over it."""
    height = width * image.height / image.width
    return FigureBlock(height, (Bitmap(0, 0, width, height, image), *over))


def frame(left: float, top: float, width: float, height: float, stroke: float = 1.4) -> tuple[Mark, Mark]:
    """What marks a patch: a dark frame with a bright one inside, which shows on any photo."""
    place = (left, top, width, height)
    return Box(*place, outline=_DARK, stroke=stroke), Box(*place, outline=_BRIGHT, stroke=stroke / 2)


def key_block(entries: Sequence[tuple[str, Colour]], width: float) -> FigureBlock:
    """What colours stand for: a square and words for each, wrapped."""
    marks: list[Mark] = []
    x, y, step = 0.0, 0.0, _LINE * TEXT
    for words, colour in entries:
        wide = TEXT * 1.4 + text_width(words, TEXT) + TEXT
        if x and x + wide > width:
            x, y = 0.0, y + step
        marks.append(Box(x, y + 0.15 * TEXT, TEXT, TEXT, fill=colour))
        marks.append(TextLine(x + 1.4 * TEXT, y + TEXT, words, TEXT, _INKS.text))
        x += wide
    return FigureBlock(y + step, tuple(marks))


def bar_block(bar: ColourBar, width: float) -> FigureBlock:
    """The scale: its colours, the numbers at its ends and in the middle, and the unit."""
    wide, tall = min(width, _BAR[0]), _BAR[1]
    colours = bar_colours(bar.style, colour_table(bar.table), count=_STEPS).tolist()
    if bar.is_constant:
        colours = [colours[_STEPS // 2]]
    marks: list[Mark] = []
    for place, (red, green, blue) in enumerate(colours):
        left = wide * place / len(colours)  # each reaches to the end, so that no gap shows between two
        marks.append(Box(left, 0, wide - left, tall, fill=(red, green, blue)))
    marks.append(Box(0, 0, wide, tall, outline=_INKS.line))
    under = tall + TEXT
    marks += [
        TextLine(wide * share, under, text, TEXT, _INKS.text, anchor)
        for text, share, anchor in _ends(bar, wide)
    ]
    unit = lines_of(bar.unit, size=TEXT, width=width)
    marks += [
        TextLine(0, under + TEXT * _LINE * row, line, TEXT, _INKS.quiet)
        for row, line in enumerate(unit, start=1)
    ]
    return FigureBlock(under + TEXT * (_LINE * len(unit) + 0.3), tuple(marks))


def _ends(bar: ColourBar, wide: float) -> list[tuple[str, float, Anchor]]:
    """What stands under the bar: (text, place in [0, 1], anchor)."""
    if isinstance(bar.low, str) or isinstance(bar.high, str):
        return [(str(bar.low), 0.0, "start"), (str(bar.high), 1.0, "end")]
    if bar.is_constant:
        return [(f"constant {number(bar.low)}", 0.0, "start")]
    low, middle, high = numbers((bar.low, (bar.low + bar.high) / 2, bar.high))
    least = f"≤ {low}" if bar.clips and bar.low < 0 else low
    most = f"≥ {high}" if bar.clips else high
    ends: list[tuple[str, float, Anchor]] = [(least, 0.0, "start"), (most, 1.0, "end")]
    room = wide - sum(text_width(text, TEXT) for text, _, _ in ends) - 2 * TEXT
    return [*ends, (middle, 0.5, "middle")] if text_width(middle, TEXT) < room else ends


def numbers(values: Sequence[float]) -> list[str]:
    """Numbers with equally many decimals, three digits for the largest; far from 1, all as powers of ten."""
    largest = max((abs(value) for value in values), default=0.0)
    if not largest:
        return ["0" for _ in values]
    power = math.floor(math.log10(largest))
    if not -4 <= power < 6:
        return [number(value) for value in values]
    decimals = max(0, 2 - power)
    return [formatted(value, f".{decimals}f") for value in values]


def _lines(text: str, size: float, width: float, colour: tuple[int, int, int]) -> FigureBlock:
    lines = lines_of(text, size=size, width=width)
    marks: Iterable[Mark] = (
        TextLine(0, size * (1 + _LINE * row), line, size, colour) for row, line in enumerate(lines)
    )
    return FigureBlock(size * (1.3 + _LINE * (len(lines) - 1)), tuple(marks))


# --- tables


def cells_image(values: NDArray[np.float32], table: Table, ends: Limits) -> Image.Image:
    """A table of numbers in colours, every cell a whole number of pixels."""
    return enlarged(apply(values, vmin=ends[0], vmax=ends[1], table=table))


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
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    ringed: tuple[int, int] | None = None,
    values: NDArray[np.float32] | None = None,
    tallest: float = math.inf,
    marks: Sequence[Share] = (),
) -> FigureBlock:
    """Rows and columns of cells with their numbers beside and above, from 0.

    Args:
        image: all cells.
        grid: of cells, (rows, cols).
        names: what rows and columns count.
        labels: names of the rows and of the columns; None: their numbers.
        ringed: the cell that is marked.
        values: numbers that are written into the cells, where they have room.
        tallest: height of the cells together, in their widths, above which they are drawn lower than wide.
        marks: what is framed in every cell.
    """
    rows, cols = grid
    down_names, across_names = labels or (tuple(map(str, range(rows))), tuple(map(str, range(cols))))
    left = min(0.3 * width, max(text_width(name, TEXT) for name in (names[0], *down_names)) + TEXT)
    wide = width - left
    heads, top = _above(across_names, wide / cols)
    tall = min(wide * image.height / image.width, wide * tallest)
    across, down = wide / cols, tall / rows
    placed: list[Mark] = [Bitmap(left, top, wide, tall, image, sharp=True)]
    placed += [
        TextLine(left, TEXT, names[1], TEXT, _INKS.quiet),
        TextLine(0, top - 0.4 * TEXT, names[0], TEXT, _INKS.quiet),
        *(moved(head, left, 0) for head in heads),
    ]
    for row in range(0, rows, _every(rows, down, TEXT)):
        at = top + (row + 0.5) * down + 0.35 * TEXT
        placed.append(TextLine(left - 0.6 * TEXT, at, down_names[row], TEXT, _INKS.text, "end"))
    for row, col in np.ndindex(grid) if marks else ():
        placed += _framed(marks, left + col * across, top + row * down, across, down)
    if values is not None:
        placed += _written(values, image, (left, top, across, down))
    if ringed is not None:
        corner = (left + ringed[1] * across, top + ringed[0] * down)
        placed.append(Box(*corner, across, down, outline=_INKS.mark, stroke=1.2))
    return FigureBlock(top + tall, tuple(placed))


def _above(names: Sequence[str], step: float) -> tuple[list[TextLine], float]:
    """What stands above columns of a width, and the height that it takes.

    Of numbers too wide for that some are left out; words are turned, so that each column has its own.
    """
    room = max(text_width(name, TEXT) for name in names) + 2
    turned = room > step and not all(name.isdecimal() for name in names)
    top = room + 2 * TEXT if turned else 2 * TEXT * _LINE
    shown = range(0, len(names), _every(len(names), step, TEXT if turned else room))
    return [
        TextLine(
            (col + 0.5) * step + 0.35 * TEXT, top - 0.4 * TEXT, names[col], TEXT, _INKS.text, turned=True
        )
        if turned
        else TextLine((col + 0.5) * step, top - 0.4 * TEXT, names[col], TEXT, _INKS.text, "middle")
        for col in shown
    ], top


def _framed(marks: Sequence[Share], left: float, top: float, wide: float, tall: float) -> list[Mark]:
    """The frames in one cell."""
    return [
        mark
        for down, across, height, width in marks
        for mark in frame(left + across * wide, top + down * tall, width * wide, height * tall, stroke=0.8)
    ]


def _written(
    values: NDArray[np.float32], image: Image.Image, place: tuple[float, float, float, float]
) -> list[Mark]:
    """The numbers of all cells, dark on bright colours and bright on dark ones; none where the longest has no room."""
    left, top, across, down = place
    texts = numbers(values.ravel().tolist())
    widest = max(text_width(text, 1.0) for text in texts)
    size = min(_NUMBER, 0.92 * across / widest, 0.8 * down)
    if size < _LEAST_NUMBER:
        return []
    pixels, marks = np.asarray(image), []
    tall, wide = image.height / values.shape[0], image.width / values.shape[1]
    for (row, col), text in zip(np.ndindex(values.shape), texts, strict=True):
        colour = pixels[int((row + 0.5) * tall), int((col + 0.5) * wide)] @ np.array(LUMA)
        ink = _INKS.text if colour > 120 else _INKS.paper
        at = left + (col + 0.5) * across, top + (row + 0.5) * down + 0.35 * size
        marks.append(TextLine(*at, text, size, ink, "middle"))
    return list(marks)


def wrapped_grid(
    cells: Image.Image,
    grid: tuple[int, int],
    width: float,
    *,
    tallest: float,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
    ringed: tuple[int, int] | None = None,
    marks: Sequence[Share] = (),
) -> FigureBlock:
    """Small maps by layer and head; what would be higher than a page continues beside itself.

    Args:
        cells: all maps side by side, with nothing between them.
        grid: of maps, (layers, heads).
        tallest: height in widths above which the layers go on in a further column.
        labels: names of the layers and of the heads; None: their numbers.
    """
    (rows, cols), tall = grid, cells.height // grid[0]
    down_names, across_names = labels or (tuple(map(str, range(rows))), tuple(map(str, range(cols))))
    parts = next(
        n for n in range(1, rows + 1) if tall * math.ceil(rows / n) <= tallest * n * cells.width or n == rows
    )
    held = math.ceil(rows / parts)
    wide = (width - (parts - 1) * 2 * _GAP) / parts
    placed: list[Mark] = []
    height = 0.0
    for part, start in enumerate(range(0, rows, held)):
        layers = range(start, min(start + held, rows))
        image = cells.crop((0, start * tall, cells.width, (layers[-1] + 1) * tall))
        here = None if ringed is None or ringed[0] not in layers else (ringed[0] - start, ringed[1])
        names = down_names[start : start + held], across_names
        shape = (len(layers), cols)
        block = grid_block(spaced(image, shape), shape, wide, labels=names, ringed=here, marks=marks)
        placed += [moved(mark, part * (wide + 2 * _GAP), 0) for mark in block.marks]
        height = max(height, block.height)
    return FigureBlock(height, tuple(placed))


def tile_width(across: int, width: float) -> float:
    """Points that each of several pictures beside each other takes."""
    return (width - (across - 1) * _GAP) / across


def tiles_block(
    tiles: Sequence[tuple[str, Image.Image]],
    width: float,
    *,
    across: int,
    sharp: bool = False,
    marks: Sequence[Share] = (),
) -> FigureBlock:
    """Pictures with names above, several beside each other, wrapped; marks frame a part of each, and sharp pixels stay squares."""
    wide, top = tile_width(across, width), 0.0
    placed: list[Mark] = []
    for start in range(0, len(tiles), across):
        line = tiles[start : start + across]
        named = [lines_of(name, size=TEXT, width=wide) for name, _ in line]
        head = TEXT * _LINE * max(len(words) for words in named)
        tall = max(wide * image.height / image.width for _, image in line)
        for place, ((_, image), words) in enumerate(zip(line, named, strict=True)):
            left, high = place * (wide + _GAP), wide * image.height / image.width
            placed += [
                TextLine(left, top + TEXT * (1 + _LINE * row), text, TEXT, _INKS.text)
                for row, text in enumerate(words)
            ]
            placed.append(Bitmap(left, top + head + 2, wide, high, image, sharp=sharp))
            placed += _framed(marks, left, top + head + 2, wide, high)
        top += head + 2 + tall + _GAP
    return FigureBlock(top - _GAP, tuple(placed))


def enlarged(colours: NDArray[np.uint8]) -> Image.Image:
    """Colours [rows, cols, 3], every cell a whole number of pixels."""
    factor = max(1, -(-_CELL_PIXELS // max(colours.shape[:2])))
    return Image.fromarray(colours.repeat(factor, axis=0).repeat(factor, axis=1))


def array_block(values: NDArray[Any], axes: Sequence[str], width: float) -> FigureBlock:
    """An array by itself: of two axes as cells, of one as a row of cells, of more as tables side by side."""
    table = np.asarray(values, np.float32)
    if table.ndim > 2:
        folded = table.reshape(-1, *table.shape[-2:])
        ends = limits(folded)
        pictures = [
            (f"{axes[0]} {place}", cells_image(one, "viridis", ends)) for place, one in enumerate(folded)
        ]
        return tiles_block(pictures[:_MOST_TABLES], width, across=min(6, len(pictures)), sharp=True)
    rows = table.reshape(1, -1) if table.ndim < 2 else table
    names = ("", axes[-1]) if table.ndim < 2 else (axes[0], axes[1])
    labels = ("",), tuple(map(str, range(rows.shape[1])))
    ends = limits(rows)
    grid = grid_block(
        cells_image(rows, "viridis", ends),
        (rows.shape[0], rows.shape[1]),
        width,
        names=names,
        labels=labels if table.ndim < 2 else None,
        values=rows,
        tallest=0.08 if table.ndim < 2 else 0.6,
    )
    if any(isinstance(mark, TextLine) and mark.size <= _NUMBER for mark in grid.marks):
        return grid  # the cells hold their numbers
    words = caption_block(f"{number(ends[0])} to {number(ends[1])}", width)
    return FigureBlock(
        grid.height + words.height, (*grid.marks, *(moved(mark, 0, grid.height) for mark in words.marks))
    )


def _every(count: int, step: float, room: float) -> int:
    """Every how manieth of so many labels has room."""
    return next(
        n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, count) if n * step >= room or n >= count
    )
