"""Every pixel format -> 8-bit RGB, transparency over white.

Done in bands of rows, so that the intermediate pictures (RGBA, floats) never exist as a whole. Colour profiles are ignored, as
the models' own training pipelines ignore them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin

from vit_viz.errors import ImageError

_BAND_PIXELS = 1 << 20
_BITS_PER_SAMPLE, _PHOTOMETRIC, _WHITE_IS_ZERO = 258, 262, 0
_DEEP_GRAY = ("I", "F")


def rgb_over_white(image: Image.Image, *, deep_source: bool = False) -> Image.Image:
    """The picture as a screen shows it: RGB, 8 bits, transparent parts white.

    16-bit gray: v * 255 / (2^bits - 1). Float gray: values in 0..1 are scaled by 255, values in 0..255 are kept, any other range is
    stretched from its minimum to its maximum, as is 32-bit integer gray.

    Args:
        image: loaded, of any of Pillow's modes.
        deep_source: the file had 16 bits per sample where Pillow keeps 8 (RGB); a transparent colour is then given in 16 bits.
    """
    if image.mode == "RGB" and not image.has_transparency_data:
        copy = image.copy()
        copy.info = {}
        return copy
    colour = image.info.get("transparency")
    if deep_source and image.mode == "RGB" and isinstance(colour, tuple):
        # the 8 bits that Pillow kept of the pixels
        image.info["transparency"] = tuple(value >> 8 for value in colour)
    result = Image.new("RGB", image.size, "white")
    if image.mode in _DEEP_GRAY:
        window = _value_window(image)
    else:  # white of 16-bit gray; TIFF may say that fewer bits are in use
        window = 0.0, float(2 ** min(16, max(1, _tiff_tag(image, _BITS_PER_SAMPLE, 16))) - 1)
    # where 0 means white, Pillow turns 1 to 8 bits around by itself, but not more
    is_deep = image.mode in _DEEP_GRAY or image.mode.startswith("I;16")
    inverted = is_deep and _tiff_tag(image, _PHOTOMETRIC, 1) == _WHITE_IS_ZERO
    rows = max(1, _BAND_PIXELS // image.width)
    for top in range(0, image.height, rows):
        box = (0, top, image.width, min(top + rows, image.height))
        _paste_band(result, image.crop(box), top, window, inverted=inverted)
    return result


def _paste_band(
    result: Image.Image, band: Image.Image, top: int, window: tuple[float, float], *, inverted: bool
) -> None:
    """Draw one band at its place, through its transparency where it has any."""
    if band.mode in _DEEP_GRAY or band.mode.startswith("I;16"):
        values = np.asarray(band)
        gray = Image.fromarray(_to_bytes(values, *window, inverted=inverted))
        transparent = band.info.get("transparency")
        mask = (
            None
            if transparent is None
            else Image.fromarray(np.where(values == transparent, 0, 255).astype(np.uint8))
        )
        result.paste(gray, (0, top), mask)
    elif band.has_transparency_data or band.mode == "La":
        rgba = (band.convert("LA") if band.mode == "La" else band).convert("RGBA")
        result.paste(rgba, (0, top), rgba)
    else:
        result.paste(band.convert("RGB"), (0, top))


def _to_bytes(values: NDArray[Any], low: float, high: float, *, inverted: bool) -> NDArray[np.uint8]:
    """Values of a window as bytes; what is not a number is black."""
    scaled = (np.asarray(values, dtype=np.float64) - low) * (255 / (high - low))
    scaled = np.nan_to_num(255 - scaled if inverted else scaled, nan=0.0, posinf=255.0, neginf=0.0)
    rounded: NDArray[np.float64] = np.rint(scaled.clip(0, 255))
    return rounded.astype(np.uint8)


def _value_window(image: Image.Image) -> tuple[float, float]:
    """The values that become black and white in a float or 32-bit picture."""
    values = np.asarray(image)
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        raise ImageError("This picture holds no finite pixel value; please save it with values from 0 to 1.")
    low, high = float(finite.min()), float(finite.max())
    if low >= 0 and high <= 255:
        return (0.0, 1.0) if image.mode == "F" and high <= 1 else (0.0, 255.0)
    return (low, high) if low < high else (low - 1, high + 1)


def _tiff_tag(image: Image.Image, tag: int, default: int) -> int:
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return default
    value = image.tag_v2.get(tag, default)
    return int(value[0]) if isinstance(value, tuple) else int(value)
