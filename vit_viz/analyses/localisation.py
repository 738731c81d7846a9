"""Whether a map lies on the object, where boxes or a mask say where the object is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Grid
from vit_viz.images.masks import IGNORED, mask_labels
from vit_viz.results import PatchMap

Box = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixels of the original image, as annotations have it."""

# points per patch and axis at which the object is asked for: pixels of the input, for the usual patch
_SAMPLES = 16
_TINY = 1e-12  # where a mask leaves all out


@dataclass(frozen=True)
class Localisation:
    """How well a map meets an object.

    Args:
        pointing: whether the centre of the highest patch lies on the object, without tolerance, as 1 or 0; of several that are
            equally high the share that does; None where the map is the same everywhere and has no peak.
        energy: share of the map's positive mass on the object, in [0, 1]; None where it has none.
        iou: intersection over union of the object and the patches above the best threshold, in [0, 1].
    """

    pointing: float | None
    energy: float | None
    iou: float


@dataclass(frozen=True, eq=False)
class ObjectOnGrid:
    """Where an object lies on patches, or cells of any grid over the model's input; all arrays are [rows, cols].

    Args:
        share: of each patch that the object covers.
        counted: of each patch that is the object or not, and so counts; less than 1 where a mask leaves pixels out.
        centres: 1 where the centre of a patch lies on the object, 0 where it does not, and -1 where a mask leaves it out.
    """

    share: NDArray[np.float64]
    counted: NDArray[np.float64]
    centres: NDArray[np.int8]

    def pointing(self, values: NDArray[np.floating]) -> float:
        """Whether the centre of the highest patch that counts lies on the object; of equally high ones the share that does."""
        counts = self.centres != IGNORED
        highest = counts & (values == values[counts].max(initial=-np.inf))
        return float(self.centres[highest].mean()) if highest.any() else 0.0

    def iou(self, chosen: NDArray[np.floating] | NDArray[np.bool_]) -> float:
        """Intersection over union of the object and the chosen share of each patch, in areas of patches, [rows, cols]."""
        inside = float((chosen * self.share).sum())
        union = float((chosen * self.counted).sum()) + float(self.share.sum()) - inside
        return inside / max(union, _TINY)

    def energy(self, values: NDArray[np.floating]) -> float:
        """Share of the positive mass on what counts that lies on the object; 0 where there is none."""
        positive = values.astype(np.float64).clip(min=0)
        mass = float((positive * self.counted).sum())
        return float((positive * self.share).sum()) / mass if mass > 0 else 0.0


def localisation(patch_map: PatchMap, *, boxes: Sequence[Box] = (), mask: Any = None) -> Localisation:
    """Pointing game, energy inside and best IoU of a map against boxes or a mask of the original image.

    Args:
        boxes: one or several, in pixels of the original; together they are the object.
        mask: instead of boxes, [height, width] of the original, as `vit_viz.images.masks` has it; what it leaves out counts
            neither way.

    Source: Zhang et al. 2018, arXiv:1608.00507 (pointing game); Wang et al. 2020, arXiv:1910.01279 (energy).
    """
    if patch_map.crop_box is None:
        raise ParameterError(
            "Localisation needs a map with a crop box, which says where its patches lie in the image."
        )
    there = object_on_grid(patch_map.crop_box, patch_map.grid, boxes=boxes, mask=mask)
    return Localisation(
        pointing=None if patch_map.peak is None else there.pointing(patch_map.values),
        energy=there.energy(patch_map.values) if (patch_map.values > 0).any() else None,
        iou=_best_iou(patch_map.values, there),
    )


def object_on_grid(
    crop_box: CropBox, grid: Grid, *, boxes: Sequence[Box] = (), mask: Any = None
) -> ObjectOnGrid:
    """Where an object lies on the patches; the mean share is that of the model's input."""
    rows, cols = grid
    labels = None if mask is None else mask_labels(mask)
    points = _labels_at(crop_box, (rows * _SAMPLES, cols * _SAMPLES), boxes, labels)
    parts = points.reshape(rows, _SAMPLES, cols, _SAMPLES)
    return ObjectOnGrid(
        (parts == 1).mean((1, 3)), (parts != IGNORED).mean((1, 3)), _labels_at(crop_box, grid, boxes, labels)
    )


def _labels_at(
    crop_box: CropBox, grid: Grid, boxes: Sequence[Box], labels: NDArray[np.int8] | None
) -> NDArray[np.int8]:
    """What the centre of each cell of a grid lies on, [rows, cols]: see `mask_labels`."""
    if (labels is None) == (len(boxes) == 0):
        raise ParameterError("Say where the object is, by boxes or by a mask, not by both.")
    top, left, height, width = crop_box.region
    y = top + height * (np.arange(grid[0]) + 0.5) / grid[0]
    x = left + width * (np.arange(grid[1]) + 0.5) / grid[1]
    if labels is not None:
        return _in_mask(labels, y, x, crop_box.original_size)
    inside = np.zeros(grid, dtype=bool)
    for box_left, box_top, box_right, box_bottom in boxes:
        rows, cols = (box_top <= y) & (y < box_bottom), (box_left <= x) & (x < box_right)
        inside |= rows[:, None] & cols
    return inside.astype(np.int8)


def _in_mask(
    labels: NDArray[np.int8], y: NDArray[np.float64], x: NDArray[np.float64], size: tuple[int, int]
) -> NDArray[np.int8]:
    if labels.shape != size:
        shape = " x ".join(map(str, labels.shape[::-1]))
        raise ParameterError(f"A mask has the photo's {size[1]} x {size[0]} pixels; this one has {shape}.")
    rows, cols = np.floor(y).astype(int), np.floor(x).astype(int)
    is_inside = ((rows >= 0) & (rows < size[0]))[:, None] & ((cols >= 0) & (cols < size[1]))
    at = labels[np.clip(rows, 0, size[0] - 1)[:, None], np.clip(cols, 0, size[1] - 1)]
    return np.where(is_inside, at, 0).astype(np.int8)  # beyond the photo no object lies


def _best_iou(values: NDArray[np.float32], there: ObjectOnGrid) -> float:
    """Best intersection over union of {values >= t} with the object, over all thresholds t, in areas of patches."""
    flat = values.ravel()
    order = np.argsort(-flat, kind="stable")
    covered, size = (np.cumsum(part.ravel()[order]) for part in (there.share, there.counted))
    union = size + there.share.sum() - covered
    is_threshold = np.append(flat[order][1:] < flat[order][:-1], True)  # equal values go together
    return float((covered / np.maximum(union, _TINY))[is_threshold].max())
