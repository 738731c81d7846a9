"""The outputs of a model with single heads switched off, each as one image of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import Trace, edit
from vit_viz.capture.forward import undisturbed
from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import Kernel, attending_through

Ablation = Literal["zero", "mean", "uniform"]
Head = tuple[int, int]
"""(layer, head)."""

EDITS: dict[Ablation, float | Literal["mean", "uniform"]] = {
    "zero": 0.0,
    "mean": "mean",
    "uniform": "uniform",
}
"""What an edit calls each of them."""


def outputs_without_each(
    subject: PreparedImage, trace: Trace, heads: Sequence[Head], how: Ablation
) -> Tensor:
    """What the model says with each of these heads switched off alone, [heads, outputs]; heads of lower layers come first.

    From the cached input of their layer where the trace has it: what stands before its heads is computed once for all of them, and
    variants of a lower layer go on together with those of the next.
    """
    model, stream = subject.model, trace.residual
    if stream is None or not isinstance(model, VisionTransformer):
        off = {head: [EDITS[how] if item == head else 1.0 for item in heads] for head in heads}
        with edit(heads=off):
            return subject.outputs(subject.pixels.expand(len(heads), -1, -1, -1))
    with subject.turn(), undisturbed(model):
        variants: list[Tensor] = []
        for layer in range(heads[0][0], heads[-1][0] + 1):
            parts = [_through(model, x, subject, layer, layer + 1) for x in variants]
            own = [head for of_layer, head in heads if of_layer == layer]
            if own:
                entering = stream[layer, None].to(subject.dtype)  # [1, tokens, dim]
                with attending_through(_without_each(own, how)):
                    parts.append(_through(model, entering, subject, layer, layer + 1))
            variants = [torch.cat(parts)]
        (x,) = variants
        return model.classify(_through(model, x, subject, heads[-1][0] + 1, trace.num_layers))


def _through(model: VisionTransformer, x: Tensor, subject: PreparedImage, start: int, stop: int) -> Tensor:
    """The stream before block `stop` from that before block `start`; after the last block only of the tokens that are read."""
    if start == stop:
        return x
    read = model.tokens_read() if stop == len(model.blocks) else None
    return model.run_blocks(x, subject.layout.grid, start=start, stop=stop, read=read)


def _without_each(heads: Sequence[int], how: Ablation) -> Kernel:
    """A kernel that turns one image into as many as there are heads, each without one of them."""

    def attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None) -> Tensor:
        output = F.scaled_dot_product_attention(q, k, v, scale=scale)  # [1, heads, tokens, head_dim]
        variants = output.repeat(len(heads), 1, 1, 1)
        instead = replacement(how, output[0], v[0])
        for variant, head in zip(variants, heads, strict=True):
            variant[head] = instead[head]
        return variants

    return attention


def replacement(how: Ablation, output: Tensor, values: Tensor) -> Tensor:
    """What a head's output becomes, as something that can be added to it: [heads, tokens | 1, head_dim]."""
    if how == "zero":
        return torch.zeros_like(output[:, :1])
    return (output if how == "mean" else values).mean(1, keepdim=True)
