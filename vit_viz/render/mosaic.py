"""Every head of every layer in one picture: small and exact for the screen, large and labelled for export."""

from __future__ import annotations

import io
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

_LEVELS = 254  # a palette has 256 places; the first is the transparent gap, 255 are left for values
_FACTOR_LIMIT = 64


def mosaic_png(
    maps: ArrayLike,
    *,
    table: Table | None = None,
    scale: Scale = "shared",
    signed: bool = False,
    gap: int = 1,
) -> bytes:
    """All maps at one pixel per patch, as a palette PNG for the browser to enlarge.

    Args:
        maps: [layers, heads, rows, cols], finite.
        table: colour table; None means diverging for signed maps, else viridis.
        scale: over what the ends of the table are taken.
        signed: whether 0 is the centre of the scale.
        gap: transparent pixels between maps.

    Returns:
        PNG of layers * rows + gaps pixels by heads * cols + gaps pixels; one row of maps per layer.

    Raises:
        ParameterError: a value is not finite, the maps lack an axis, or there is no such scale or table.
    """
    picture = _palette_picture(maps, table=table, scale=scale, signed=signed, gap=gap)
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1, transparency=0)
    return file.getvalue()


def mosaic_picture(
    maps: ArrayLike,
    *,
    table: Table | None = None,
    scale: Scale = "shared",
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
        scale: over what the ends of the table are taken; where maps have scales of their own, the bar says so.
        unit: what one value counts.
        layers: names of the rows; empty means 0, 1, 2, ...
        heads: names of the columns; empty means 0, 1, 2, ...
        selected: (layer, head) to ring.
        cell: least length of a map's longer side in pixels; patches stay whole numbers of pixels.

    Raises:
        ParameterError: as for `mosaic_png`, or the names do not fit the maps.
    """
    array = finite(maps)
    ends = grid_limits(array, scale=scale, signed=signed)
    chosen = table or default_table(signed=signed)
    body = _labelled(
        array,
        _palette_picture(array, table=chosen, scale=scale, signed=signed, gap=0).convert("RGB"),
        names=(_names(layers, array.shape[0], "layer"), _names(heads, array.shape[1], "head")),
        selected=selected,
        cell=cell,
        colours=inks(theme),
    )
    bar = scale_bar(ends, table=chosen, scale=scale, unit=unit)
    return captioned(body, title=title, caption=caption, bar=bar, theme=theme)


def scale_bar(
    ends: NDArray[np.float64], *, table: Table, scale: Scale = "shared", unit: str = ""
) -> ColourBar:
    """The colour bar of a mosaic: numbers where all maps share a scale, words where they do not."""
    if scale == "shared":
        return ColourBar(table, float(ends[..., 0].min()), float(ends[..., 1].max()), unit)
    whose = {"layer": "layer", "own": "map"}[scale]
    unlike = f"own scale per {whose}: colours of different {whose}s are not comparable"
    return ColourBar(table, f"min of {whose}", f"max of {whose}", f"{unit}; {unlike}" if unit else unlike)


def _palette_picture(
    maps: ArrayLike, *, table: Table | None, scale: Scale, signed: bool, gap: int
) -> Image.Image:
    """Mode P: place 0 is the gap, places 1 to 255 are the colour table."""
    array = finite(maps)
    if array.ndim != 4:
        raise ParameterError(f"A mosaic needs maps [layers, heads, rows, cols], not {array.ndim} axes.")
    ends = grid_limits(array, scale=scale, signed=signed)
    places = 1 + _levels(array, ends)
    layers, heads, rows, cols = places.shape
    spaced = np.zeros((layers, rows + gap, heads, cols + gap), np.uint8)
    spaced[:, :rows, :, :cols] = places.transpose(0, 2, 1, 3)
    sheet = spaced.reshape(layers * (rows + gap), heads * (cols + gap))
    sheet = sheet[: sheet.shape[0] - gap, : sheet.shape[1] - gap]
    picture = Image.frombytes("P", (sheet.shape[1], sheet.shape[0]), sheet.tobytes())
    picture.putpalette(_palette(table or default_table(signed=signed)))
    return picture


def _levels(maps: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Values in 0 .. 254 between the ends of their map; a constant map lies in the middle."""
    low, high = ends[..., 0, None, None], ends[..., 1, None, None]
    width = np.where(high > low, high - low, 1.0)
    share = np.where(high > low, (maps - low) / width, 0.5)
    return np.floor(share * _LEVELS + 0.5).astype(np.uint8)


def _palette(table: Table) -> bytes:
    """The 255 colours of `_levels` after a black first place."""
    places = indices(np.arange(_LEVELS + 1), vmin=0, vmax=_LEVELS)
    return bytes(3) + colour_table(table)[places].tobytes()


def _names(names: Sequence[str], count: int, what: str) -> tuple[str, ...]:
    if names and len(names) != count:
        raise ParameterError(f"{count} {what}s need {count} names, not {len(names)}.")
    return tuple(names) or tuple(str(number) for number in range(count))


def _labelled(
    maps: NDArray[np.float64],
    tight: Image.Image,
    *,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    selected: tuple[int, int] | None,
    cell: int,
    colours: Inks,
) -> Image.Image:
    """The maps enlarged by a whole factor, layer names on the left, head names above."""
    layers, heads, rows, cols = maps.shape
    factor = min(max(1, -(-cell // max(rows, cols))), _FACTOR_LIMIT)
    tall, wide = rows * factor, cols * factor
    gap = max(3, min(tall, wide) // 24)
    size = _label_size(names[1], wide, text_size(heads * wide, layers * tall))
    left = round(max(text_width(name, size=size) for name in (*names[0], "layer")) + size)
    top = 2 * line_height(size)
    shape = (left + heads * (wide + gap), top + layers * (tall + gap))
    sheet = Image.new("RGB", shape, colours.paper)
    draw = ImageDraw.Draw(sheet)
    _label(draw, names, corner=(left, top), step=(wide + gap, tall + gap), size=size, colours=colours)
    large = tight.resize((tight.width * factor, tight.height * factor), Image.Resampling.NEAREST)
    for layer in range(layers):
        for head in range(heads):
            box = (head * wide, layer * tall, (head + 1) * wide, (layer + 1) * tall)
            sheet.paste(large.crop(box), (left + head * (wide + gap), top + layer * (tall + gap)))
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
