"""The Vision Transformer of the papers, complete and readable on one page."""

from vit_viz.model.config import ViTConfig
from vit_viz.model.vit import VisionTransformer

__all__ = ["ViTConfig", "VisionTransformer"]
