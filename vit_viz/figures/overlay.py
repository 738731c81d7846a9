"""A map laid over the photo, at the photo's own pixels and where the model really saw each patch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures.colormaps import (
    Limits,
    Table,
    default_table,
    finite,
    indices,
    limits,
    table as colour_table,
)
from vit_viz.figures.styles import Look, check, drawn
from vit_viz.geometry import CropBox
from vit_viz.results import PatchMap

Floats = NDArray[np.float32]

_BAND_PIXELS = 1 << 18  # pixels blended at a time: their float32 copies stay in the processor's cache


def overlay(
    photo: Image.Image,
    patch_map: PatchMap,
    *,
    style: Look = "heat",
    alpha: float = 0.6,
    table: Table | None = None,
    scale: Limits | None = None,
    smooth: bool = False,
) -> Image.Image:
    """The photo with the map over the pixels that the model received, at the photo's size.

    Each channel is (1 - alpha) photo + alpha target, where the target is light, tint or heat as `vit_viz.figures.styles` defines
    them. The map lies at `patch_map.crop_box`, or over the whole photo where it has none.

    Args:
        photo: mode RGB, upright: the original, or a smaller copy of it.
        patch_map: the values.
        style: how the values change the photo; a map of both signs has signed and heat.
        alpha: strength of the style, in [0, 1]; 0 returns the photo bit for bit.
        table: colours of heat; None means diverging for a signed map, else viridis.
        scale: values at the ends of the table; None means the map's own minimum and maximum, centred at 0 if it is signed.
        smooth: bilinear between patch centres (align_corners=False) instead of patches as they are.
    """
    check(style, alpha)
    if patch_map.signed != (style == "signed") and style != "heat":
        raise ParameterError(
            f"A map of {'both signs' if patch_map.signed else 'one sign'} cannot be drawn in {style}; heat draws both kinds."
        )
    ends = limits(patch_map.values, signed=patch_map.signed) if scale is None else scale
    colours = colour_table(table or default_table(signed=patch_map.signed))
    shares = _shares_of(patch_map.values, ends)
    region = photo_region(photo, patch_map.crop_box)
    if alpha == 0:
        return photo.copy()
    pixels = np.array(photo)
    for part, place in _bands(pixels, region, shares, smooth=smooth):
        part[:] = drawn(part, place, style=style, strength=alpha, colours=colours)
    return Image.fromarray(pixels)


def photo_region(photo: Image.Image, crop_box: CropBox | None) -> tuple[float, float, float, float]:
    """What the model received, as (top, left, height, width) in pixels of this copy of the photo."""
    if photo.mode != "RGB":
        raise ParameterError(f"A map is drawn over an RGB photo, not over one of mode {photo.mode}.")
    if crop_box is None:
        return 0.0, 0.0, float(photo.height), float(photo.width)
    height, width = crop_box.original_size
    down, across = photo.height / height, photo.width / width
    # a smaller copy, as pixels may be of the photo, has both sides rounded to whole pixels and is still the same photo
    if abs(photo.width - width * down) > (1 + width / height) * max(1, down):
        raise ParameterError(
            f"The map belongs to a photo of {width} x {height} pixels; this one, {photo.width} x {photo.height}, has another "
            "shape: if the photo was cropped or stretched before the model saw it, pass it as the model received it."
        )
    top, left, tall, wide = crop_box.region
    return top * down, left * across, tall * down, wide * across


def pixels_inside(size: int, start: float, extent: float) -> slice:
    """The pixels whose centres lie in [start, start + extent), of an axis of `size` pixels."""
    first = int(np.clip(np.ceil(start - 0.5), 0, size))
    return slice(first, int(np.clip(np.ceil(start + extent - 0.5), first, size)))


def _interpolation_weights(size: int, start: float, extent: float, cells: int) -> tuple[slice, Floats]:
    """Bilinear weights along one axis, align_corners=False: (pixels inside, [pixels, cells] with rows that sum to 1)."""
    inside = pixels_inside(size, start, extent)
    centres = np.arange(inside.start, inside.stop) + 0.5
    place = ((centres - start) * (cells / extent) - 0.5).clip(0, cells - 1)
    lower = np.minimum(place.astype(np.intp), max(cells - 2, 0))
    weights = np.zeros((place.size, cells), np.float32)
    pixel = np.arange(place.size)
    weights[pixel, lower] = 1 - (place - lower)
    weights[pixel, np.minimum(lower + 1, cells - 1)] += place - lower
    return inside, weights


def between_centres(shares: Floats, factor: int) -> Floats:
    """Maps [..., rows, cols] enlarged so many times, bilinear between patch centres and not clipped."""
    rows, cols = shares.shape[-2:]
    down = _interpolation_weights(rows * factor, 0.0, rows * factor, rows)[1]
    across = _interpolation_weights(cols * factor, 0.0, cols * factor, cols)[1]
    enlarged: Floats = ((down @ shares) @ across.T).astype(np.float32)
    return enlarged


def _shares_of(values: Floats, ends: Limits) -> Floats:
    """Values as their places between the ends of the scale: 0 at the low, 1 at the high end, not clipped."""
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
    spread = _interpolation_weights if smooth else _patch_weights
    rows, down = spread(pixels.shape[0], region[0], region[2], shares.shape[0])
    cols, across = spread(pixels.shape[1], region[1], region[3], shares.shape[1])
    lines = shares @ across.T  # [patch rows, pixels across]
    inside = pixels[rows, cols]
    step = max(1, _BAND_PIXELS // max(inside.shape[1], 1))
    for top in range(0, inside.shape[0], step):
        band = slice(top, top + step)
        yield inside[band], np.clip(down[band] @ lines, 0, 1)


def _patch_weights(size: int, start: float, extent: float, cells: int) -> tuple[slice, Floats]:
    """As `_interpolation_weights`, for patches as they are: all weight on the cell in which a pixel's centre lies."""
    inside = pixels_inside(size, start, extent)
    centres = np.arange(inside.start, inside.stop) + 0.5
    cell = np.floor((centres - start) * (cells / extent)).astype(np.intp)
    # rounding may push the last over the edge
    return inside, np.eye(cells, dtype=np.float32)[cell.clip(0, cells - 1)]
