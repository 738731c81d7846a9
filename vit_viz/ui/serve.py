"""Open the app on a model that a notebook or a script holds: a loaded checkpoint, or any PyTorch module with attention."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_viz.capture.given import as_model
from vit_viz.checkpoints import LoadedModel, Model
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import ViTConfig
from vit_viz.results import Provenance
from vit_viz.session.session import Session
from vit_viz.ui.app import launch


@dataclass(frozen=True, eq=False)
class GivenModule:
    """A module with what the app needs to know of it: a `Model`."""

    model: nn.Module
    preprocess: Preprocess
    labels: Labels | None
    provenance: Provenance
    name: str
    device: torch.device
    config: ViTConfig | None = None
    family: str = "given"
    origin: str = "given in Python"

    @property
    def num_parameters(self) -> int:
        """Numbers in the module."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def has_classes(self) -> bool:
        """Whether the outputs are scores of classes."""
        return self.labels is not None

    @property
    def card(self) -> str:
        """The module in one line."""
        return f"{self.name}, {self.num_parameters / 1e6:.1f} M parameters, {self.origin}"

    def copied_to(self, device: torch.device) -> GivenModule:
        """The same model on another device; this one stays where it is."""
        return replace(self, model=copy.deepcopy(self.model).to(device), device=device)


class WithLayout(nn.Module):
    """A module together with the words for its tokens; the grid follows the size of the input."""

    def __init__(self, module: nn.Module, layout: TokenLayout, patch_size: tuple[int, int]) -> None:
        super().__init__()
        self.module = module
        self._layout = layout
        self._patch_size = patch_size

    def forward(self, pixels: Tensor) -> Any:
        """What the module returns."""
        return self.module(pixels)

    def layout(self, height: int, width: int) -> TokenLayout:
        """Which token is what, for an input of this size."""
        return replace(self._layout, grid=(height // self._patch_size[0], width // self._patch_size[1]))


def session_of(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
) -> Session:
    """A session whose own model is this one.

    Raises:
        ParameterError: a module without `preprocess`.
    """
    meant = as_model(model)
    if isinstance(meant, nn.Module):
        if preprocess is None:
            raise ParameterError(
                "A module needs preprocess=Preprocess(input_size=..., patch_size=..., mean=..., std=...), "
                "because it does not say how images become its input."
            )
        given: Model = _given(meant, preprocess, labels, layout)
    else:
        given = meant
    session = Session(model=given.name)
    session.add_model(given)
    return session


def serve(
    model: LoadedModel | nn.Module | str | Path,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
) -> None:
    """Open the app in the browser on this model; see `vit_viz.serve`."""
    session = session_of(model, preprocess=preprocess, labels=labels, layout=layout)
    launch(session, host=host, port=port, inbrowser=True)


def _given(
    module: nn.Module, preprocess: Preprocess, labels: Labels | None, layout: TokenLayout | None
) -> GivenModule:
    name = type(module).__name__
    parameter = next(module.parameters(), torch.empty(0))
    described = module if layout is None else WithLayout(module, layout, preprocess.patch_size)
    return GivenModule(
        model=described,
        preprocess=preprocess,
        labels=labels,
        provenance=Provenance(model=name, weights=f"module {id(module):x}"),
        name=name,
        device=parameter.device,
    )
