"""The Vision Transformer of the papers, complete and readable on one page."""

from typing import TYPE_CHECKING

from vit_viz.lazy import late_names
from vit_viz.model.config import ViTConfig

if TYPE_CHECKING:
    from vit_viz.model.linear import set_linear, use_fastest_linear
    from vit_viz.model.text import TextConfig, TextTransformer
    from vit_viz.model.vit import (
        Attention,
        AttentionPool,
        Block,
        LayerScale,
        Mlp,
        PackedSwiGLU,
        PatchEmbed,
        SentenceHead,
        SwiGLU,
        VisionTransformer,
        gelu,
    )
else:
    globals().update(late_names(__file__))

__all__ = [
    "Attention",
    "AttentionPool",
    "Block",
    "LayerScale",
    "Mlp",
    "PackedSwiGLU",
    "PatchEmbed",
    "SentenceHead",
    "SwiGLU",
    "TextConfig",
    "TextTransformer",
    "ViTConfig",
    "VisionTransformer",
    "gelu",
    "set_linear",
    "use_fastest_linear",
]
