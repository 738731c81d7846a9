"""How the photo becomes patches: the grid at true geometry, and the sequence that the model receives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from vit_viz.errors import ParameterError
from vit_viz.figures.lettering import Colour, Inks, Theme, font, inks, spelled
from vit_viz.figures.overlay import photo_region, pixels_inside
from vit_viz.geometry import CropBox, Grid

Area = tuple[float, float, float, float]

_PAD = (127, 127, 127)
_NAMES = 8  # suffix tokens that are drawn one by one; of more, the first two and the last
_PATCH = 8  # pixels below which grid lines would hide the patches


def visible_area(photo_size: tuple[int, int], region: Area) -> Area:
    """What a patch grid picture shows: the photo and, where the input was padded, the padding beyond it.

    A point (y, x) of a picture of height x width pixels lies in the photo at top + y (bottom - top) / height, and likewise across.

    Args:
        photo_size: (height, width).
        region: (top, left, height, width) that the model received, in pixels of the photo.

    Returns:
        (top, left, bottom, right) in whole pixels of the photo; negative where padding reaches beyond it.
    """
    top, left, height, width = region
    return (
        float(np.floor(min(0.0, top))),
        float(np.floor(min(0.0, left))),
        float(np.ceil(max(photo_size[0], top + height))),
        float(np.ceil(max(photo_size[1], left + width))),
    )


def patch_grid(photo: Image.Image, *, grid: Grid, crop_box: CropBox, longest_side: int = 1600) -> Image.Image:
    """The photo with the lines between patches, each where the model cut; what it did not receive is dimmed and hatched.

    Args:
        photo: mode RGB, the upright original.
        grid: patches as (rows, cols).
        longest_side: pixels that the longer side of the picture has at most; a small photo is enlarged so that lines leave room.

    Returns:
        The photo, and the padding where there was any (see `visible_area`), mode RGB.
    """
    pixels, drawn = _hatched(photo, grid, crop_box, longest_side=longest_side)
    shape = (pixels.shape[0], pixels.shape[1])
    edges = [_edges(drawn[axis], drawn[axis + 2], grid[axis], shape[axis]) for axis in (0, 1)]
    _draw_lines(pixels, edges[0], edges[1], drawn, shape)
    return Image.fromarray(pixels)


def received_photo(
    photo: Image.Image, *, grid: Grid, crop_box: CropBox, longest_side: int
) -> tuple[Image.Image, Area]:
    """The same without lines: the picture, and (top, left, height, width) of what the model received in shares of it."""
    pixels, (top, left, height, width) = _hatched(photo, grid, crop_box, longest_side=longest_side)
    tall, wide = pixels.shape[:2]
    return Image.fromarray(pixels), (top / tall, left / wide, height / tall, width / wide)


def _hatched(
    photo: Image.Image, grid: Grid, crop_box: CropBox, *, longest_side: int
) -> tuple[NDArray[np.uint8], Area]:
    """Pixels of the photo and its padding, what the model did not receive hatched; where in them lies what it did."""
    if min(grid) < 1:
        raise ParameterError(f"A patch grid has at least 1 x 1 patches, not {grid[0]} x {grid[1]}.")
    region = photo_region(photo, crop_box)
    area = visible_area((photo.height, photo.width), region)
    tall, wide = area[2] - area[0], area[3] - area[1]
    # the photo's size, unless it is too long, or its patches are too small to be told apart
    wanted = _PATCH / min(region[2] / grid[0], region[3] / grid[1])
    factor = min(max(1.0, wanted), longest_side / max(tall, wide))
    shape = max(1, round(tall * factor)), max(1, round(wide * factor))
    down, across = shape[0] / tall, shape[1] / wide
    drawn = (
        (region[0] - area[0]) * down,
        (region[1] - area[1]) * across,
        region[2] * down,
        region[3] * across,
    )
    pixels = np.array(_placed(photo, area, shape))
    _hatch_outside(pixels, drawn)
    return pixels, drawn


def _hatch_outside(pixels: NDArray[np.uint8], region: Area) -> None:
    """Dim and hatch, in place, what lies outside the region: the model did not receive it."""
    rows, cols = (
        pixels_inside(size, region[axis], region[axis + 2]) for axis, size in enumerate(pixels.shape[:2])
    )
    period = max(8, min(pixels.shape[:2]) // 32)
    ramp = np.arange(pixels.shape[1], dtype=np.int32)
    for strip in (slice(0, rows.start), slice(rows.stop, pixels.shape[0])):
        _hatch(pixels[strip], ramp, strip.start, period)
    for strip in (slice(0, cols.start), slice(cols.stop, pixels.shape[1])):
        _hatch(pixels[rows, strip], ramp[strip], rows.start, period)


def _hatch(part: NDArray[np.uint8], ramp: NDArray[np.int32], first_row: int, period: int) -> None:
    """Fade a part of a picture to gray, with darker diagonal lines."""
    down = np.arange(first_row, first_row + part.shape[0], dtype=np.int32)
    dark = (down[:, None] + ramp) % period < max(1, period // 4)
    gray = np.where(dark, np.float32(95), np.float32(150))[..., None]
    part[:] = part * np.float32(0.4) + gray * np.float32(0.6)


def patch_sequence(
    model_input: Image.Image,
    *,
    grid: Grid,
    prefix: Sequence[str] = (),
    width: int = 960,
    tile: int = 28,
    theme: Theme = "light",
) -> Image.Image:
    """The tokens in the order in which the model receives them: prefix tokens, then patches, wrapped like text.

    Args:
        model_input: the picture that the model received, undone from its normalisation; its sides are multiples of the grid.
        grid: patches as (rows, cols).
        prefix: names of the tokens before the patches.
        width: pixels across.
        tile: pixels of the longer side of a patch; a patch is enlarged or reduced to it.

    Returns:
        A strip whose lines are labelled with the patch indices that they hold.
    """
    tiles = patch_tiles(model_input, grid=grid, tile=tile)
    colours = inks(theme)
    size, gap = max(12, tile * 2 // 5), max(2, tile // 9)
    left = round(_text_width(f"{len(tiles)} - {len(tiles)}", size=size) + size)
    wide, tall = tiles[0].width + gap, max(tiles[0].height + gap, _line_height(size))
    across = max(1, (width - left + gap) // wide)
    lines = -(-len(tiles) // across)
    sheet = Image.new("RGB", (max(width, left + wide), 1), colours.paper)
    head = _draw_prefix(sheet, prefix, left=left, size=size, colours=colours, dry=True)
    sheet = sheet.resize((sheet.width, head + lines * tall))
    _draw_prefix(sheet, prefix, left=left, size=size, colours=colours)
    draw = ImageDraw.Draw(sheet)
    for line in range(lines):
        held = range(len(tiles))[line * across : (line + 1) * across]
        at = (left - size * 0.6, head + line * tall + tiles[0].height / 2)
        words = f"{held[0]} - {held[-1]}" if len(held) > 1 else f"{held[0]}"
        _write(draw, at, words, size=size, colour=colours.text, anchor="rm")
        for place, index in enumerate(held):
            sheet.paste(tiles[index], (left + place * wide, head + line * tall))
    return sheet


def _placed(photo: Image.Image, area: Area, shape: tuple[int, int]) -> Image.Image:
    """The photo inside its area, on gray where there is padding, resized to a shape."""
    top, left, bottom, right = (int(edge) for edge in area)
    if (top, left, bottom, right) != (0, 0, photo.height, photo.width):
        sheet = Image.new("RGB", (right - left, bottom - top), _PAD)
        sheet.paste(photo, (-left, -top))
        photo = sheet
    size = (shape[1], shape[0])
    return photo if photo.size == size else photo.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _edges(start: float, extent: float, cells: int, size: int) -> NDArray[np.intp]:
    """The first pixel of each cell and the first one after the last; those that lie in the picture."""
    edges = np.ceil(start + extent * np.arange(cells + 1) / cells - 0.5).astype(np.intp)
    return edges[(edges >= 0) & (edges <= size)].clip(0, size - 1)


def _draw_lines(
    pixels: NDArray[np.uint8],
    rows: NDArray[np.intp],
    cols: NDArray[np.intp],
    drawn: Area,
    shape: tuple[int, int],
) -> None:
    """Grid lines in place: a dark line beside a bright one, so that one of them shows on any background."""
    top, left = max(0, round(drawn[0])), max(0, round(drawn[1]))
    bottom = min(shape[0], round(drawn[0] + drawn[2]))
    right = min(shape[1], round(drawn[1] + drawn[3]))
    lines = np.zeros(shape, np.int8)
    thick = max(1, round(min(drawn[2] / max(len(rows) - 1, 1), drawn[3] / max(len(cols) - 1, 1)) / 48))
    for offset, tone in ((-thick, -1), (0, 1)):
        for edge in rows:
            lines[max(0, edge + offset) : edge + offset + thick, left:right] = tone
        for edge in cols:
            part = lines[top:bottom, max(0, edge + offset) : edge + offset + thick]
            part[:] = np.maximum(part, tone) if tone > 0 else np.where(part > 0, part, tone)
    share = np.float32(0.55)
    pixels[lines > 0] = pixels[lines > 0] * (1 - share) + 255 * share
    pixels[lines < 0] = pixels[lines < 0] * (1 - share)


def patch_tiles(model_input: Image.Image, *, grid: Grid, tile: int) -> list[Image.Image]:
    """The patches row by row, each resized so that its longer side has `tile` pixels."""
    rows, cols = grid
    if min(grid) < 1 or model_input.height % rows or model_input.width % cols:
        raise ParameterError(
            f"An input of {model_input.height} x {model_input.width} pixels cannot be cut into {rows} x {cols} patches."
        )
    tall, wide = model_input.height // rows, model_input.width // cols
    factor = tile / max(tall, wide)
    size = (max(1, round(wide * factor)), max(1, round(tall * factor)))
    picture = model_input.convert("RGB")
    how = Image.Resampling.NEAREST if factor >= 1 else Image.Resampling.BOX
    boxes = [(c * wide, r * tall, (c + 1) * wide, (r + 1) * tall) for r in range(rows) for c in range(cols)]
    return [picture.crop(box).resize(size, how) for box in boxes]


def first_and_last(names: Sequence[str]) -> list[str]:
    """Names of tokens that are drawn one by one: all, or of many the first two and the last."""
    return list(names) if len(names) <= _NAMES else [*names[:2], f"... {len(names) - 3} more ...", names[-1]]


def _draw_prefix(
    sheet: Image.Image, names: Sequence[str], *, left: int, size: int, colours: Inks, dry: bool = False
) -> int:
    """A box with the name of each prefix token, wrapped; returns the height that they take."""
    if not names:
        return 0
    draw = ImageDraw.Draw(sheet)
    tall = _line_height(size) + size // 2
    x, y = left, 0
    for name in names:
        wide = round(_text_width(name, size=size)) + size
        if x > left and x + wide > sheet.width:
            x, y = left, y + tall + size // 2
        if not dry:
            draw.rectangle((x, y, x + wide - 1, y + tall - 1), outline=colours.line, width=max(1, size // 10))
            _write(draw, (x + wide / 2, y + tall / 2), name, size=size, colour=colours.text, anchor="mm")
        x += wide + size // 2
    if not dry:
        at = (left - size * 0.6, tall / 2)
        _write(draw, at, "prefix", size=size, colour=colours.quiet, anchor="rm")
    return y + tall + size


# --- text in pixels


def _text_width(text: str, *, size: int) -> float:
    """Pixels that a line of text takes across."""
    return float(font(size).getlength(spelled(text)))


def _line_height(size: int) -> int:
    """Pixels from one line of text to the next."""
    return round(size * 1.35)


def _write(
    draw: ImageDraw.ImageDraw,
    at: tuple[float, float],
    text: str,
    *,
    size: int,
    colour: Colour,
    anchor: str,
) -> None:
    """One line of text at (x, y); `anchor` is Pillow's: m or r for the horizontal, m for the middle of the vertical."""
    draw.text(at, spelled(text), fill=colour, font=font(size), anchor=anchor)
