"""The student in training: its forward pass with dropped patches, and the losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.recipe import Recipe

TEACHER_DIM = 192
GUIDED_LAYERS = 4


class Targets(NamedTuple):
    """The targets of a batch: the labels, and the teacher's answers about the same photos and crops.

    labels [batch, classes] and soft [batch, classes] (the teacher at a temperature) are probabilities; tokens [batch,
    patches, dim]; summary [batch, dim], the teacher's class token; evidence [batch, patches] >= 0, where it finds
    the label.
    """

    labels: Tensor
    soft: Tensor
    tokens: Tensor
    summary: Tensor
    evidence: Tensor


class Guess(NamedTuple):
    """What the student predicts: logits [batch, classes], and the teacher's tokens and summary.

    looks [guided layers, batch, patches]: the attention of the class token to the patches, mean over heads, as
    shares that sum to 1 over the patches.
    """

    logits: Tensor
    tokens: Tensor
    summary: Tensor
    looks: Tensor


class Student(nn.Module):
    """A model in training with the two linear maps, thrown away at the end, that lead to the teacher's space."""

    def __init__(self, model: nn.Module, dim: int) -> None:
        super().__init__()
        self.model: Any = model
        self.to_tokens = nn.Linear(dim, TEACHER_DIM)
        self.to_summary = nn.Linear(dim, TEACHER_DIM)

    def forward(self, pixels: Tensor, keep: Tensor | None = None) -> Guess:
        """The student on a batch, on the patches `keep` [batch, kept] only, if given."""
        tokens, rows = student_tokens(self.model, pixels, keep)
        num_prefix = 1 + self.model.reg_token.shape[1]
        looks = torch.stack(rows[-GUIDED_LAYERS:])[..., num_prefix:].float().mean(2)
        first = tokens[:, 0]
        shares = looks / looks.sum(-1, keepdim=True)
        return Guess(
            self.model.head(first), self.to_tokens(tokens[:, num_prefix:]), self.to_summary(first), shares
        )


