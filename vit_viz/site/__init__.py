"""The explorer as a folder of files for any static host: the model runs in the visitor's browser."""

from vit_viz.site.folder import write_site

__all__ = ["write_site"]
