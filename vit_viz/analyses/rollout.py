"""Attention through the layers, blind to the class: rollout as a row chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

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
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Method, SharedPass, Words
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, as_query
from vit_viz.results import PatchMap

MAX_LAYER = 4095
"""Index of a layer that no model has; how many a model really has is known when it is loaded."""


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
        query: token whose row is followed: the class token, the pool, a patch or a set of patches, also as text such as
            "3,4"; None asks for what the model's output is read from.
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

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> flow = vv.rollout(vv.trace("mini", sample("shapes")), query="class")
        >>> f"{flow.values.sum():.2f} on the patches, {flow.prefix['class']:.2f} on the class token"
        '0.93 on the patches, 0.04 on the class token'
    """
    trace = as_trace(trace)
    chain = rollout_chain(attention_share=attention_share, head_fusion=head_fusion, discard=discard)
    query = output_query(trace) if query is None else as_query(query)
    start = start_row(trace, query)
    (row,) = run_chains(trace, [chain], [start], layers=layers, cache=cache)
    return rollout_map(trace, row, start, query=query, chain=chain, layers=layers)


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
    head_fusion: Annotated[HeadFusion, Option("head fusion", "How heads become one.", link="fusion")] = "mean"
    first: Annotated[
        int,
        Option(
            "first layer", "The first layer that takes part.", high=MAX_LAYER, link="first", is_layer=True
        ),
    ] = 0
    last: Annotated[
        int,
        Option(
            "last layer",
            "The last layer that takes part; -1 is the model's last.",
            low=-1,
            high=MAX_LAYER,
            link="last",
            is_layer=True,
        ),
    ] = -1

    def for_layers(self, count: int) -> RolloutOptions:
        """The range of layers within a model: -1 for its last, however a link wrote it."""
        last = self.last if 0 <= self.last < count - 1 else -1
        return replace(self, first=min(self.first, range(count)[last]), last=last)

    def layers(self, count: int) -> LayerRange | None:
        """The layers of a model that take part, end excluded; None where all do."""
        fitted = self.for_layers(count)
        span = fitted.first, range(count)[fitted.last] + 1
        return None if span == (0, count) else span

    def caption(self) -> str:
        """What shaped the map, in words; its layers stand in its own caption."""
        words = [f"attention share {self.attention_share:g}", f"{self.head_fusion} over heads"]
        return ", ".join(words + ([f"discard {self.discard:g}"] if self.discard else []))


def _chain(options: RolloutOptions) -> Chain:
    return rollout_chain(
        attention_share=options.attention_share, head_fusion=options.head_fusion, discard=options.discard
    )


def _run(given: MethodInput, options: RolloutOptions) -> PatchMap:
    chain, layers = _chain(options), options.layers(given.trace.num_layers) or given.layers
    row, start = given.carried(chain, layers)
    return rollout_map(given.trace, row, start, query=given.query, chain=chain, layers=layers)


ROLLOUT = Method(
    name="rollout",
    options=RolloutOptions,
    run=_run,
    cost="look-up",
    takes_target=False,
    words=Words(
        label="Attention rollout",
        shows="how much the query draws on each patch of the photo when the attention of all chosen layers is multiplied "
        "together.",
        hides="the predicted class, and what the values and the MLPs do: it shows where information could flow, not why the "
        "model answered as it did.",
        formula=r"$A'_\ell = a\, \mathrm{fuse}_h (A_{\ell h}) + (1 - a) I$, each row divided by its sum; the map is the "
        r"query's row of $A'_L \cdots A'_1$; $a$: share of the attention; $\mathrm{fuse}_h$: mean, max or min over the heads",
        source="Abnar & Zuidema 2020, Quantifying Attention Flow in Transformers, arXiv:2005.00928",
        class_blind=True,
    ),
    shared=SharedPass(chain=_chain),
    takes_query=True,
)


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
