"""What the model would say if one of its parts were otherwise: seven changes, each a forward pass beside the unchanged one."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.options import Option
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.removal import change_in_words
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.answer import Answer, Table, axes
from vit_viz.capture import edit, is_edited
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid
from vit_viz.indices import checked_index
from vit_viz.lazy import F, Tensor, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import attending_through
from vit_viz.outputs import UNITS, noun_of, output_kind, output_name, shown
from vit_viz.sentences import formatted

Change = Literal["shuffle", "patch", "positions", "scale", "axis", "head", "cut"]
_TOP = 5


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf(Answer):
    """What the model says with one of its parts changed, beside what it says as it is.

    Args:
        before: of the classes below, with nothing changed, [classes]; of an embedding its cosine with itself, 1, [1].
        after: the same with the change.
        classes: the first five before, then those of the first five after that are not among them; none of an embedding.
        words: what each number is of.
        kind: "probability" and "value" of classes, or "embedding".
        sentence: what the change does.
    """

    change: Change
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    classes: tuple[int, ...]
    words: tuple[str, ...]
    kind: Literal["probability", "value", "embedding"]
    unit: str
    sentence: str

    AXES = axes(before=("name",), after=("name",))

    def to_table(self) -> Table:
        """Name, number as the model is, number with the change."""
        return Table(("name", "before", "after"), zip(self.words, self.before, self.after, strict=True))

    def to_words(self) -> str:
        """What the change does."""
        return self.sentence


@dataclass(frozen=True, eq=False, repr=False)
class OtherPatches(Answer):
    """The input cut into patches of another size; no model was trained for them, so none runs.

    Args:
        grid: whole patches as (rows, cols).
        tokens: with those that are no patches.
        left_out: share of the pixels that fit into no whole patch.
        pairs: of tokens, which every head compares: their number squared.
        sentence: the same in words.
    """

    change: Change
    grid: Grid
    tokens: int
    left_out: float
    pairs: int
    sentence: str

    def to_table(self) -> Table:
        """One line."""
        return Table(
            ("rows", "cols", "tokens", "left out", "pairs"),
            [(*self.grid, self.tokens, self.left_out, self.pairs)],
        )

    def to_words(self) -> str:
        """The numbers in a sentence."""
        return self.sentence


def rearranged(model: VisionTransformer, pixels: Tensor, order: Tensor) -> Tensor:
    """The input [1, channels, height, width] with its patches in another order: at place i stands patch order[i]."""
    patches = model.patch_embed.patches(pixels)[:, order.to(pixels.device)]  # [1, n, channels * P * P]
    size, (rows, cols) = model.config.patch_size, model.grid_of(*pixels.shape[-2:])
    return F.fold(patches.transpose(1, 2), (rows * size[0], cols * size[1]), kernel_size=size, stride=size)


def without_positions(model: VisionTransformer) -> VisionTransformer:
    """The same model, and the same parameters, with nothing that says where a patch is."""
    without = copy.copy(model)  # only its configuration is another
    without.config = replace(
        model.config,
        position="none",
        position_grid=None,
        rotary_grid=None,
        relative_bias=False,
        shared_bias=False,
    )
    return without


def _what_if(
    job: Job,
    *,
    change: Annotated[
        Change,
        Option(
            "change",
            "Shuffled patches, another patch size, no positions, scores without their scale, softmax along the queries, a head "
            "that is off, or the class token cut off from all patches.",
        ),
    ] = "shuffle",
    layer: Annotated[
        int,
        Option("layer", "Of the head, counted from 0; -1 is the last.", low=-999, high=999, is_layer=True),
    ] = -1,
    head: Annotated[int, Option("head", "That is off, counted from 0.", low=0, high=999)] = 0,
    patch: Annotated[int, Option("patch size", "Side of another patch in pixels.", low=1, high=512)] = 8,
    seed: Annotated[
        int, Option("shuffle", "Number of the patches' order; 0 leaves them.", low=0, high=999)
    ] = 1,
) -> WhatIf | OtherPatches:
    """One change: what the model says with it, or of another patch size how many tokens there would be."""
    subject = job.image
    if change == "patch":
        return _other_patches(subject, patch)
    seen, changed, words = _changed(subject, change, layer=layer, head=head, seed=seed)
    with torch.no_grad(), changed:
        outputs = seen.outputs(seen.pixels)[0].float().cpu()
    if not subject.has_classes:
        now = float(F.cosine_similarity(outputs, job.outputs, dim=0))
        name = "similarity to the embedding as it is"
        said = f"{words}, the embedding's cosine with what it was is {formatted(now, '.2f')}."
        pair = np.ones(1, np.float32), np.array([now], np.float32)
        return WhatIf(change, *pair, (), (name,), "embedding", "cosine similarity", said)
    kind = output_kind(subject.output, outputs.numel())
    before, after = shown(job.outputs, kind), shown(outputs, kind)
    first = (scores.topk(min(_TOP, scores.numel())).indices.tolist() for scores in (before, after))
    chosen = list(dict.fromkeys(index for indices in first for index in indices))
    names = tuple(map(partial(output_name, labels=subject.labels, noun=noun_of(kind)), chosen))
    pair = before[chosen].numpy(), after[chosen].numpy()
    is_value = kind == "value"
    said = f"{words}, {change_in_words(names, *pair, is_value=is_value)}."
    return WhatIf(
        change, *pair, tuple(chosen), names, "value" if is_value else "probability", UNITS[kind], said
    )


def _changed(
    subject: PreparedImage, change: Change, *, layer: int, head: int, seed: int
) -> tuple[PreparedImage, AbstractContextManager[None], str]:
    """The image and the model as they are then, what is entered around the pass, and how a sentence about it begins."""
    model, layout = subject.transformer("This change"), subject.layout
    config, depth = model.config, len(model.blocks)
    if change == "head":
        checked_index("Layer", layer, depth)
        checked_index("Head", head, config.num_heads)
        return subject, edit(heads={(layer, head): 0.0}), f"Without head {head} of layer {layer}"
    if change == "scale":
        return subject, attending_through(_unscaled), "Without the scale in any layer"
    if change == "axis":
        return subject, attending_through(_along_queries), "With the softmax along the queries"
    if change == "cut":
        if layout.pooling != "class":
            raise ParameterError(
                "This model reads its answer from the patches: there is no class token to cut off from them."
            )
        forbidden = torch.zeros(layout.num_tokens, layout.num_tokens, dtype=torch.bool)
        forbidden[[layout.token(name) for name in layout.class_tokens], layout.patch_slice] = True
        reading = " and ".join(map(layout.describe, layout.class_tokens))
        knockout = dict.fromkeys(range(depth), forbidden)
        return subject, edit(knockout=knockout), f"With the {reading} cut off from all patches"
    words = []
    if change == "positions":
        without = without_positions(model)
        if without.config == config:
            raise ParameterError("This model has no positions: there are none to leave out.")
        subject, words = replace(subject, model=without), ["Without positions"]
    if seed:
        order = np.random.default_rng([seed, 0]).permutation(layout.num_patches)
        subject = replace(subject, pixels=rearranged(model, subject.pixels, torch.from_numpy(order)))
        words.append("with shuffled patches" if words else "With shuffled patches")
    return subject, nullcontext(), " and ".join(words) or "With patches in their order"


def _unscaled(q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, scale: float | None) -> Tensor:
    """softmax(q k^T + bias) v; a pool, which names no scale, keeps its own."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, scale=scale and 1.0)


