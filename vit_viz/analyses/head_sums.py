"""Sums over the attention of a layer, from which the measures of its heads are made: one pass over its tiles serves all of them.

No N x N matrix of a whole layer is held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from vit_viz.capture.layers import LayerAttention, exact
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import Grid, TokenLayout
from vit_viz.lazy import Tensor, torch
from vit_viz.progress import StopCheck, stop_if


@dataclass(frozen=True, eq=False)
class Offsets:
    """The offsets between the patches of a grid: where patches look relative to themselves.

    An offset is (rows down, columns right), from -(rows - 1) to rows - 1 and -(cols - 1) to cols - 1. Tables of offsets are
    [2 rows - 1, 2 cols - 1] with offset (0, 0) in the middle.
    """

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
        """The sum over all pairs at each offset, [..., 2 rows - 1, 2 cols - 1], of [..., queries, patches], from query `first`."""
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
        # [rows, cols, rows, cols], the last patch first
        windows = table.unfold(0, rows, 1).unfold(1, cols, 1)
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


@dataclass(frozen=True, eq=False)
class Tile:
    """The attention of some queries of one layer.

    Args:
        queries: which they are.
        attention: fp32 [heads, block, tokens].
        logarithm: of it, where that is at hand.
        excess: by how much the logarithm is too high, [heads, block]; None is nothing.
    """

    layout: TokenLayout
    queries: slice
    attention: Tensor
    logarithm: Tensor | None = None
    excess: Tensor | None = None

    @classmethod
    def of(cls, layer: LayerAttention, layout: TokenLayout, queries: slice) -> Tile:
        """That of a layer, with the logarithm in the cheapest way that the device has."""
        if layer.is_plain and layer.lse is not None and layer.device.type != "cpu":
            with exact():  # rows of an odd length, as of `log_rows`, take a GPU longer than a softmax
                scores = layer.scores(None, queries)
                return cls(layout, queries, torch.softmax(scores, dim=-1), scores, layer.lse[:, queries])
        logarithm = layer.log_rows(queries)
        attention = layer.rows(None, queries) if logarithm is None else logarithm.exp()
        return cls(layout, queries, attention, logarithm)

    @cached_property
    def first_patch(self) -> int:
        """Index of the first patch among the queries, in the grid."""
        start: int = self.queries.start
        return max(0, start - self.layout.patch_slice.start)

    @cached_property
    def patches(self) -> slice:
        """Which of the block's queries are patches."""
        patches = self.layout.patch_slice
        start = max(self.queries.start, patches.start) - self.queries.start
        stop = min(self.queries.stop, patches.stop) - self.queries.start
        return slice(start, max(start, stop))

    @cached_property
    def between(self) -> Tensor:
        """From patches to patches, [heads, patches of the block, patches]: a copy, which makes what reads it faster."""
        return self.attention[:, self.patches, self.layout.patch_slice].contiguous()


class Lengths:
    """Distances between patches of (height, width) pixels. The last ones are kept, because all layers have the same tiles."""

    def __init__(self, offsets: Offsets, patch_size: tuple[float, float], device: torch.device) -> None:
        self._offsets = offsets
        self._table = _distances(offsets.grid, patch_size, device)
        self._kept: tuple[tuple[int, int], Tensor] | None = None

    def of(self, first: int, count: int) -> Tensor:
        """From `count` consecutive patches to all, fp32 [count, patches]."""
        if self._kept is None or self._kept[0] != (first, count):
            self._kept = (first, count), self._offsets.spread(self._table, first, count)
        return self._kept[1]


@dataclass(frozen=True, eq=False)
class LayerInput:
    """What the sums over a layer need beside its attention: the rollout's row before it, [tokens], and lengths, where known."""

    trace: Trace
    layer: int
    offsets: Offsets
    row: Tensor | None = None
    lengths: Lengths | None = None

    @cached_property
    def directions(self) -> Tensor:
        """The patch tokens that enter, without their mean, as unit vectors: [patches, dim]."""
        tokens = stream(self.trace)[self.layer][self.trace.layout.patch_slice].float()
        return torch.nn.functional.normalize(tokens - tokens.mean(0), dim=-1)


Sum = Callable[[LayerInput, Tile], Tensor]


def layer_sums(
    inputs: LayerInput, names: Collection[str], *, cancelled: StopCheck | None = None
) -> dict[str, Tensor]:
    """The named sums over all queries of a layer; every block of attention is formed once, and may be the last."""
    totals: dict[str, Tensor] = {}
    trace = inputs.trace
    layer = trace.layers[inputs.layer]
    for queries in layer.blocks(None):
        stop_if(cancelled)
        tile = Tile.of(layer, trace.layout, queries)
        trace.as_numbers(inputs.layer, tile.attention)
        for name in names:
            part = SUMS[name](inputs, tile)
            totals[name] = part if name not in totals else totals[name] + part
    return totals


def stream(trace: Trace) -> Tensor:
    """The residual stream before the first and after each layer, [layers + 1, tokens, dim]."""
    if trace.residual is None:
        raise CaptureError("Token norms need a trace that kept the residual stream (keep_residual=True).")
    return trace.residual


def token_norms(trace: Trace, layers: int | slice) -> Tensor:
    """Norm of every token that enters a layer, or each of some layers, [..., tokens]."""
    norms: Tensor = torch.linalg.vector_norm(stream(trace)[layers].float(), dim=-1)
    return norms


