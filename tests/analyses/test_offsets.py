"""Sums by offset against a loop over pairs, also for blocks of queries that begin and end within a row."""

from __future__ import annotations

import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.head_sums import Lengths, Offsets

BLOCKS = [((4, 6), 0, 24), ((4, 6), 3, 17), ((4, 6), 8, 3), ((5, 1), 1, 3), ((1, 7), 2, 5), ((3, 2), 5, 1)]


@pytest.mark.parametrize(("grid", "first", "count"), BLOCKS)
@pytest.mark.parametrize("lead", [(), (2,)])
def test_sums_by_offset_are_those_of_a_loop_over_pairs(grid, first, count, lead):
    (rows, cols), offsets = grid, Offsets(grid)
    values = torch.rand(*lead, count, rows * cols, generator=torch.Generator().manual_seed(3)).double()
    expected = torch.zeros(*lead, 2 * rows - 1, 2 * cols - 1).double()
    for query in range(count):
        row, col = divmod(first + query, cols)
        for key in range(rows * cols):
            down, right = key // cols - row, key % cols - col
            expected[..., rows - 1 + down, cols - 1 + right] += values[..., query, key]
    assert_same(offsets.sums(values, first), expected, relative=1e-12)


def test_lengths_are_those_of_the_block_that_is_asked_for():
    lengths = Lengths(Offsets((3, 4)), (5.0, 2.0), torch.device("cpu"))
    centres = torch.cartesian_prod(torch.arange(3) * 5.0, torch.arange(4) * 2.0)
    expected = torch.cdist(centres, centres)
    for first, count in ((0, 12), (2, 5), (2, 5), (2, 7), (4, 7)):
        assert_same(lengths.of(first, count), expected[first : first + count])
