"""Any PyTorch module together with what pictures need: its preprocessing, names of its classes, words for its tokens."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.model import ViTConfig
from vit_viz.results import Provenance


@dataclass(frozen=True, eq=False)
class PlainModule:
    """A module with what the app needs to know of it: a `Model`."""

    model: nn.Module
    preprocess: Preprocess
    labels: Labels | None
    provenance: Provenance
    name: str
    device: torch.device
    has_classes: bool
    config: ViTConfig | None = None
    family: str = "module"
    origin: str = "passed from Python"

    @property
    def num_parameters(self) -> int:
        """Numbers in the module."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def card(self) -> str:
        """The module in one line."""
        return f"{self.name}, {self.num_parameters / 1e6:.1f} M parameters, {self.origin}"

    def copied_to(self, device: torch.device) -> PlainModule:
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


def plain_module(
    module: nn.Module,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
) -> PlainModule:
    """A module with what pictures need.

    Args:
        preprocess: how pictures become its input; None takes what a timm model says of itself.
        labels: names of its classes.
        layout: which token is what, where the module does not tell.
        has_classes: whether its outputs are scores of classes; None: where they have names.

    Raises:
        ParameterError: there is no `preprocess`, and the module does not tell.
    """
    preprocess = preprocess or own_preprocess(module)
    if preprocess is None:
        raise ParameterError(
            f"{type(module).__name__} does not say how pictures become its input: pass pixels [1, channels, height, width], "
            "already normalised, to trace or explain; or open it with serve(module, "
            "preprocess=Preprocess(input_size=..., patch_size=..., mean=..., std=...))."
        )
    name = type(module).__name__
    parameter = next(module.parameters(), torch.empty(0))
    return PlainModule(
        model=module if layout is None else WithLayout(module, layout, preprocess.patch_size),
        preprocess=preprocess,
        labels=labels,
        provenance=Provenance(model=name, weights=f"module {id(module):x}"),
        name=name,
        device=parameter.device,
        has_classes=labels is not None if has_classes is None else has_classes,
    )


def own_preprocess(module: nn.Module) -> Preprocess | None:
    """How pictures become the input of a timm model, from its `pretrained_cfg` and its patch embedding; None for any other."""
    recipe, embedding = getattr(module, "pretrained_cfg", None), getattr(module, "patch_embed", None)
    patch_size = getattr(embedding, "patch_size", None)
    if not isinstance(recipe, Mapping) or patch_size is None:
        return None
    size = getattr(embedding, "img_size", None) or tuple(recipe["input_size"])[1:]
    fraction = float(recipe.get("crop_pct") or 0.875)
    return Preprocess(
        input_size=tuple(size),
        patch_size=tuple(patch_size),
        resize_to=math.floor(min(size) / fraction),
        interpolation=str(recipe.get("interpolation") or "bicubic"),
        mean=tuple(recipe["mean"]),
        std=tuple(recipe["std"]),
        channels=len(recipe["mean"]),
        crop="squash" if recipe.get("crop_mode") == "squash" else "center",
    )
