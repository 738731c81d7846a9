"""One method's map for every sentence, or for the first classes, side by side on one scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from vit_viz.analyses.chains import check_reached
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.options import Option
from vit_viz.analyses.share_maps import quick_method
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.analyses.trust import OfMethodOptions
from vit_viz.answer import axes
from vit_viz.errors import ParameterError
from vit_viz.geometry import place_words
from vit_viz.outputs import output_name
from vit_viz.results import PatchMap, TokenMaps


@dataclass(frozen=True, eq=False, repr=False)
class ClassMaps(TokenMaps):
    """The maps of several classes by one method, [classes, rows, cols]: the same unit in all, so that they share a scale."""

    AXES = axes(values=("class", "row", "col"))

    def to_words(self) -> str:
        """Where the largest value of all maps lies, and for which class."""
        best, row, col = np.unravel_index(int(self.values.argmax()), self.values.shape)
        return f"The largest value of all is for “{self.names[best]}”, on patch {place_words((row, col))}."


@dataclass(frozen=True)
class ClassMapsOptions(OfMethodOptions):
    """Whose maps are set side by side, and for how many classes."""

    count: Annotated[
        int,
        Option("classes", "How many of the model's first classes; sentences are all there.", low=1, high=32),
    ] = 4


def _class_maps(job: Job, options: ClassMapsOptions) -> ClassMaps:
    """One recorded forward for all, and one backward for each."""
    subject, outputs = job.image, job.outputs
    if not subject.has_classes:
        raise ParameterError(
            "This model has no classes whose maps could be set side by side; one with a text tower has sentences for it."
        )
    method, own = quick_method(job, options)
    if method.words.class_blind:
        raise ParameterError(f"{method.words.label} gives the same map for every class.")
    is_asked = subject.noun == "sentence"
    best = outputs.topk(min(options.count, len(outputs))).indices.tolist()
    chosen = range(len(outputs)) if is_asked else best
    shared, watch, maps = method.shared, job.watch(len(chosen)), list[PatchMap]()
    is_towards = shared.gradient or shared.features
    for target in map(subject.target, chosen):
        watch.check()
        if not maps:
            recorded = trace = subject.trace(
                target if is_towards else None,
                keep_norms=shared.norms,
                keep_features=shared.features,
                keep_gradients=shared.gradient,
                keep_graph=is_towards,
            )
        elif is_towards:
            with subject.turn():
                trace = recorded.towards(target)
        if shared.gradient:
            check_reached(trace, None)
        chains = () if shared.chain is None else (shared.chain(own),)
        fixed = target.resolved(subject.logits(trace))
        maps.append(method.run(MethodInput(subject, fixed, trace, chains=chains), own))
        watch.advance()
    first, lows, highs = maps[0], *zip(*(one.value_range for one in maps), strict=True)
    return ClassMaps(
        np.stack([one.values for one in maps]),
        tuple(output_name(index, subject.labels, subject.noun) for index in chosen),
        first.unit,
        (min(lows), max(highs)),
        first.signed,
        f"{method.words.label} for each {subject.noun}",
        first.provenance.with_parameters(target=", ".join(map(str, chosen))),
        crop_box=first.crop_box,
        note=first.note,
    )


CLASS_MAPS = asks(
    _class_maps,
    name="class_maps",
    label="Every sentence, or the first classes, on one scale",
    also_called="several sentences, text prompts, zero-shot, several classes side by side, compare classes",
    shows="where a method finds each sentence, or each of the first classes, on one scale for all.",
    hides="how far each map can be believed, and what no sentence names.",
    formula=r"the map of each class $c$ towards its logit $z_c$; for sentences $z_c$ is the scaled cosine",
    source="Radford et al. 2021, arXiv:2103.00020, section 3.1, for sentences as classes",
    options=ClassMapsOptions,
    reads="image",
    place=Place("explain", options={"count": ""}),
    cost="pass",
    forwards=12,
    takes_options=True,
)
