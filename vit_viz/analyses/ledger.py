"""Where attention goes: its shares on the class token, each register, sinks and the other patches."""

from __future__ import annotations

from typing import Annotated, Literal

from vit_viz.analyses.attention import to_numpy, weighted_rows
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR
from vit_viz.analyses.head_sums import are_outliers, token_norms
from vit_viz.analyses.norms import FACTOR
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import asks
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, as_query
from vit_viz.lazy import Tensor, torch
from vit_viz.results import StateMatrix

Rows = Literal["layers", "heads"]


def ledger(
    trace: Trace,
    *,
    query: Query | None = None,
    rows: Annotated[Rows, Option("rows", "Layers, each the mean over its heads, or all heads.")] = "layers",
    factor: Annotated[float, FACTOR] = OUTLIER_FACTOR,
) -> StateMatrix:
    """Where the attention of a query goes in each layer, or in each head: every share is in one column, and a row sums to 1.

    With a the mean of A_lh[i, :] over the query's tokens i: one column for each prefix token and each kind of suffix tokens; sinks,
    sum_j a_j over the patches j that enter the layer with ||x_j|| > factor * median_k ||x_k||, over all tokens k; and the other
    patches.

    Args:
        query: a token, a region or "pool"; None takes the mean over all tokens.
        rows: layers, each the mean over its heads, or all heads by themselves.
        factor: above how many medians a patch is a sink, as `token_norms` has it.

    Returns:
        [layers or layers * heads, columns], shares in [0, 1]; heads in the order of layers.

    Raises:
        ParameterError: the factor is not positive, or the query is not a token of this trace.
        CaptureError: the residual stream was not kept.

    Source: Darcet et al. 2024, arXiv:2309.16588, section 2 (patches with outlying norms draw attention); Xiao et al. 2024,
    arXiv:2309.17453 (sinks).

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> shares = vv.ledger(vv.trace("mini", sample("shapes"), keep_residual=True), query="class")
        >>> shares.others[0], shares.others[-2:]
        ('class', ('sinks', 'other patches'))
    """
    trace = as_trace(trace)
    if not factor > 0:
        raise ParameterError(f"The outlier factor is positive, not {factor}.")
    if rows not in ("layers", "heads"):
        raise ParameterError(f"The rows are layers or heads, not {rows!r}.")
    weights = None if query is None else trace.query_weights(as_query(query))
    shares = torch.stack([_shares(trace, layer, weights, factor) for layer in range(trace.num_layers)])
    if rows == "layers":
        shares, names = shares.mean(1), [f"layer {layer}" for layer in range(trace.num_layers)]
    else:
        shares = shares.flatten(0, 1)
        names = [
            f"layer {layer}, head {head}"
            for layer in range(trace.num_layers)
            for head in range(trace.num_heads)
        ]
    return StateMatrix(
        to_numpy(shares),
        tuple(names),
        unit="share of attention",
        value_range=(0.0, 1.0),
        method="ledger of attention",
        provenance=trace.provenance.with_parameters(
            method="ledger", query="all tokens" if query is None else query, rows=rows, factor=factor
        ),
        others=(*trace.layout.prefix, *trace.layout.suffix_groups, "sinks", "other patches"),
        note=f"Sinks are patches longer than {factor:g} x the median.",
    )


def _shares(trace: Trace, layer: int, weights: Tensor | None, factor: float) -> Tensor:
    """One share per column, [heads, columns]."""
    if weights is None:
        parts = [attention.sum(1) for _, attention in trace.tiles(layer)]
        row = torch.stack(parts).sum(0) / trace.num_tokens
    else:
        row = weighted_rows(trace, layer, weights)  # [heads, tokens]
    layout = trace.layout
    patches = row[:, layout.patch_slice]
    is_sink = are_outliers(token_norms(trace, layer), factor)[layout.patch_slice]
    columns = [row[:, token] for token in range(layout.num_prefix)]
    columns += [row[:, list(tokens)].sum(1) for tokens in layout.suffix_groups.values()]
    return torch.stack([*columns, patches[:, is_sink].sum(1), patches[:, ~is_sink].sum(1)], dim=1)


LEDGER = asks(
    ledger,
    label="Where attention goes",
    also_called="attention budget, attention mass, cls attention, register attention",
    shows="how the attention of every layer or head splits over class token, registers, sinks and other patches.",
    hides="what a head does with it: a share on a sink often moves almost nothing.",
    formula=r"$\sum_{j \in S} A_{lh}[q, j]$ for each set $S$ of keys; together 1",
    source="Darcet et al. 2024, arXiv:2309.16588; Xiao et al. 2024, arXiv:2309.17453",
    class_blind=True,
    reads="tokens",
    without_query="all of them, their mean",
)
