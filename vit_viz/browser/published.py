"""Published models by the names of their files, for a page that opens checkpoints of others."""

from __future__ import annotations

from typing import Any

from vit_viz.checkpoints import quick_gelu
from vit_viz.checkpoints.architectures import ARCHITECTURES
from vit_viz.labels import imagenet1k


def published_models() -> dict[str, Any]:
    """`About` of checkpoint.js but for the name: timm's architectures, weights with quick GELU, and the classes of ImageNet-1k."""
    tagged = {name: [sorted(tags), width] for name, (tags, width) in quick_gelu.PUBLISHED.items()}
    return {
        "known": {"architectures": ARCHITECTURES, "quick_gelu": tagged},
        "imagenet": list(imagenet1k().names),
    }
