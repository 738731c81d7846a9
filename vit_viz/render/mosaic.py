"""Every head of every layer in one picture, large and labelled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from vit_viz.errors import ParameterError
from vit_viz.render.captioned import ColourBar, captioned
from vit_viz.render.colormaps import Scale, Table, finite, grid_limits, indices
from vit_viz.render.colormaps import table as colour_table
from vit_viz.render.lettering import Inks, Theme, inks, line_height, text_size, text_width, write
from vit_viz.render.overlay import default_table
from vit_viz.render.styles import Style, check, drawn

_LEVELS = 254  # 255 values, whose middle one a constant map has
_FACTOR_LIMIT = 64


def mosaic_picture(
    maps: ArrayLike,
    *,
    style: Style = "heat",
    photo: Image.Image | None = None,
    table: Table | None = None,
    scale: Scale = "shared",
    ends: NDArray[np.float64] | None = None,
    signed: bool = False,
    unit: str = "",
    layers: Sequence[str] = (),
    heads: Sequence[str] = (),
    selected: tuple[int, int] | None = None,
    cell: int = 96,
    title: str = "",
    caption: str = "",
    theme: Theme = "light",
) -> Image.Image:
    """All maps as a figure of its own: layers and heads labelled, colour bar with numbers, caption.

    Args:
        maps: [layers, heads, rows, cols], finite.
        style: light and tint draw every map on the photo, heat has the flat colours of the table.
        photo: what the model received of the photo, mode RGB; light and tint need it.
        scale: over what the ends of the scale are taken; where maps have scales of their own, the bar says so.
        ends: of the scale of every map, [layers, heads, 2], where they are known.
        unit: what one value counts.
        layers: names of the rows; empty means 0, 1, 2, ...
        heads: names of the columns; empty means 0, 1, 2, ...
        selected: (layer, head) to ring.
        cell: least length of a map's longer side in pixels; patches stay whole numbers of pixels.

    Raises:
        ParameterError: a value is not finite, the maps lack an axis, the names do not fit them, or there is no such scale or table.
    """
    array = _four_axes(maps)
    ends = grid_limits(array, scale=scale, signed=signed) if ends is None else ends
    colours = table or default_table(signed=signed)
    drawn_as = "heat" if signed else style
    sheet = mosaic_cells(array, ends, style=drawn_as, photo=photo, table=colours, cell=cell)
    body = _labelled(
        sheet,
        grid=array.shape[:2],
        names=(_names(layers, array.shape[0], "layer"), _names(heads, array.shape[1], "head")),
        selected=selected,
        colours=inks(theme),
    )
    bar = scale_bar(ends, table=colours, scale=scale, unit=unit, style=drawn_as)
    return captioned(body, title=title, caption=caption, bar=bar, theme=theme)


def mosaic_cells(
    maps: ArrayLike,
    ends: NDArray[np.float64],
    *,
    style: Style,
    photo: Image.Image | None,
    table: Table,
    cell: int = 96,
) -> Image.Image:
    """All maps side by side, layers downwards and heads to the right, without anything between them; as `mosaic_picture` says."""
    array = _four_axes(maps)
    factor = min(max(1, -(-cell // max(array.shape[2:]))), _FACTOR_LIMIT)
    if style != "heat":
        return _photo_cells(array, ends, photo, style=style, factor=factor)
    tight = Image.fromarray(_side_by_side(_colours(table)[_levels(array, ends)]))
    return tight.resize((tight.width * factor, tight.height * factor), Image.Resampling.NEAREST)


def scale_bar(
    ends: NDArray[np.float64],
    *,
    table: Table,
    scale: Scale = "shared",
    unit: str = "",
    style: Style = "heat",
) -> ColourBar:
    """The colour bar of a mosaic: numbers where all maps share a scale, words where they do not."""
    if scale == "shared":
        return ColourBar(table, float(ends[..., 0].min()), float(ends[..., 1].max()), unit, style)
    whose = {"layer": "layer", "own": "map"}[scale]
    unlike = f"own scale per {whose}: colours of different {whose}s are not comparable"
    words = f"{unit}; {unlike}" if unit else unlike
    return ColourBar(table, f"min of {whose}", f"max of {whose}", words, style)


def _photo_cells(
    maps: NDArray[np.float64],
    ends: NDArray[np.float64],
    photo: Image.Image | None,
    *,
    style: Style,
    factor: int,
) -> Image.Image:
    """Every map drawn on the photo, patches as they are, side by side: layers downwards, heads to the right."""
    check(style, 1.0)
    if photo is None:
        raise ParameterError(f"A mosaic in {style} needs the photo.")
    rows, cols = maps.shape[2:]
    size = (cols * factor, rows * factor)
    pixels = np.array(photo.convert("RGB").resize(size, Image.Resampling.LANCZOS))
    shares = _shares(maps, ends).astype(np.float32).repeat(factor, axis=2).repeat(factor, axis=3)
    colours = colour_table("viridis")  # heat alone has a table
    lit = drawn(
        np.broadcast_to(pixels, (*shares.shape, 3)), shares, style=style, strength=1.0, colours=colours
    )
    return Image.fromarray(_side_by_side(lit))


def _four_axes(maps: ArrayLike) -> NDArray[np.float64]:
    array = finite(maps)
    if array.ndim != 4:
        raise ParameterError(f"A mosaic needs maps [layers, heads, rows, cols], not {array.ndim} axes.")
    return array


def _side_by_side(cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Pictures [layers, heads, rows, cols, 3] as one [layers * rows, heads * cols, 3]."""
    layers, heads, rows, cols, _ = cells.shape
    return cells.transpose(0, 2, 1, 3, 4).reshape(layers * rows, heads * cols, 3)


