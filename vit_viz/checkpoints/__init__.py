"""Checkpoints: where they come from, whose names they use, and how they become our model."""

from vit_viz.checkpoints.catalog import CATALOG, default_model
from vit_viz.checkpoints.load import LoadedModel, choose_device, load
from vit_viz.checkpoints.plain_module import Model

__all__ = ["CATALOG", "LoadedModel", "Model", "choose_device", "default_model", "load"]
