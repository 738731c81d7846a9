"""Attention through the layers towards a class: relevance (Chefer 2021b) and gradient rollout, as row chains; and LeGrad."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from vit_viz.analyses.attention import token_map
from vit_viz.analyses.chains import Chain, LayerRange, check_read, layer_range, start_row
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.rollout import chain_map
from vit_viz.analyses.spec import SharedPass, explains
from vit_viz.analyses.targets import Target
from vit_viz.capture import are_ours, trace as traced, verified_structure
from vit_viz.capture.given import as_trace
from vit_viz.capture.last_block import Blocks
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import are_watched, submodules_of
from vit_viz.results import PatchMap

_QUERIES_AT_ONCE = 256

_RELEVANCE_CHAIN = Chain("gradient")
_ROLLOUT_CHAIN = Chain("gradient", 0.5)


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

    Source: Chefer, Gur & Wolf 2021, arXiv:2103.15679, rules 5 and 6 for self-attention.
    """
    return _relevance(MethodInput(recorded=as_trace(trace), start=query, layers=layers))


def _relevance(inputs: MethodInput) -> PatchMap:
    return chain_map(inputs, _RELEVANCE_CHAIN, inputs.layers, name="relevance", method="relevance")


RELEVANCE = explains(
    _relevance,
    label="Relevance",
    also_called="lrp, layer-wise relevance propagation, chefer, transformer attribution, hila chefer, explainability",
    shows="which patches raised the target, traced back through the attention of all layers; each head counts by how much "
    "the target depends on it.",
    hides="evidence against the target, and what the MLPs add: only positive influence that attention passes on is counted.",
    formula=r"$\bar A_\ell = \mathrm{mean}_h\, (\nabla A_{\ell h} \circ A_{\ell h})^{+}$; $r \leftarrow r + r \bar A_\ell$ "
    r"for $\ell = L, \dots, 1$",
    source="Chefer, Gur & Wolf 2021, arXiv:2103.15679",
    cost="pass",
    shared=SharedPass(gradient=True, chain=lambda _options: _RELEVANCE_CHAIN),
    takes_query=True,
)


def gradient_rollout(
    trace: Trace, *, query: Query = "pool", attention_share: float = 0.5, layers: LayerRange | None = None
) -> PatchMap:
    """Rollout with each head's attention weighted by its gradient towards the traced target.

    As rollout, with fuse(A_l) replaced by E_h[(dA_lh * A_lh)+]; rows are renormalised after the identity is added, so that they
    sum to 1.

    Args:
        trace: taken with a target.
        query: the token that the target is read from, such as "detection 3", where that is not the pool.
        attention_share: weight of the attention branch against the identity, in [0, 1].
        layers: (first, end) of the layers that take part, end excluded; None means all.

    Source: widely copied code after Abnar & Zuidema 2020. Ours clamps before the mean over heads, and takes each layer's own
    gradient.
    """
    inputs = MethodInput(recorded=as_trace(trace), start=query, layers=layers)
    if not 0 <= attention_share <= 1:
        raise ParameterError(f"The attention share must be between 0 and 1, not {attention_share}.")
    check_read(inputs.trace, start_row(inputs.trace, inputs.query), inputs.query)
    return _gradient_rollout(inputs, Chain("gradient", attention_share))


def _gradient_rollout(inputs: MethodInput, chain: Chain = _ROLLOUT_CHAIN) -> PatchMap:
    return chain_map(inputs, chain, inputs.layers, name="gradient rollout", method="gradient_rollout")


GRADIENT_ROLLOUT = explains(
    _gradient_rollout,
    label="Gradient rollout",
    also_called="grad rollout, attention times gradient",
    shows="attention rollout in which each head counts by how much the target depends on it.",
    hides="how large the influence is: every layer is rescaled to sum to 1, so only proportions remain.",
    formula=r"$A'_\ell = a\, \mathrm{mean}_h (\nabla A_{\ell h} \circ A_{\ell h})^{+} + (1 - a) I$, each row divided by "
    r"its sum; the map is the output's row of $A'_L \cdots A'_1$",
    source="after Abnar & Zuidema 2020, arXiv:2005.00928; clamped before the mean over heads",
    cost="pass",
    shared=SharedPass(gradient=True, chain=lambda _options: _ROLLOUT_CHAIN),
    takes_query=True,
)


