"""Attention through the layers, blind to the class: rollout as a row chain."""

from __future__ import annotations

from torch import Tensor

from vit_viz.analyses.attention import HeadFusion, prefix_values, suffix_values, to_numpy
from vit_viz.analyses.chains import (
    Chain,
    FusedCache,
    LayerRange,
    layer_range,
    output_query,
    run_chains,
    start_row,
)
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.results import PatchMap


def rollout(
    trace: Trace,
    *,
    query: Query | None = None,
    attention_share: float = 0.5,
    head_fusion: HeadFusion = "mean",
    discard: float = 0.0,
    layers: LayerRange | None = None,
    cache: FusedCache | None = None,
) -> PatchMap:
    """How much the query token draws on each input patch, through all layers.

    With A' = attention_share * fuse(A) + (1 - attention_share) * I per layer, rows renormalised: the row e_query A'_L ... A'_1.
    A pool that lies on patches (mean or attention pooling) starts from its weights r_0, and r - r_0 is drawn.

    Args:
        query: token whose row is followed: the class token, the pool, a patch or a set of patches; None asks for what the
            model's output is read from.
        attention_share: share of the attention branch, in [0, 1]; the skip connection has the rest.
        head_fusion: over heads; max and min are renormalised so that rows sum to 1.
        discard: share of the patch keys, in [0, 1), that each row drops, lowest first; prefix and suffix keys are never dropped.
        layers: (first, end) of the layers that take part, end excluded; None means all.
        cache: keeps head-fused matrices of this trace, so that the next query is fast.

    Returns:
        Weights in [0, 1] over the patch grid, [rows, cols]; with the prefix and suffix tokens they sum to 1. For a pool over
        patches the change against its start, in [-1, 1], which sums to 0.

    Raises:
        ParameterError: an option lies outside its range, or the query is not a token of this trace.

    Source: Abnar & Zuidema 2020, arXiv:2005.00928. Computed as a row chain, so no N x N product is formed. Discarding acts per
    row and on patch keys only.
    """
    trace = as_trace(trace)
    chain = rollout_chain(attention_share=attention_share, head_fusion=head_fusion, discard=discard)
    query = output_query(trace) if query is None else query
    start = start_row(trace, query)
    (row,) = run_chains(trace, [chain], [start], layers=layers, cache=cache)
    return rollout_map(trace, row, start, query=query, chain=chain, layers=layers)


def rollout_chain(*, attention_share: float, head_fusion: HeadFusion, discard: float) -> Chain:
    """The chain of a rollout, its options checked."""
    if not 0 <= attention_share <= 1:
        raise ParameterError(f"The attention share lies between 0 and 1, not at {attention_share}.")
    if not 0 <= discard < 1:
        raise ParameterError(f"The discard ratio lies at 0 or above and below 1, not at {discard}.")
    if head_fusion not in ("mean", "max", "min"):
        raise ParameterError(f"Heads are fused by mean, max or min, not by {head_fusion!r}.")
    return Chain("attention", attention_share, head_fusion, discard)


def rollout_map(
    trace: Trace, row: Tensor, start: Tensor, *, query: Query, chain: Chain, layers: LayerRange | None
) -> PatchMap:
    """The result of a rollout chain as a map."""
    first, end = layer_range(trace, layers)
    values, note = drawn_part(trace, row, start, query)
    return PatchMap(
        trace.layout.patches(to_numpy(values)),
        unit="share of the query",
        value_range=(-1.0, 1.0) if note else (0.0, 1.0),
        signed=bool(note),
        method="rollout",
        class_blind=True,
        provenance=trace.provenance.with_parameters(
            method="rollout",
            query=query,
            attention_share=chain.share,
            head_fusion=chain.fusion,
            discard=chain.discard,
            layers=f"{first}-{end - 1}",
        ),
        prefix=prefix_values(trace, row),
        suffix=suffix_values(trace, row),
        crop_box=trace.crop_box,
        caption=f"rollout through layers {first}-{end - 1}: {trace.layout.describe(query)} draws on",
        note=note,
    )


def drawn_part(trace: Trace, row: Tensor, start: Tensor, query: Query) -> tuple[Tensor, str]:
    """What of a chain's result is drawn: r, or r - r_0 with a note where the pool itself lies on patches.

    Without this, a mean pool shows its own uniform start, and an attention pool its last layer, whatever the layers did.
    """
    if query != "pool" or not start[trace.layout.patch_slice].any():
        return row, ""
    return row - start.to(
        row
    ), "Drawn is the change against the pool's own weights, which lie on the patches."
