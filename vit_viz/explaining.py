"""What a session keeps of an explanation: the maps of one target, how far each can be trusted, and answers without some patches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from vit_viz.analyses.explain import FAST, SLOW, check_methods, explain_subject
from vit_viz.analyses.faithfulness import Faithfulness, RandomBand, faithfulness_of, random_band
from vit_viz.analyses.removal import outputs_without
from vit_viz.analyses.sanity import CLASS_BLIND, map_correlation, parameter_randomisation, spearman
from vit_viz.analyses.subject import Subject
from vit_viz.analyses.targets import TargetLike
from vit_viz.analyses.watch import Progress, StopCheck
from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer
from vit_viz.results import Curve, PatchMap, Ranking

__all__ = ["LONG_ANALYSES", "Explanations", "Job", "Trust", "WithoutPatches", "is_slow"]

_OURS_ONLY = ("legrad", "gradcam")


@dataclass(frozen=True, eq=False)
class Explanations:
    """The maps of all methods that share one forward and one backward, towards one target.

    Args:
        maps: by name of the method.
        missing: why a method gave none, by its name: one sentence each.
    """

    maps: Mapping[str, PatchMap]
    missing: Mapping[str, str] = field(default_factory=dict)

    def map(self, method: str) -> PatchMap:
        """The map of a method.

        Raises:
            ParameterError: this model gives none; the message says why.
        """
        if method not in self.maps:
            raise ParameterError(self.missing.get(method, f"There is no map by {method!r}."))
        return self.maps[method]


@dataclass(frozen=True, eq=False)
class Trust:
    """How far to believe one map.

    Args:
        faithfulness: deletion and insertion beside random orders.
        class_sensitivity: 1 - Spearman correlation of the maps for the first two classes; None where it is not measured.
        mirror: Spearman correlation with the mirrored photo's map, mirrored back; None where it is not measured.
    """

    faithfulness: Faithfulness
    class_sensitivity: float | None = None
    mirror: float | None = None


@dataclass(frozen=True, eq=False)
class WithoutPatches:
    """What the model says when patches are gone.

    Args:
        top: the best classes now; without classes, the similarity to the whole photo's embedding.
        before: scores of the same names with all patches there.
        first: (name, score before, score now) of what came first with all patches.
    """

    top: Ranking
    before: NDArray[np.float32]
    first: tuple[str, float, float]


def fast_maps(subject: Subject, target: TargetLike) -> Explanations:
    """The attention-based maps towards a target. A method that this model cannot give is left out, with the reason."""
    if isinstance(subject.model, VisionTransformer):
        return Explanations(explain_subject(subject, methods=FAST, target=target))
    reason = "This method needs the blocks of vit_viz's own VisionTransformer; load the checkpoint with vit_viz.load."
    methods = [method for method in FAST if method not in _OURS_ONLY]
    maps = explain_subject(subject, methods=methods, target=target)
    return Explanations(maps, dict.fromkeys(_OURS_ONLY, reason))


def mirrored(subject: Subject) -> Subject:
    """The same image, left and right exchanged."""
    return replace(subject, pixels=subject.pixels.flip(-1))


def without_patches(
    subject: Subject,
    gone: tuple[tuple[int, int], ...],
    intact: Tensor,
    names: Mapping[int, str] | None,
    *,
    count: int = 5,
) -> WithoutPatches:
    """What the model says of the image without these patches, truly removed, beside what it said of the whole.

    Args:
        gone: patches (row, col).
        intact: outputs for the whole image, [outputs].
        names: of the classes, or None where the outputs are an embedding.
    """
    outputs = outputs_without(subject, gone).float().cpu()
    intact = intact.float().cpu()
    if names is None:
        words = "similarity to the whole photo"
        now = float(F.cosine_similarity(outputs, intact, dim=0))
        top = Ranking(
            (words,), np.array([now], np.float32), "cosine similarity", "patches removed", subject.provenance
        )
        return WithoutPatches(top, np.ones(1, np.float32), (words, 1.0, now))
    before, after = intact.softmax(-1), outputs.softmax(-1)
    scores, indices = after.topk(min(count, after.numel()))
    chosen = tuple(int(i) for i in indices)
    best = int(before.argmax())
    top = Ranking(
        tuple(names.get(i, f"class {i}") for i in chosen),
        scores.numpy(),
        "probability",
        "patches removed",
        subject.provenance,
        chosen,
    )
    first = (names.get(best, f"class {best}"), float(before[best]), float(after[best]))
    return WithoutPatches(top, before[indices].numpy(), first)


# --- what a session runs


@dataclass(frozen=True)
class Job:
    """One request to a long analysis, with whom to tell how far it is and whom to ask whether to go on.

    Args:
        subject: the image in front of its model.
        labels: names of the model's classes, where they are known.
        parameters: of the request, by name.
        part: the result of another analysis of the same image, by its name and parameters.
        intact: what the model says of the whole image, outputs [outputs].
        alone: entered around what needs a copy of the model, of which there is one at a time.
        progress: told the share that is done.
        cancelled: asked between batches.
    """

    subject: Subject
    labels: Labels | None
    parameters: Mapping[str, Any]
    part: Callable[..., Any]
    intact: Callable[[], Tensor | None]
    alone: Callable[[], AbstractContextManager[None]]
    progress: Progress | None = None
    cancelled: StopCheck | None = None

    @property
    def method(self) -> Any:
        """Name of the method that is asked for."""
        return self.parameters["method"]

    @property
    def target(self) -> TargetLike:
        """What is explained: a class, a pair of classes, or None for the model's own first choice."""
        target: TargetLike = self.parameters.get("target")
        return target

    @property
    def outputs(self) -> Tensor:
        """What the model says of the whole image, on the CPU."""
        outputs = self.intact()
        assert outputs is not None
        return outputs.float().cpu()

    def maps(self, target: TargetLike, *, mirror: bool = False) -> Explanations:
        """The maps of all fast methods towards a target, also of the mirrored image."""
        maps: Explanations = self.part("explain all", target=target, mirror=mirror)
        return maps

    def map(self) -> PatchMap:
        """The map that method, target and options name; only rollout has options."""
        options = dict(self.parameters.get("options", ()))
        found: PatchMap = (
            self.part("rollout", **options)
            if self.method == "rollout" and options
            else self.part("explain", method=self.method, target=self.target)
        )
        return found


