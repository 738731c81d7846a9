"""Sums over the attention of a layer, from which the measures of its heads are made: one pass over its tiles serves all of them.

No N x N matrix of a whole layer is held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from vit_viz.analyses.offsets import Offsets
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout


@dataclass(frozen=True, eq=False)
class Tile:
    """The attention of some queries of one layer.

    Args:
        queries: which they are.
        attention: fp32 [heads, block, tokens].
        logarithm: of it, where that is at hand.
    """

    layout: TokenLayout
    queries: slice
    attention: Tensor
    logarithm: Tensor | None = None

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
    """Distances in pixels between patches. The last ones are kept, because all layers have the same tiles.

    Args:
        patch_size: (height, width) of a patch in pixels.
    """

    def __init__(self, offsets: Offsets, patch_size: tuple[float, float], device: torch.device) -> None:
        self._offsets = offsets
        self._table = offsets.distances(*patch_size).float().to(device)
        self._kept: tuple[tuple[int, int], Tensor] | None = None

    def of(self, first: int, count: int) -> Tensor:
        """From `count` consecutive patches to all, fp32 [count, patches]."""
        if self._kept is None or self._kept[0] != (first, count):
            self._kept = (first, count), self._offsets.spread(self._table, first, count)
        return self._kept[1]


@dataclass(frozen=True, eq=False)
class LayerInput:
    """What the sums over a layer need beside its attention.

    Args:
        row: of the rollout that is followed, before this layer, [tokens].
        lengths: between patches; None where the size of a patch is not known.
    """

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

    def alikeness(self, tile: Tile) -> Tensor:
        """Cosine between the patches of a tile and all others, [patches of the tile, patches]."""
        first = tile.first_patch
        return self.directions[first : first + tile.between.shape[1]] @ self.directions.T


Sum = Callable[[LayerInput, Tile], Tensor]


def layer_sums(given: LayerInput, names: Collection[str]) -> dict[str, Tensor]:
    """The named sums over all queries of a layer; every block of attention is formed once."""
    totals: dict[str, Tensor] = {}
    trace = given.trace
    layer = trace.layers[given.layer]
    for queries in layer.blocks(None):
        logarithm = layer.log_rows(queries)
        attention = layer.rows(None, queries) if logarithm is None else logarithm.exp()
        tile = Tile(trace.layout, queries, attention, logarithm)
        for name in names:
            part = SUMS[name](given, tile)
            totals[name] = part if name not in totals else totals[name] + part
    return totals


def stream(trace: Trace) -> Tensor:
    """The residual stream before the first and after each layer, [layers + 1, tokens, dim].

    Raises:
        CaptureError: it was not kept.
    """
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


def _entropy(_given: LayerInput, tile: Tile) -> Tensor:
    """sum a ln a; 0 ln 0 is 0, since a is a factor and the logarithm is finite."""
    if tile.logarithm is None:
        logarithm = tile.attention.clamp(min=_TINY).log_()
    elif tile.attention.device.type != "cpu":
        logarithm = tile.logarithm
    else:  # products of vectors write no third tile; on a GPU each would be a launch
        pairs = zip(tile.attention.flatten(1), tile.logarithm.flatten(1), strict=True)
        return torch.stack([torch.dot(attention, logarithm) for attention, logarithm in pairs])
    return (tile.attention * logarithm).sum((1, 2))


def _columns(given: LayerInput, tile: Tile) -> Tensor:
    """What each key receives, [heads, 3, tokens]: from all queries, from patches, and of the rollout row where one is followed.

    Rows of the rollout are renormalised as rollout does, with an attention share of a half.
    """
    attention, queries = tile.attention, tile.queries
    weights = attention.new_zeros(3, attention.shape[1])
    weights[0] = 1
    weights[1, tile.patches] = 1
    if given.row is not None:
        weights[2] = given.row[queries] / row_norms(given, attention)
    return weights @ attention


def _kept(given: LayerInput, tile: Tile) -> Tensor:
    """What the skip connection keeps of the rollout row, [tokens]."""
    assert given.row is not None
    kept = torch.zeros_like(given.row)
    kept[tile.queries] = given.row[tile.queries] / row_norms(given, tile.attention)
    return kept


def row_norms(given: LayerInput, attention: Tensor) -> Tensor | float:
    """By what a row of half attention and half identity is divided: 1 unless keys are hidden from a query."""
    if given.trace.determined_by_qk(given.layer):
        return 1.0
    return 0.5 * attention.sum(-1).mean(0) + 0.5


def _diagonal(_given: LayerInput, tile: Tile) -> Tensor:
    itself: Tensor = tile.between.diagonal(tile.first_patch, 1, 2)
    return itself.sum(1)


def _distance(given: LayerInput, tile: Tile) -> Tensor:
    """Renormalised over patch keys, row by row: sum_j a_ij d_ij and sum_j a_ij of a query i are one product for all heads.

    Over whole rows, with factors of 0 at what is no patch: keys that lie side by side in memory are read three times as fast.
    """
    assert given.lengths is not None
    rows = tile.attention[:, tile.patches]  # [heads, patches of the block, tokens]
    factors = rows.new_zeros(rows.shape[1], 2, rows.shape[2])
    factors[:, 0, tile.layout.patch_slice] = given.lengths.of(tile.first_patch, rows.shape[1])
    factors[:, 1, tile.layout.patch_slice] = 1
    sums = torch.bmm(factors, rows.permute(1, 2, 0))  # [patches of the block, 2, heads]
    return (sums[:, 0] / sums[:, 1]).sum(0)


def _offsets(given: LayerInput, tile: Tile) -> Tensor:
    return given.offsets.sums(tile.between, tile.first_patch)


def _squares(_given: LayerInput, tile: Tile) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(tile.between.flatten(1), dim=1)
    return lengths.square()


def _alike(given: LayerInput, tile: Tile) -> Tensor:
    """With c the cosine of two patch tokens, side by side: sum_ij a_ij c_ij of each head, sum_ij c_ij^2, and c at each offset."""
    cosine = given.alikeness(tile)
    flat = cosine.flatten()
    by_offset = given.offsets.sums(cosine, tile.first_patch).flatten()
    return torch.cat((tile.between.flatten(1) @ flat, (flat @ flat)[None], by_offset))


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
