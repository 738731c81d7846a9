"""Tiny odd models of every kind that a capture meets, and the attention that they compute, by independent means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    from transformers import ViTConfig as Config
    from transformers import ViTForImageClassification

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
