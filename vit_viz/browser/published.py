"""Published models by the names of their files, for a page that opens checkpoints of others."""

from __future__ import annotations

import json
from typing import Any

from vit_viz.checkpoints import quick_gelu
from vit_viz.checkpoints.architectures import ARCHITECTURES
from vit_viz.checkpoints.published_recipes import PUBLISHED
from vit_viz.checkpoints.recipes import PROCESSORS
from vit_viz.labels import imagenet1k


def published_models() -> dict[str, Any]:
    """`About` of checkpoint.js but for the file's own: what timm's names say, transformers' processors, ImageNet's classes."""
    kinds: dict[str, int] = {}  # the number of each recipe as JSON
    of = {name: kinds.setdefault(json.dumps(recipe), len(kinds)) for name, recipe in PUBLISHED.items()}
    recipes = {"kinds": [json.loads(kind) for kind in kinds], "of": of}
    tagged = {name: [sorted(tags), width] for name, (tags, width) in quick_gelu.PUBLISHED.items()}
    return {
        "known": {
            "architectures": ARCHITECTURES,
            "quick_gelu": tagged,
            "recipes": recipes,
            "processors": PROCESSORS,
        },
        "imagenet": list(imagenet1k().names),
    }
