"""Models of a given shape with random weights, for what depends on the shape alone."""

from __future__ import annotations

from typing import Any

import torch

from vit_viz.answer import Provenance
from vit_viz.checkpoints import LoadedModel
from vit_viz.images import Preprocess
from vit_viz.model import VisionTransformer, ViTConfig


def random_model(
    name: str, *, img_size: tuple[int, int] = (224, 224), depth: int = 12, **options: Any
) -> LoadedModel:
    """A model of this shape with random weights, sharp enough that its attention is not uniform."""
    config = ViTConfig(img_size=img_size, depth=depth, num_classes=10, **options)
    torch.manual_seed(0)
    model = VisionTransformer(config).eval()
    preprocess = Preprocess(
        input_size=img_size, patch_size=config.patch_size, resize_to=None, mean=(0.5,) * 3, std=(0.5,) * 3
    )
    return LoadedModel(
        model=model,
        config=config,
        preprocess=preprocess,
        labels=None,
        provenance=Provenance(model=name, weights=name),
        name=name,
        family="timm",
        origin="random weights",
        device=torch.device("cpu"),
    )
