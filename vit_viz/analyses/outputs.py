"""What the numbers that a module returns are: scores of classes, an embedding, or something that it does not say."""

from __future__ import annotations

from typing import Literal

from torch import nn

from vit_viz.checkpoints import Model
from vit_viz.model import VisionTransformer

Outputs = Literal["classes", "embedding", "unknown"]
"""Unknown outputs are taken for scores, but are called outputs in words, not classes."""

_HEADS = ("head", "heads", "fc", "classifier", "mlp_head", "classification_head")
_TWO_TOWERS = ("clip", "siglip")  # trained with texts: their last linear layer is a projection
_CLASSIFIER = "ForImageClassification"  # end of the name of transformers' classes


def outputs_of(model: Model | nn.Module) -> Outputs:
    """What a model's outputs are, from what it says of itself; nothing is run.

    Classes are what a loaded checkpoint says; a timm model with `num_classes` that was not trained with texts; transformers'
    ...ForImageClassification; a module whose part `head`, `heads`, `fc`, `classifier`, `mlp_head` or `classification_head` is or
    ends in a linear layer. An embedding is what comes from a loaded checkpoint without classes, from timm with `num_classes=0` or
    trained with texts, and where such a part is an identity. A module around one other module says what that one says.
    """
    if not isinstance(model, nn.Module):
        return "classes" if model.has_classes else "embedding"
    if isinstance(model, VisionTransformer):
        return "classes" if model.config.num_classes > 0 and not model.config.projection else "embedding"
    recipe = getattr(model, "pretrained_cfg", None)
    if recipe is not None and isinstance(count := getattr(model, "num_classes", None), int):
        return "classes" if count > 0 and not _is_tower(recipe, count) else "embedding"
    if type(model).__name__.endswith(_CLASSIFIER):
        return "classes"
    parts = dict(model.named_children())
    if len(parts) == 1:
        return outputs_of(next(iter(parts.values())))
    last = next((_last(parts[name]) for name in _HEADS if name in parts), None)
    if last is None:
        return "unknown"
    return (
        "classes"
        if isinstance(last, nn.Linear)
        else "embedding"
        if isinstance(last, nn.Identity)
        else "unknown"
    )


def _is_tower(recipe: object, count: int) -> bool:
    """Whether timm's notes name a model that was trained with texts, and that still has as many outputs as then."""
    notes = recipe if isinstance(recipe, dict) else vars(recipe)
    name, tag = str(notes.get("architecture")), str(notes.get("tag"))
    return (
        any(kind in name for kind in _TWO_TOWERS) and "_ft_" not in tag and notes.get("num_classes") == count
    )


def _last(part: nn.Module) -> nn.Module:
    """The layer that a container ends in."""
    children = list(part.children())
    return _last(children[-1]) if children and isinstance(part, nn.Sequential) else part
