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

from vit_viz.analyses.ablation import CausalMap, causal_map, head_importance, head_map
from vit_viz.analyses.correlation import class_sensitivity_of, mirror_stability_of
from vit_viz.analyses.explain import explain_subject, look_up
from vit_viz.analyses.faithfulness import Faithfulness, RandomBand, faithfulness_of, random_band
from vit_viz.analyses.head_names import HeadNames
from vit_viz.analyses.heads import OF_THE_STREAM, HeadTables, head_table
from vit_viz.analyses.layer_similarity import layer_similarity
from vit_viz.analyses.lens import Lens, lens_of
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.norms import OUTLIER_FACTOR
from vit_viz.analyses.options import Options
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.registers import AddedRegister, add_register_by, register_neurons
from vit_viz.analyses.removal import outputs_without
from vit_viz.analyses.sanity import parameter_randomisation
from vit_viz.analyses.targets import TargetLike
from vit_viz.capture import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.labels import Labels
from vit_viz.model import VisionTransformer
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, StateMatrix

__all__ = ["LONG_ANALYSES", "Explanations", "Job", "Trust", "WithoutPatches", "is_slow"]


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
        top: the classes that were asked about, then the best classes now; without classes, the similarity to the whole photo's
            embedding.
        before: scores of the same names with all patches there.
        first: (name, score before, score now) of what came first with all patches.
    """

    top: Ranking
    before: NDArray[np.float32]
    first: tuple[str, float, float]


def fast_maps(subject: PreparedImage, target: TargetLike) -> Explanations:
    """The maps of all quick methods towards a target. A method that this model cannot give is left out, with the reason."""
    is_ours = isinstance(subject.model, VisionTransformer)
    missing = [name for name in METHODS.quick if METHODS[name].reads.own_blocks and not is_ours]
    methods = [name for name in METHODS.quick if name not in missing]
    reason = "This method needs the blocks of vit_viz's own VisionTransformer; load the checkpoint with vit_viz.load."
    return Explanations(
        explain_subject(subject, methods=methods, target=target), dict.fromkeys(missing, reason)
    )


def mirrored(subject: PreparedImage) -> PreparedImage:
    """The same image, left and right exchanged."""
    return replace(subject, pixels=subject.pixels.flip(-1))


def without_patches(
    subject: PreparedImage,
    gone: tuple[tuple[int, int], ...],
    whole_outputs: Tensor,
    names: Mapping[int, str] | None,
    *,
    count: int = 5,
    asked: tuple[int, ...] = (),
) -> WithoutPatches:
    """What the model says of the image without these patches, truly removed, beside what it said of the whole.

    Args:
        gone: patches (row, col).
        whole_outputs: outputs for the whole image, [outputs].
        names: of the classes, or None where the outputs are an embedding.
        asked: classes that are told of whatever they score.

    Raises:
        ParameterError: there is no such class.
    """
    outputs = outputs_without(subject, gone).float().cpu()
    whole_outputs = whole_outputs.float().cpu()
    if names is None:
        words = "similarity to the whole photo"
        now = float(F.cosine_similarity(outputs, whole_outputs, dim=0))
        top = Ranking(
            (words,), np.array([now], np.float32), "cosine similarity", "patches removed", subject.provenance
        )
        return WithoutPatches(top, np.ones(1, np.float32), (words, 1.0, now))
    before, after = whole_outputs.softmax(-1), outputs.softmax(-1)
    if not all(0 <= index < after.numel() for index in asked):
        raise ParameterError(f"Classes are numbered from 0 to {after.numel() - 1}.")
    first = after.topk(min(count, after.numel())).indices.tolist()
    chosen = tuple(dict.fromkeys([*asked, *first]))
    best = int(before.argmax())
    top = Ranking(
        tuple(names.get(i, f"class {i}") for i in chosen),
        after[list(chosen)].numpy(),
        "probability",
        "patches removed",
        subject.provenance,
        chosen,
    )
    told = (names.get(best, f"class {best}"), float(before[best]), float(after[best]))
    return WithoutPatches(top, before[list(chosen)].numpy(), told)


# --- what a session runs


@dataclass(frozen=True)
class Job:
    """One request to a long analysis, with whom to tell how far it is and whom to ask whether to go on.

    Args:
        subject: the image in front of its model.
        labels: names of the model's classes, where they are known.
        parameters: of the request, by name.
        result_of: the result of another analysis of the same image, by its name and parameters.
        recorded: the trace of the image.
        single_copy: entered around what needs a copy of the model, of which there is one at a time.
        progress: told the share that is done.
        cancelled: asked between batches.
        preview: given what is there so far, where an analysis can tell.
    """

    subject: PreparedImage
    labels: Labels | None
    parameters: Mapping[str, Any]
    result_of: Callable[..., Any]
    recorded: Callable[[], Trace]
    single_copy: Callable[[], AbstractContextManager[None]]
    progress: Progress | None = None
    cancelled: StopCheck | None = None
    preview: Callable[[Any], None] | None = None

    @property
    def method(self) -> str:
        """Name of the method that is asked for."""
        return str(self.parameters["method"])

    @property
    def options(self) -> Options:
        """Of the method that is asked for."""
        options: Options = METHODS.named(self.method).options.of(self.parameters.get("options", ()))
        return options

    @property
    def target(self) -> TargetLike:
        """What is explained: a class, a pair of classes, or None for the model's own first choice."""
        target: TargetLike = self.parameters.get("target")
        return target

    @property
    def outputs(self) -> Tensor:
        """What the model says of the whole image, on the CPU."""
        outputs = self.recorded().logits
        assert outputs is not None
        return outputs.float().cpu()

    def maps(self, target: TargetLike, *, mirror: bool = False) -> Explanations:
        """The maps of all fast methods towards a target, also of the mirrored image."""
        maps: Explanations = self.result_of("explain all", target=target, mirror=mirror)
        return maps

    def map(self) -> PatchMap:
        """The map that method, target, options and query name."""
        asked = {name: self.parameters[name] for name in ("options", "query") if self.parameters.get(name)}
        patch_map: PatchMap = self.result_of("explain", method=self.method, target=self.target, **asked)
        return patch_map


