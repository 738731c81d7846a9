"""Published models by the names of their files, for a page that opens checkpoints of others."""

from __future__ import annotations

from typing import Any

from vit_viz.checkpoints import quick_gelu
from vit_viz.checkpoints.architectures import ARCHITECTURES
from vit_viz.checkpoints.published_recipes import PUBLISHED
from vit_viz.labels import imagenet1k


def published_models() -> dict[str, Any]:
    """`About` of checkpoint.js but for the name: what timm's names say, and the classes of ImageNet-1k."""
    kinds = [
        recipe for i, recipe in enumerate(PUBLISHED.values()) if recipe not in list(PUBLISHED.values())[:i]
    ]
    recipes = {"kinds": kinds, "of": {name: kinds.index(recipe) for name, recipe in PUBLISHED.items()}}
    tagged = {name: [sorted(tags), width] for name, (tags, width) in quick_gelu.PUBLISHED.items()}
    return {
        "known": {"architectures": ARCHITECTURES, "quick_gelu": tagged, "recipes": recipes},
        "imagenet": list(imagenet1k().names),
    }
