"""One row through all layers: what rollout, gradient rollout and relevance share.

Each of these methods is defined as a product of one matrix per layer, R = M_L ... M_1. The map of a token is one row of R, and one
row r needs no product of matrices: r <- r M_l for l = L..1, with M_l formed in blocks of rows from queries and keys and dropped
again. Several chains run over the same blocks, so each block of attention is formed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from vit_viz.analyses.attention import HeadFusion, fuse_heads
from vit_viz.capture.gradients import WITHOUT
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query, format_query
from vit_viz.indices import as_index
from vit_viz.lazy import Tensor, torch

LayerRange = tuple[int, int]
Source = Literal["attention", "gradient", "values"]

_FEW = 2  # a class token and a distillation token; more are a pool over patches


@dataclass(frozen=True)
class Chain:
    """Which matrix M each layer contributes.

    With F the head-fused matrix of the layer, M = a F + (1 - a) I with rows renormalised, or M = F + I where `share` is None.

    Args:
        source: F = fuse_h(A_h); or F = E_h[(dA_h * A_h)+], clamped before the mean over heads; or sum_h A_h,ij ||v_h,j W_O,h||,
            each row divided by its sum.
        share: a, the share of the attention branch; None adds the identity without renormalising.
        fusion: over heads, where the source is attention.
        discard: share of the patch keys that each row of F drops, lowest first.
    """

    source: Source
    share: float | None = None
    fusion: HeadFusion = "mean"
    discard: float = 0.0


def run_chains(
    trace: Trace, chains: Sequence[Chain], starts: Sequence[Tensor], *, layers: LayerRange | None = None
) -> list[Tensor]:
    """The start row [tokens] of each chain, carried through the layers from the last to the first."""
    first, end = layer_range(trace, layers)
    rows = list(starts)
    if not chains:
        return rows
    needs_gradient = any(chain.source == "gradient" for chain in chains)
    if needs_gradient:
        check_reached(trace, layers)
    for layer in reversed(range(first, end)):
        results = [torch.zeros_like(row) for row in rows]
        support = torch.stack(rows).ne(0).any(0).nonzero().flatten()
        for queries, attention in _attention_blocks(trace, layer, support):
            product: Tensor | None = None  # E_h[(dA_h * A_h)+], clamped before the mean over heads
            if needs_gradient:
                gradient = trace.attention_gradient(layer, queries=queries)
                product = gradient.mul_(attention).clamp_(min=0).mean(0)
            for chain, row, result in zip(chains, rows, results, strict=True):
                _step(chain, row, result, queries, _fuse(trace, layer, chain, attention, product))
        rows = results
    return rows


def layer_range(trace: Trace, layers: LayerRange | None) -> LayerRange:
    """The layers that take part, as (first, end) with `end` excluded; negative ones as in a slice; None means all."""
    trace.check_layers_follow()
    if layers is None:
        return 0, trace.num_layers
    if not isinstance(layers, Sequence) or len(layers) != 2:
        raise ParameterError(f"Layers are a range (first, end), end excluded, not {layers!r:.60}.")
    indices = [as_index("A layer", layer) for layer in layers]
    first, end = (layer + trace.num_layers if layer < 0 else layer for layer in indices)
    if not 0 <= first < end <= trace.num_layers:
        raise ParameterError(
            f"Layers {indices[0]} to {indices[1]} (end excluded) are not a range within 0 to {trace.num_layers}."
        )
    return first, end


def check_reached(trace: Trace, layers: LayerRange | None) -> None:
    """Check that the target's gradient reaches all layers that take part."""
    first, end = layer_range(trace, layers)
    lost = [layer for layer in range(first, end) if layer in trace.unreached]
    if lost:
        reached = lost[-1] + 1
        rest = f"in Python, layers=({reached}, {end}) goes through those that it reaches, and "
        raise CaptureError(f"{trace.unreached[lost[-1]]}; {rest if reached < end else ''}{WITHOUT}.")


