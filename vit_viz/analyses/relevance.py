"""Attention through the layers towards a class: relevance (Chefer 2021b) and gradient rollout, as row chains."""

from __future__ import annotations

from torch import Tensor

from vit_viz.analyses.attention import prefix_values, suffix_values, to_numpy
from vit_viz.analyses.chains import Chain, LayerRange, check_read, layer_range, run_chains, start_row
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import NoOptions
from vit_viz.analyses.rollout import drawn_part
from vit_viz.analyses.spec import Method, SharedPass, Words
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.results import PatchMap

_RELEVANCE_CHAIN = Chain("gradient")
_ATTENTION_SHARE = 0.5  # of gradient rollout, where none is given


def relevance(trace: Trace, *, query: Query = "pool", layers: LayerRange | None = None) -> PatchMap:
    """Which patches made the model say the traced target, through all layers.

    With Abar_l = E_h[(dA_lh * A_lh)+], clamped before the mean over heads, and dA the gradient of the target: r <- r + r Abar_l for
    l = L..1, from the token that the output is read from. Not row-normalised. A pool that lies on patches starts from its weights
    r_0 (attention pooling: gradient-weighted), and r - r_0 is drawn.

    Args:
        trace: taken with a target, so that it holds the gradient of every layer's output.
        query: the token that the target is read from, such as "detection 3", where that is not the pool.
        layers: (first, end) of the layers that take part, end excluded; None means all.

    Returns:
        Non-negative relevance over the patch grid, in units of the target.

    Raises:
        CaptureError: the trace has no gradient.
        ParameterError: the query is no token of this trace, or the target is not read from it.

    Source: Chefer, Gur & Wolf 2021, arXiv:2103.15679, rules 5 and 6 for self-attention.
    """
    trace = as_trace(trace)
    start = start_row(trace, query, gradient=True)
    (row,) = run_chains(trace, [_RELEVANCE_CHAIN], [start], layers=layers)
    return relevance_map(trace, row, start, query=query, layers=layers)


def _relevance(given: MethodInput, _options: NoOptions) -> PatchMap:
    row, start = given.carried(_RELEVANCE_CHAIN, given.layers)
    return relevance_map(given.trace, row, start, layers=given.layers)


RELEVANCE = Method(
    name="relevance",
    options=NoOptions,
    run=_relevance,
    cost="pass",
    words=Words(
        label="Relevance",
        shows="which patches raised the target, traced back through the attention of all layers; each head counts by how much "
        "the target depends on it.",
        hides="evidence against the target, and what the MLPs add: only positive influence that attention passes on is counted.",
        formula=r"$\bar A_\ell = \mathrm{mean}_h\, (\nabla A_{\ell h} \circ A_{\ell h})^{+}$; $r \leftarrow r + r \bar A_\ell$ "
        r"for $\ell = L, \dots, 1$",
        source="Chefer, Gur & Wolf 2021, arXiv:2103.15679",
    ),
    shared=SharedPass(gradient=True, chain=lambda _options: _RELEVANCE_CHAIN),
)


def gradient_rollout(
    trace: Trace,
    *,
    query: Query = "pool",
    attention_share: float = _ATTENTION_SHARE,
    layers: LayerRange | None = None,
) -> PatchMap:
    """Rollout with each head's attention weighted by its gradient towards the traced target.

    As rollout, with fuse(A_l) replaced by E_h[(dA_lh * A_lh)+]; rows are renormalised after the identity is added, so that they
    sum to 1.

    Args:
        trace: taken with a target.
        query: the token that the target is read from, such as "detection 3", where that is not the pool.
        attention_share: weight of the attention branch against the identity, in [0, 1].
        layers: (first, end) of the layers that take part, end excluded; None means all.

    Raises:
        CaptureError: the trace has no gradient.
        ParameterError: an option lies outside its range, or the target is not read from the query.

    Source: widely copied code after Abnar & Zuidema 2020. Ours clamps before the mean over heads, and takes each layer's own
    gradient.
    """
    trace = as_trace(trace)
    chain = gradient_chain(attention_share)
    start = start_row(trace, query)
    check_read(trace, start, query)
    (row,) = run_chains(trace, [chain], [start], layers=layers)
    return gradient_rollout_map(trace, row, start, chain=chain, query=query, layers=layers)


