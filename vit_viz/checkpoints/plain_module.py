"""A model as the session and the page need it, and any PyTorch module as one: with preprocessing, class names, words for tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

from vit_viz.answer import Provenance
from vit_viz.checkpoints.recipes import timm_recipe
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Preprocess
from vit_viz.labels import Labels
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import ViTConfig


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A module with its preprocessing and names.

    Args:
        model: the module, in eval mode while it runs, on `device`.
        preprocess: how it wants its pictures.
        labels: names of its classes; None where its outputs are no classes or have no names.
        provenance: its name, and what tells its weights from any others.
        name: what the user called it.
        has_classes: whether the outputs are scores of classes.
        config: of our own VisionTransformer; None for any other module.
        family: whose parameter names it has.
        origin: where it came from, in words.
    """

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
        """Numbers in the model."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def card(self) -> str:
        """The model in one line."""
        return f"{self.name}, {self.num_parameters / 1e6:.1f} M parameters, {self.origin}"

    def copied_to(self, device: torch.device) -> Self:
        """The same model on another device; this one stays where it is."""
        return replace(self, model=copy.deepcopy(self.model).to(device), device=device)


def plain_module(
    module: nn.Module,
    *,
    preprocess: Preprocess | None = None,
    labels: Labels | None = None,
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
) -> Model:
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
    return Model(
        model=module if layout is None else _with_layout()(module, layout, preprocess.patch_size),
        preprocess=preprocess,
        labels=labels,
        provenance=Provenance(model=name, weights=f"module {id(module):x}"),
        name=name,
        device=parameter.device,
        has_classes=labels is not None if has_classes is None else has_classes,
    )


@cache
def _with_layout() -> Callable[[nn.Module, TokenLayout, tuple[int, int]], nn.Module]:
    """The class of modules with the words for their tokens; made once, so that what remembers it does not hold a module."""

    class WithLayout(nn.Module):
        def __init__(self, module: nn.Module, layout: TokenLayout, patch_size: tuple[int, int]) -> None:
            super().__init__()
            self.module, self._layout, self._patch_size = module, layout, patch_size

        def forward(self, pixels: Tensor) -> Any:
            return self.module(pixels)

        def layout(self, height: int, width: int) -> TokenLayout:
            """The grid follows the size of the input."""
            rows, cols = height // self._patch_size[0], width // self._patch_size[1]
            return replace(self._layout, grid=(rows, cols))

    return WithLayout


def own_preprocess(module: nn.Module) -> Preprocess | None:
    """How pictures become the input of a timm model, from its `pretrained_cfg` and its patch embedding; None for any other."""
    recipe, embedding = getattr(module, "pretrained_cfg", None), getattr(module, "patch_embed", None)
    patch_size = getattr(embedding, "patch_size", None)
    if not isinstance(recipe, Mapping) or patch_size is None:
        return None
    size = tuple(getattr(embedding, "img_size", None) or tuple(recipe["input_size"])[1:])
    values = timm_recipe(recipe, size)
    return Preprocess(input_size=size, patch_size=tuple(patch_size), channels=len(values["mean"]), **values)
