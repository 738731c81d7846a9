"""Where patches look relative to themselves: numbers of pairs of patches, gathered by the offset from query to key.

An offset is (rows down, columns right), from -(rows - 1) to rows - 1 and -(cols - 1) to cols - 1. Tables of offsets are
[2 rows - 1, 2 cols - 1] with offset (0, 0) in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from vit_viz.geometry import Grid


@dataclass(frozen=True, eq=False)
class Offsets:
    """The offsets between the patches of a grid."""

    grid: Grid

    @property
    def shape(self) -> Grid:
        """Of a table with one number for each offset."""
        return 2 * self.grid[0] - 1, 2 * self.grid[1] - 1

    @property
    def counts(self) -> Tensor:
        """Pairs of patches at each offset, fp64 on the CPU, [2 rows - 1, 2 cols - 1]; they sum to patches ** 2."""
        return _counts(self.grid)

    def distances(self, height: float, width: float) -> Tensor:
        """Length of each offset for patches of this size, fp64 on the CPU, [2 rows - 1, 2 cols - 1]."""
        down, right = _steps(self.grid)
        return torch.hypot(down[:, None] * height, right[None] * width)

    def at(self, table: Tensor, down: int, right: int) -> Tensor:
        """The numbers at one offset of tables [..., 2 rows - 1, 2 cols - 1]: [...]; 0 where the grid has no such offset."""
        row, col = self.grid[0] - 1 + down, self.grid[1] - 1 + right
        if not (0 <= row < self.shape[0] and 0 <= col < self.shape[1]):
            return table.new_zeros(table.shape[:-2])
        return table[..., row, col]

    def sums(self, values: Tensor, first: int) -> Tensor:
        """The sum over all pairs at each offset, [..., 2 rows - 1, 2 cols - 1], of [..., queries, patches].

        Args:
            first: index of the first of the consecutive patches that the queries are.
        """
        (rows, cols), lead = self.grid, values.shape[:-2]
        by_col = values.new_zeros(*lead, cols, 2 * rows - 1, cols)  # query col, offset down, key col
        for part, (row, col), (height, width) in self._rectangles(first, values.shape[-2]):
            moved = values.new_zeros(*lead, height, width, 2 * rows - 1, cols)
            _shifted(moved, -4, -2, rows, rows - 1 - row).copy_(
                values[..., part, :].reshape(*lead, height, width, *self.grid)
            )
            by_col[..., col : col + width, :, :] += moved.sum(-4)
        moved = values.new_zeros(*lead, cols, *self.shape)
        _shifted(moved, -3, -1, cols, cols - 1).copy_(by_col)
        return moved.sum(-3)

    def spread(self, table: Tensor, first: int, count: int) -> Tensor:
        """The number of each pair of patches from a table of offsets: [queries, patches]."""
        rows, cols = self.grid
        query = torch.arange(first, first + count, device=table.device)
        windows = table.unfold(0, rows, 1).unfold(
            1, cols, 1
        )  # [rows, cols, rows, cols], the last patch first
        return windows[rows - 1 - query // cols, cols - 1 - query % cols].flatten(1)

    def _rectangles(self, first: int, count: int) -> Iterator[tuple[slice, Grid, Grid]]:
        """Consecutive patches as at most three rectangles: (part of them, first patch (row, col), size (rows, cols))."""
        end, cols = first + count, self.grid[1]
        at = first
        while at < end:
            row, col = divmod(at, cols)
            whole = (end - at) // cols if col == 0 else 0
            size = (whole, cols) if whole else (1, min(cols - col, end - at))
            stop = at + size[0] * size[1]
            yield slice(at - first, stop - first), (row, col), size
            at = stop


@lru_cache(maxsize=4)
def _counts(grid: Grid) -> Tensor:
    down, right = _steps(grid)
    return torch.outer(grid[0] - down.abs(), grid[1] - right.abs())


def _steps(grid: Grid) -> tuple[Tensor, Tensor]:
    rows, cols = grid
    return torch.arange(1 - rows, rows).double(), torch.arange(1 - cols, cols).double()


def _shifted(table: Tensor, query: int, key: int, keys: int, first: int) -> Tensor:
    """A view of a table by offsets that is indexed by keys instead: of query i and key j, the number at offset first + j - i.

    Moving a query by one place moves all its offsets by one back, so that the address is linear in all indices.

    Args:
        query, key: axes of `table`, from its end: queries, and offsets of `keys` keys.
        first: index of the offset from the first query to the first key.
    """
    size, stride = list(table.shape), list(table.stride())
    size[key] = keys
    stride[query] -= stride[key]
    return table.as_strided(size, stride, table.storage_offset() + first * stride[key])
