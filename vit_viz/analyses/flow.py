"""Attention flow: how much the output can draw from each patch when every connection between two layers is a pipe."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy, token_map
from vit_viz.analyses.chains import LayerRange, layer_range, left_out, start_row
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import explains
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import torch
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import PatchMap

MAX_TOKENS = 400
"""One flow is computed for each token, through a graph of layers x tokens ** 2 connections."""

UNIT = 2**30
"""Capacities are whole numbers: SciPy takes 32 bits, and all flow together stays below that."""


def attention_flow(
    trace: Trace,
    *,
    query: Query | None = None,
    attention_share: float = 0.5,
    layers: LayerRange | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """The largest flow from the query token, behind the last layer, to each input token.

    The graph has one node per token and layer; the connection from token i behind a layer to token j before it has the capacity
    A'_ij, with A' = attention_share * mean_h(A) + (1 - attention_share) * I. Each flow is computed alone, so they do not sum to 1.
    A query of several tokens, such as a mean pool, has its weights as capacities.

    Capacities are rounded down to whole multiples of 2 ** -30, so a flow through a bottleneck of m connections is too small by less
    than m * 2 ** -30.

    Args:
        query: token whose flow is followed; None asks for what the model's output is read from.
        attention_share: share of the attention branch, in [0, 1]; the skip connection has the rest.
        layers: (first, end) of the layers that take part, end excluded; None means all.
        progress: told the share of the tokens that is done.
        cancelled: asked before each token; True ends with `Cancelled`.

    Returns:
        Flows in [0, 1] over the patch grid, [rows, cols], and of prefix and suffix tokens by name.

    Source: Abnar & Zuidema 2020, arXiv:2005.00928, section 3.
    """
    trace = as_trace(trace)
    if trace.num_tokens > MAX_TOKENS:
        raise ParameterError(
            f"Attention flow takes models of up to {MAX_TOKENS} tokens, not {trace.num_tokens}: rollout takes any number."
        )
    if not 0 <= attention_share <= 1:
        raise ParameterError(f"The attention share must be between 0 and 1, not {attention_share}.")
    first, end = layer_range(trace, layers)
    query = trace.output_query(query)
    capacities = [to_numpy(start_row(trace, query))[None]]
    for layer in reversed(range(first, end)):
        mixed = attention_share * torch.cat([attention.mean(0) for _, attention in trace.tiles(layer)])
        mixed.diagonal().add_(1 - attention_share)  # A', [queries, keys]
        capacities.append(to_numpy(mixed))
    flows = _flows(capacities, Watch(trace.num_tokens, progress=progress, cancelled=cancelled))
    words = f"{first}-{end - 1}"
    return PatchMap(
        **token_map(trace, torch.from_numpy(flows)),
        unit="largest flow, of 1",
        value_range=(0.0, 1.0),
        signed=False,
        method="attention flow",
        class_blind=True,
        provenance=trace.provenance.with_parameters(
            method="attention_flow",
            query=trace.as_parameter(query),
            attention_share=attention_share,
            layers=words,
        ),
        caption=f"largest flow through layers {words}: {trace.describe(query)} can draw from",
        note=left_out(trace, query),
    )


def _attention_flow(
    inputs: MethodInput,
    *,
    attention_share: Annotated[
        float,
        Option(
            "attention share of the flow",
            "Share of the attention branch; the skip connection has the rest.",
            step=0.05,
        ),
    ] = 0.5,
) -> PatchMap:
    recorded = inputs.subject.trace()
    recorded.check_layers_follow()  # before it is asked where they start
    return attention_flow(
        recorded,
        query=inputs.query_in(recorded),
        attention_share=attention_share,
        layers=inputs.layers,
        progress=inputs.progress,
        cancelled=inputs.cancelled,
    )


ATTENTION_FLOW = explains(
    _attention_flow,
    label="Attention flow",
    also_called="max flow",
    shows="how much could flow from each patch to the output through layers of pipes as wide as the weights.",
    hides="the predicted class, and what the values and the MLPs do; flows often differ little, because the first layer is "
    "the narrowest. For models of up to 400 tokens.",
    formula=r"the maximum flow from the query to each patch in the layered graph with capacities "
    r"$A'_\ell = a\, E_h [A_{\ell h}] + (1 - a) I$, rounded down to multiples of $2^{-30}$; $a$: share of the attention",
    source="Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, arXiv:2005.00928",
    class_blind=True,
    runs="one pass, then one flow for each token",
    cost="many passes",
    takes_query=True,
)


# --- parts


def _flows(capacities: list[NDArray[np.float32]], watch: Watch) -> NDArray[np.float32]:
    """The largest flow from the source to each input token, [tokens].

    Args:
        capacities: from the source [1, tokens], then of each layer from the last to the first [tokens, tokens].
    """
    from scipy.sparse.csgraph import maximum_flow  # takes long to import, which no start should wait for

    graph, tokens = _graph(capacities), capacities[0].shape[1]
    flows = np.zeros(tokens, dtype=np.float32)
    inputs = graph.shape[0] - tokens
    for token in range(tokens):
        watch.check()
        flows[token] = maximum_flow(graph, 0, inputs + token).flow_value / UNIT
        watch.advance()
    return flows


def _graph(capacities: list[NDArray[np.float32]]) -> Any:
    """All connections as a sparse matrix of whole numbers: node 0 is the source, then tokens layer by layer."""
    from scipy.sparse import csr_array

    tokens, parts = capacities[0].shape[1], []
    for depth, block in enumerate(capacities):
        start = 1 + (depth - 1) * tokens if depth else 0
        whole = np.floor(block.astype(np.float64) * UNIT).astype(np.int32)
        query, key = np.nonzero(whole)
        parts.append((whole[query, key], start + query, 1 + depth * tokens + key))
    values, rows, cols = (np.concatenate(column) for column in zip(*parts, strict=True))
    nodes = 1 + len(capacities) * tokens
    return csr_array((values, (rows.astype(np.int32), cols.astype(np.int32))), shape=(nodes, nodes))
