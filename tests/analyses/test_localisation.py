"""Pointing game, energy inside and best IoU, by hand and against pixel masks."""

from __future__ import annotations

import numpy as np
import pytest

from vit_viz.analyses.localisation import localisation, object_on_grid
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.results import PatchMap

CROP = CropBox(
    (80, 200), (32, 64), (0.0, 20.0, 80.0, 160.0)
)  # patches of 40 x 40 pixels of the original, 2 x 4


def map_of(values, crop_box=CROP):
    return PatchMap(
        np.array(values, dtype=np.float32), "test", (0, 1), False, "test", False, crop_box=crop_box
    )


def test_all_three_scores_worked_by_hand():
    # the box covers patches (0, 1) and (0, 2) fully and half of (1, 1)
    boxes = [(60, 0, 140, 40), (60, 40, 80, 80)]
    result = localisation(map_of([[0, 4, 3, 1], [0, 2, 0, 0]]), boxes=boxes)
    assert result.pointing
    assert result.energy == pytest.approx((4 + 3 + 0.5 * 2) / 10)
    assert result.iou == pytest.approx(2.5 / 3)  # patches with at least 2


def test_pointing_asks_the_centre_of_the_best_patch_without_tolerance():
    best = [[0, 0, 0, 0], [0, 0, 9, 0]]  # centre at (x, y) = (120, 60)
    assert localisation(map_of(best), boxes=[(119, 59, 121, 61)]).pointing
    assert not localisation(map_of(best), boxes=[(121, 59, 140, 80)]).pointing


def test_a_uniform_map_scores_by_chance_and_points_nowhere():
    result = localisation(map_of(np.ones((2, 4))), boxes=[(20, 0, 60, 40)])
    assert result.pointing is None
    assert result.energy == pytest.approx(1 / 8)
    assert result.iou == pytest.approx(1 / 8)


def test_negative_values_have_no_energy():
    result = localisation(map_of([[-5, 1, 0, 0], [0, 0, 0, 0]]), boxes=[(60, 0, 100, 40)])
    assert result.energy == 1
    assert localisation(map_of(-np.ones((2, 4))), boxes=[(60, 0, 100, 40)]).energy is None


def test_overlapping_boxes_count_once():
    share = object_on_grid(CROP, (2, 4), boxes=[(60, 0, 100, 40), (60, 0, 100, 40), (70, 10, 90, 30)]).share
    np.testing.assert_allclose(share, [[0, 1, 0, 0], [0, 0, 0, 0]])


def test_a_mask_and_its_box_give_the_same():
    mask = np.zeros((80, 200), dtype=bool)
    mask[13:57, 47:131] = True
    random = np.random.default_rng(0).random((2, 4))
    by_mask, by_box = (
        localisation(map_of(random), mask=mask),
        localisation(map_of(random), boxes=[(47, 13, 131, 57)]),
    )
    assert by_mask.energy == pytest.approx(by_box.energy, abs=1e-9)
    assert by_mask == by_box


def test_what_lies_outside_the_image_is_not_the_object():
    padded = CropBox((80, 80), (32, 32), (-40.0, 0.0, 160.0, 80.0))
    there = object_on_grid(padded, (4, 2), mask=np.ones((80, 80), dtype=bool))
    assert there.counted.min() == 1
    np.testing.assert_allclose(there.share, [[0, 0], [1, 1], [1, 1], [0, 0]])
    little = CropBox(
        (80, 80), (32, 32), (0.0, 0.0, 84.0, 84.0)
    )  # a point of each patch and axis lies in pixel 80
    within = np.array([1, 14 / 16])
    share = object_on_grid(little, (2, 2), mask=np.ones((80, 80), dtype=bool)).share
    np.testing.assert_allclose(share, within[:, None] * within)


def test_equal_values_pass_a_threshold_together():
    result = localisation(map_of([[1, 1, 0, 0], [0, 0, 0, 0]]), boxes=[(20, 0, 60, 40)])
    assert result.iou == pytest.approx(1 / 2)  # (0, 0) cannot be had without (0, 1)


def test_equally_high_patches_point_by_their_share():
    values = [[9, 9, 0, 0], [0, 0, 9, 1]]
    result = localisation(map_of(values), boxes=[(20, 0, 60, 40)])
    assert result.pointing == pytest.approx(1 / 3)


@pytest.mark.parametrize("left_out", [8, 0, 5])
def test_what_a_mask_leaves_out_counts_neither_way(left_out):
    values = [[0, 4, 3, 1], [left_out, 2, 0, 5]]
    mask = np.zeros((80, 200), np.uint8)
    mask[:, 60:100] = 1  # patches (0, 1) and (1, 1)
    mask[40:, :60] = 255  # patch (1, 0), whatever the map has there
    mask[40:, 140:160] = 255  # half of patch (1, 3), with its centre on the ground
    result = localisation(map_of(values), mask=mask)
    assert result.pointing == 0  # patch (1, 3)
    assert result.energy == pytest.approx((4 + 2) / (4 + 3 + 1 + 2 + 5 / 2))
    assert result.iou == pytest.approx(2 / (2 + 1 + 0.5))  # patches with at least 2
    mask[40:, 140:161] = 255
    assert localisation(map_of(values), mask=mask).pointing == 1  # patch (0, 1)


def test_centres_lie_where_the_crop_says():
    centres = object_on_grid(CROP, (2, 4), boxes=[(39, 19, 41, 21)]).centres
    assert centres.tolist() == [[1, 0, 0, 0], [0] * 4]


def test_what_is_missing_or_does_not_fit_is_said():
    with pytest.raises(ParameterError, match="crop box"):
        localisation(map_of(np.ones((2, 4)), None), boxes=[(0, 0, 1, 1)])
    with pytest.raises(ParameterError, match="boxes or by a mask"):
        localisation(map_of(np.ones((2, 4))))
    with pytest.raises(ParameterError, match="pixels"):
        localisation(map_of(np.ones((2, 4))), mask=np.ones((3, 3), dtype=bool))
