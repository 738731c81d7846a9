"""A map laid over the photo, at the photo's own pixels and where the model really saw each patch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.render.colormaps import Limits, Table, finite, indices, limits
from vit_viz.render.colormaps import table as colour_table
from vit_viz.render.styles import Style, check, drawn
from vit_viz.results import PatchMap

Outside = Literal["photo", "hatch"]
Floats = NDArray[np.float32]

_BAND_PIXELS = 1 << 18  # pixels blended at a time: their float32 copies stay in the processor's cache


def overlay(
    photo: Image.Image,
    patch_map: PatchMap,
    *,
    style: Style = "heat",
    alpha: float = 0.6,
    table: Table | None = None,
    scale: Limits | None = None,
    smooth: bool = False,
    outside: Outside = "photo",
) -> Image.Image:
    """The photo with the map over the pixels that the model received, at the photo's size.

    Each channel is (1 - alpha) photo + alpha target, where the target is light, tint or heat as `vit_viz.render.styles` defines
    them. The map lies at `patch_map.crop_box`, or over the whole photo where it has none.

    Args:
        photo: mode RGB, upright: the original, or a smaller copy of it.
        patch_map: the values.
        style: how the values change the photo; a map of both signs has heat only.
        alpha: strength of the style, in [0, 1]; 0 returns the photo bit for bit, without a hatch too.
        table: colours of heat; None means diverging for a signed map, else viridis.
        scale: values at the ends of the table; None means the map's own minimum and maximum, centred at 0 if it is signed.
        smooth: bilinear between patch centres (align_corners=False) instead of patches as they are.
        outside: what the model did not receive stays as it is ("photo"), or is dimmed and hatched ("hatch").

    Raises:
        ParameterError: style, alpha, table or scale is out of range, a value is not finite, or the photo is not the map's.
    """
    check(style, alpha)
    if patch_map.signed and style != "heat":
        raise ParameterError(f"A map of both signs is drawn in heat, not in {style}.")
    ends = limits(patch_map.values, signed=patch_map.signed) if scale is None else scale
    colours = colour_table(table or default_table(signed=patch_map.signed))
    shares = shares_of(patch_map.values, ends)
    region = photo_region(photo, patch_map.crop_box)
    if alpha == 0:
        return photo.copy()
    pixels = np.array(photo)
    if outside == "hatch":
        hatch_outside(pixels, region)
    for part, place in _bands(pixels, region, shares, smooth=smooth):
        part[:] = drawn(part, place, style=style, strength=alpha, colours=colours)
    return Image.fromarray(pixels)


def default_table(*, signed: bool) -> Table:
    """The colour table of a map for which none was chosen."""
    return "diverging" if signed else "viridis"


def photo_region(photo: Image.Image, crop_box: CropBox | None) -> tuple[float, float, float, float]:
    """What the model received, as (top, left, height, width) in pixels of this copy of the photo.

    Raises:
        ParameterError: the photo is not RGB, or its shape is not that of the crop box's original.
    """
    if photo.mode != "RGB":
        raise ParameterError(f"A map is drawn over an RGB photo, not over one of mode {photo.mode}.")
    if crop_box is None:
        return 0.0, 0.0, float(photo.height), float(photo.width)
    height, width = crop_box.original_size
    down, across = photo.height / height, photo.width / width
    # a smaller copy has both sides rounded to whole pixels and is still the same photo
    if abs(photo.width - width * down) > 1 + width / height:
        raise ParameterError(
            f"The map belongs to a photo of {width} x {height} pixels; "
            f"one of {photo.width} x {photo.height} has another shape."
        )
    top, left, tall, wide = crop_box.region
    return top * down, left * across, tall * down, wide * across


def hatch_outside(pixels: NDArray[np.uint8], region: tuple[float, float, float, float]) -> None:
    """Dim and hatch, in place, what lies outside the region: the model did not receive it."""
    rows, cols = (_inside(size, region[axis], region[axis + 2]) for axis, size in enumerate(pixels.shape[:2]))
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


def _inside(size: int, start: float, extent: float) -> slice:
    """The pixels whose centres lie in [start, start + extent), of an axis of `size` pixels."""
    first = int(np.clip(np.ceil(start - 0.5), 0, size))
    return slice(first, int(np.clip(np.ceil(start + extent - 0.5), first, size)))


def cell_of_pixels(size: int, start: float, extent: float, cells: int) -> tuple[slice, NDArray[np.intp]]:
    """Which of `cells` equal cells of [start, start + extent) each pixel centre lies in: (pixels inside, their cell)."""
    inside = _inside(size, start, extent)
    centres = np.arange(inside.start, inside.stop) + 0.5
    cell = np.floor((centres - start) * (cells / extent)).astype(np.intp)
    return inside, cell.clip(0, cells - 1)  # rounding may push the last centre over the edge


def interpolation_weights(size: int, start: float, extent: float, cells: int) -> tuple[slice, Floats]:
    """Bilinear weights along one axis, align_corners=False: (pixels inside, [pixels, cells] with rows that sum to 1)."""
    inside = _inside(size, start, extent)
    centres = np.arange(inside.start, inside.stop) + 0.5
    place = ((centres - start) * (cells / extent) - 0.5).clip(0, cells - 1)
    lower = np.minimum(place.astype(np.intp), max(cells - 2, 0))
    weights = np.zeros((place.size, cells), np.float32)
    pixel = np.arange(place.size)
    weights[pixel, lower] = 1 - (place - lower)
    weights[pixel, np.minimum(lower + 1, cells - 1)] += place - lower
    return inside, weights


def shares_of(values: Floats, ends: Limits) -> Floats:
    """Values as their places between the ends of the scale: 0 at the low, 1 at the high end, not clipped.

    Raises:
        ParameterError: a value or an end is not finite, or the low end exceeds the high one.
    """
    low, high = ends
    entries = indices(values, vmin=low, vmax=high)
    if low == high:
        return entries.astype(np.float32) / np.float32(255)
    return ((finite(values) - low) / (high - low)).astype(np.float32)


def _bands(
    pixels: NDArray[np.uint8], region: tuple[float, float, float, float], shares: Floats, *, smooth: bool
) -> Iterator[tuple[NDArray[np.uint8], Floats]]:
    """The pixels that the model received, in bands of rows that fit the cache: (view of them, share of each in [0, 1]).

    Smooth shares are interpolated before they are clipped, so that a peak beyond the scale keeps its width.
    """
    spread = interpolation_weights if smooth else _patch_weights
    rows, down = spread(pixels.shape[0], region[0], region[2], shares.shape[0])
    cols, across = spread(pixels.shape[1], region[1], region[3], shares.shape[1])
    lines = shares @ across.T  # [patch rows, pixels across]
    inside = pixels[rows, cols]
    step = max(1, _BAND_PIXELS // max(inside.shape[1], 1))
    for top in range(0, inside.shape[0], step):
        band = slice(top, top + step)
        yield inside[band], np.clip(down[band] @ lines, 0, 1)


def _patch_weights(size: int, start: float, extent: float, cells: int) -> tuple[slice, Floats]:
    """As `interpolation_weights`, for patches as they are: all weight on the cell in which a pixel's centre lies."""
    inside, cell = cell_of_pixels(size, start, extent, cells)
    return inside, np.eye(cells, dtype=np.float32)[cell]
