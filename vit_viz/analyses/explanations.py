"""The maps of all quick methods towards one target, which share a forward and a backward, and the map of any one method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from vit_viz.analyses.explain import explain_subject, look_up
from vit_viz.analyses.job import Job
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Options
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.spec import AnyMethod, Part
from vit_viz.analyses.targets import TargetLike
from vit_viz.brief import Brief
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer
from vit_viz.results import PatchMap


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Brief):
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


def fast_maps(subject: PreparedImage, target: TargetLike) -> Explanations:
    """The maps of all quick methods towards a target. A method that this model cannot give is left out, with the reason."""
    is_ours = isinstance(subject.model, VisionTransformer)
    missing = [name for name in METHODS.quick if METHODS[name].shared.own_blocks and not is_ours]
    methods = [name for name in METHODS.quick if name not in missing]
    reason = "This method needs the blocks of vit_viz's own VisionTransformer; load the checkpoint with vit_viz.load."
    return Explanations(
        explain_subject(subject, methods=methods, target=target), dict.fromkeys(missing, reason)
    )


def mirrored(subject: PreparedImage) -> PreparedImage:
    """The same image, left and right exchanged."""
    return replace(subject, pixels=subject.pixels.flip(-1))


def explained(job: Job, method: AnyMethod) -> PatchMap:
    """The map of one method; of a quick one with its usual options it is that of all quick ones together."""
    options, query = method.chosen(job.parameters), job.parameters.get("query")
    is_usual = query is None and not options.changed()
    if is_usual and not method.is_slow:
        return maps_of(job, job.target).map(method.name)
    if method.cost == "look-up":
        return look_up(job.trace, method=method.name, options=options, query=query)
    maps = explain_subject(
        job.image, methods=[method.name], target=job.target, options={method.name: options}, **job.watched
    )
    return maps[method.name]


def maps_of(job: Job, target: TargetLike, *, mirror: bool = False) -> Explanations:
    """The maps of all quick methods towards a target, also of the mirrored image."""
    maps: Explanations = job.answer_of("explain all", target=target, mirror=mirror)
    return maps


def parameters_of(method: AnyMethod, options: Options, **beside: Any) -> dict[str, Any]:
    """Of the request for the map of a method.

    Args:
        options: in the one way of writing them, see `Options.for_layers`.
        beside: query and target; of these the method's are taken.
    """
    taken = {"query": method.takes_query, "target": method.takes_target}
    return options.values() | {name: beside.get(name) for name, is_taken in taken.items() if is_taken}


def _explain_all(job: Job) -> Explanations:
    return fast_maps(mirrored(job.image) if job.parameters.get("mirror") else job.image, job.target)


EXPLAIN_ALL = Part(name="explain all", run=_explain_all, reads="image", forwards=4)