def are_outliers(norms: Tensor, factor: float) -> Tensor:
    """Whether the norm of a token is above `factor` times the median of its layer, Boolean like the norms [..., tokens]."""
    return norms > factor * norms.quantile(0.5, dim=-1, keepdim=True)


# --- the sums, each [heads, ...]


def _entropy(_inputs: LayerInput, tile: Tile) -> Tensor:
    """sum a ln a; 0 ln 0 is 0, since a is a factor and the logarithm is finite."""
    if tile.logarithm is None:
        logarithm = tile.attention.clamp(min=_TINY).log_()
    elif tile.excess is not None:  # each row of the attention sums to 1
        return (tile.attention * tile.logarithm).sum((1, 2)) - tile.excess.sum(1)
    else:  # products of vectors write no third tile; on a GPU each would be a launch
        pairs = zip(tile.attention.flatten(1), tile.logarithm.flatten(1), strict=True)
        return torch.stack([torch.dot(attention, logarithm) for attention, logarithm in pairs])
    return (tile.attention * logarithm).sum((1, 2))


def _columns(inputs: LayerInput, tile: Tile) -> Tensor:
    """What each key receives, [heads, 3, tokens]: from all queries, from patches, and of the rollout row where one is followed.

    Rows of the rollout are renormalised as rollout does, with an attention share of a half.
    """
    attention, queries = tile.attention, tile.queries
    weights = attention.new_zeros(3, attention.shape[1])
    weights[0] = 1
    weights[1, tile.patches] = 1
    if inputs.row is not None:
        weights[2] = inputs.row[queries] / row_norms(inputs, attention)
    return weights @ attention


def _kept(inputs: LayerInput, tile: Tile) -> Tensor:
    """What the skip connection keeps of the rollout row, [tokens]."""
    assert inputs.row is not None
    kept = torch.zeros_like(inputs.row)
    kept[tile.queries] = inputs.row[tile.queries] / row_norms(inputs, tile.attention)
    return kept


def row_norms(inputs: LayerInput, attention: Tensor) -> Tensor | float:
    """By what a row of half attention and half identity is divided: 1 unless keys are hidden from a query."""
    if inputs.trace.determined_by_qk(inputs.layer):
        return 1.0
    return 0.5 * attention.sum(-1).mean(0) + 0.5


def _diagonal(_inputs: LayerInput, tile: Tile) -> Tensor:
    itself: Tensor = tile.between.diagonal(tile.first_patch, 1, 2)
    return itself.sum(1)


def _distance(inputs: LayerInput, tile: Tile) -> Tensor:
    """Renormalised over patch keys, row by row: sum_j a_ij d_ij and sum_j a_ij of a query i are one product for all heads.

    Over whole rows, with factors of 0 at what is no patch: keys that lie side by side in memory are read three times as fast.
    """
    assert inputs.lengths is not None
    rows = tile.attention[:, tile.patches]  # [heads, patches of the block, tokens]
    factors = rows.new_zeros(rows.shape[1], 2, rows.shape[2])
    factors[:, 0, tile.layout.patch_slice] = inputs.lengths.of(tile.first_patch, rows.shape[1])
    factors[:, 1, tile.layout.patch_slice] = 1
    sums = torch.bmm(factors, rows.permute(1, 2, 0))  # [patches of the block, 2, heads]
    return (sums[:, 0] / sums[:, 1]).sum(0)


def _offsets(inputs: LayerInput, tile: Tile) -> Tensor:
    return inputs.offsets.sums(tile.between, tile.first_patch)


def _squares(_inputs: LayerInput, tile: Tile) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(tile.between, dim=2)  # row by row, as `_alike`
    if lengths.device.type != "mps":  # which has no double precision
        lengths = lengths.double()  # nearly as much is taken away again, in `_variances`
    return lengths.square().sum(1).float()


def _alike(inputs: LayerInput, tile: Tile) -> Tensor:
    """With c the cosine of two patch tokens, side by side: sum_ij a_ij c_ij of each head, sum_ij c_ij^2, and c at each offset.

    Row by row: of sums whose terms have both signs, one chain of all pairs would lose a part in 10,000 in fp32.
    """
    first, directions = tile.first_patch, inputs.directions
    cosine = directions[first : first + tile.between.shape[1]] @ directions.T
    products = torch.einsum("hqk,qk->hq", tile.between, cosine).sum(1)
    by_offset = inputs.offsets.sums(cosine, tile.first_patch).flatten()
    return torch.cat((products, cosine.square().sum()[None], by_offset))


_TINY = 1e-37
"""Close to the smallest normal number of fp32."""

SUMS: dict[str, Sum] = {
    "entropy": _entropy,
    "columns": _columns,
    "kept": _kept,
    "diagonal": _diagonal,
    "distance": _distance,
    "offsets": _offsets,
    "squares": _squares,
    "alike": _alike,
}


# --- tables of offsets


@lru_cache(maxsize=4)
def _counts(grid: Grid) -> Tensor:
    down, right = _steps(grid)
    return torch.outer(grid[0] - down.abs(), grid[1] - right.abs())


@lru_cache(maxsize=8)
def _distances(grid: Grid, patch_size: tuple[float, float], device: torch.device) -> Tensor:
    """On a device, which is waited for only once."""
    return Offsets(grid).distances(*patch_size).float().to(device)


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
