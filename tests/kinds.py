"""Tiny models of every kind that a lesson tells apart."""

from __future__ import annotations

from typing import Any

import torch

from tests.walkthrough.test_numbers import RANDOM_MODELS
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
LARGER = (24, 54)  # another grid than the one that SIZES is trained on
UNEVEN = (15, 40)  # no whole number of patches
KINDS: dict[str, dict[str, Any]] = RANDOM_MODELS | {
    "class token alone, squares": {"patch_size": (4, 4), "img_size": (16, 36)},
    "class and mean, concatenated": {"pool_concat": True},
    "waves of rows and columns": {"position": "sinusoidal_2d", "class_token": False, "pooling": "mean"},
    "biases resampled": {"position": "none", "relative_bias": True, "input_size": LARGER},
    "padded": {"pad": True, "input_size": UNEVEN},
    "remainder dropped": {"drop_remainder": True, "input_size": UNEVEN},
    "gated MLP in two parts": {"mlp": "swiglu", "depth": 4},
} | {
    f"positions resampled as {variant}": {"resample": variant, "input_size": LARGER}
    for variant in ("timm", "dino", "dinov2", "dinov2_reg", "transformers", "torchvision", "bilinear", "radio", "radio_v4")
}  # fmt: skip


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
