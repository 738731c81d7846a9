"""The outputs of a model with single heads switched off, each as one image of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_viz.analyses.head_estimate import Ablation, Unchanged, run_block
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import edit
from vit_viz.capture.edits import is_edited
from vit_viz.capture.forward import undisturbed
from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import Kernel, attending_through

Head = tuple[int, int]
"""(layer, head)."""

EDITS: dict[Ablation, float | Literal["mean", "uniform"]] = {
    "zero": 0.0,
    "mean": "mean",
    "uniform": "uniform",
}
"""What an edit calls each of them."""


def outputs_without_each(
    subject: PreparedImage, all_heads: Unchanged, heads: Sequence[Head], how: Ablation
) -> Tensor:
    """What the model says with each of these heads switched off alone, [heads, outputs]; heads of lower layers come first.

    From the input of their layer where the pass with all heads kept it: what stands before its heads is computed once for all of
    them, and variants of a lower layer go on together with those of the next.
    """
    if not all_heads.stream:
        off = {head: [EDITS[how] if item == head else 1.0 for item in heads] for head in heads}
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

    def attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None) -> Tensor:
        return F.scaled_dot_product_attention(q[:, :, :read], k, v, scale=scale)

    return attention


def _without_each(heads: Sequence[int], output: Tensor, instead: Tensor) -> Kernel:
    """A kernel that turns one image, whose output is known, into as many as there are heads, each without one of them."""

    def attention(*_: Tensor, scale: float | None = None) -> Tensor:  # noqa: ARG001
        variants = output.repeat(len(heads), 1, 1, 1)
        for variant, head in zip(variants, heads, strict=True):
            variant[head] = instead[head]
        return variants

    return attention