def _along_queries(
    q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None, scale: float | None
) -> Tensor:
    """The same with the weights of each key, and not of each query, summing to 1."""
    if scale is None:  # of a pool
        return F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
    if is_edited():
        raise ParameterError(
            "With edits the softmax cannot run along the queries: take the edits back first."
        )
    scores = q @ k.transpose(-1, -2) * scale  # [B, H, queries, keys]
    return (scores if attn_mask is None else scores + attn_mask).softmax(-2) @ v


def _other_patches(subject: PreparedImage, patch: int) -> OtherPatches:
    height, width = (int(side) for side in subject.pixels.shape[-2:])
    rows, cols = height // patch, width // patch
    if not rows * cols:
        raise ParameterError(
            f"A patch of {patch} x {patch} pixels is larger than the input of {height} x {width}."
        )
    tokens, left_out = rows * cols + len(subject.layout.named), 1 - rows * cols * patch**2 / (height * width)
    rest = f"; {left_out:.1%} of the pixels fit into none" if left_out else ""
    said = (
        f"Patches of {patch} x {patch} pixels would be {rows} x {cols}{rest}: {tokens:,} tokens, and {tokens**2:,} pairs of them "
        "for each head to compare."
    )
    return OtherPatches("patch", (rows, cols), tokens, left_out, tokens**2, said)


LESSON_WHAT_IF = asks(
    _what_if,
    name="lesson_what_if",
    label="What if",
    also_called="ablation, shuffled patches, without positions, without scale, wrong axis, patch size, knock out the class token",
    shows="what the model says with one of its parts changed.",
    hides="what a model would say that had been trained with the change: this one was not.",
    formula=r"$f'(x)$ beside $f(x)$, where $f'$ is the forward pass with one thing changed",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929; Vaswani et al. 2017, arXiv:1706.03762, section 3.2.1",
    reads="image",
    place=Place("lesson", options=dict.fromkeys(("change", "patch", "seed"), "")),
    cost="pass",
    forwards=1,
)