def _gradient_rollout(given: MethodInput, _options: NoOptions) -> PatchMap:
    chain = gradient_chain(_ATTENTION_SHARE)
    row, start = given.carried(chain, given.layers)
    return gradient_rollout_map(given.trace, row, start, chain=chain, layers=given.layers)


GRADIENT_ROLLOUT = Method(
    name="gradient_rollout",
    options=NoOptions,
    run=_gradient_rollout,
    cost="pass",
    words=Words(
        label="Gradient rollout",
        shows="attention rollout in which each head counts by how much the target depends on it.",
        hides="how large the influence is: every layer is rescaled to sum to 1, so only proportions remain.",
        formula=r"$A'_\ell = a\, \mathrm{mean}_h (\nabla A_{\ell h} \circ A_{\ell h})^{+} + (1 - a) I$, each row divided by "
        r"its sum; the map is the output's row of $A'_L \cdots A'_1$",
        source="after Abnar & Zuidema 2020, arXiv:2005.00928; clamped before the mean over heads",
    ),
    shared=SharedPass(gradient=True, chain=lambda _options: gradient_chain(_ATTENTION_SHARE)),
)


def gradient_chain(attention_share: float) -> Chain:
    """The chain of a gradient rollout, its option checked."""
    if not 0 <= attention_share <= 1:
        raise ParameterError(f"The attention share lies between 0 and 1, not at {attention_share}.")
    return Chain("gradient", attention_share)


def relevance_map(
    trace: Trace, row: Tensor, start: Tensor, *, query: Query = "pool", layers: LayerRange | None = None
) -> PatchMap:
    """The result of a relevance chain as a map."""
    first, end = layer_range(trace, layers)
    values, note = drawn_part(trace, row, start, query)
    return PatchMap(
        trace.layout.patches(
            to_numpy(values.clamp(min=0))
        ),  # r - r_0 rounds to -1e-8 where nothing was added
        unit="relevance",
        value_range=(0.0, float("inf")),
        signed=False,
        method="relevance",
        class_blind=False,
        provenance=trace.provenance.with_parameters(method="relevance", layers=f"{first}-{end - 1}"),
        prefix=prefix_values(trace, row),
        suffix=suffix_values(trace, row),
        crop_box=trace.crop_box,
        caption=f"relevance through layers {first}-{end - 1}{_from(trace, query)}",
        note=note,
    )


def gradient_rollout_map(
    trace: Trace,
    row: Tensor,
    start: Tensor,
    *,
    chain: Chain,
    query: Query = "pool",
    layers: LayerRange | None = None,
) -> PatchMap:
    """The result of a gradient rollout chain as a map."""
    first, end = layer_range(trace, layers)
    values, note = drawn_part(trace, row, start, query)
    return PatchMap(
        trace.layout.patches(to_numpy(values)),
        unit="share of the query",
        value_range=(-1.0, 1.0) if note else (0.0, 1.0),
        signed=bool(note),
        method="gradient rollout",
        class_blind=False,
        provenance=trace.provenance.with_parameters(
            method="gradient_rollout", attention_share=chain.share, layers=f"{first}-{end - 1}"
        ),
        prefix=prefix_values(trace, row),
        suffix=suffix_values(trace, row),
        crop_box=trace.crop_box,
        caption=f"gradient rollout through layers {first}-{end - 1}{_from(trace, query)}",
        note=note,
    )


def _from(trace: Trace, query: Query) -> str:
    """Where a chain starts, in words, unless that is the pool."""
    return "" if query == "pool" else f", from {trace.layout.describe(query)}"
