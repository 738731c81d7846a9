"""What a module says of its outputs: whether they are classes, what one of them is, and what the classes are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from vit_viz.checkpoints.recipes import class_names
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.lazy import nn
from vit_viz.model import VisionTransformer
from vit_viz.outputs import PROBLEMS, Output

Outputs = Literal["classes", "embedding", "unknown"]
"""Unknown outputs are taken for scores, but are called outputs in words, not classes."""

_HEADS = ("head", "heads", "fc", "classifier", "mlp_head", "classification_head")

_TWO_TOWERS = ("clip", "siglip")  # trained with texts: their last linear layer is a projection


def outputs_of(model: nn.Module) -> Outputs:
    """What a module's outputs are, from what it says of itself; nothing is run.

    Classes are what comes from a timm model with `num_classes` that was not trained with texts; from transformers'
    ...ForImageClassification; from a module whose part `head`, `heads`, `fc`, `classifier`, `mlp_head` or `classification_head` is
    or ends in a linear layer. An embedding is what comes from timm with `num_classes=0` or trained with texts, and where such a
    part is an identity. A module around one other module says what that one says.
    """
    if isinstance(model, VisionTransformer):
        return "classes" if model.config.num_classes > 0 and not model.config.projection else "embedding"
    recipe = getattr(model, "pretrained_cfg", None)
    if recipe is not None and isinstance(count := getattr(model, "num_classes", None), int):
        return "classes" if count > 0 and not _is_tower(recipe, count) else "embedding"
    if type(model).__name__.endswith("ForImageClassification"):  # transformers' classes
        return "classes"
    parts = dict(model.named_children())
    if len(parts) == 1:
        return outputs_of(next(iter(parts.values())))
    if isinstance(last := last_layer(model), nn.Linear):
        return "classes"
    return "embedding" if isinstance(last, nn.Identity) else "unknown"


def _is_tower(recipe: object, count: int) -> bool:
    """Whether timm's notes name a model that was trained with texts, and that still has as many outputs as then."""
    notes = recipe if isinstance(recipe, dict) else vars(recipe)
    name, tag = str(notes.get("architecture")), str(notes.get("tag"))
    return (
        any(kind in name for kind in _TWO_TOWERS) and "_ft_" not in tag and notes.get("num_classes") == count
    )


def declared_output(module: nn.Module) -> Output | None:
    """What one output of a module is, where it says so: by the `problem_type` of transformers, or by a head that ends in shares.

    A head that ends in a sigmoid or a softmax returns probabilities, which are values already: a second softmax would flatten them.
    A module around one other module says what that one says.
    """
    problem = getattr(getattr(module, "config", None), "problem_type", None)
    if isinstance(problem, str) and problem in PROBLEMS:
        return PROBLEMS[problem]
    if isinstance(last_layer(module), nn.Sigmoid | nn.Softmax):
        return "value"
    parts = list(module.children())
    return declared_output(parts[0]) if len(parts) == 1 else None


def last_layer(module: nn.Module) -> nn.Module | None:
    """The layer that a module's part `head`, `heads`, `fc`, `classifier`, ... is or ends in; None where it has no such part."""
    parts = dict(module.named_children())
    last = next((parts[name] for name in _HEADS if name in parts), None)
    while isinstance(last, nn.Sequential) and len(last):
        last = last[-1]
    return last


def declared_labels(module: nn.Module) -> Labels | None:
    """Names of a module's classes: `id2label` of transformers, `label_names` of timm; None where it brings none that can be read.

    A head that was replaced by one of another size leaves the names as they were: they must be as many as its outputs. A module
    around one other module says what that one says.
    """
    parts = list(module.children())
    counts = [getattr(part, "out_features", None) for part in (last_layer(module), *parts)]
    for settings in (getattr(module, "config", None), getattr(module, "pretrained_cfg", None)):
        try:
            labels = class_names(
                settings if isinstance(settings, Mapping) else getattr(settings, "__dict__", {})
            )
        except ParameterError:
            continue
        if labels is not None and len(labels) in counts:
            return labels
    return declared_labels(parts[0]) if len(parts) == 1 else None
