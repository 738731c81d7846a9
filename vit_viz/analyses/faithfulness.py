"""How far to trust a map: does the target fall when the map's best patches go, more than for patches taken at random?

Source: Petsiuk et al. 2018, arXiv:1806.07421 (deletion and insertion), here on patches. METHODS, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.correlation import check_ranks
from vit_viz.analyses.prepared_image import ModelLike, Picture, PreparedImage
from vit_viz.analyses.removal import (
    BASELINES,
    Baseline,
    baseline_pixels,
    painted_outputs,
    painted_scores,
    removed_scores,
)
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.answer import Answer, axes
from vit_viz.errors import ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Mode
from vit_viz.lazy import Tensor, torch
from vit_viz.outputs import Output
from vit_viz.progress import Progress, ProgressLike, StopCheck, Watch, bar, part_of
from vit_viz.results import Curve, PatchMap

Test = Literal["deletion", "insertion"]

STEPS = 20
RANDOM_ORDERS = 10
BAND_WIDTH = 2.37
"""Half width of a 95% prediction interval in standard deviations: t(0.975, 9) * sqrt(1 + 1/10), for 10 orders."""
_BAND_SHARE = RANDOM_ORDERS / (RANDOM_ORDERS + 1)  # of the progress of a test
_USUAL: dict[Test, Baseline] = {"deletion": "mean", "insertion": "blur"}
_NEVER = 1e-6  # a share this far from 0 and 1 at least, since their log-odds are infinite


@dataclass(frozen=True, eq=False, repr=False)
class RandomBand(Answer):
    """What random orders of patches score: computed once per image and target, shared by all maps.

    Args:
        fractions: share of the patches that is gone, or there, at each step, [steps + 1].
        deletion: the target at each step of each order, [orders, steps + 1]; `insertion` likewise.
        baselines: what stands in for patches, of deletion and of insertion.
        target: what is followed, in words.
        value_range: smallest and largest value that it can take.
    """

    fractions: NDArray[np.float64]
    deletion: NDArray[np.float64]
    insertion: NDArray[np.float64]
    baselines: tuple[Baseline, Baseline]
    target: str
    value_range: tuple[float, float] = (0.0, 1.0)

    AXES = axes(fractions=("step",), deletion=("order", "step"), insertion=("order", "step"))

    def areas(self, test: Test) -> NDArray[np.float64]:
        """Area under the curve of each order, [orders]."""
        return np.array([area(self.fractions, scores) for scores in getattr(self, test)])

    def interval(self, test: Test) -> tuple[float, float, float]:
        """(mean, low, high) of the areas under the curves: the 95% prediction band of one more random order."""
        areas = self.areas(test)
        low, high = prediction_band(areas, value_range=self.value_range)
        return float(areas.mean()), float(low), float(high)

    def edges(self, test: Test) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The same band at each step, for drawing: (low, high), each [steps + 1]."""
        return prediction_band(getattr(self, test), value_range=self.value_range)


@dataclass(frozen=True, eq=False, repr=False)
class Faithfulness(Answer):
    """How a map's order of patches does against random orders.

    Args:
        deletion: the target while patches go, best first; the lower, the better. With the random band.
        insertion: the target while patches come, best first; the higher, the better. With the random band.
        removal: as deletion, with patches removed from the sequence instead of painted over; None where not asked for.
        reverse: as deletion, from the map's other end; None where not asked for.
        deletion_auc, insertion_auc, removal_auc, reverse_auc: areas under the curves.
        band: the random orders.
    """

    deletion: Curve
    insertion: Curve
    deletion_auc: float
    insertion_auc: float
    band: RandomBand
    removal: Curve | None = None
    removal_auc: float | None = None
    reverse: Curve | None = None
    reverse_auc: float | None = None

    DRAWN = ("deletion", "reverse", "insertion", "removal")

    @property
    def beats_random(self) -> tuple[bool, bool]:
        """Whether deletion lies below, and insertion above, the band of random orders."""
        return (
            self.deletion_auc < self.band.interval("deletion")[1],
            self.insertion_auc > self.band.interval("insertion")[2],
        )

    @property
    def relative_deletion(self) -> float:
        """Deletion AUC as a share of that of random orders: the lower, the better. NaN for what may be below 0: a lead, a value."""
        if not np.isfinite(self.band.value_range[0]):
            return float("nan")
        return self.deletion_auc / max(self.band.interval("deletion")[0], 1e-12)

    @property
    def beaten(self) -> tuple[int, int]:
        """How many of the ten random orders do worse, in deletion and in insertion."""
        return (
            int((self.deletion_auc < self.band.areas("deletion")).sum()),
            int((self.insertion_auc > self.band.areas("insertion")).sum()),
        )

    @property
    def verdict(self) -> str:
        """The outcome in words: better than random, ahead of each random order, or no better than random."""
        words = ("taken away", "put back")
        outside = [word for word, better in zip(words, self.beats_random, strict=True) if better]
        ahead = [
            word
            for word, beaten in zip(words, self.beaten, strict=True)
            if beaten == RANDOM_ORDERS and word not in outside
        ]
        sentences = []
        if outside:
            sentences.append(f"Better than random when its patches are {' and '.join(outside)}.")
        if ahead:
            sentences.append(
                f"Ahead of each of {RANDOM_ORDERS} random orders, but within their 95% band, when its patches are "
                f"{' and '.join(ahead)}."
            )
        return " ".join(sentences) or "No better than patches chosen at random."