def legrad(subject: PreparedImage, target: Target, *, layers: LayerRange | None = None) -> PatchMap:
    """Which keys each layer's attention would have to look at more for the target to grow, summed over layers.

    Per layer l the residual stream after it is pooled and projected as if it were the last, y_l = target(head(pool(x_l))). With
    dA_l = dy_l / dA_l: sum_l mean_h mean_i (dA_lh[i, :])+, without a product with A. All layers share one forward and one backward,
    since each block starts from a cut-off copy of its input. The norm, pool and head are the module's own: it runs with the stream
    in the place of what its last block returns.

    Args:
        target: with its class or embedding fixed.
        layers: (first, end) of the layers that are summed, end excluded; None means all.

    Returns:
        Non-negative sensitivity over the patch grid, in units of the target.

    Source: Bousselham et al. 2024, arXiv:2404.03214, eq. 6 to 10. Theirs rescales the sum to [0, 1]; ours stays raw.
    """
    structure = verified_structure(subject.model, subject.pixels, subject.layout)
    blocks = Blocks(subject.model)
    probe = _answering_after_each_layer(subject, blocks, target)
    with subject.turn():
        recorded = traced(
            probe,
            subject.pixels,
            layout=subject.layout,
            target=torch.sum,
            pool=subject.pool,
            structure=structure,
        )
    blocks.check_layers(recorded.num_layers)
    first, end = layer_range(recorded, layers)
    total = torch.zeros(subject.layout.num_tokens, device=recorded.device)
    for layer in range(first, end):
        for queries in torch.split(torch.arange(recorded.num_tokens), _QUERIES_AT_ONCE):
            gradient = recorded.attention_gradient(layer, queries=queries)
            total += gradient.clamp_(min=0).sum((0, 1)) / (recorded.num_heads * recorded.num_tokens)
    return PatchMap(
        **token_map(recorded, total) | {"crop_box": subject.crop_box},
        unit="sensitivity of the target",
        value_range=(0.0, float("inf")),
        signed=False,
        method="LeGrad",
        class_blind=False,
        provenance=subject.provenance.with_parameters(method="legrad", layers=f"{first}-{end - 1}"),
        caption=f"LeGrad, summed over layers {first}-{end - 1}",
    )


LEGRAD = explains(
    lambda inputs: legrad(inputs.subject, inputs.target, layers=inputs.layers),
    name="legrad",
    label="LeGrad",
    also_called="gradient of attention",
    shows="which patches the layers would have to look at more to raise the target, summed over all layers.",
    hides="where the layers actually look: it is a sensitivity and is not multiplied by the attention itself.",
    formula=r"$\sum_\ell \mathrm{mean}_{h, i}\, (\partial y_\ell / \partial A_{\ell h}[i, :])^{+}$; $y_\ell$: the target, "
    r"read from layer $\ell$",
    source="Bousselham et al. 2024, arXiv:2404.03214",
    cost="pass",
)


def _answering_after_each_layer(subject: PreparedImage, blocks: Blocks, target: Target) -> nn.Module:
    """A model that answers after each of its blocks, each block cut off from those before: [1, layers] of targets."""
    alone, parts = replace(subject, turn=nullcontext), submodules_of(subject.model)
    ours = subject.model if isinstance(subject.model, VisionTransformer) and are_ours(parts) else None

    class EachLayer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = subject.model
            # our own parts, and targets that are named, keep no gradient: nobody need follow the pass to see that
            self.keeps_no_gradient = ours is not None and not are_watched(parts) and target.function is None

        def forward(self, pixels: Tensor) -> Tensor:
            with blocks.apart(cut=True):
                answer = alone.outputs(pixels)
            values = []
            for state in blocks.states:
                outputs = self.answer_from(state, pixels)
                values.append(target(outputs)[0])
            blocks.check_answer(outputs, answer)  # of the last block
            return torch.stack(values)[None]

        def answer_from(self, state: Tensor, pixels: Tensor) -> Tensor:
            if ours is not None:  # the same, without embedding the patches again
                return ours.classify(state)
            with blocks.answering_from(state):
                return alone.outputs(pixels)

    return EachLayer()
