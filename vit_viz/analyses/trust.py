"""How far to believe one map: deletion and insertion, whether it tells classes apart, whether a mirror changes it, and whether it
depends on the weights."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vit_viz.analyses.correlation import check_ranks, spearman
from vit_viz.analyses.explain import changed_options, explain_subject, map_of, maps_of, two_classes
from vit_viz.analyses.faithfulness import (
    RANDOM_ORDERS,
    Faithfulness,
    Test,
    area,
    band_of,
    curve_of,
    faithfulness_of,
    random_outputs,
    scores_of,
)
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.spec import AnyMethod, Job, Part, Passes, Place, asks
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer
from vit_viz.lazy import nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.outputs import noun_of, output_kind, output_name
from vit_viz.progress import Progress, StopCheck, Watch, part_of
from vit_viz.results import Curve, PatchMap
from vit_viz.sentences import formatted, percent


@dataclass(frozen=True, eq=False, repr=False)
class Trust(Answer):
    """How far to believe one map.

    Args:
        faithfulness: deletion and insertion beside random orders; of two maps subtracted also deletion from their other end.
        method: the name of that by which the map was made.
        random: area under the deletion curve of random orders: its mean, and between which values 95% of them lie.
        class_sensitivity: 1 - Spearman correlation of the maps for the first two classes; None where it is not measured.
        mirror: Spearman correlation with the mirrored photo's map, mirrored back; None where it is not measured.
        names: of the two classes whose maps are subtracted; none of one map.
        unit: of their lead; "" where it is one of values.
    """

    faithfulness: Faithfulness
    method: str
    random: tuple[float, float, float]
    class_sensitivity: float | None = None
    mirror: float | None = None
    names: tuple[str, ...] = ()
    unit: str = ""

    def to_words(self) -> str:
        """What was measured, a sentence a line."""
        return "\n".join([*(self._of_lead() if self.names else []), *self._of_map()])

    def _of_map(self) -> list[str]:
        taken, put = self.faithfulness.beaten
        said = [
            f"Better than each of {RANDOM_ORDERS} random orders, taking away and putting back."
            if taken == put == RANDOM_ORDERS
            else f"Better than {taken} of {RANDOM_ORDERS} random orders taking away, and than {put} putting back."
        ]
        outside = self.faithfulness.beats_random
        if not all(outside):
            tests = zip(("taking away", "putting back"), outside, strict=True)
            where = " and ".join(word for word, better in tests if not better)
            said.append(f"Not outside the 95% band of random orders, {where}.")
        method = METHODS.named(self.method)
        if method.words.class_blind:
            said.append("The same for every class.")
        elif self.class_sensitivity is not None:
            said.append(f"Changes with the class: {formatted(self.class_sensitivity, '.2f')} of 1.")
        if self.mirror is not None:
            said.append(f"Mirrored photo, mirrored map: {formatted(self.mirror, '.2f')} of 1.")
        if method.is_slow:
            said.append(
                "Whether it changes with the class or with a mirror is measured for the quick methods only."
            )
        return said

    def _of_lead(self) -> list[str]:
        """Where the curves begin and end, where the lead is lost, and what the other class's patches do to it."""
        (one, other), scores = self.names, self.faithfulness
        curve, turned, unit = scores.deletion, scores.reverse, f" {self.unit}" if self.unit else ""
        assert turned is not None  # of a difference there is one
        assert scores.reverse_auc is not None
        start, end = float(curve.y[0]), float(curve.y[-1])
        leads = f"{one} leads {other} by" if start > 0 else f"{one} does not lead {other}: the lead is"
        said = [
            f"On the whole photo {leads} {_lead(start)}{unit}; with every patch painted over it is {_lead(end)}."
        ]
        if start > 0:
            here = _lost(curve.x, curve.y)
            chance = _lost(scores.band.fractions, scores.band.deletion.mean(0))
            said.append(
                f"With {one}'s patches first, the lead {here}; in random orders, in the mean, it {chance}."
            )
        mean, low, high = map(_lead, self.random)
        said.append(
            f"In the mean over the curve the lead is {_lead(scores.deletion_auc)}, with {other}'s patches first "
            f"{_lead(scores.reverse_auc)}; in random orders {mean}, 95% of them from {low} to {high}."
        )
        most = int(turned.y.argmax())
        if most:
            share, lead = percent(float(turned.x[most])), _lead(float(turned.y[most]))
            said.append(f"With {other}'s patches first it grows to {lead}, when {share} are gone.")
        else:
            said.append(f"With {other}'s patches first it never grows.")
        return said


def _lead(value: float) -> str:
    return formatted(value, ".2f").replace("-", "−")


