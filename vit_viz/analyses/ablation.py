"""What a head is for: the change of the answer when it is switched off."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import BATCH, ModelLike, Picture, PreparedImage, in_batches
from vit_viz.analyses.spec import Job, Passes, Place, asks
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer
from vit_viz.capture import Trace, are_ours, edit, is_edited
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Mode
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import Kernel, attending_through
from vit_viz.model.submodules import submodules_of
from vit_viz.outputs import Output
from vit_viz.progress import Progress, ProgressLike, StopCheck, Watch, bar
from vit_viz.results import HeadTable

Ablation = Literal["zero", "mean", "uniform"]
Head = tuple[int, int]
"""(layer, head)."""
_HOW = Option("how", "What replaces the head's output: zero, its mean over tokens, uniform attention.")


def ablate_heads(
    loaded: ModelLike,
    image: Picture | Tensor | None = None,
    *,
    target: TargetLike = None,
    mode: Mode = "fit",
    size: int = 0,
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
    output: Output | None = None,
    how: Ablation = "zero",
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
) -> HeadTable:
    """The causal head map: by how much the target changes when one head is switched off, for every head.

    o_lh <- 0, its mean over tokens, or uniform attention. Each run starts from the cached input of its layer instead of from the
    pixels, with the heads of a layer as a batch; the numbers are those of the plain loop. `causal_map` gives the first-order
    estimate beside it, and the table while it fills.

    Args:
        target: what is followed, e.g. a class by its index or name; None means the logit of the first class, or the own
            embedding.
        size: short side of the model's input in patches; 0 is the checkpoint's own.
        layout: which token is what; None asks the module.
        has_classes: whether a module's outputs are scores of classes; None takes what it says of itself.
        output: what one of them is, as `load` takes it; None takes what the model says of itself.
        how: what replaces the head's output.
        progress: told the share that is done; None shows a bar at a terminal or in a notebook, False nothing.
        cancelled: asked between batches; True ends with `Cancelled`.

    Returns:
        Target without the head minus target with it, [layers, heads], signed: below 0 where the head helps.

    Raises:
        ParameterError: the target or the way of ablation does not exist.
        Cancelled: `cancelled` said so.

    Source: Michel et al. 2019, arXiv:1905.10650.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> table = vv.ablate_heads("mini", sample("shapes"), target="lion")
        >>> table.values[5].round(1)  # of each head of the last layer
        array([ 0.1, -0.1, -0.2, -0.1, -0.2,  0.2], dtype=float32)
    """
    subject = PreparedImage.of(
        loaded,
        image,
        mode=mode,
        size=size,
        layout=layout,
        has_classes=has_classes,
        output=output,
        target=target,
    )
    with bar("ablation", progress) as report:
        return head_map(subject, target=target, how=how, progress=report, cancelled=cancelled)


@dataclass(frozen=True, eq=False, repr=False)
class CausalMap(Answer):
    """What switching each head off changes, beside what one gradient foretold.

    Args:
        table: the change, [layers, heads]; 0 where it is not computed yet.
        estimate: the first-order guess of the same, [layers, heads].
        known: which heads are computed, [layers, heads].
    """

    table: HeadTable
    estimate: HeadTable
    known: NDArray[np.bool_]


def head_map(
    subject: PreparedImage,
    *,
    target: TargetLike = None,
    how: Ablation = "zero",
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> HeadTable:
    """As `ablate_heads`, for an image that is prepared already."""
    check_ablation(how)
    all_heads = unchanged(subject, how)
    fixed = subject.target(target).resolved(all_heads.logits)
    depth, heads = all_heads.heads
    plan = [
        [(layer, head) for layer in layers for head in range(heads)] for layers in _together(depth, heads)
    ]
    watch = Watch(depth * heads, progress=progress, cancelled=cancelled)
    return _filled(subject, all_heads, fixed, how, plan, watch)


def head_importance(
    subject: PreparedImage, *, target: TargetLike = None, how: Annotated[Ablation, _HOW] = "zero"
) -> HeadTable:
    """What switching each head off would change, from one gradient; as `estimated_head_map`.

    Source: Michel et al. 2019, arXiv:1905.10650, section 4.1, with its sign.
    """
    return _estimated(subject, target, how)[2]


def causal_map(
    subject: PreparedImage,
    *,
    target: TargetLike = None,
    how: Ablation = "zero",
    partial: Callable[[CausalMap], None] | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> CausalMap:
    """The causal head map with its first-order estimate; the heads that the estimate says matter most come first.

    Args:
        target, how, progress, cancelled: as `ablate_heads` has them.
        partial: given the map after each batch, as far as it is computed.

    Source: Michel et al. 2019, arXiv:1905.10650.
    """
    watch = Watch(1, progress=progress, cancelled=cancelled)
    watch.check()
    all_heads, fixed, estimate = _estimated(subject, target, how)
    guess = estimate.values
    watch.total = guess.size

    def tell(table: HeadTable, computed: NDArray[np.bool_]) -> None:
        if partial is not None:
            partial(CausalMap(table, estimate, computed))

    plan = _by_estimate(guess, _together(*guess.shape))
    table = _filled(subject, all_heads, fixed, how, plan, watch, tell)
    return CausalMap(table, estimate, np.ones(guess.shape, dtype=bool))


# --- the pass with all heads, and with single heads switched off


@dataclass(frozen=True, eq=False)
class Unchanged:
    """A pass with all heads; what is empty is not known, since a run cannot start within the model.

    Args:
        logits: [outputs].
        heads: how many there are: layers, heads of each.
        stream: what enters each block, [1, tokens, dim] each.
        outputs: attention @ v of each block, [1, heads, tokens, head_dim] each.
        instead: what replaces it where a head is switched off, [heads, tokens | 1, head_dim] each.
    """

    logits: Tensor
    heads: tuple[int, int]
    stream: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    instead: tuple[Tensor, ...] = ()


def unchanged(subject: PreparedImage, how: Ablation) -> Unchanged:
    """The pass with all heads, and where a run can start within the model what it starts from."""
    if not _restarts(subject, how):
        return _traced(subject, subject.trace())
    with torch.no_grad():
        return _by_blocks(subject, how)


def estimated_head_map(trace: Trace, *, how: Ablation = "zero") -> NDArray[np.float32]:
    """A first guess of the causal map from one backward: sum_i (dL/do_i) . (what replaces o_i - o_i) per head, [layers, heads].

    Source: Michel et al. 2019, arXiv:1905.10650, section 4.1, with its sign.
    """
    check_ablation(how)
    if trace.layers[0].weights_grad is not None:
        raise CaptureError(
            "An estimate needs the gradient of what each head says, and this model writes its attention out: the ablation itself "
            "needs none."
        )
    if trace.v is None or trace.output_grad is None:
        raise CaptureError("An estimate needs gradients: pass target= to trace().")
    values = np.zeros((trace.num_layers, trace.num_heads), dtype=np.float32)
    for layer in range(trace.num_layers):
        v, gradient = trace.v[layer], trace.output_grad[layer]  # [heads, tokens, head_dim]
        output = torch.cat([attention @ v for _, attention in trace.tiles(layer)], dim=1)
        instead = _replacement(how, output, v, trace.layers[layer].visible)
        values[layer] = _first_order(output, instead, gradient).cpu().numpy()
    return values


def _first_order(output: Tensor, instead: Tensor, gradient: Tensor) -> Tensor:
    return ((instead - output).float() * gradient.float()).sum((1, 2))


def _replacement(how: Ablation, output: Tensor, values: Tensor, visible: Tensor | None = None) -> Tensor:
    """What a head's output becomes, as something that can be added to it: [heads, tokens | 1, head_dim].

    Args:
        visible: which keys each query may look at, Boolean [1 | heads, 1 | queries, keys]; None for all.
    """
    if how == "zero":
        return torch.zeros_like(output[:, :1])
    if how == "mean" or visible is None:
        return (output if how == "mean" else values).mean(1, keepdim=True)
    seen = visible.to(values.dtype)
    return (seen / seen.sum(-1, keepdim=True)).expand(len(values), -1, -1) @ values


def check_ablation(how: str) -> None:
    """Check that there is such a way of ablation."""
    if how not in get_args(Ablation):
        raise ParameterError(f"A head is replaced by {', '.join(get_args(Ablation))}, not by {how!r}.")


def run_block(model: VisionTransformer, x: Tensor, subject: PreparedImage, layer: int) -> Tensor:
    """The stream after a block from that before it; after the last one only of the tokens that are read."""
    read = model.tokens_read() if layer == len(model.blocks) - 1 else None
    return model.run_blocks(x, subject.layout.grid, start=layer, stop=layer + 1, read=read)


def _by_blocks(subject: PreparedImage, how: Ablation) -> Unchanged:
    """The pass of our own model, block by block; gradients as the caller has them."""
    model = subject.transformer("A run from within the model")
    stream: list[Tensor] = []
    outputs: list[Tensor] = []
    instead: list[Tensor] = []

    def attention(q: Tensor, k: Tensor, v: Tensor, **choices: Any) -> Tensor:
        output = F.scaled_dot_product_attention(q, k, v, **choices)
        if torch.is_grad_enabled() and not output.requires_grad:
            output.requires_grad_()  # the first layer of a frozen model: the graph begins here
        outputs.append(output)
        instead.append(_replacement(how, output[0].detach(), v[0].detach()))
        return output

    with subject.turn(), undisturbed(model):
        x = model.tokens(subject.pixels.to(subject.dtype))  # [1, tokens, dim]
        with attending_through(attention):
            for layer in range(len(model.blocks)):
                stream.append(x.detach())
                x = run_block(model, x, subject, layer)
        logits = model.classify(x)[0]
    wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    heads = (len(stream), model.config.num_heads)
    return Unchanged(wide, heads, tuple(stream), tuple(outputs), tuple(instead))


def _traced(subject: PreparedImage, trace: Trace) -> Unchanged:
    return Unchanged(subject.logits(trace), (trace.num_layers, trace.num_heads))


def _restarts(subject: PreparedImage, how: Ablation) -> bool:
    """Whether a run can start within the model: all of it is ours, and nobody else changes its attention.

    Edits that belong to the model may hide tokens: of which ones uniform attention is then, only a whole pass knows.
    """
    model = subject.model
    if not isinstance(model, VisionTransformer) or not are_ours(submodules_of(model)) or is_edited():
        return False
    with subject.turn() if how == "uniform" else nullcontext():
        return not is_edited()


def outputs_without_each(
    subject: PreparedImage, all_heads: Unchanged, heads: Sequence[Head], how: Ablation
) -> Tensor:
    """What the model says with each of these heads switched off alone, [heads, outputs]; heads of lower layers come first.

    From the input of their layer where the pass with all heads kept it: what stands before its heads is computed once for all of
    them, and variants of a lower layer go on together with those of the next.
    """
    if not all_heads.stream:
        switched = 0.0 if how == "zero" else how
        off = {head: [switched if item == head else 1.0 for item in heads] for head in heads}
        with edit(heads=off):
            return subject.outputs(subject.pixels.expand(len(heads), -1, -1, -1))
    model, depth = subject.transformer("A run from within the model"), len(all_heads.stream)
    with subject.turn(), undisturbed(model):
        last = None if is_edited() else depth - 1  # edits want to see whole layers
        variants: list[Tensor] = []
        for layer in range(heads[0][0], depth):
            with attending_through(_of_those_read(model)) if layer == last else nullcontext():
                parts = [run_block(model, x, subject, layer) for x in variants]
            own = [head for of_layer, head in heads if of_layer == layer]
            if own:
                with attending_through(
                    _without_each(own, all_heads.outputs[layer], all_heads.instead[layer])
                ):
                    parts.append(run_block(model, all_heads.stream[layer], subject, layer))
            variants = [torch.cat(parts)] if len(parts) > 1 else parts
        return model.classify(variants[0])


def _of_those_read(model: VisionTransformer) -> Kernel:
    """A kernel for the last block: only the tokens that the output is read from look at the others."""
    read = model.tokens_read()

    def attention(
        q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, scale: float | None
    ) -> Tensor:
        bias = None if attn_mask is None else attn_mask[:, :, :read]
        return F.scaled_dot_product_attention(q[:, :, :read], k, v, attn_mask=bias, scale=scale)

    return attention


def _without_each(heads: Sequence[int], output: Tensor, instead: Tensor) -> Kernel:
    """A kernel that turns one image, whose output is known, into as many as there are heads, each without one of them."""

    def attention(*_: Tensor, **_choices: Any) -> Tensor:
        variants = output.repeat(len(heads), 1, 1, 1)
        for variant, head in zip(variants, heads, strict=True):
            variant[head] = instead[head]
        return variants

    return attention


# --- parts


def _estimated(
    subject: PreparedImage, target: TargetLike, how: Ablation
) -> tuple[Unchanged, Target, HeadTable]:
    """The pass with all heads, the target with its class fixed, and the first-order guess from that same pass.

    Where a run can start within the model nothing is recorded: the attention is not formed again, and nothing is compared.
    """
    check_ablation(how)
    wanted = subject.target(target)
    if _restarts(subject, how):
        with differentiable():
            all_heads = _by_blocks(subject, how)
            slopes = gradients(wanted(all_heads.logits), all_heads.outputs)
        outputs = tuple(output.detach() for output in all_heads.outputs)
        first_order = [
            _first_order(output[0], other, gradient[0])
            for output, other, gradient in zip(outputs, all_heads.instead, slopes, strict=True)
            if gradient is not None
        ]
        all_heads = replace(all_heads, logits=all_heads.logits.detach(), outputs=outputs)
        guess = torch.stack(first_order).cpu().numpy()
    else:
        trace = subject.trace(wanted)
        all_heads, guess = _traced(subject, trace), estimated_head_map(trace, how=how)
    fixed = wanted.resolved(all_heads.logits)
    return all_heads, fixed, _as_table(subject, guess, fixed, f"first-order estimate ({how})", how)


def _together(depth: int, heads: int) -> list[range]:
    """Neighbouring layers whose heads fill a batch together: a machine computes a larger batch in less time per image."""
    layers = max(1, BATCH // heads)
    return [range(first, min(first + layers, depth)) for first in range(0, depth, layers)]


def _by_estimate(estimate: NDArray[np.float32], together: Sequence[range]) -> list[list[Head]]:
    """Batches of heads, those that are expected to change most first; heads of neighbouring layers share a batch."""
    size = np.abs(estimate)

    def expected(head: Head) -> float:
        return -float(size[head])

    batches = []
    for layers in together:
        heads = sorted(((layer, head) for layer in layers for head in range(size.shape[1])), key=expected)
        batches += [sorted(heads[start : start + BATCH]) for start in range(0, len(heads), BATCH)]
    return sorted(batches, key=lambda batch: min(map(expected, batch)))


def _filled(
    subject: PreparedImage,
    all_heads: Unchanged,
    target: Target,
    how: Ablation,
    plan: Sequence[Sequence[Head]],
    watch: Watch,
    tell: Callable[[HeadTable, NDArray[np.bool_]], None] = lambda *_: None,
) -> HeadTable:
    """The map, filled batch by batch in the order of a plan; what is there so far is told after each, with which heads it has."""
    values = np.zeros(all_heads.heads)
    computed = np.zeros(values.shape, dtype=bool)
    before = float(target(all_heads.logits))
    table = _as_table(subject, values, target, f"head ablation ({how})", how)
    for heads in plan:
        layers, of_layer = zip(*heads, strict=True)
        values[layers, of_layer] = _scores(subject, all_heads, target, heads, how, watch) - before
        computed[layers, of_layer] = True
        table = replace(table, values=values.astype(np.float32))
        tell(table, computed.copy())
    return table


def _as_table(
    subject: PreparedImage, values: NDArray[Any], target: Target, method: str, how: Ablation
) -> HeadTable:
    return HeadTable(
        values.astype(np.float32),
        unit=f"change of the {target.describe(subject.labels)}",
        value_range=(-math.inf, math.inf),
        signed=True,
        method=method,
        provenance=subject.provenance.with_parameters(
            method="ablate_heads", how=how, target=target.describe()
        ),
        note="Target without the head minus target with it: below 0 where the head helps.",
    )


def _scores(
    subject: PreparedImage,
    all_heads: Unchanged,
    target: Target,
    heads: Sequence[Head],
    how: Ablation,
    watch: Watch,
) -> NDArray[np.float64]:
    """The target with each of these heads switched off alone, [heads]; as many at once as a batch holds."""

    def run(part: slice) -> Tensor:
        watch.check()
        with torch.no_grad():
            scores = target(outputs_without_each(subject, all_heads, heads[part], how))
        watch.advance(len(scores))
        return scores

    return in_batches(run, len(heads)).cpu().double().numpy()


def _ablation(job: Job, *, target: TargetLike, how: Annotated[Ablation, _HOW] = "zero") -> HeadTable:
    # what is there so far is told with the heads that it has, those first that matter most
    return causal_map(job.image, target=target, how=how, partial=job.preview, **job.watched).table


HEAD_IMPORTANCE = asks(
    head_importance,
    label="Importance of heads",
    also_called="which heads matter, pruning heads, head pruning, Taylor importance",
    shows="by how much the target would change if one head were switched off, estimated from one gradient.",
    hides="what does change: the estimate is of first order, see the ablation.",
    formula=r"$\sum_i \frac{\partial f}{\partial o_{l h i}} \cdot (0 - o_{l h i})$",
    source="Michel et al. 2019, arXiv:1905.10650, section 4.1",
    reads="image",
    place=Place("heads", {"face": "atlas", "measure": "estimate"}),
    cost="pass",
    forwards=3,
)

ABLATION = asks(
    _ablation,
    label="Causal effect of heads",
    also_called="ablating heads, activation patching, knockout, lesion, zero ablation, mean ablation, pruning",
    shows="by how much the target changes when one head is switched off, for every head.",
    hides="what heads do together: each is switched off alone.",
    formula=r"$f(x \mid o_{l h} \leftarrow 0) - f(x)$",
    source="Michel et al. 2019, arXiv:1905.10650",
    runs="about half a pass for each head",
    passes=Passes(
        lambda trace: 0.45 * trace.num_layers * trace.num_heads
    ),  # a run starts behind the layers before its head
    reads="image",
    place=Place("heads", {"face": "atlas", "measure": "effect"}),
    cost="many passes",
    forwards=80,
)