def _explain_all(job: Job) -> Explanations:
    return fast_maps(mirrored(job.subject) if job.parameters.get("mirror") else job.subject, job.target)


def _explain(job: Job) -> PatchMap:
    method, options, query = METHODS.named(job.method), job.options, job.parameters.get("query")
    is_usual = query is None and not options.changed()
    if is_usual and not method.is_slow:
        return job.maps(job.target).map(method.name)
    if method.cost == "look-up":
        return look_up(job.recorded(), method=method.name, options=options, query=query)
    maps = explain_subject(
        job.subject,
        methods=[method.name],
        target=job.target,
        options={method.name: options},
        progress=job.progress,
        cancelled=job.cancelled,
    )
    return maps[method.name]


def _random_band(job: Job) -> RandomBand:
    return random_band(job.subject, target=job.target, progress=job.progress, cancelled=job.cancelled)


def _trust(job: Job) -> Trust:
    band: RandomBand = job.result_of("random band", target=job.target)
    patch_map = job.map()
    scores = faithfulness_of(
        job.subject, patch_map, band, target=job.target, progress=job.progress, cancelled=job.cancelled
    )
    return Trust(scores, _class_sensitivity(job), _mirror_stability(job, patch_map))


def _class_sensitivity(job: Job) -> float | None:
    """Of the fast methods, whose maps for the first two classes are shared."""
    if METHODS.named(job.method).is_slow or not job.subject.has_classes or job.outputs.numel() < 2:
        return None
    if METHODS[job.method].words.class_blind:
        return 0.0
    first, second = (job.maps(index).maps for index in job.outputs.topk(2).indices.tolist())
    if job.method not in first:
        return None
    return class_sensitivity_of(first[job.method], second[job.method])


