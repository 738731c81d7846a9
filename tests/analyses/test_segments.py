"""Patches merged into segments: cases worked by hand, connected, the cheapest pair first."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.shapley import merged, segments_of


def test_the_cheapest_neighbours_are_merged_first() -> None:
    means = np.array([[0.0], [1.0], [1.5], [9.0]])
    assert merged(means, (1, 4), 3).tolist() == [[0, 1, 1, 2]]
    # 0 with {1, 2}: 1 * 2 / 3 * 1.25 ** 2 = 1.04; {1, 2} with 9: 2 / 3 * 7.75 ** 2
    assert merged(means, (1, 4), 2).tolist() == [[0, 0, 0, 1]]
    assert merged(means, (1, 4), 1).tolist() == [[0, 0, 0, 0]]
    assert merged(means, (1, 4), 4).tolist() == [[0, 1, 2, 3]]
    assert means.tolist() == [[0.0], [1.0], [1.5], [9.0]]


def test_a_large_segment_costs_more_than_two_single_patches_as_far_apart() -> None:
    means = np.array([[0.0], [0.0], [0.0], [1.0], [2.1]])
    # {0, 1, 2} with 1: 3 / 4 * 1 = 0.75; 1 with 2.1: 1 / 2 * 1.21 = 0.605
    assert merged(means, (1, 5), 2).tolist() == [[0, 0, 0, 1, 1]]


def test_alike_patches_that_do_not_touch_stay_apart() -> None:
    means = np.array([[0.0], [5.0], [0.0], [5.0], [9.0], [5.0]])
    found = merged(means, (2, 3), 4)
    assert found[0, 0] != found[0, 2]
    corners = merged(np.array([[0.0], [9.0], [7.0], [0.0]]), (2, 2), 3)
    assert corners.tolist() == [
        [0, 1],
        [0, 2],
    ]  # the corners would cost nothing; 0 with 7 is the cheapest that touches


@pytest.mark.parametrize("grid", [(1, 7), (7, 1), (4, 6)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_segment_is_connected(grid: tuple[int, int], count: int) -> None:
    from scipy.ndimage import label

    rows, cols = grid
    found = merged(np.random.default_rng(3).normal(size=(rows * cols, 3)), grid, count)
    assert found.shape == grid
    assert sorted(np.unique(found)) == list(range(count))
    for segment in range(count):
        assert label(found == segment)[1] == 1


def test_two_halves_of_a_photo_are_two_segments(make_model) -> None:
    model = make_model()
    halves = torch.zeros(1, 3, 16, 36)
    halves[..., 18:] = 1
    found = segments_of(PreparedImage.of(model, halves), 2)
    assert found.tolist() == [[0, 0, 0, 1, 1, 1]] * 4


def test_a_photo_of_one_colour_is_split_by_place(make_model) -> None:
    found = segments_of(PreparedImage.of(make_model(), torch.full((1, 3, 16, 36), 0.25)), 2)
    assert len(np.unique(found[:, 0])) == len(np.unique(found[:, -1])) == 1
    assert found[0, 0] != found[0, -1]  # the longer side is cut
