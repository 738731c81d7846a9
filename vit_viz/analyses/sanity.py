"""Checks that a map has to pass before it means anything: does it depend on the class, on the weights, and not on a mirror?"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vit_viz.analyses.explain import Method, explain_subject
from vit_viz.analyses.subject import Subject
from vit_viz.analyses.targets import Target, TargetLike, class_logit
from vit_viz.analyses.watch import Progress, StopCheck, Watch
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer
from vit_viz.results import Curve, PatchMap

CLASS_BLIND: tuple[Method, ...] = ("attention", "rollout")


@dataclass(frozen=True)
class Stability:
    """Spearman correlation of a map with itself under changes that should not matter, in [-1, 1].

    Args:
        mirror: of the mirrored image's map, mirrored back.
        noise: mean over images with a little noise.
    """

    mirror: float
    noise: float


def class_sensitivity(subject: Subject, *, method: Method) -> float:
    """How much a map changes between the model's first and second class: 1 - Spearman correlation, in [0, 2].

    Exactly 0 for methods that do not look at the class.

    Raises:
        ParameterError: the model has no two classes.
    """
    if method in CLASS_BLIND:
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
    return 1 - map_correlation(*maps)


def stability(
    subject: Subject,
    *,
    method: Method,
    target: TargetLike = None,
    samples: int = 3,
    noise: float = 0.02,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Stability:
    """Whether a map stays when the image is mirrored, and when noise is added that nobody sees.

    Args:
        samples: noisy images.
        noise: standard deviation, as a share of the range of the input.
    """
    watch = Watch(2 + samples, progress=progress, cancelled=cancelled)
    fixed = subject.resolved(target)
    original = _map_of(subject, subject.pixels, method, fixed, watch)
    mirrored = _map_of(subject, subject.pixels.flip(-1), method, fixed, watch)
    random = torch.Generator().manual_seed(seed)
    spread = noise * float(subject.pixels.max() - subject.pixels.min())
    correlations = []
    for _ in range(samples):
        added = torch.randn(subject.pixels.shape, generator=random).to(subject.pixels)
        noisy = _map_of(subject, subject.pixels + spread * added, method, fixed, watch)
        correlations.append(spearman(original.values, noisy.values))
    mean = float(np.mean(correlations)) if correlations else 1.0
    return Stability(spearman(original.values, mirrored.values[:, ::-1]), mean)


def parameter_randomisation(
    subject: Subject,
    *,
    method: Method,
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
    stages = _stages(model)
    watch = Watch(len(stages) + 1, progress=progress, cancelled=cancelled)
    original = _map_of(subject, subject.pixels, method, fixed, watch)
    with subject.turn():  # nobody else's pass may have hooks on what is copied
        randomised = replace(subject, model=copy.deepcopy(model))
    fresh = _fresh(model, seed)
    correlations = [1.0]
    for names in stages:
        for name in names:
            _copy(fresh, randomised.transformer(""), name)
        correlations.append(
            spearman(original.values, _map_of(randomised, subject.pixels, method, fixed, watch).values)
        )
    return Curve(
        np.arange(len(correlations), dtype=np.float32),
        np.array(correlations, dtype=np.float32),
        "parts re-initialised: head, then blocks from the last",
        "Spearman correlation with the original map",
        f"parameter randomisation of {original.method}",
        original.provenance.with_parameters(randomisation_seed=seed),
    )


def map_correlation(one: PatchMap, other: PatchMap) -> float:
    """Spearman correlation of two maps of one method; exactly 1 for class-blind methods, whose maps are the same."""
    if one.class_blind and other.class_blind and one.method == other.method:
        return 1.0
    return spearman(one.values, other.values)


def spearman(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Rank correlation in [-1, 1]; equal values share their rank. Exactly 1 for equal maps; 0 where only one is constant."""
    from scipy.stats import rankdata  # takes half a second, which no start should wait for

    if np.array_equal(one, other):
        return 1.0
    ranks = [rankdata(values.ravel()) for values in (one, other)]
    centred = [rank - rank.mean() for rank in ranks]
    norm = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / norm if norm > 0 else 0.0


# --- parts


def _map_of(subject: Subject, pixels: Tensor, method: Method, target: Target, watch: Watch) -> PatchMap:
    watch.check()
    result = explain_subject(replace(subject, pixels=pixels), methods=[method], target=target)[method]
    watch.advance()
    return result


def _stages(model: VisionTransformer) -> list[list[str]]:
    """Names of the submodules that are re-initialised at each step."""
    top = [
        name
        for name in ("norm", "attn_pool", "fc_norm", "head", "head_dist")
        if getattr(model, name, None) is not None
    ]
    return [top, *([f"blocks.{i}"] for i in reversed(range(len(model.blocks))))]


def _fresh(model: VisionTransformer, seed: int) -> VisionTransformer:
    """A model of the same shape as it is before training; the random state outside stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return VisionTransformer(model.config)


def _copy(source: nn.Module, destination: nn.Module, name: str) -> None:
    part = destination.get_submodule(name)
    part.load_state_dict(source.get_submodule(name).state_dict())
