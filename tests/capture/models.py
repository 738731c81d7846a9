"""Tiny odd models of every kind that a capture meets, and the attention that they compute, by independent means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.geometry import TokenLayout
from vit_viz.model import VisionTransformer, ViTConfig

SIZE = (64, 96)
"""Height and width that give a grid of 4 x 6 with patches of 16."""


def pixels(batch: int = 1, channels: int = 3, size: tuple[int, int] = SIZE) -> Tensor:
    return torch.randn(batch, channels, *size, generator=torch.Generator().manual_seed(1))


def own(**choices: object) -> VisionTransformer:
    settings = {
        "img_size": SIZE, "patch_size": (16, 16), "embed_dim": 40, "depth": 3, "num_heads": 5, "mlp_hidden": 56, "num_classes": 7,
    }  # fmt: skip
    return lively(VisionTransformer(ViTConfig(**(settings | choices))))  # type: ignore[arg-type]


def timm_vit(**choices: object) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer as TimmViT

    settings = {
        "img_size": SIZE,
        "patch_size": 16,
        "embed_dim": 40,
        "depth": 3,
        "num_heads": 5,
        "num_classes": 7,
    }
    return lively(TimmViT(**(settings | choices)))  # type: ignore[arg-type]


def transformers_vit(implementation: str = "sdpa") -> nn.Module:
    from transformers import ViTConfig as Config, ViTForImageClassification

    config = Config(
        hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=56, image_size=SIZE,
        patch_size=16, num_labels=7,
    )  # fmt: skip
    model = ViTForImageClassification(config)
    model.set_attn_implementation(implementation)
    return lively(model)


def torchvision_vit() -> nn.Module:
    from torchvision.models.vision_transformer import VisionTransformer as TorchvisionViT

    return lively(
        TorchvisionViT(
            image_size=64, patch_size=16, num_layers=3, num_heads=5, hidden_dim=40, mlp_dim=56, num_classes=7
        )
    )


class Detector(nn.Module):
    """A small transformer for 16 x 42 pixels whose named tokens stand before or after the patches, and of which one is the output.

    Args:
        layout: which token is what; with the same names the same answer, wherever they stand.
        read: name of the token that the output is read from.
    """

    GRID, PATCH = (4, 7), (4, 6)

    def __init__(self, layout: TokenLayout, *, read: str = "class") -> None:
        super().__init__()
        random = torch.Generator().manual_seed(5)

        def weight(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=random) * 1.5 / shape[-1] ** 0.5)

        self.embed, self.places = weight(40, 4 * 6 * 3), weight(28, 40)
        self.qkv = nn.ParameterList([weight(120, 40) for _ in range(3)])
        self.out = nn.ParameterList([weight(40, 40) for _ in range(3)])
        self.head, self.named = weight(9, 40), weight(len(layout.named), 40)
        self.given, self.read = layout, read

    def layout(self, height: int, width: int) -> TokenLayout:
        assert (height, width) == (16, 42)
        return self.given

    def forward(self, pixels: Tensor) -> Tensor:
        patches = F.unfold(pixels, self.PATCH, stride=self.PATCH).transpose(1, 2) @ self.embed.T + self.places
        named = self.named.expand(len(pixels), -1, -1)
        before = self.given.num_prefix
        x = torch.cat((named[:, :before], patches, named[:, before:]), 1)
        for qkv, out in zip(self.qkv, self.out, strict=True):
            q, k, v = (F.layer_norm(x, (40,)) @ qkv.T).unflatten(-1, (3, 5, 8)).permute(2, 0, 3, 1, 4)
            x = x + torch.tanh(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2) @ out.T)
        return x[:, self.given.token(self.read)] @ self.head.T


def lively(model: nn.Module) -> nn.Module:
    """Weights large enough that attention is far from uniform, so that a wrong formula shows."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.copy_(
                    torch.randn(parameter.shape, generator=generator) * 1.2 / parameter.shape[-1] ** 0.5
                )
    return model.eval()


@contextmanager
def written_out(seen: list[Tensor]) -> Iterator[None]:
    """Every scaled_dot_product_attention as the formula says, its weights collected with their graph: an oracle."""
    original = F.scaled_dot_product_attention
    F.scaled_dot_product_attention = _formula(seen)
    try:
        yield
    finally:
        F.scaled_dot_product_attention = original


def chains_by_hand(model: nn.Module, image: Tensor, target: Callable[..., Tensor]) -> dict[str, Tensor]:
    """What each token has of every other by each method, from whole matrices of attention that is written out, [tokens, tokens]."""
    kept: list[Tensor] = []
    with written_out(kept):
        answer = target(model(image))
    slopes = torch.autograd.grad(answer, kept)
    own_part = torch.eye(kept[0].shape[-1])
    matrices = dict.fromkeys(("relevance", "gradient_rollout", "rollout"), own_part)
    for attention, slope in zip(kept, slopes, strict=True):
        raised = (attention * slope).clamp(min=0).mean(1)[0]
        weighed = (raised + own_part) / (raised + own_part).sum(1, keepdim=True)
        matrices["relevance"] = matrices["relevance"] + raised @ matrices["relevance"]
        matrices["gradient_rollout"] = weighed @ matrices["gradient_rollout"]
        matrices["rollout"] = (attention.mean(1)[0] + own_part) / 2 @ matrices["rollout"]
    return {name: matrix.detach() for name, matrix in matrices.items()}


def _formula(seen: list[Tensor]) -> Callable[..., Tensor]:
    def attention(
        q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0, is_causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:  # fmt: skip
        scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
        if attn_mask is not None:
            scores = (
                scores.masked_fill(~attn_mask, -torch.inf)
                if attn_mask.dtype == torch.bool
                else scores + attn_mask
            )
        weights = scores.softmax(-1)
        weights.requires_grad_(True) if not weights.requires_grad and torch.is_grad_enabled() else None
        seen.append(weights)
        return weights @ v

    return attention
