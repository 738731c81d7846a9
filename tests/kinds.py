"""Tiny models of every kind that the lesson tells apart."""

from __future__ import annotations

from typing import Any

import torch

from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer, ViTConfig

SIZES: dict[str, Any] = {
    "img_size": (16, 36),
    "patch_size": (4, 6),
    "embed_dim": 40,
    "num_heads": 5,
    "depth": 3,
    "num_classes": 7,
    "mlp_hidden": 48,
}
CLASSES = tuple(f"class {i}" for i in range(SIZES["num_classes"]))
RANDOM_MODELS: dict[str, dict[str, Any]] = {
    "class token and registers": {"reg_tokens": 4},
    "registers without positions of their own": {"reg_tokens": 4, "no_embed_class": True},
    "distilled": {"dist_token": True, "dist_head": True},
    "several class tokens, a table of its own size": {
        "class_tokens": 3,
        "class_read": (0, 2),
        "reg_tokens": 1,
        "no_embed_class": True,
        "position_grid": (5, 5),
        "resample": "radio",
    },
    "no class token, mean pooling": {"class_token": False, "pooling": "mean", "fc_norm": True},
    "no class token, attention pooling": {"class_token": False, "pooling": "attention"},
    "rotary, class token and registers": {
        "position": "rotary",
        "reg_tokens": 4,
        "layer_scale": True,
        "qk_norm": True,
        "rotary_base": 50.0,
    },
    "a bias for offsets in each block": {"position": "none", "relative_bias": True, "layer_scale": True},
    "positions, and a bias for offsets of all blocks": {"shared_bias": True, "pooling": "mean"},
    "positions, and rotated queries": {"rotary_grid": (3, 5), "rotary_base": 100.0, "mlp": "swiglu_packed"},
    "gray 60 x 100, patch 20, sinusoidal": {
        "img_size": (60, 100),
        "patch_size": (20, 20),
        "in_chans": 1,
        "position": "sinusoidal_1d",
    },
    "no head, gated MLP": {"num_classes": 0, "mlp": "swiglu_packed", "norm": "rms"},
    "unfold, gated MLP, norm inside attention": {"patch_embed": "unfold", "mlp": "swiglu", "attn_norm": True},
    "embedding of an image, quick GELU": {"projection": True, "pre_norm": True, "mlp": "quick_gelu"},
    "no positions, tanh GELU, own scale": {"position": "none", "mlp": "gelu_tanh", "scale": 0.5},
}


def loaded(seed: int = 0, *, input_size: tuple[int, int] | None = None, **options: Any) -> LoadedModel:
    """A tiny model of random weights."""
    torch.manual_seed(seed)
    config = ViTConfig(**SIZES | options)
    model = VisionTransformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    recipe = Preprocess(
        input_size=input_size or config.img_size,
        patch_size=config.patch_size,
        channels=config.in_chans,
        mean=(0.5,),
        std=(0.5,),
    )
    return LoadedModel(
        model=model,
        config=config,
        preprocess=recipe,
        labels=Labels(CLASSES),
        provenance=Provenance("random", f"seed {seed}"),
        name=f"random {seed}",
        family="ours",
        origin="bundled",
        device=torch.device("cpu"),
    )
