"""Sizes that a configuration declares, checked before the weights are fetched: those that no ViT has are refused at once.

The architecture itself is read from the weights, and is bounded again there (vit_viz.model.ViTConfig).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vit_viz.errors import CheckpointError

_LIMITS = {  # as transformers, timm and we call them
    "num_hidden_layers": 256,
    "depth": 256,
    "hidden_size": 16_384,
    "embed_dim": 16_384,
    "num_attention_heads": 1024,
    "num_heads": 1024,
    "intermediate_size": 262_144,
    "mlp_hidden": 262_144,
    "image_size": 16_384,
    "img_size": 16_384,
    "patch_size": 16_384,
    "num_channels": 1024,
    "in_chans": 1024,
    "num_register_tokens": 1024,
    "reg_tokens": 1024,
    "num_labels": 1_000_000,
    "num_classes": 1_000_000,
}
_NESTED = ("vision_config", "backbone_config", "model_args", "config")


def check_declared(settings: Mapping[str, Any], name: str, *, max_numbers: int) -> None:
    """Refuse a model whose config.json declares impossible sizes; values that are not numbers are left to its family.

    Args:
        settings: config.json of transformers, timm or our own.
        name: what the user calls the model.
        max_numbers: parameters that it may have.

    Raises:
        CheckpointError: a number is out of bounds, or together they give too many parameters.
    """
    for part in (settings, *(settings.get(key) for key in _NESTED)):
        if not isinstance(part, Mapping):
            continue
        for key, limit in _LIMITS.items():
            for value in _numbers(part.get(key)):
                if not 0 <= value <= limit:
                    raise CheckpointError(
                        f"The configuration of {name!r} asks for {key} {str(value)[:20]}; at most {limit:,} is possible."
                    )
        if (announced := _parameters(part)) > max_numbers:
            raise CheckpointError(
                f"The configuration of {name!r} asks for {announced / 1e6:,.0f} million parameters; at most "
                f"{max_numbers / 1e6:,.0f} million are loaded here."
            )


def _parameters(part: Mapping[str, Any]) -> float:
    """About how many parameters the blocks of a declared architecture have; 0 where it does not say."""

    def first(*names: str) -> float:
        return next((value for name in names for value in _numbers(part.get(name))), 0)

    width = first("hidden_size", "embed_dim")
    hidden = first("intermediate_size", "mlp_hidden") or 4 * width
    return first("num_hidden_layers", "depth") * width * (4 * width + 2 * hidden)


def _numbers(value: Any) -> Iterator[float]:
    for item in value[:3] if isinstance(value, list) else (value,):
        if isinstance(item, int | float) and not isinstance(item, bool):
            yield item
