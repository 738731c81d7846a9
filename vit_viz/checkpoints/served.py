"""What the session and the page need to know of a model, whether it was loaded or is any module that somebody holds."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import nn

from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import ViTConfig
from vit_viz.results import Provenance


class Model(Protocol):
    """A module with its preprocessing and names; a LoadedModel is one."""

    @property
    def model(self) -> nn.Module:
        """The module, in eval mode while it runs."""

    @property
    def config(self) -> ViTConfig | None:
        """Of our own VisionTransformer; None for any other module."""

    @property
    def preprocess(self) -> Preprocess:
        """How it wants its pictures."""

    @property
    def labels(self) -> Labels | None:
        """Names of its classes; None where its outputs are no classes or have no names."""

    @property
    def provenance(self) -> Provenance:
        """Its name, and what tells its weights from any others."""

    @property
    def name(self) -> str:
        """What the user called it."""

    @property
    def device(self) -> torch.device:
        """Where it computes."""

    @property
    def has_classes(self) -> bool:
        """Whether the outputs are scores of classes."""

    @property
    def card(self) -> str:
        """The model in one line."""

    def copied_to(self, device: torch.device) -> Model:
        """The same model on another device; this one stays where it is."""