def faithfulness(
    loaded: ModelLike,
    image: Picture | Tensor,
    patch_map: PatchMap,
    *,
    target: TargetLike = None,
    mode: Mode = "fit",
    size: int = 0,
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
    output: Output | None = None,
    band: RandomBand | None = None,
    baselines: tuple[Baseline, Baseline] = ("mean", "blur"),
    removal: bool = False,
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
) -> Faithfulness:
    """Deletion and insertion of a map's patches, beside ten random orders.

    Patches are ranked by the map, equal ones by their index, and go (or come) in 20 steps, or one by one if there are fewer. The
    class is fixed at the model's first answer, and its probability is followed, by softmax or its own sigmoid; a value as the model
    returns it; of a pair of classes the lead of the one over the other, in logits; without classes, the cosine to the image's own
    embedding. The area is by trapezoid over the share of patches: the mean height.

    Args:
        patch_map: over this model's grid for this image and mode.
        target: what is followed, a class by its index or name, or a pair (class, other class); None means the first class.
        size, layout, has_classes, output: as `explain` takes them.
        band: random orders of the same image and target, as `random_band` gives them; None computes them.
        baselines: what stands in for patches in deletion, and in insertion.
        removal: also with patches truly removed.
        progress, cancelled: as `explain` takes them.

    Raises:
        ParameterError: the map has another grid or is the same everywhere, a baseline does not exist, or the band is of other
            baselines or another target.
        CaptureError: removal is asked for, and something in this module still reads removed patches.
        Cancelled: `cancelled` said so.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> loaded, picture = vv.load("mini"), sample("shapes")
        >>> relevance = vv.explain(loaded, picture, size=6)["relevance"]
        >>> vv.faithfulness(loaded, picture, relevance, size=6).beaten  # of ten random orders, in both tests
        (10, 10)
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
    with bar("faithfulness", progress) as report:
        if band is None:
            first = part_of(report, 0.0, _BAND_SHARE)
            band = random_band(
                subject, target=target, baselines=baselines, progress=first, cancelled=cancelled
            )
            report = part_of(report, _BAND_SHARE, 1.0)
        return faithfulness_of(
            subject, patch_map, band, target=target, removal=removal, progress=report, cancelled=cancelled
        )


def random_band(
    subject: PreparedImage,
    *,
    target: TargetLike = None,
    baselines: tuple[Baseline, Baseline] = ("mean", "blur"),
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> RandomBand:
    """Deletion and insertion of ten random orders; the same orders for the same seed."""
    followed, outputs, half = subject.resolved(target).followed, {}, 0.0
    for test, baseline in zip(_USUAL, baselines, strict=True):
        report, half = part_of(progress, half, half + 0.5), half + 0.5
        outputs[test] = random_outputs(
            subject, test, baseline=baseline, seed=seed, progress=report, cancelled=cancelled
        )
    return band_of(subject, followed, outputs, baselines=baselines)


def random_outputs(
    subject: PreparedImage,
    test: Test,
    *,
    baseline: Baseline | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> NDArray[Any]:
    """What the model says while patches go, or come, in ten random orders: of this, every target is read.

    Returns:
        [2 + orders * (steps - 1), outputs]: with no patch gone, with every one, then the steps between of each order.
    """
    orders = np.stack(
        [
            np.random.default_rng([seed, i]).permutation(subject.layout.num_patches)
            for i in range(RANDOM_ORDERS)
        ]
    )
    gone = _first(orders, step_counts(subject.layout.num_patches)[1:-1])
    gone = np.concatenate([np.zeros_like(gone[:1]), np.ones_like(gone[:1]), gone])
    watch = Watch(len(gone), progress=progress, cancelled=cancelled)
    other = baseline_pixels(subject, baseline or _USUAL[test])
    sets = gone if test == "deletion" else ~gone
    return painted_outputs(subject, sets, other, watch=watch).cpu().numpy()


def band_of(
    subject: PreparedImage,
    followed: Target,
    outputs: Mapping[Test, NDArray[Any]],
    *,
    baselines: tuple[Baseline, Baseline] = ("mean", "blur"),
) -> RandomBand:
    """The band of a target, by what `random_outputs` returns; a test that is not there has no orders in the band."""
    counts = step_counts(subject.layout.num_patches)

    def curves(test: Test) -> NDArray[np.float64]:
        if test not in outputs:
            return np.empty((0, len(counts)))
        scores = followed(torch.from_numpy(outputs[test]).to(subject.pixels.device)).cpu().double().numpy()
        ends = np.broadcast_to(scores[:2], (RANDOM_ORDERS, 2))
        return np.concatenate([ends[:, :1], scores[2:].reshape(RANDOM_ORDERS, -1), ends[:, 1:]], axis=1)

    return RandomBand(
        counts / counts[-1],
        curves("deletion"),
        curves("insertion"),
        baselines,
        followed.describe(subject.labels),
        followed.value_range,
    )


def faithfulness_of(
    subject: PreparedImage,
    patch_map: PatchMap,
    band: RandomBand,
    *,
    target: TargetLike = None,
    deletion: NDArray[np.float64] | None = None,
    removal: bool = False,
    reverse: bool = False,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> Faithfulness:
    """As `faithfulness`, for an image that is prepared already and whose random band is known.

    Args:
        deletion: of the map, where `scores_of` has computed it.
        reverse: also with the map's last patches first.
    """
    followed = subject.resolved(target).followed
    counts = step_counts(subject.layout.num_patches)
    total = (1 + (deletion is None) + reverse) * (len(counts) - 2) + removal * len(counts)
    watch = Watch(total, progress=progress, cancelled=cancelled)
    if deletion is None:
        deletion = scores_of(subject, patch_map, band, "deletion", followed, watch=watch)
    insertion = scores_of(subject, patch_map, band, "insertion", followed, watch=watch)
    if followed.output == "value":  # for whoever draws the curves, which then need not begin at 0
        subject = replace(subject, provenance=subject.provenance.with_parameters(output="value"))
    fractions, removed, turned = counts / counts[-1], None, None
    if removal:
        few = counts
        if subject.layout.pooling != "class":  # a pool over patches keeps the last one
            few = np.unique(np.minimum(counts, counts[-1] - 1))
        order = patch_order(patch_map)[None]
        removed = few / counts[-1], removed_scores(subject, followed, _first(order, few), watch=watch)
    if reverse:
        turned = scores_of(subject, patch_map, band, "reverse", followed, watch=watch)
    return Faithfulness(
        curve_of(subject, patch_map, "deletion", fractions, deletion, band),
        curve_of(subject, patch_map, "insertion", fractions, insertion, band),
        area(fractions, deletion),
        area(fractions, insertion),
        band,
        None if removed is None else curve_of(subject, patch_map, "removal", *removed, band),
        None if removed is None else area(*removed),
        None if turned is None else curve_of(subject, patch_map, "reverse", fractions, turned, band),
        None if turned is None else area(fractions, turned),
    )


def scores_of(
    subject: PreparedImage,
    patch_map: PatchMap,
    band: RandomBand,
    test: Literal["deletion", "insertion", "reverse"],
    followed: Target,
    *,
    watch: Watch | None = None,
) -> NDArray[np.float64]:
    """The target at each step of a map's own order, [steps + 1]; the band has its first and its last step already."""
    if patch_map.grid != subject.layout.grid:
        raise ParameterError(
            f"The map has a grid of {patch_map.grid}, the model one of {subject.layout.grid} for this image."
        )
    if band.target != (words := followed.describe(subject.labels)):
        raise ParameterError(f"The random band follows the {band.target}, not the {words}.")
    check_ranks(patch_map)
    order, is_insertion = patch_order(patch_map)[None], test == "insertion"
    inner = step_counts(subject.layout.num_patches)[1:-1]
    gone = _first(order[:, ::-1] if test == "reverse" else order, inner)
    other = baseline_pixels(subject, band.baselines[is_insertion])
    between = painted_scores(subject, followed, ~gone if is_insertion else gone, other, watch=watch)
    ends = (band.insertion if is_insertion else band.deletion)[0]
    return np.concatenate([ends[:1], between, ends[-1:]])


