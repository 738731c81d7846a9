"""Where a mask says that an object is: files and arrays as annotators and models write them, read by one rule.

A mask is one of these; anything else is refused with what was found:

- transparent and opaque: the object is what is opaque, whatever its colours.
- classes: 0 is the ground, one other number the object, and beside the two 255 (in files of 16 bits 65535) is left out: it counts
  neither way. Without another number 255 is the object. Beside 255 a class is at most 100, as a higher one may be a gray.
- grays with noise or soft edges: the object is the brighter half of the range. Most pixels are near black or white, or there are
  at least 64 grays.
- colours: black is the ground, one other colour the object, and the cream of Pascal VOC is left out. Of a palette the numbers are
  the classes; where it has no black, 0 is the ground.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError

IGNORED = -1

_HIGHEST_CLASS, _BRIGHTEST_CLASS = 100, 182  # beside 255; in any data set that is known (COCO)
_NEAR, _MOST, _SMOOTH = 32, 0.9, 64
_COLOURLESS = 8  # between the channels of a gray that was compressed
_BLACK, _CREAM = 0, 0xE0E0C0


def mask_labels(mask: Any) -> NDArray[np.int8]:
    """1 on the object, 0 on the ground, and -1 where a mask says neither: [height, width].

    Args:
        mask: a picture of any mode; a tensor or an array [height, width] of booleans, of whole numbers or of numbers from 0 to 1;
            or bytes [height, width, channels].
    """
    if isinstance(mask, Image.Image):
        return _of_picture(mask)
    values = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if values.dtype == np.uint8 and values.ndim == 3 and values.shape[2] in (2, 3, 4):
        return _of_picture(Image.fromarray(values))
    if values.ndim > 2:
        values = values.squeeze()  # a batch or a channel of one
    if values.ndim != 2 or not values.size or values.dtype.kind not in "buif":
        raise ParameterError(
            f"A mask is an array [height, width] of numbers, not one of {values.dtype} and the shape {values.shape}."
        )
    if values.dtype == bool:
        marked: NDArray[np.int8] = values.astype(np.int8)
        return marked
    if not np.isfinite(values).all():
        raise ParameterError(
            "This mask holds NaN or infinity; please write 0 for the background and 1 for the object."
        )
    if values.min() < 0 or (values.dtype.kind == "f" and values.max() > 1 and (values % 1).any()):
        raise ParameterError(
            f"A mask has whole numbers from 0, or numbers from 0 to 1, not from {values.min():g} to {values.max():g}."
        )
    scale = 255 if values.dtype.kind == "f" and values.max() <= 1 else 1
    return _of_grays(np.rint(values.astype(np.float64) * scale).astype(np.int64))


def _of_picture(image: Image.Image) -> NDArray[np.int8]:
    if image.has_transparency_data:
        opaque = np.asarray(image.convert("RGBA"))[..., 3] > 127
        if opaque.any() and not opaque.all():
            return opaque.astype(np.int8)
    if image.mode in ("1", "L", "I", "F") or image.mode.startswith("I;16"):
        return mask_labels(np.asarray(image))
    channels = np.asarray(image.convert("RGB"), dtype=np.int64)
    colours, grays = channels @ (1 << 16, 1 << 8, 1), channels[..., 0]
    is_gray = np.ptp(channels, axis=-1).max() <= _COLOURLESS
    if image.mode != "P":
        return _of_grays(grays) if is_gray else _of_classes(colours, _BLACK, _CREAM, "#{:06x}".format)
    numbers = np.asarray(image).astype(np.int64)
    if is_gray and (255 not in numbers or (numbers == grays).all()):
        return _of_grays(grays)
    black = colours == _BLACK
    numbers = np.where(black, -1, np.where(colours == _CREAM, 255, numbers))
    return _of_classes(numbers, -1 if black.any() else 0, 255, lambda one: "black" if one < 0 else str(one))


def _of_grays(values: NDArray[np.int64]) -> NDArray[np.int8]:
    """Of numbers that are grays, or classes."""
    if values.max() > 255 and not (values % 257).any():
        values = values // 257  # 8 bits, written as 16
    white = 255 if values.max() <= 255 else 65535
    grays = values * (255 / white)
    near = (np.minimum(grays, 255 - grays) <= _NEAR).mean() >= _MOST
    if len(np.unique(values)) >= _SMOOTH or (near and ((grays > _BRIGHTEST_CLASS) & (grays < 255)).any()):
        values = np.where(grays > 127, 255, 0)
    return _of_classes(values, 0, 255 if values.max() <= 255 else white, str)


def _of_classes(
    values: NDArray[np.int64], ground: int, void: int, spelled: Callable[[int], str]
) -> NDArray[np.int8]:
    """Of a ground, one class, and what is left out."""
    present = np.unique(values).tolist()
    others = [one for one in present if one not in (ground, void)]
    doubtful = void in present and void < 1 << 16 and others and others[0] > _HIGHEST_CLASS
    if len(present) < 2 or ground not in present or len(others) > 1 or doubtful:
        classes = ", ".join(map(spelled, present[:8])) + (
            f" and {len(present) - 8} more" if len(present) > 8 else ""
        )
        raise ParameterError(
            f"This mask holds {classes}, which does not say what is the object; "
            "please make it black (0) for the background and white (255) for the object."
        )
    labels: NDArray[np.int8] = (values == (others or [void])[0]).astype(np.int8)
    if others:
        labels[values == void] = IGNORED
    return labels
