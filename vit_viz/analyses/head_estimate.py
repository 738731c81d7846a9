"""Outputs with single heads switched off: a first guess from one unchanged pass, and exactly, many heads in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import Target
from vit_viz.capture import Trace, are_ours, edit, is_edited
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import Kernel, attending_through
from vit_viz.model.submodules import submodules_of

Ablation = Literal["zero", "mean", "uniform"]


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
    if not _restarts(subject):
        return _traced(subject, subject.trace())
    with torch.no_grad():
        return _by_blocks(subject, how)


def estimated(subject: PreparedImage, wanted: Target, how: Ablation) -> tuple[Unchanged, NDArray[np.float32]]:
    """As `unchanged`, with what `estimated_head_map` says of the same pass.

    Where a run can start within the model nothing is recorded: the attention is not formed again, and nothing is compared.
    """
    if not _restarts(subject):
        trace = subject.trace(wanted)
        return _traced(subject, trace), estimated_head_map(trace, how=how)
    with differentiable():
        all_heads = _by_blocks(subject, how)
        slopes = gradients(wanted(all_heads.logits), all_heads.outputs)
    outputs = tuple(output.detach() for output in all_heads.outputs)
    guess = [
        _first_order(output[0], other, gradient[0])
        for output, other, gradient in zip(outputs, all_heads.instead, slopes, strict=True)
        if gradient is not None
    ]
    return (
        replace(all_heads, logits=all_heads.logits.detach(), outputs=outputs),
        torch.stack(guess).cpu().numpy(),
    )


def estimated_head_map(trace: Trace, *, how: Ablation = "zero") -> NDArray[np.float32]:
    """A first guess of the causal map from one backward: sum_i (dL/do_i) . (what replaces o_i - o_i) per head, [layers, heads].

    Raises:
        ParameterError: there is no such way of ablation.
        CaptureError: the trace was taken without a target, or its gradient does not reach all layers, or the model writes its
            attention out.

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
    """Check that there is such a way of ablation.

    Raises:
        ParameterError: there is not.
    """
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


def _restarts(subject: PreparedImage) -> bool:
    """Whether a run can start within the model: all of it is ours, and nobody else changes its attention."""
    model = subject.model
    return isinstance(model, VisionTransformer) and are_ours(submodules_of(model)) and not is_edited()


Head = tuple[int, int]
"""(layer, head)."""


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