def student_tokens(model: Any, pixels: Tensor, keep: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
    """The model's own forward pass up to the final norm, on the patches `keep` [batch, kept] only.

    Returns the tokens and each layer's attention of the class token: [batch, heads, tokens]. Positions are added
    before patches are dropped, so that each kept patch knows where it lies. Equal to the model's forward pass where
    nothing is dropped (a test says so).
    """
    patches = embed(model, pixels)
    if keep is not None:
        patches = patches.gather(1, keep[:, :, None].expand(-1, -1, patches.shape[-1]))
    prefix = torch.cat([model.cls_token, model.reg_token], 1).expand(len(pixels), -1, -1)
    x = torch.cat([prefix.to(patches.dtype), patches], 1)
    rows = []
    for block in model.blocks:
        mixed, row = attend(block.attn, block.norm1(x))
        x = x + mixed
        x = x + block.mlp(block.norm2(x))
        rows.append(row)
    normed: Tensor = model.norm(x)
    return normed, rows


def attend(layer: Any, x: Tensor) -> tuple[Tensor, Tensor]:
    """Self-attention as two batched products, softmax(q k^T / sqrt(head_dim)) v, projected; and its first row.

    The row [batch, heads, tokens] is the attention of the class token. For short sequences this is 3 to 9 times
    faster forwards and backwards than the fused kernel of a CPU in bfloat16 (41 to 133 tokens; even at 261).
    """
    batch, tokens, dim = x.shape
    heads, head_dim = layer.num_heads, dim // layer.num_heads
    qkv = layer.qkv(x).view(batch, tokens, 3, heads, head_dim)
    q, k, v = qkv.permute(2, 0, 3, 1, 4).flatten(1, 2).unbind(0)  # each [batch * heads, tokens, head_dim]
    attention = torch.softmax(torch.bmm(q * head_dim**-0.5, k.mT), -1)  # [batch * heads, queries, keys]
    mixed = torch.bmm(attention, v).view(batch, heads, tokens, head_dim).transpose(1, 2)
    projected: Tensor = layer.proj(mixed.reshape(batch, tokens, dim))
    return projected, attention[:, 0].view(batch, heads, tokens)


@torch.no_grad()
def initialise(model: nn.Module) -> None:
    """Weights of a new model: normal with deviation 0.02, cut at two deviations; biases 0 (as DeiT starts)."""
    for name, value in model.named_parameters():
        if name.endswith("bias"):
            value.zero_()
        elif value.ndim > 1:
            nn.init.trunc_normal_(value, std=0.02, a=-0.04, b=0.04)


def embed(model: Any, pixels: Tensor) -> Tensor:
    """Patches with their positions, resampled to the grid of these pixels: [batch, patches, dim]."""
    weight = model.patch_embed.proj.weight
    size, grid = weight.shape[-1], pixels.shape[-1] // weight.shape[-1]
    cut = pixels.reshape(len(pixels), -1, grid, size, grid, size).permute(0, 2, 4, 1, 3, 5)
    patches = F.linear(cut.flatten(3).flatten(1, 2), weight.flatten(1), model.patch_embed.proj.bias)
    return patches + positions(model.pos_embed, grid)


def positions(table: Tensor, grid: int) -> Tensor:
    """The learned positions [1, patches, dim] on a grid of another size, bicubic with antialiasing as timm does."""
    own = round(table.shape[1] ** 0.5)
    if own == grid:
        return table
    square = table.view(1, own, own, -1).permute(0, 3, 1, 2)
    resampled = F.interpolate(square, size=(grid, grid), mode="bicubic", antialias=True, align_corners=False)
    return resampled.permute(0, 2, 3, 1).flatten(1, 2)


def random_patches(batch: int, patches: int, keep: float, *, rng: torch.Generator) -> Tensor | None:
    """Which patches each photo keeps: int64 [batch, kept], or None where all are kept."""
    if keep >= 1.0:
        return None
    order = torch.rand(batch, patches, generator=rng).argsort(1)
    return order[:, : round(patches * keep)]


def random_rectangles(batch: int, grid: int, share: float, *, rng: torch.Generator) -> Tensor:
    """Patches to be replaced by those of another photo, about half of the area in the mean: bool [batch, grid, grid].

    Only a `share` of the photos gets a rectangle at all.
    """
    sides = torch.rand(batch, 1, generator=rng).sqrt() * grid
    starts = torch.rand(2, batch, 1, generator=rng) * (grid - sides)
    inside = (torch.arange(grid) + 0.5 >= starts) & (torch.arange(grid) + 0.5 < starts + sides)
    chosen = torch.rand(batch, 1, 1, generator=rng) < share
    return inside[0][:, :, None] & inside[1][:, None, :] & chosen


def paste(pixels: Tensor, targets: Targets, replaced: Tensor) -> tuple[Tensor, Targets]:
    """CutMix with the batch in reverse order; targets are mixed by area, tokens patch by patch.

    A class is then recognised from its own region, which is what a map of relevance should show. Source: Yun et al.
    2019, arXiv:1905.04899.
    """
    size = pixels.shape[-1] // replaced.shape[-1]
    mask = replaced.repeat_interleave(size, 1).repeat_interleave(size, 2)[:, None]
    share = replaced.float().mean((1, 2))[:, None]
    labels, soft, summary = (
        torch.lerp(part, part.flip(0), share) for part in (targets.labels, targets.soft, targets.summary)
    )
    swapped = replaced.flatten(1)
    tokens = torch.where(swapped[:, :, None], targets.tokens.flip(0), targets.tokens)
    evidence = torch.where(swapped, targets.evidence.flip(0), targets.evidence)
    return torch.where(mask, pixels.flip(0), pixels), Targets(labels, soft, tokens, summary, evidence)


def losses(guess: Guess, targets: Targets, recipe: Recipe) -> dict[str, Tensor]:
    """The five terms of the loss, already weighted.

    label: cross-entropy with smoothing. logit: T^2 KL(teacher || student) at temperature T. token and class:
    mean squared distance to the teacher's standardised tokens, patch by patch, and to its class token. look: KL
    from the teacher's evidence, as shares of the photo, to the student's class-token attention, mean over layers.
    """
    logits, tokens, summary = guess.logits.float(), guess.tokens.float(), guess.summary.float()
    warm = recipe.temperature
    distance = F.kl_div(F.log_softmax(logits / warm, 1), targets.soft, reduction="batchmean")
    smoothing = recipe.smoothing
    shares = targets.evidence / targets.evidence.sum(1, keepdim=True).clamp(min=1e-3)
    look = F.kl_div(guess.looks.clamp(min=1e-9).log(), shares.expand_as(guess.looks), reduction="none")
    return {
        "label": recipe.label_weight * F.cross_entropy(logits, targets.labels, label_smoothing=smoothing),
        "logit": recipe.logit_weight * warm**2 * distance,
        "token": recipe.token_weight * F.mse_loss(tokens, targets.tokens),
        "class": recipe.class_weight * F.mse_loss(summary, targets.summary),
        "look": recipe.look_weight * look.sum(-1).mean(),
    }
