"""The explorer in one HTML file, which opens without a network and without Python: `vit_viz.explore(...).save(path)`."""

from vit_viz.offline.page import page_of

__all__ = ["page_of"]