def _colours(table: Table) -> NDArray[np.uint8]:
    """The colours of `_levels`, [levels, 3]."""
    return colour_table(table)[indices(np.arange(_LEVELS + 1), vmin=0, vmax=_LEVELS)]


def _levels(maps: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Values in 0 .. 254 between the ends of their map; a constant map lies in the middle."""
    return np.floor(_shares(maps, ends) * _LEVELS + 0.5).astype(np.uint8)


def _shares(maps: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values in [0, 1] between the ends of their map, clipped there; a constant map lies in the middle."""
    low, high = ends[..., 0, None, None], ends[..., 1, None, None]
    width = np.where(high > low, high - low, 1.0)
    shares: NDArray[np.float64] = np.where(high > low, (maps - low) / width, 0.5)
    return shares.clip(0, 1)


def _names(names: Sequence[str], count: int, what: str) -> tuple[str, ...]:
    if names and len(names) != count:
        raise ParameterError(f"{count} {what}s need {count} names, not {len(names)}.")
    return tuple(names) or tuple(str(number) for number in range(count))


def _labelled(
    cells: Image.Image,
    *,
    grid: tuple[int, ...],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    selected: tuple[int, int] | None,
    colours: Inks,
) -> Image.Image:
    """The maps, which lie side by side in `cells`, with gaps; layer names on the left, head names above."""
    layers, heads = grid
    tall, wide = cells.height // layers, cells.width // heads
    gap = max(3, min(tall, wide) // 24)
    size = _label_size(names[1], wide, text_size(heads * wide, layers * tall))
    left = round(max(text_width(name, size=size) for name in (*names[0], "layer")) + size)
    top = 2 * line_height(size)
    shape = (left + heads * (wide + gap), top + layers * (tall + gap))
    sheet = Image.new("RGB", shape, colours.paper)
    draw = ImageDraw.Draw(sheet)
    _label(draw, names, corner=(left, top), step=(wide + gap, tall + gap), size=size, colours=colours)
    for layer in range(layers):
        for head in range(heads):
            box = (head * wide, layer * tall, (head + 1) * wide, (layer + 1) * tall)
            sheet.paste(cells.crop(box), (left + head * (wide + gap), top + layer * (tall + gap)))
    if selected is not None:
        corner = (left + selected[1] * (wide + gap), top + selected[0] * (tall + gap))
        _ring(draw, corner, (wide, tall), gap, colours)
    return sheet


def _label(
    draw: ImageDraw.ImageDraw,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    corner: tuple[int, int],
    step: tuple[int, int],
    size: int,
    colours: Inks,
) -> None:
    """Names of layers and heads beside and above the maps, with what they count."""
    left, top = corner
    line = line_height(size)
    write(draw, (left, 0), "head", size=size, colour=colours.quiet)
    write(draw, (0, line), "layer", size=size, colour=colours.quiet)
    for head, name in enumerate(names[1]):
        across = left + (head + 0.5) * step[0]
        write(draw, (across, line), name, size=size, colour=colours.text, anchor="ma")
    for layer, name in enumerate(names[0]):
        down = top + (layer + 0.5) * step[1]
        write(draw, (left - size * 0.6, down), name, size=size, colour=colours.text, anchor="rm")


def _label_size(names: Sequence[str], wide: int, most: int) -> int:
    """The largest text up to `most` px whose widest column name still fits over a map; at least 9."""
    for size in range(most, 9, -1):
        if max(text_width(name, size=size) for name in names) <= wide:
            return size
    return 9


def _ring(
    draw: ImageDraw.ImageDraw, corner: tuple[int, int], shape: tuple[int, int], gap: int, colours: Inks
) -> None:
    """A frame in the gap around one map, so that none of its pixels is hidden."""
    (x, y), (wide, tall) = corner, shape
    box = (x - gap, y - gap, x + wide + gap - 1, y + tall + gap - 1)
    draw.rectangle(box, outline=colours.mark, width=gap)