def curve_of(
    subject: PreparedImage,
    patch_map: PatchMap,
    test: Literal["deletion", "insertion", "removal", "reverse"],
    fractions: NDArray[np.float64],
    scores: NDArray[np.float64],
    band: RandomBand,
) -> Curve:
    """Scores as a curve beside the band."""
    deletion, insertion = (BASELINES[baseline] for baseline in band.baselines)
    words = {
        "deletion": ("share of patches painted over, best first", f"Painted over with {deletion}."),
        "insertion": ("share of patches put back, best first", f"Starts from {insertion}."),
        "removal": (
            "share of patches removed, best first",
            "Patches leave the sequence; nothing is painted over.",
        ),
        "reverse": ("share of patches painted over, last first", f"Painted over with {deletion}."),
    }
    label, note = words[test]
    provenance = subject.provenance.with_parameters(
        method=f"{test} of {patch_map.method}", followed=band.target
    )
    x, y = (values.astype(np.float32) for values in (fractions, scores))
    edges = None
    if test != "removal":
        low, high = band.edges("insertion" if test == "insertion" else "deletion")
        edges = (low.astype(np.float32), high.astype(np.float32))
    return Curve(x, y, label, band.target, f"{test} of {patch_map.method}", provenance, edges, note)


def patch_order(patch_map: PatchMap) -> NDArray[np.intp]:
    """Patch indices from the highest value to the lowest; equal ones by index."""
    return np.argsort(-patch_map.values.ravel(), kind="stable")


