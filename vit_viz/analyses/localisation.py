"""Whether a map lies on the object, where boxes or a mask say where the object is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Grid
from vit_viz.results import PatchMap

Box = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the original image, as annotations have it."""

# points per patch and axis at which the object is asked for: pixels of the input, for the usual patch
_SAMPLES = 16


@dataclass(frozen=True)
class Localisation:
    """How well a map meets an object.

    Args:
        pointing: whether the centre of the highest patch lies on the object, without tolerance.
        energy: share of the map's positive mass on the object, in [0, 1].
        iou: intersection over union of the object and the patches above the best threshold, in [0, 1].
    """

    pointing: bool
    energy: float
    iou: float


def localisation(
    patch_map: PatchMap, *, boxes: Sequence[Box] = (), mask: NDArray[np.bool_] | None = None
) -> Localisation:
    """Pointing game, energy inside and best IoU of a map against boxes or a mask of the original image.

    Args:
        boxes: one or several, in pixels of the original; together they are the object.
        mask: instead of boxes, [height, width] of the original.

    Raises:
        ParameterError: neither or both are given, the mask has another size, or the map does not know where it lies.

    Source: Zhang et al. 2018, arXiv:1608.00507 (pointing game); Wang et al. 2020, arXiv:1910.01279 (energy).
    """
    if patch_map.crop_box is None:
        raise ParameterError(
            "Localisation needs a map that knows where its patches lie in the image (a crop box)."
        )
    inside = object_share(patch_map.crop_box, patch_map.grid, boxes=boxes, mask=mask)
    centres = object_at_centres(patch_map.crop_box, patch_map.grid, boxes=boxes, mask=mask)
    positive = np.clip(patch_map.values.astype(np.float64), 0, None)
    mass = float(positive.sum())
    return Localisation(
        pointing=bool(centres[patch_map.peak]),
        energy=float((positive * inside).sum()) / mass if mass > 0 else 0.0,
        iou=_best_iou(patch_map.values, inside),
    )


def object_share(
    crop_box: CropBox, grid: Grid, *, boxes: Sequence[Box] = (), mask: NDArray[np.bool_] | None = None
) -> NDArray[np.float64]:
    """Share of each patch that the object covers, [rows, cols]; its mean is the share of the model's input."""
    rows, cols = grid
    points = object_at_centres(crop_box, (rows * _SAMPLES, cols * _SAMPLES), boxes=boxes, mask=mask)
    share: NDArray[np.float64] = points.reshape(rows, _SAMPLES, cols, _SAMPLES).mean((1, 3))
    return share


def object_at_centres(
    crop_box: CropBox, grid: Grid, *, boxes: Sequence[Box] = (), mask: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Whether the centre of each patch, or cell of any grid over the model's input, lies on the object, [rows, cols]."""
    if (mask is None) == (len(boxes) == 0):
        raise ParameterError("Say where the object is, by boxes or by a mask, not by both.")
    top, left, height, width = crop_box.region
    y = top + height * (np.arange(grid[0]) + 0.5) / grid[0]
    x = left + width * (np.arange(grid[1]) + 0.5) / grid[1]
    if mask is not None:
        return _in_mask(mask, y, x, crop_box.original_size)
    inside = np.zeros(grid, dtype=bool)
    for box_left, box_top, box_right, box_bottom in boxes:
        rows, cols = (box_top <= y) & (y < box_bottom), (box_left <= x) & (x < box_right)
        inside |= rows[:, None] & cols
    return inside


def _in_mask(
    mask: NDArray[np.bool_], y: NDArray[np.float64], x: NDArray[np.float64], size: tuple[int, int]
) -> NDArray[np.bool_]:
    if mask.shape != size:
        raise ParameterError(f"The mask has {mask.shape} pixels, the image {size}.")
    rows, cols = np.floor(y).astype(int), np.floor(x).astype(int)
    known = ((rows >= 0) & (rows < size[0]))[:, None] & ((cols >= 0) & (cols < size[1]))
    inside: NDArray[np.bool_] = mask[np.clip(rows, 0, size[0] - 1)[:, None], np.clip(cols, 0, size[1] - 1)]
    return inside.astype(bool) & known


def _best_iou(values: NDArray[np.float32], inside: NDArray[np.float64]) -> float:
    """Best intersection over union of {values >= t} with the object, over all thresholds t, in areas of patches."""
    flat = values.ravel()
    order = np.argsort(-flat, kind="stable")
    covered, size = np.cumsum(inside.ravel()[order]), np.arange(1, flat.size + 1)
    union = size + inside.sum() - covered
    is_threshold = np.append(flat[order][1:] < flat[order][:-1], True)  # equal values go together
    return float((covered / union)[is_threshold].max())
