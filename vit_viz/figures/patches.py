"""How the photo becomes patches: the grid at true geometry, and the sequence that the model receives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures.overlay import photo_region, pixels_inside
from vit_viz.geometry import CropBox, Grid

Area = tuple[float, float, float, float]

_PAD = (127, 127, 127)
_NAMES = 8  # suffix tokens that are drawn one by one; of more, the first two and the last
_PATCH = 8  # pixels below which grid lines would hide the patches


def received_photo(
    photo: Image.Image, *, grid: Grid, crop_box: CropBox, longest_side: int
) -> tuple[Image.Image, Area]:
    """The photo, and the padding where there was any, what the model did not receive dimmed and hatched; and (top, left, height,
    width) of what it did in shares of the picture.

    Args:
        photo: mode RGB, the upright original.
        grid: patches as (rows, cols).
        longest_side: pixels that the longer side of the picture has at most; a small photo is enlarged, so that its patches can be
            told apart.
    """
    pixels, (top, left, height, width) = _hatched(photo, grid, crop_box, longest_side=longest_side)
    tall, wide = pixels.shape[:2]
    return Image.fromarray(pixels), (top / tall, left / wide, height / tall, width / wide)


def _hatched(
    photo: Image.Image, grid: Grid, crop_box: CropBox, *, longest_side: int
) -> tuple[NDArray[np.uint8], Area]:
    """Pixels of the photo and its padding, what the model did not receive hatched; where in them lies what it did.

    A point (y, x) of a picture of height x width pixels lies in the photo at top + y (bottom - top) / height, and likewise across.
    """
    if min(grid) < 1:
        raise ParameterError(f"A patch grid has at least 1 x 1 patches, not {grid[0]} x {grid[1]}.")
    region = photo_region(photo, crop_box)
    top, left = (float(np.floor(min(0.0, start))) for start in region[:2])
    bottom = float(np.ceil(max(photo.height, region[0] + region[2])))
    area = top, left, bottom, float(np.ceil(max(photo.width, region[1] + region[3])))
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


def _placed(photo: Image.Image, area: Area, shape: tuple[int, int]) -> Image.Image:
    """The photo inside its area, on gray where there is padding, resized to a shape."""
    top, left, bottom, right = (int(edge) for edge in area)
    if (top, left, bottom, right) != (0, 0, photo.height, photo.width):
        sheet = Image.new("RGB", (right - left, bottom - top), _PAD)
        sheet.paste(photo, (-left, -top))
        photo = sheet
    size = (shape[1], shape[0])
    return photo if photo.size == size else photo.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


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