def start_row(trace: Trace, query: Query, *, gradient: bool = False) -> Tensor:
    """Where a chain starts, [tokens]: the weights of the query, or of the pool's own attention.

    A pool that is a learned attention starts gradient-weighted where the chain is: E_h[(dA * A)+] of the pooling head.
    """
    read = trace.target_read
    is_of_layout = read is None or read.weights is None
    if gradient and query == "pool" and trace.layout.pooling == "attention" and is_of_layout:
        attention, slope = trace.pooling_attention, trace.pooling_gradient  # [heads, tokens]
        has_target = any(
            layer.output_grad is not None or layer.weights_grad is not None for layer in trace.layers
        )
        if slope is None and has_target:
            raise CaptureError(
                "The target does not depend on the attention that pools this model's tokens, so no map can start there: "
                'ask for the map of one token, such as query="0,0", or for occlusion, which needs no start.'
            )
        if attention is None or slope is None:
            raise CaptureError(
                "Relevance of a model with attention pooling needs the gradient of that attention: pass target= to trace()."
            )
        return (attention * slope).clamp(min=0).mean(0)
    start = trace.query_weights(query)
    if gradient:
        check_read(trace, start, query)
    return start


def left_out(trace: Trace, query: Query) -> str:
    """What the answer reads beside the tokens of the query that stands for it, in a sentence; "" for nothing."""
    is_part = trace.layout.joins_patches and query == trace.layout.default_query and trace.target_read is None
    return "The answer also reads the mean of the patches, which this map leaves out." if is_part else ""


# --- parts


def _step(chain: Chain, row: Tensor, result: Tensor, queries: Tensor, fused: Tensor) -> None:
    """Add the part of `row M` that comes from these queries to `result`; `fused` is [queries, tokens]."""
    start = row[queries]
    if chain.share is None:
        result[queries] += start
        result += start @ fused
        return
    keep = 1 - chain.share
    norm = chain.share * fused.sum(-1) + keep
    empty = norm == 0  # share 1 and nothing left in the row: the token keeps what it has
    scaled = torch.where(empty, 0, start / torch.where(empty, 1, norm))
    result += chain.share * (scaled @ fused)
    result[queries] += keep * scaled + torch.where(empty, start, 0)


def _attention_blocks(trace: Trace, layer: int, support: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Attention in blocks of queries, [heads, queries, tokens]; only the rows in `support` where these are few."""
    if 4 * len(support) <= trace.num_tokens:
        yield support, trace.attention(layer, queries=support)
        return
    index = torch.arange(trace.num_tokens, device=trace.device)
    for queries, attention in trace.tiles(layer):
        yield index[queries], attention


def _fuse(trace: Trace, layer: int, chain: Chain, attention: Tensor, product: Tensor | None) -> Tensor:
    """The chain's F for some rows, [queries, tokens]."""
    fused = product
    if chain.source == "attention":
        fused = fuse_heads(attention, chain.fusion)
    elif chain.source == "values":  # sum_h A_h,ij ||v_h,j W_O,h||, each row divided by its sum
        sizes = torch.einsum("hqn,hn->qn", attention, trace.value_norms(layer).to(attention))
        fused = sizes / sizes.sum(-1, keepdim=True).clamp(min=torch.finfo(sizes.dtype).tiny)
    assert fused is not None
    patches = fused[:, trace.layout.patch_slice]
    count = int(chain.discard * patches.shape[1] + 1e-9)  # 0.29 * 100 is 28.999999999999996
    if count == 0:
        return fused
    lowest = patches.argsort(dim=-1, stable=True)[:, :count]
    kept = fused.clone()
    kept[:, trace.layout.patch_slice].scatter_(-1, lowest, 0)
    return kept


def check_read(trace: Trace, start: Tensor, query: Query) -> None:
    """Raise ParameterError where a target that changes with the last layer does not change with these few tokens of it."""
    last, tokens = trace.num_layers - 1, start.nonzero().flatten()
    if len(tokens) > _FEW or trace.attention_gradient(last, queries=tokens).any():
        return
    read = trace.tokens_of_target()
    if read:
        first = trace.layout.place(read[0]) or trace.layout.name(read[0])
        raise ParameterError(
            f"The target is not read from {trace.layout.describe(query)}: it does not change with that token after the last layer. "
            f'Ask for a token that it is read from, such as query="{format_query(first)}".'
        )
