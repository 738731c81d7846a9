"""Grad-ECLIP: what the last attention can gather from each patch towards a target, weighted by how well keys fit the query."""

from __future__ import annotations

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.cams import around_last_layer
from vit_viz.analyses.chains import check_read, left_out
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.spec import SharedPass, explains
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import Query
from vit_viz.lazy import F, Tensor, torch
from vit_viz.results import PatchMap


def _grad_eclip(inputs: MethodInput) -> PatchMap:
    """Which patches hold, as the last attention reads them, what the target grows with, where keys fit the query of the output.

    (s_i sum_c g_c v_ic)+ with g the gradient of the target for what the heads gather for the output's token, c over the numbers of
    all heads, v_i the values of patch i, and s_i the cosine of that token's query with key i, all heads as one vector, scaled to
    [0, 1] over the patches. Of two tokens that the output is read from the two terms are added. With attention pooling query, keys
    and values are the pool's own.

    Raises:
        CaptureError: there is no query of the output, as where the mean of patches is read; or this model writes its attention out.

    Source: Zhao et al. 2024, arXiv:2502.18816, eq. 7 to 10. Queries and keys are those of the dot product, as in the paper; the
    published code projects both by W_O first, and computes the last attention as if it had one head.
    """
    trace, query = inputs.trace, inputs.query
    trace.wait()  # where tokens change places before the last layer, the map would mislead
    of_all = _of_pool(trace) if _is_learned_pool(trace, query) else _of_tokens(trace, query)
    gathered, cosines = (one[:, trace.layout.patch_slice] for one in of_all)  # [queries, patches]
    low, high = cosines.amin(1, keepdim=True), cosines.amax(1, keepdim=True)
    share = torch.where(high > low, (cosines - low) / (high - low).clamp(min=1e-30), 1.0)
    return PatchMap(
        to_numpy((share * gathered).sum(0).clamp(min=0)).reshape(trace.layout.grid),
        unit="part of the target, weighted",
        value_range=(0.0, float("inf")),
        signed=False,
        method="Grad-ECLIP",
        class_blind=False,
        provenance=trace.provenance.with_parameters(method="grad_eclip", query=trace.as_parameter(query)),
        crop_box=trace.crop_box,
        caption=f"Grad-ECLIP from the {trace.describe(query)}",
        note=" ".join(filter(None, (left_out(trace, query), around_last_layer(trace.structure.reading)))),
    )


def _is_learned_pool(trace: Trace, query: Query) -> bool:
    read = trace.target_read
    return query == "pool" and trace.layout.pooling == "attention" and (read is None or read.weights is None)


def _of_pool(trace: Trace) -> tuple[Tensor, Tensor]:
    """sum_c g_c v_ic of the pool's query, and its cosines with the keys, [1, tokens] each."""
    pool = trace.pooling
    if pool is None or pool.gradient is None or pool.cosines is None:
        raise CaptureError("Grad-ECLIP needs the query by which this model pools, and it was not seen.")
    return pool.gradient.sum(0, keepdim=True), pool.cosines[None]


def _of_tokens(trace: Trace, query: Query) -> tuple[Tensor, Tensor]:
    """The same of the tokens that a query names, [queries, tokens] each."""
    weights = trace.query_weights(query)
    tokens = weights.nonzero().flatten()
    if len(tokens) > 1 and bool(weights[trace.layout.patch_slice].any()):
        raise CaptureError(
            f"Grad-ECLIP needs a query of the output, and this one is read from the {trace.describe(query)}: relevance and LeGrad "
            "need none."
        )
    check_read(trace, weights, query)
    # of each head the gradient of its attention is g v^T, so that their sum is that over the numbers of all heads
    gathered = trace.attention_gradient(-1, queries=tokens).sum(0)
    q, k = (
        one[-1].float().transpose(0, 1).flatten(1) for one in (trace.q, trace.k)
    )  # all heads as one vector
    return gathered, F.cosine_similarity(q[tokens][:, None], k[None], dim=-1)


GRAD_ECLIP = explains(
    _grad_eclip,
    label="Grad-ECLIP",
    also_called="eclip, clip explanation, gradient of clip",
    shows="which patches gave the last attention what raises the target, most where their keys fit the query of the output.",
    hides="what earlier layers moved between patches, evidence against the target, and how much attention a patch really got.",
    formula=r"$(s_i \sum_c g_c v_{ic})^{+}$ with $g = \partial y / \partial o$ of what the last attention gathers for the output, "
    r"$s_i$: $\cos(q, k_i)$ scaled to $[0, 1]$ over the patches",
    source="Zhao et al. 2024, arXiv:2502.18816",
    cost="pass",
    shared=SharedPass(gradient=True),
    takes_query=True,
)