def _explain_all(job: Job) -> Explanations:
    return fast_maps(mirrored(job.subject) if job.parameters.get("mirror") else job.subject, job.target)


def _explain(job: Job) -> PatchMap:
    check_methods([job.method])
    if job.method in FAST:
        return job.maps(job.target).map(job.method)
    maps = explain_subject(
        job.subject,
        methods=[job.method],
        target=job.target,
        progress=job.progress,
        cancelled=job.cancelled,
    )
    return maps[job.method]


def _random_band(job: Job) -> RandomBand:
    return random_band(job.subject, target=job.target, progress=job.progress, cancelled=job.cancelled)


def _trust(job: Job) -> Trust:
    band: RandomBand = job.part("random band", target=job.target)
    found = job.map()
    scores = faithfulness_of(
        job.subject, found, band, target=job.target, progress=job.progress, cancelled=job.cancelled
    )
    return Trust(scores, _class_sensitivity(job), _mirror_stability(job, found))


def _class_sensitivity(job: Job) -> float | None:
    """Of the fast methods, whose maps for the first two classes are shared."""
    if job.method not in FAST or not job.subject.has_classes or job.outputs.numel() < 2:
        return None
    if job.method in CLASS_BLIND:
        return 0.0
    first, second = (job.maps(index).maps for index in job.outputs.topk(2).indices.tolist())
    if job.method not in first:
        return None
    return 1 - map_correlation(first[job.method], second[job.method])


def _mirror_stability(job: Job, found: PatchMap) -> float | None:
    """Of the fast methods with their usual options, whose maps of the mirrored image are shared."""
    if job.method not in FAST or job.parameters.get("options"):
        return None
    target = job.target
    if target is None:  # the mirrored image must be asked about the same class, not about its own first one
        if not job.subject.has_classes:
            return None
        target = int(job.outputs.argmax())
    other = job.maps(target, mirror=True).maps.get(job.method)
    return None if other is None else spearman(found.values, other.values[:, ::-1])


def _randomisation(job: Job) -> Curve:
    with job.alone():
        return parameter_randomisation(
            job.subject, method=job.method, target=job.target, progress=job.progress, cancelled=job.cancelled
        )


def _without(job: Job) -> WithoutPatches:
    known = job.labels.names if job.labels else ()
    names = dict(enumerate(known)) if job.subject.has_classes else None
    return without_patches(job.subject, job.parameters.get("gone", ()), job.outputs, names)


def is_slow(analysis: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a request runs the model so often that a visitor gets one such answer at a time."""
    return analysis in ("random band", "trust", "randomisation") or parameters.get("method") in SLOW


LONG_ANALYSES: dict[str, Callable[[Job], Any]] = {
    "explain": _explain,
    "explain all": _explain_all,
    "random band": _random_band,
    "trust": _trust,
    "randomisation": _randomisation,
    "without": _without,
}
"""The analyses of a session that run the model many times; each builds on parts that are kept by themselves."""