def _lost(shares: ArrayLike, leads: ArrayLike) -> str:
    """From which share of patches on a lead is gone for the first time."""
    gone = np.flatnonzero(np.asarray(leads) <= 0)
    if not gone.size:
        return "is never lost"
    return f"is lost when {percent(float(np.asarray(shares)[gone[0]]))} are gone"


@dataclass(frozen=True)
class OfMethodOptions(Options):
    """Whose map is put to the test."""

    method: Annotated[str, Option("method", "The map's method.", pattern=r"[a-z][a-z0-9_]*")] = (
        METHODS.usual.name
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        METHODS.named(self.method)

    @property
    def tested(self) -> AnyMethod:
        """The method."""
        return METHODS.named(self.method)

    def of_methods(self, options: object, layers: int = 0) -> tuple[tuple[str, Any], ...]:
        """The options of the method that are changed."""
        return changed_options(self.tested, options, layers)


@dataclass(frozen=True)
class TrustOptions(OfMethodOptions):
    """Whose map is put to the test; of two classes, which map."""

    sides: Annotated[
        Literal["lead", "difference"],
        Option("of two classes", "The map of the lead of one, or both maps subtracted."),
    ] = "lead"


def _trust(job: Job, options: TrustOptions) -> Trust:
    method = options.tested
    if options.sides == "difference":
        return _of_difference(job, method)
    orders = _random_deletion(job, job.target)  # first: it rests between its batches, and a map holds memory
    patch_map = map_of(job, method, method.options.of(job.parameters.get("options", ())))
    scores = _faithfulness(job, patch_map, job.target, orders)
    return Trust(
        scores,
        method.name,
        scores.band.interval("deletion"),
        _class_sensitivity(job, method),
        _mirror_stability(job, method, patch_map),
    )


def _ends(target: TargetLike) -> dict[str, Any]:
    """What random orders depend on beside the photo: nothing, unless a target is a function."""
    return {"target": target} if callable(target) else {}


def _random_deletion(job: Job, target: TargetLike) -> NDArray[Any]:
    outputs: NDArray[Any] = job.answer_of("random deletion", share=(0.0, 0.45), **_ends(target))
    return outputs


def _faithfulness(
    job: Job,
    patch_map: PatchMap,
    target: TargetLike,
    orders: NDArray[Any],
    *,
    names: tuple[str, ...] = (),
) -> Faithfulness:
    """Deletion first, which alone says whether the map does better than random orders; then what all of it takes.

    Args:
        orders: what `_random_deletion` returns.
        names: of two classes whose maps were subtracted; such a map is tested from its other end, too.
    """
    subject, followed = job.image, job.image.resolved(target).followed
    outputs: dict[Test, Any] = {"deletion": orders}
    band = band_of(subject, followed, outputs)
    watch = Watch(len(band.fractions) - 2, progress=part_of(job.progress, 0.45, 0.5), cancelled=job.cancelled)
    deletion = scores_of(subject, patch_map, band, "deletion", followed, watch=watch)
    if job.preview is not None:
        curve = curve_of(subject, patch_map, "deletion", band.fractions, deletion, band)
        known = {"deletion": curve, "deletion_auc": area(band.fractions, deletion), "band": band}
        job.preview({"faithfulness": known, "random": band.interval("deletion"), "names": names})
    outputs["insertion"] = job.answer_of("random insertion", share=(0.5, 0.95), **_ends(target))
    return faithfulness_of(
        subject,
        patch_map,
        band_of(subject, followed, outputs),
        target=target,
        deletion=deletion,
        reverse=bool(names),
        progress=part_of(job.progress, 0.95, 1.0),
        cancelled=job.cancelled,
    )


def _of_difference(job: Job, method: AnyMethod) -> Trust:
    """Whether the lead of one class over another goes with the patches that the one has more of, and grows without the other's."""
    pair, own_options = two_classes(job), job.parameters.get("options", ())
    also = {"options": own_options} if own_options else {}
    subtracted: PatchMap = job.answer_of("class_difference", method=method.name, target=pair, **also)
    kind, labels = output_kind(job.image.output, job.outputs.numel()), job.loaded.labels
    names = tuple(output_name(index, labels, noun_of(kind)) for index in pair)
    scores = _faithfulness(job, subtracted, pair, _random_deletion(job, pair), names=names)
    unit = "" if kind == "value" else "logits"
    return Trust(scores, method.name, scores.band.interval("deletion"), names=names, unit=unit)


def _class_sensitivity(job: Job, method: AnyMethod) -> float | None:
    """Of the quick methods, whose maps for the first two classes are shared."""
    if method.is_slow or not job.image.has_classes or job.outputs.numel() < 2:
        return None
    if method.words.class_blind:
        return 0.0
    best = job.outputs.topk(2).indices.tolist()
    first, second = (maps_of(job, index).maps.get(method.name) for index in best)
    if first is None or second is None or first.peak is None or second.peak is None:
        return None
    return 1 - spearman(first.values, second.values)


def _mirror_stability(job: Job, method: AnyMethod, patch_map: PatchMap) -> float | None:
    """Of the quick methods with their usual options, whose maps of the mirrored image are shared."""
    if method.is_slow or job.parameters.get("options"):
        return None
    target = job.target
    if target is None:  # the mirrored image must be asked about the same class, not about its own first one
        if not job.image.has_classes:
            return None
        target = int(job.outputs.argmax())
    other = maps_of(job, target, mirror=True).maps.get(method.name)
    return None if other is None else spearman(patch_map.values, other.values[:, ::-1])


_TEST = 430  # passes, most of them of random orders


def _random(test: Test) -> Part[Any]:
    """What the model says in random orders, which all maps for all targets share."""
    return Part(
        name=f"random {test}",
        run=lambda job: random_outputs(job.image, test, **job.watched),
        reads="image",
        forwards=192,
        is_slow=True,
    )


RANDOM = (_random("deletion"), _random("insertion"))

TRUST = asks(
    _trust,
    label="Trust",
    also_called="deletion, insertion, faithfulness, auc, can I believe it, evaluation of maps, pixel flipping, removal curve",
    shows="how the answer changes as a map's patches are taken away or brought in, beside random orders.",
    hides="what a photo with removed patches means to a model that never saw one.",
    formula=r"areas under $p(c)$, a value, or $z_a - z_b$ of two classes, over the share of patches removed, or brought in",
    source="Petsiuk et al. 2018, arXiv:1806.07421",
    runs="some hundred passes",
    options=TrustOptions,
    reads="image",
    place=Place("explain"),
    cost="many passes",
    forwards=_TEST,
    takes_target=True,
    takes_options=True,
    passes=Passes(lambda _: _TEST, bound="at most about", shared=RANDOM),  # in batches each takes less
)


# --- whether a map depends on the weights


@dataclass(frozen=True, eq=False, repr=False)
class Randomisation(Curve):
    """How a map changes while parts of the model are re-initialised."""

    def to_words(self) -> str:
        """How much of the map is left where nothing of what the model learned is."""
        last = float(self.y[-1])
        verdict = "it depends" if abs(last) < 0.5 else "much of it does not depend"
        return (
            f"With all weights re-initialised, the map's rank correlation with the original is {formatted(last, '.2f')}: "
            f"{verdict} on what the model learned."
        )


def parameter_randomisation(
    subject: PreparedImage,
    *,
    method: str,
    target: TargetLike = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Randomisation:
    """Whether a map depends on what the model has learned: its correlation with the original while parts are re-initialised.

    First the head (with the final norms and the pooling), then the blocks from the last to the first; each stays re-initialised.
    A map that stays the same shows the image, not the model. The class stays that of the trained model.

    Returns:
        Spearman correlation with the original map, from 1 with nothing re-initialised; [blocks + 2].

    Source: Adebayo et al. 2018, arXiv:1810.03292, cascading randomisation.
    """
    model = subject.transformer("Parameter randomisation")
    fixed = subject.resolved(target)
    tops = ("norm", "attn_pool", "fc_norm", "head", "head_dist")
    stages = [[name for name in tops if getattr(model, name, None) is not None]]  # parts by their names
    stages += [[f"blocks.{layer}"] for layer in reversed(range(len(model.blocks)))]
    watch = Watch(len(stages) + 1, progress=progress, cancelled=cancelled)
    original = watched_map(subject, method, fixed, watch)
    check_ranks(original)
    with subject.turn():  # nobody else's pass may have hooks on what is copied
        copied = copy.deepcopy(model)
    randomised, fresh, correlations = replace(subject, model=copied), _fresh(model, seed), [1.0]
    for names in stages:
        for name in names:
            copied.get_submodule(name).load_state_dict(fresh.get_submodule(name).state_dict())
        changed = watched_map(randomised, method, fixed, watch)
        correlations.append(spearman(original.values, changed.values))
    return Randomisation(
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


def _randomisation(job: Job, options: OfMethodOptions) -> Randomisation:
    with job.single_copy():
        return parameter_randomisation(job.image, method=options.method, target=job.target, **job.watched)


RANDOMISATION = asks(
    _randomisation,
    label="Sanity check",
    also_called="model randomisation, randomization test, random weights, adebayo",
    shows="how a map changes as the model's weights are made random, from the last layer to the first.",
    hides="whether the map of the trained model is right.",
    formula=r"Spearman correlation of the map with that of the randomised model",
    source="Adebayo et al. 2018, arXiv:1810.03292",
    runs="one explanation for each layer",
    options=OfMethodOptions,
    reads="image",
    place=Place("explain"),
    cost="many passes",
    forwards=40,
    takes_target=True,
)