def _mirror_stability(job: Job, patch_map: PatchMap) -> float | None:
    """Of the fast methods with their usual options, whose maps of the mirrored image are shared."""
    if METHODS.named(job.method).is_slow or job.parameters.get("options"):
        return None
    target = job.target
    if target is None:  # the mirrored image must be asked about the same class, not about its own first one
        if not job.subject.has_classes:
            return None
        target = int(job.outputs.argmax())
    other = job.maps(target, mirror=True).maps.get(job.method)
    return None if other is None else mirror_stability_of(patch_map, other)


def _randomisation(job: Job) -> Curve:
    with job.single_copy():
        return parameter_randomisation(
            job.subject, method=job.method, target=job.target, progress=job.progress, cancelled=job.cancelled
        )


def _without(job: Job) -> WithoutPatches:
    known = job.labels.names if job.labels else ()
    names = dict(enumerate(known)) if job.subject.has_classes else None
    gone, asked = job.parameters.get("gone", ()), job.parameters.get("asked", ())
    return without_patches(job.subject, gone, job.outputs, names, asked=asked)


def _ablation(job: Job) -> HeadTable:
    return head_map(
        job.subject,
        target=job.target,
        how=job.parameters.get("how", "zero"),
        progress=job.progress,
        cancelled=job.cancelled,
    )


def _lens(job: Job) -> Lens:
    return lens_of(job.subject, job.result_of("token trace"), target=job.target)


def _register(job: Job) -> AddedRegister:
    watch = Watch(
        3, progress=job.progress, cancelled=job.cancelled
    )  # passes: one to find neurons, two to compare
    count, factor = job.parameters.get("count", 10), job.parameters.get("factor", OUTLIER_FACTOR)
    neurons, state = register_neurons([job.subject], count=count, factor=factor)
    watch.advance()
    watch.check()
    return add_register_by(job.subject, neurons, state=state, factor=factor)


def _layer_similarity(job: Job) -> StateMatrix:
    options = {name: job.parameters[name] for name in ("role", "debiased") if name in job.parameters}
    return layer_similarity(
        job.result_of("token trace"), progress=job.progress, cancelled=job.cancelled, **options
    )


def _heads(job: Job) -> HeadTable:
    """From the trace, or from the one of the tokens where the residual stream is read."""
    needs_stream = job.parameters.get("measure") in OF_THE_STREAM
    return head_table(job.result_of("token trace") if needs_stream else job.recorded(), **job.parameters)


def _head_tables(job: Job) -> HeadTables:
    """With the residual stream, where this model's can be recorded."""
    try:
        return HeadTables.of(job.result_of("token trace"))
    except CaptureError:
        return HeadTables.of(job.recorded())


def _head_names(job: Job) -> HeadNames:
    measured: HeadTables = job.result_of("head tables")
    return HeadNames.of(measured.tables)


def _head_importance(job: Job) -> HeadTable:
    return head_importance(job.subject, target=job.target, how=job.parameters.get("how", "zero"))


def _causal_map(job: Job) -> CausalMap:
    return causal_map(
        job.subject,
        target=job.target,
        how=job.parameters.get("how", "zero"),
        partial=job.preview,
        progress=job.progress,
        cancelled=job.cancelled,
    )


def is_slow(analysis: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a request runs the model so often that a visitor gets one such answer at a time."""
    method = METHODS.get(parameters.get("method", ""))
    return analysis in ("random band", "trust", "randomisation", "ablation", "causal map") or (
        method is not None and method.is_slow
    )


LONG_ANALYSES: dict[str, Callable[[Job], Any]] = {
    "explain": _explain,
    "explain all": _explain_all,
    "random band": _random_band,
    "trust": _trust,
    "randomisation": _randomisation,
    "without": _without,
    "ablation": _ablation,
    "causal map": _causal_map,
    "lens": _lens,
    "register": _register,
    "layer similarity": _layer_similarity,
    "heads": _heads,
    "head tables": _head_tables,
    "head names": _head_names,
    "head importance": _head_importance,
}
"""The analyses of a session that run the model many times; each builds on parts that are kept by themselves."""
