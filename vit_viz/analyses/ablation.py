"""What a head is for: the change of the answer when it is switched off."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.correlation import spearman
from vit_viz.analyses.head_estimate import (
    Ablation,
    Head,
    Unchanged,
    check_ablation,
    estimated,
    outputs_without_each,
    unchanged,
)
from vit_viz.analyses.job import Job
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.prepared_image import BATCH, ModelLike, Picture, PreparedImage, in_batches
from vit_viz.analyses.spec import Place, Question, Words
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer
from vit_viz.geometry import TokenLayout
from vit_viz.images import Mode
from vit_viz.lazy import Tensor, torch
from vit_viz.outputs import Output
from vit_viz.progress import Progress, ProgressLike, StopCheck, Watch, bar
from vit_viz.results import HeadTable


def ablate_heads(
    loaded: ModelLike,
    image: Picture | Tensor | None = None,
    *,
    target: TargetLike = None,
    mode: Mode = "fit",
    size: int = 0,
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
    output: Output | None = None,
    how: Ablation = "zero",
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
) -> HeadTable:
    """The causal head map: by how much the target changes when one head is switched off, for every head.

    o_lh <- 0, its mean over tokens, or uniform attention. Each run starts from the cached input of its layer instead of from the
    pixels, with the heads of a layer as a batch; the numbers are those of the plain loop. `causal_map` gives the first-order
    estimate beside it, and the table while it fills.

    Args:
        target: what is followed, e.g. a class by its index or name; None means the logit of the first class, or the own
            embedding.
        size: short side of the model's input in patches; 0 is the checkpoint's own.
        layout: which token is what; None asks the module.
        has_classes: whether a module's outputs are scores of classes; None takes what it says of itself.
        output: what one of them is, as `load` takes it; None takes what the model says of itself.
        how: what replaces the head's output.
        progress: told the share that is done; None shows a bar at a terminal or in a notebook, False nothing.
        cancelled: asked between batches; True ends with `Cancelled`.

    Returns:
        Target without the head minus target with it, [layers, heads], signed: below 0 where the head helps.

    Raises:
        ParameterError: the target or the way of ablation does not exist.
        Cancelled: `cancelled` said so.

    Source: Michel et al. 2019, arXiv:1905.10650.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> table = vv.ablate_heads("mini", sample("shapes"), target="lion")
        >>> table.values[5].round(1)  # of each head of the last layer
        array([ 0.1, -0.1, -0.2, -0.1, -0.2,  0.2], dtype=float32)
    """
    subject = PreparedImage.of(
        loaded,
        image,
        mode=mode,
        size=size,
        layout=layout,
        has_classes=has_classes,
        output=output,
        target=target,
    )
    with bar("ablation", progress) as told:
        return head_map(subject, target=target, how=how, progress=told, cancelled=cancelled)


@dataclass(frozen=True, eq=False, repr=False)
class CausalMap(Answer):
    """What switching each head off changes, beside what one gradient foretold.

    Args:
        table: the change, [layers, heads]; 0 where it is not computed yet.
        estimate: the first-order guess of the same, [layers, heads].
        known: which heads are computed, [layers, heads].
    """

    table: HeadTable
    estimate: HeadTable
    known: NDArray[np.bool_]

    @property
    def done(self) -> float:
        """Share of the heads that are computed."""
        return float(self.known.mean())

    @property
    def correlation(self) -> float:
        """Spearman correlation of estimate and truth over the heads that are computed; 0 for fewer than two."""
        if self.known.sum() < 2:
            return 0.0
        return spearman(self.estimate.values[self.known], self.table.values[self.known])


def head_map(
    subject: PreparedImage,
    *,
    target: TargetLike = None,
    how: Ablation = "zero",
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> HeadTable:
    """As `ablate_heads`, for an image that is prepared already."""
    check_ablation(how)
    all_heads = unchanged(subject, how)
    fixed = subject.target(target).resolved(all_heads.logits)
    depth, heads = all_heads.heads
    plan = [
        [(layer, head) for layer in layers for head in range(heads)] for layers in _together(depth, heads)
    ]
    watch = Watch(depth * heads, progress=progress, cancelled=cancelled)
    return _filled(subject, all_heads, fixed, how, plan, watch)


def head_importance(
    subject: PreparedImage, *, target: TargetLike = None, how: Ablation = "zero"
) -> HeadTable:
    """What switching each head off would change, from one gradient; as `head_estimate.estimated_head_map`.

    Raises:
        ParameterError: the target or the way of ablation does not exist.

    Source: Michel et al. 2019, arXiv:1905.10650, section 4.1, with its sign.
    """
    return _estimated(subject, target, how)[2]


def causal_map(
    subject: PreparedImage,
    *,
    target: TargetLike = None,
    how: Ablation = "zero",
    partial: Callable[[CausalMap], None] | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> CausalMap:
    """The causal head map with its first-order estimate; the heads that the estimate says matter most come first.

    Args:
        target, how, progress, cancelled: as `ablate_heads` has them.
        partial: given the map after each batch, as far as it is computed.

    Raises:
        ParameterError: the target or the way of ablation does not exist.
        Cancelled: `cancelled` said so.

    Source: Michel et al. 2019, arXiv:1905.10650.
    """
    watch = Watch(1, progress=progress, cancelled=cancelled)
    watch.check()
    all_heads, fixed, estimate = _estimated(subject, target, how)
    guess = estimate.values
    watch.total = guess.size

    def tell(table: HeadTable, known: NDArray[np.bool_]) -> None:
        if partial is not None:
            partial(CausalMap(table, estimate, known))

    plan = _by_estimate(guess, _together(*guess.shape))
    table = _filled(subject, all_heads, fixed, how, plan, watch, tell)
    return CausalMap(table, estimate, np.ones(guess.shape, dtype=bool))


# --- parts


def _estimated(
    subject: PreparedImage, target: TargetLike, how: Ablation
) -> tuple[Unchanged, Target, HeadTable]:
    """The pass with all heads, the target with its class fixed, and the first-order guess."""
    check_ablation(how)
    wanted = subject.target(target)
    all_heads, guess = estimated(subject, wanted, how)
    fixed = wanted.resolved(all_heads.logits)
    return all_heads, fixed, _as_table(subject, guess, fixed, f"first-order estimate ({how})", how)


def _together(depth: int, heads: int) -> list[range]:
    """Neighbouring layers whose heads fill a batch together: a machine computes a larger batch in less time per image."""
    layers = max(1, BATCH // heads)
    return [range(first, min(first + layers, depth)) for first in range(0, depth, layers)]


def _by_estimate(estimate: NDArray[np.float32], together: Sequence[range]) -> list[list[Head]]:
    """Batches of heads, those that are expected to change most first; heads of neighbouring layers share a batch."""
    size = np.abs(estimate)

    def expected(head: Head) -> float:
        return -float(size[head])

    batches = []
    for layers in together:
        heads = sorted(((layer, head) for layer in layers for head in range(size.shape[1])), key=expected)
        batches += [sorted(heads[start : start + BATCH]) for start in range(0, len(heads), BATCH)]
    return sorted(batches, key=lambda batch: min(map(expected, batch)))


def _filled(
    subject: PreparedImage,
    all_heads: Unchanged,
    target: Target,
    how: Ablation,
    plan: Sequence[Sequence[Head]],
    watch: Watch,
    tell: Callable[[HeadTable, NDArray[np.bool_]], None] = lambda *_: None,
) -> HeadTable:
    """The map, filled batch by batch in the order of a plan; what is there so far is told after each, with which heads it has."""
    values = np.zeros(all_heads.heads)
    known = np.zeros(values.shape, dtype=bool)
    before = float(target(all_heads.logits))
    table = _as_table(subject, values, target, f"head ablation ({how})", how)
    for heads in plan:
        layers, of_layer = zip(*heads, strict=True)
        values[layers, of_layer] = _scores(subject, all_heads, target, heads, how, watch) - before
        known[layers, of_layer] = True
        table = replace(table, values=values.astype(np.float32))
        tell(table, known.copy())
    return table


def _as_table(
    subject: PreparedImage, values: NDArray[Any], target: Target, method: str, how: Ablation
) -> HeadTable:
    return HeadTable(
        values.astype(np.float32),
        unit=f"change of the {target.describe(subject.labels)}",
        value_range=(-math.inf, math.inf),
        signed=True,
        method=method,
        provenance=subject.provenance.with_parameters(
            method="ablate_heads", how=how, target=target.describe()
        ),
        note="Target without the head minus target with it: below 0 where the head helps.",
    )


def _scores(
    subject: PreparedImage,
    all_heads: Unchanged,
    target: Target,
    heads: Sequence[Head],
    how: Ablation,
    watch: Watch,
) -> NDArray[np.float64]:
    """The target with each of these heads switched off alone, [heads]; as many at once as a batch holds."""

    def run(part: slice) -> Tensor:
        watch.check()
        with torch.no_grad():
            scores = target(outputs_without_each(subject, all_heads, heads[part], how))
        watch.advance(len(scores))
        return scores

    return in_batches(run, len(heads)).cpu().double().numpy()


@dataclass(frozen=True)
class AblationOptions(Options):
    """How a head is switched off."""

    how: Annotated[
        Ablation,
        Option("how", "What replaces the head's output: zero, its mean over tokens, uniform attention."),
    ] = "zero"


def _ablation(job: Job, options: AblationOptions) -> HeadTable:
    """What is there so far is told with the heads that it has, those first that matter most."""
    return causal_map(job.image, target=job.target, how=options.how, partial=job.preview, **job.watched).table


HEAD_IMPORTANCE = Question(
    name="head_importance",
    words=Words(
        label="Importance of heads",
        shows="by how much the target would change if one head were switched off, estimated from one gradient.",
        hides="what does change: the estimate is of first order, see the ablation.",
        formula=r"$\sum_i \frac{\partial f}{\partial o_{l h i}} \cdot (0 - o_{l h i})$",
        source="Michel et al. 2019, arXiv:1905.10650, section 4.1",
    ),
    options=AblationOptions,
    run=lambda job, options: head_importance(job.image, target=job.target, **options.values()),
    reads="image",
    place=Place("heads", {"face": "atlas", "measure": "estimate"}),
    cost="pass",
    forwards=3,
    takes_target=True,
)

ABLATION = Question(
    name="ablation",
    words=Words(
        label="Causal effect of heads",
        shows="by how much the target changes when one head is switched off, for every head.",
        hides="what heads do together: each is switched off alone.",
        formula=r"$f(x \mid o_{l h} \leftarrow 0) - f(x)$",
        source="Michel et al. 2019, arXiv:1905.10650",
        runs="about half a pass for each head",
    ),
    options=AblationOptions,
    run=_ablation,
    reads="image",
    place=Place("heads", {"face": "atlas", "measure": "effect"}),
    cost="many passes",
    forwards=80,
    takes_target=True,
)
