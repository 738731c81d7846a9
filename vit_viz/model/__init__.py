"""The Vision Transformer of the papers, complete and readable on one page."""

from typing import TYPE_CHECKING

from vit_viz.lazy import Late
from vit_viz.model.config import ViTConfig

if TYPE_CHECKING:
    from vit_viz.model.linear import set_linear, use_fastest_linear
    from vit_viz.model.vit import (
        Attention,
        AttentionPool,
        Block,
        LayerScale,
        Mlp,
        PackedSwiGLU,
        PatchEmbed,
        SwiGLU,
        VisionTransformer,
    )

__all__ = [
    "Attention",
    "AttentionPool",
    "Block",
    "LayerScale",
    "Mlp",
    "PackedSwiGLU",
    "PatchEmbed",
    "SwiGLU",
    "ViTConfig",
    "VisionTransformer",
    "set_linear",
    "use_fastest_linear",
]

if not TYPE_CHECKING:
    for _name in set(__all__) - {"ViTConfig"}:
        globals()[_name] = Late("vit_viz.model.linear" if "linear" in _name else "vit_viz.model.vit", _name)