def step_counts(patches: int) -> NDArray[np.int64]:
    """How many patches are gone after each step: 0 to all in 20 steps, or one by one if there are fewer."""
    return np.rint(np.linspace(0, patches, min(STEPS, patches) + 1)).astype(np.int64)


def prediction_band(
    scores: NDArray[np.float64], *, value_range: tuple[float, float] = (0.0, 1.0)
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Between which values one more random order lies in 95% of cases: (low, high), each [...], of scores [orders, ...].

    mean +- 2.37 standard deviations of the log-odds log(x / (1 - x)), x the score as a share of its range, then turned back. A
    probability near 0 scatters upwards only: on the plain scale the low edge of such a band lies below 0, where no map can be
    (in 1 of 6 photos with ViT-Tiny); on log-odds equally many orders fall out on either side. A lead in logits is a difference of
    log-odds already and ends nowhere, as does a value: mean +- 2.37 standard deviations of itself.
    """
    low, high = value_range
    if not np.isfinite(high - low):
        half = BAND_WIDTH * scores.std(axis=0, ddof=1)
        return scores.mean(0) - half, scores.mean(0) + half
    from scipy.special import expit, logit  # a start need not wait for it

    odds = logit(np.clip((scores - low) / (high - low), _NEVER, 1 - _NEVER))
    middle, spread = odds.mean(0), BAND_WIDTH * odds.std(axis=0, ddof=1)
    return low + (high - low) * expit(middle - spread), low + (high - low) * expit(middle + spread)


def area(fractions: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    """Area under a curve by trapezoid, as a share of its width: the mean height."""
    return float(np.trapezoid(scores, fractions) / (fractions[-1] - fractions[0]))


# --- parts


def _first(orders: NDArray[np.intp], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The first k patches of each order, for each count k: [orders * counts, patches]."""
    ranks = np.argsort(orders, axis=1)  # rank of each patch
    sets: NDArray[np.bool_] = ranks[:, None, :] < counts[None, :, None]
    return sets.reshape(-1, orders.shape[1])
