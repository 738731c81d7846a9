"""Attention maps that are blind to the class: rollout and value-aware rollout, as row chains, and the last layer alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from vit_viz.analyses.attention import HeadFusion, attention_map, to_numpy, token_map
from vit_viz.analyses.chains import Chain, LayerRange, layer_range, left_out
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.analyses.spec import SharedPass, explains
from vit_viz.capture import Trace, trace as traced
from vit_viz.capture.given import as_trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import Tensor
from vit_viz.results import PatchMap

MAX_LAYER = 4095
"""Index of a layer that no model has; how many a model really has is known when it is loaded."""


def rollout(
    trace: Trace | ModelLike,
    image: Picture | Tensor | None = None,
    *,
    query: Query | None = None,
    attention_share: float = 0.5,
    head_fusion: HeadFusion = "mean",
    discard: float = 0.0,
    layers: LayerRange | None = None,
) -> PatchMap:
    """How much the query token draws on each input patch, through all layers.

    With A' = attention_share * fuse(A) + (1 - attention_share) * I per layer, rows renormalised: the row e_query A'_L ... A'_1.
    A pool that lies on patches (mean or attention pooling) starts from its weights r_0, and r - r_0 is drawn.

    Args:
        trace: what `trace` returned; or a model, as `trace` takes it, with its image.
        image: of the model; a trace holds its own.
        query: token whose row is followed: the class token, the pool, a patch or a set of patches, also as text such as
            "3,4"; None asks for what the model's output is read from.
        attention_share: share of the attention branch, in [0, 1]; the skip connection has the rest.
        head_fusion: over heads; max and min are renormalised so that rows sum to 1.
        discard: share of the patch keys, in [0, 1), that each row drops, lowest first; prefix and suffix keys are never dropped.
        layers: (first, end) of the layers that take part, end excluded; None means all.

    Returns:
        Weights in [0, 1] over the patch grid, [rows, cols]; with the prefix and suffix tokens they sum to 1. For a pool over
        patches the change against its start, in [-1, 1], which sums to 0.

    Raises:
        ParameterError: an option lies outside its range, or the query is not a token of this trace.

    Source: Abnar & Zuidema 2020, arXiv:2005.00928. Computed as a row chain, so no N x N product is formed. Discarding acts per
    row and on patch keys only.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> flow = vv.rollout(vv.trace("mini", sample("shapes")), query="class")
        >>> f"{flow.values.sum():.2f} on the patches, {flow.prefix['class']:.2f} on the class token"
        '0.93 on the patches, 0.04 on the class token'
    """
    if image is not None:
        trace = traced(trace, image)  # type: ignore[arg-type]  # which refuses a trace
    inputs = MethodInput(recorded=as_trace(trace), start=query, layers=layers)
    if not 0 <= attention_share <= 1:
        raise ParameterError(f"The attention share must be between 0 and 1, not {attention_share}.")
    if not 0 <= discard < 1:
        raise ParameterError(f"The discard ratio must be at least 0 and less than 1, not {discard}.")
    if head_fusion not in ("mean", "max", "min"):
        raise ParameterError(f"Heads are fused by mean, max or min, not by {head_fusion!r}.")
    return _rollout(inputs, Chain("attention", attention_share, head_fusion, discard), layers)


@dataclass(frozen=True)
class RolloutOptions(Options):
    """The options of rollout."""

    attention_share: Annotated[
        float,
        Option(
            "attention share",
            "Share of the attention branch; the skip connection has the rest.",
            step=0.05,
            link="share",
        ),
    ] = 0.5
    discard: Annotated[
        float,
        Option(
            "discard ratio",
            "Share of the patch keys that each row drops, lowest first.",
            high=0.95,
            step=0.05,
            link="discard",
        ),
    ] = 0.0
    head_fusion: Annotated[
        HeadFusion, Option("head fusion", "How the heads of a layer are combined.", link="fusion")
    ] = "mean"
    first: Annotated[
        int,
        Option(
            "first layer",
            "The first layer that takes part.",
            low=-MAX_LAYER,
            high=MAX_LAYER,
            link="first",
            is_layer=True,
        ),
    ] = 0
    last: Annotated[
        int,
        Option(
            "last layer",
            "The last layer that takes part; -1 is the model's last.",
            low=-MAX_LAYER,
            high=MAX_LAYER,
            link="last",
            is_layer=True,
        ),
    ] = -1

    def for_layers(self, count: int) -> RolloutOptions:
        """The range of layers within a model: -1 for its last, however a link wrote it."""
        first, last = (max(0, i + count) if i < 0 else min(i, count - 1) for i in (self.first, self.last))
        return replace(self, first=min(first, last), last=-1 if last == count - 1 else last)

    def layers(self, count: int) -> LayerRange | None:
        """The layers of a model that take part, end excluded; None where all do."""
        fitted = self.for_layers(count)
        span = fitted.first, range(count)[fitted.last] + 1
        return None if span == (0, count) else span


def _chain(options: RolloutOptions) -> Chain:
    return Chain("attention", options.attention_share, options.head_fusion, options.discard)


def _rollout(inputs: MethodInput, chain: Chain, layers: LayerRange | None) -> PatchMap:
    more = {"head_fusion": chain.fusion, "discard": chain.discard}
    return chain_map(inputs, chain, layers, name="rollout", method="rollout", **more)


ROLLOUT = explains(
    lambda inputs, options: _rollout(
        inputs, _chain(options), options.layers(inputs.trace.num_layers) or inputs.layers
    ),
    name="rollout",
    label="Attention rollout",
    also_called="abnar, attention through all layers",
    shows="how much the query draws on each patch of the photo when the attention of all chosen layers is multiplied "
    "together.",
    hides="the predicted class, and what the values and the MLPs do: it shows where information could flow, not why the "
    "model answered as it did.",
    formula=r"$A'_\ell = a\, \mathrm{fuse}_h (A_{\ell h}) + (1 - a) I$, each row divided by its sum; the map is the "
    r"query's row of $A'_L \cdots A'_1$; $a$: share of the attention; $\mathrm{fuse}_h$: mean, max or min over the heads",
    source="Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, arXiv:2005.00928",
    class_blind=True,
    options=RolloutOptions,
    cost="look-up",
    takes_target=False,
    shared=SharedPass(chain=_chain),
    takes_query=True,
)


def value_rollout(
    trace: Trace,
    *,
    query: Query | None = None,
    attention_share: float = 0.5,
    layers: LayerRange | None = None,
) -> PatchMap:
    """How much the query token draws on each patch through all layers, where a weight on a short value counts little.

    As rollout, with B_ij = sum_h A_h,ij ||v_h,j W_O,h|| in place of the heads' mean, each row divided by its sum: the row
    e_query B'_L ... B'_1 with B' = attention_share * B + (1 - attention_share) * I. A LayerScale behind the
    projection is left out.

    Args:
        query: token whose row is followed; None asks for what the model's output is read from.
        attention_share: share of the attention branch, in [0, 1]; the skip connection has the rest.
        layers: (first, end) of the layers that take part, end excluded; None means all.

    Returns:
        Weights in [0, 1] over the patch grid, [rows, cols]; with the prefix and suffix tokens they sum to 1. For a pool over
        patches the change against its start, in [-1, 1], which sums to 0.

    Raises:
        ParameterError: the share lies outside [0, 1], or the query is not a token of this trace.
        CaptureError: the trace kept no norms of values, or an output projection is not known.

    Source: weights after Kobayashi et al. 2020, arXiv:2004.10102, head by head; products after Abnar & Zuidema 2020. The sizes of
    the heads' vectors are added up, an upper bound of the size of their sum; the skip connection has a fixed share, where Kobayashi
    et al. 2021 and ALTI (Ferrando et al. 2022) measure what it adds.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> trace = vv.trace("mini", sample("shapes"), keep_norms=True)
        >>> vv.value_rollout(trace, query="class").caption
        'value-aware rollout through layers 0-5: class token draws on'
    """
    inputs = MethodInput(recorded=as_trace(trace), start=query, layers=layers)
    return _value_rollout(inputs, ValueRolloutOptions(attention_share))


@dataclass(frozen=True)
class ValueRolloutOptions(Options):
    """The options of value-aware rollout."""

    attention_share: Annotated[
        float,
        Option(
            "attention share of the values",
            "Share of the attention branch; the skip connection has the rest.",
            step=0.05,
        ),
    ] = 0.5


def _value_chain(options: ValueRolloutOptions) -> Chain:
    return Chain("values", options.attention_share)


def _value_rollout(inputs: MethodInput, options: ValueRolloutOptions) -> PatchMap:
    chain = _value_chain(options)
    return chain_map(inputs, chain, inputs.layers, name="value-aware rollout", method="value_rollout")


VALUE_ROLLOUT = explains(
    _value_rollout,
    label="Value-aware rollout",
    also_called="value norms, globenc, kobayashi",
    shows="rollout in which a weight counts by how much it moves: attention to a token with a short value, as sinks have, "
    "counts little.",
    hides="the predicted class, where the moved vectors point, and whether those of several heads cancel.",
    formula=r"$B_{ij} = \sum_h A_{h,ij}\, \lVert v_{h,j} W_{O,h} \rVert$, each row divided by its sum; then as attention "
    r"rollout: the query's row of the product of $a\, B + (1 - a) I$ over the layers",
    source="after Kobayashi et al. 2020, Attention is Not Only a Weight, arXiv:2004.10102",
    class_blind=True,
    options=ValueRolloutOptions,
    cost="look-up",
    takes_target=False,
    shared=SharedPass(norms=True, chain=_value_chain),
    takes_query=True,
)


def _attention(inputs: MethodInput) -> PatchMap:
    shown = attention_map(inputs.trace, layer=inputs.trace.num_layers - 1, query=inputs.query)
    return replace(shown, note=left_out(inputs.trace, inputs.query))


LAST_LAYER_ATTENTION = explains(
    _attention,
    label="Last-layer attention",
    also_called="raw attention, class token attention, cls attention, dino attention",
    shows="where the output token looks in the last layer, averaged over its heads.",
    hides="the class, and all earlier layers: it is the map that is shown most, and it often misses the object.",
    formula=r"$\mathrm{mean}_h\, A_{L h}[o, :]$; $L$: the last layer; $o$: the token that the output is read from",
    source="Vaswani et al. 2017, arXiv:1706.03762",
    class_blind=True,
    cost="pass",
    takes_query=True,
)


def chain_map(
    inputs: MethodInput, chain: Chain, layers: LayerRange | None, *, name: str, method: str, **more: object
) -> PatchMap:
    """What a chain carries from the query to each patch, as the map of a method.

    Of a pool that itself lies on patches the change r - r_0 is drawn: a mean pool would show its own uniform start, and an
    attention pool its last layer, whatever the layers did.

    Args:
        more: how it was computed, for its provenance.
    """
    trace, class_blind = inputs.trace, chain.source != "gradient"
    first, end = layer_range(trace, layers)
    row, start = inputs.chain_row(chain, layers)
    patches, read = start[trace.layout.patch_slice], trace.target_read
    is_region = read is not None and read.weights is not None and not patches.all()
    is_change = inputs.query == "pool" and not is_region and bool(patches.any())
    values, value_range = row - start.to(row) if is_change else row, (-1.0 if is_change else 0.0, 1.0)
    if chain.share is None:  # r - r_0 rounds to -1e-8 where nothing was added
        values, value_range = values.clamp(min=0), (0.0, float("inf"))
    share = {} if chain.share is None else {"attention_share": chain.share}
    start_query = trace.as_parameter(inputs.query)
    is_usual = inputs.start in (None, "pool") and start_query in ("pool", trace.layout.default_query)
    query_parameter = {} if is_usual and not class_blind else {"query": start_query}
    words = f": {trace.describe(inputs.query)} draws on"
    if not class_blind:
        words = "" if is_usual else f", from {trace.describe(inputs.query)}"
    notes = ["Drawn is the change against the pool's own weights, which lie on the patches."] * is_change
    notes.append(left_out(trace, inputs.query))
    return PatchMap(
        **token_map(trace, row) | {"values": trace.layout.patches(to_numpy(values))},
        unit="relevance" if chain.share is None else "share of the query",
        value_range=value_range,
        signed=value_range[0] < 0,
        method=name,
        class_blind=class_blind,
        provenance=trace.provenance.with_parameters(
            method=method, **query_parameter, **share, **more, layers=f"{first}-{end - 1}"
        ),
        caption=f"{name} through layers {first}-{end - 1}{words}",
        note=" ".join(filter(None, notes)),
    )
