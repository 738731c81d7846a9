"""Checks that a map has to pass before it means anything: does it depend on the class, and on the weights?"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from vit_viz.analyses.correlation import class_sensitivity_of, spearman
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import Target, TargetLike, class_logit
from vit_viz.errors import ParameterError
from vit_viz.lazy import nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import Curve, PatchMap


def class_sensitivity(subject: PreparedImage, *, method: str) -> float:
    """How much a map changes between the model's first and second class: 1 - Spearman correlation, in [0, 2].

    Exactly 0 for methods that do not look at the class.

    Raises:
        ParameterError: the model has no two classes.
    """
    if METHODS.named(method).words.class_blind:
        return 0.0
    with torch.no_grad():
        output = subject.outputs(subject.pixels)[0]
    if not subject.has_classes or output.numel() < 2:
        raise ParameterError("Class sensitivity compares two classes, but this model has none to compare.")
    first, second = output.topk(2).indices.tolist()
    maps = [
        explain_subject(subject, methods=[method], target=class_logit(index))[method]
        for index in (first, second)
    ]
    return class_sensitivity_of(*maps)


def parameter_randomisation(
    subject: PreparedImage,
    *,
    method: str,
    target: TargetLike = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Curve:
    """Whether a map depends on what the model has learned: its correlation with the original while parts are re-initialised.

    First the head (with the final norms and the pooling), then the blocks from the last to the first; each stays re-initialised.
    A map that stays the same shows the image, not the model. The class stays that of the trained model.

    Returns:
        Spearman correlation with the original map, from 1 with nothing re-initialised; [blocks + 2].

    Raises:
        ParameterError: the model is not ours.
        Cancelled: `cancelled` said so.

    Source: Adebayo et al. 2018, arXiv:1810.03292, cascading randomisation.
    """
    model = subject.transformer("Parameter randomisation")
    fixed = subject.resolved(target)
    tops = ("norm", "attn_pool", "fc_norm", "head", "head_dist")
    stages = [[name for name in tops if getattr(model, name, None) is not None]]  # parts by their names
    stages += [[f"blocks.{layer}"] for layer in reversed(range(len(model.blocks)))]
    watch = Watch(len(stages) + 1, progress=progress, cancelled=cancelled)
    original = watched_map(subject, method, fixed, watch)
    with subject.turn():  # nobody else's pass may have hooks on what is copied
        copied = copy.deepcopy(model)
    randomised, fresh, correlations = replace(subject, model=copied), _fresh(model, seed), [1.0]
    for names in stages:
        for name in names:
            copied.get_submodule(name).load_state_dict(fresh.get_submodule(name).state_dict())
        changed = watched_map(randomised, method, fixed, watch)
        correlations.append(spearman(original.values, changed.values))
    return Curve(
        np.arange(len(correlations), dtype=np.float32),
        np.array(correlations, dtype=np.float32),
        "parts re-initialised: head, then blocks from the last",
        "Spearman correlation with the original map",
        f"parameter randomisation of {original.method}",
        original.provenance.with_parameters(randomisation_seed=seed),
    )


def watched_map(subject: PreparedImage, method: str, target: Target, watch: Watch) -> PatchMap:
    """The map of a method, as one step of a watch."""
    watch.check()
    result = explain_subject(subject, methods=[method], target=target)[method]
    watch.advance()
    return result


def _fresh(model: VisionTransformer, seed: int) -> VisionTransformer:
    """A model of the same shape as it is before training, drawn apart from what other threads draw."""
    from torch.overrides import TorchFunctionMode

    random = torch.Generator().manual_seed(seed)
    drawing = {
        torch.randn,
        torch.Tensor.uniform_,
        torch.Tensor.normal_,
        nn.init.uniform_,
        nn.init.kaiming_uniform_,
    }

    class Drawn(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            own = {"generator": random} if func in drawing else {}
            return func(*args, **(kwargs or {}) | own)

    with Drawn():
        return VisionTransformer(model.config)
