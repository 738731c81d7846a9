"""How far to believe one map: deletion and insertion, whether it tells classes apart, whether a mirror changes it, and whether it
depends on the weights."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from vit_viz.analyses.correlation import check_ranks, spearman
from vit_viz.analyses.explain import explain_subject, map_of, maps_of, two_classes
from vit_viz.analyses.faithfulness import Faithfulness, RandomBand, faithfulness_of, random_band
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.spec import AnyMethod, Job, Part, Place, Question, Words
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer
from vit_viz.lazy import nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import Curve, PatchMap


@dataclass(frozen=True, eq=False, repr=False)
class Trust(Answer):
    """How far to believe one map.

    Args:
        faithfulness: deletion and insertion beside random orders; of two maps subtracted also deletion from their other end.
        class_sensitivity: 1 - Spearman correlation of the maps for the first two classes; None where it is not measured.
        mirror: Spearman correlation with the mirrored photo's map, mirrored back; None where it is not measured.
    """

    faithfulness: Faithfulness
    class_sensitivity: float | None = None
    mirror: float | None = None


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
        return Trust(_of_difference(job, method))
    band: RandomBand = job.answer_of("random band", target=job.target)
    patch_map = map_of(job, method, method.options.of(job.parameters.get("options", ())))
    scores = faithfulness_of(job.image, patch_map, band, target=job.target, **job.watched)
    return Trust(scores, _class_sensitivity(job, method), _mirror_stability(job, method, patch_map))


def _of_difference(job: Job, method: AnyMethod) -> Faithfulness:
    """Whether the lead of one class over another goes with the patches that the one has more of, and grows without the other's."""
    pair, own_options = two_classes(job), job.parameters.get("options", ())
    also = {"options": own_options} if own_options else {}
    subtracted: PatchMap = job.answer_of("class_difference", method=method.name, target=pair, **also)
    band: RandomBand = job.answer_of("random band", target=pair)
    return faithfulness_of(job.image, subtracted, band, target=pair, reverse=True, **job.watched)


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


TRUST = Question(
    name="trust",
    words=Words(
        label="Trust",
        shows="how the answer changes as a map's patches are taken away or brought in, beside random orders.",
        hides="what a photo with removed patches means to a model that never saw one.",
        formula=r"areas under $p(c)$, a value, or $z_a - z_b$ of two classes, over the share of patches removed, or brought in",
        source="Petsiuk et al. 2018, arXiv:1806.07421",
        runs="some hundred passes",
    ),
    options=TrustOptions,
    run=_trust,
    reads="image",
    place=Place("explain"),
    cost="many passes",
    forwards=430,
    takes_target=True,
    takes_options=True,
)

RANDOM_BAND = Part(
    name="random band",
    run=lambda job: random_band(job.image, target=job.target, **job.watched),
    reads="image",
    forwards=384,
    is_slow=True,
)


# --- whether a map depends on the weights


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


def _randomisation(job: Job, options: OfMethodOptions) -> Curve:
    with job.single_copy():
        return parameter_randomisation(job.image, method=options.method, target=job.target, **job.watched)


RANDOMISATION = Question(
    name="randomisation",
    words=Words(
        label="Sanity check",
        shows="how a map changes as the model's weights are made random, from the last layer to the first.",
        hides="whether the map of the trained model is right.",
        formula=r"Spearman correlation of the map with that of the randomised model",
        source="Adebayo et al. 2018, arXiv:1810.03292",
        runs="one explanation for each layer",
    ),
    options=OfMethodOptions,
    run=_randomisation,
    reads="image",
    place=Place("explain"),
    cost="many passes",
    forwards=40,
    takes_target=True,
)
