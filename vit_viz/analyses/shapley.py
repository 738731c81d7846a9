"""KernelShap on segments of patches: Shapley values by weighted least squares, with few enough players to be stable.

Sources: Lundberg & Lee 2017, arXiv:1705.07874; Covert & Lee 2021, arXiv:2012.01536 (pairs of complements). What differs from
captum's: its values for single patches are noise at any affordable number of subsets, so patches are grouped into segments; the
subsets that weigh most, those of one segment and of all but one, are not drawn but all tried; the others come in pairs of
complements.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attribution import check_samples, stability_words
from vit_viz.analyses.correlation import spearman
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage, in_batches, patch_colours, patch_mask
from vit_viz.analyses.spec import Passes, explains
from vit_viz.analyses.targets import Target
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid
from vit_viz.lazy import torch
from vit_viz.progress import Watch
from vit_viz.results import PatchMap

SEGMENTS, SAMPLES = 20, 800
"""By measurement: with ViT-Tiny and with the bundled model the two halves of 800 subsets agree to 0.8 and more."""


@dataclass(frozen=True, eq=False)
class _Game:
    """What the target is for some subsets of the segments.

    Args:
        subsets: which segments are there, Boolean [subsets, segments].
        values: the target of each, [subsets].
        weights: how much each counts in the regression, [subsets].
        ends: the target with nothing there and with everything there.
    """

    subsets: NDArray[np.bool_]
    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    ends: tuple[float, float]

    def shares(self) -> NDArray[np.float64]:
        """Each segment's share of the change from nothing to everything, [segments]; the shares sum to it exactly."""
        nothing, everything = self.ends
        there = self.subsets.astype(np.float64)
        design = there[:, :-1] - there[:, -1:]  # the last share is what the others leave
        wanted = self.values - nothing - there[:, -1] * (everything - nothing)
        root = np.sqrt(self.weights)
        solution = np.linalg.lstsq(design * root[:, None], wanted * root, rcond=None)[0]
        return np.append(solution, everything - nothing - solution.sum())


def kernel_shap(
    inputs: MethodInput, *, samples: int = SAMPLES, segments: int = SEGMENTS, seed: int = 0
) -> PatchMap:
    """Shapley values of segments of the image, estimated by a weighted regression on subsets of them.

    Each patch of a segment shows the same share: its segment's, divided by the number of its patches.

    Args:
        samples: subsets that are tried, at least two per segment and four more; all of them where there are no more, and then the
            values are exact.
        segments: groups of patches; as many as there are patches treats each alone.
        seed: of the subsets that are drawn.

    Returns:
        A signed map whose sum is the target's change from the mean image. `stability` is the rank correlation of the maps of the
        two halves of the drawn subsets; the map is that of both together. None where nothing was drawn.

    Source: Lundberg & Lee 2017, arXiv:1705.07874.
    """
    subject, target = inputs.subject, inputs.target
    groups = _groups(subject, segments, samples)
    count = int(groups.max()) + 1
    is_exact = _fits_all(count, samples)
    subsets, weights = _all_subsets(count) if is_exact else _drawn_subsets(count, samples, seed)
    watch = inputs.watch(len(subsets) + 2)
    fixed = target if target.is_resolved else subject.resolved(target)
    values = _values(subject, fixed, groups, subsets, watch)
    game = _Game(subsets, values[2:], weights, (values[0], values[1]))
    shares = _per_patch(game.shares(), groups)
    stability = None if is_exact else _halves_agree(game, count, groups)
    return PatchMap(
        shares,
        unit="change of the target",
        value_range=(-math.inf, math.inf),
        signed=True,
        method="KernelShap",
        class_blind=False,
        provenance=subject.provenance.with_parameters(
            method="kernelshap",
            samples=len(subsets),
            segments=count,
            seed=seed,
            stability="exact" if stability is None else f"{stability:.3f}",
        ),
        crop_box=subject.crop_box,
        caption=f"KernelShap of {count} segments",
        note="" if stability is None else stability_words(stability, f"{len(subsets)} subsets"),
        stability=stability,
    )


KERNEL_SHAP = explains(
    kernel_shap,
    label="KernelShap",
    also_called="shapley, shap, shapley values, lime, game theory",
    shows="each segment's fair share of the target, estimated from subsets of twenty segments; blue shares count against it.",
    hides="differences within a segment: all its patches show the same share.",
    formula=r"the $\phi$ that minimise $\sum_S w_S (y(x_S) - \phi_0 - \sum_{g \in S} \phi_g)^2$ over subsets $S$ of the "
    r"segments; $x_S$: the photo with only $S$ visible; each $\phi_g$ is spread evenly over the patches of its segment",
    source="Lundberg & Lee 2017, arXiv:1705.07874",
    runs="about 800 runs",
    cost="many passes",
    passes=Passes(lambda _: 800),
)


# --- parts


def _groups(subject: PreparedImage, segments: int, samples: int) -> NDArray[np.int64]:
    """The segment of each patch, [rows, cols], where so many samples can tell so many segments apart."""
    patches = subject.layout.num_patches
    if patches < 2 or segments < 2:
        raise ParameterError("KernelShap needs at least two patches and two segments.")
    check_samples(samples)
    each_alone = np.arange(patches).reshape(subject.layout.grid)
    groups = each_alone if segments >= patches else segments_of(subject, segments)
    count = int(groups.max()) + 1
    if not _fits_all(count, samples) and samples < 2 * count + 4:
        raise ParameterError(
            f"KernelShap of {count} segments needs at least {2 * count + 4} samples, not {samples}."
        )
    return groups


def _fits_all(segments: int, samples: int) -> bool:
    """Whether all subsets but the empty and the whole one may be tried."""
    return bool(2**segments - 2 <= samples)


def _all_subsets(count: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Every subset but the empty one and the whole, with the kernel's weight."""
    numbers = np.arange(1, 2**count - 1)
    subsets = (numbers[:, None] >> np.arange(count)) & 1 == 1
    sizes = subsets.sum(1)
    weights = [_size_weight(count, int(size)) / math.comb(count, int(size)) for size in sizes]
    return subsets, np.array(weights)


def _drawn_subsets(count: int, samples: int, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """All subsets of one segment and of all but one, then pairs of complements, drawn by the kernel's weight of their size."""
    one = np.eye(count, dtype=bool)
    random = np.random.default_rng(seed)
    sizes = np.arange(2, count - 1)
    chances = np.array([_size_weight(count, int(size)) for size in sizes])
    pairs = (samples - 2 * count) // 4 * 2  # an even number, for two halves
    drawn = np.zeros((2 * pairs, count), dtype=bool)
    for pair, size in enumerate(random.choice(sizes, pairs, p=chances / chances.sum())):
        drawn[2 * pair, random.permutation(count)[:size]] = True
        drawn[2 * pair + 1] = ~drawn[2 * pair]
    ends = 2 * _size_weight(count, 1)
    weights = [np.full(2 * count, ends / (2 * count)), np.full(2 * pairs, chances.sum() / (2 * pairs))]
    return np.concatenate([one, ~one, drawn]), np.concatenate(weights)


def _size_weight(count: int, size: int) -> float:
    """The kernel's weight of all subsets of one size together, up to a factor."""
    return 1 / (size * (count - size))


def _values(
    subject: PreparedImage,
    target: Target,
    groups: NDArray[np.int64],
    subsets: NDArray[np.bool_],
    watch: Watch,
) -> NDArray[np.float64]:
    """The target with nothing there, with everything there, and for each subset; what is not there is the preprocessing mean."""
    device = subject.pixels.device
    none = np.zeros((1, subsets.shape[1]), dtype=bool)
    there = torch.from_numpy(np.concatenate([none, ~none, subsets])).to(device)
    segment = torch.from_numpy(groups).to(device).flatten()[patch_mask(subject)[0, 0]]  # [height, width]

    def run(part: slice) -> torch.Tensor:
        return subject.batch_scores(subject.pixels * there[part][:, None, segment], target, watch=watch)

    return in_batches(run, len(there)).cpu().double().numpy()


def _per_patch(shares: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float32]:
    """Segments' shares spread evenly over their patches, [rows, cols]."""
    return (shares / np.bincount(groups.ravel()))[groups].astype(np.float32)


def _halves_agree(game: _Game, count: int, groups: NDArray[np.int64]) -> float:
    """Rank correlation of the maps by the first and by the second half of the drawn subsets; both know those that are all tried."""
    tried, end = 2 * count, len(game.subsets)
    middle = (tried + end) // 2
    maps = []
    for drawn in (range(tried, middle), range(middle, end)):
        chosen = np.r_[0:tried, drawn]
        weights = game.weights[chosen] * np.where(chosen < tried, 1.0, 2.0)  # half as many stand for all
        half = _Game(game.subsets[chosen], game.values[chosen], weights, game.ends)
        maps.append(_per_patch(half.shares(), groups))
    return spearman(maps[0], maps[1])


_POSITION = 3.0  # of the longer side of the image, in standard deviations of colour: segments that are compact, but follow edges


def segments_of(subject: PreparedImage, count: int) -> NDArray[np.int64]:
    """Which segment each patch belongs to, [rows, cols]; segments are connected and count from 0.

    Neighbours are merged until `count` segments are left, each time the two whose merging costs least, by Ward's criterion
    |A| |B| / (|A| + |B|) * |mean A - mean B|^2 over the patches' mean colour and position. Nothing is drawn at random: the same
    image has the same segments.

    Source: Ward 1963, doi:10.1080/01621459.1963.10500845.
    """
    rows, cols = subject.layout.grid
    colours = patch_colours(subject).numpy()  # [rows, cols, channels]
    spread = float(colours.std(axis=(0, 1)).mean()) or 1.0
    place = np.stack(np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"), -1) / max(rows, cols)
    features = np.concatenate([colours / spread, _POSITION * place], -1)
    return merged(features.reshape(rows * cols, -1), (rows, cols), count)


def merged(means: NDArray[np.float64], grid: Grid, count: int) -> NDArray[np.int64]:
    """Merge neighbours of a grid until `count` segments are left: means [patches, features] -> segments [rows, cols]."""
    means, sizes, owner = means.copy(), np.ones(len(means)), np.arange(len(means))
    beside: list[set[int]] = [set() for _ in means]

    def cost(a: int, b: int) -> tuple[float, int, int, float, float]:
        difference = means[a] - means[b]
        price = sizes[a] * sizes[b] / (sizes[a] + sizes[b]) * float(difference @ difference)
        return price, a, b, sizes[a], sizes[b]

    for a, b in _neighbours(grid):
        beside[a].add(b)
        beside[b].add(a)
    heap = [cost(a, b) for a, b in _neighbours(grid)]
    heapq.heapify(heap)
    for _ in range(len(means) - count):
        while True:
            _price, a, b, size_a, size_b = heapq.heappop(heap)
            if (size_a, size_b) == (sizes[a], sizes[b]):  # neither has been merged since
                break
        means[a] = (sizes[a] * means[a] + sizes[b] * means[b]) / (sizes[a] + sizes[b])
        sizes[a], sizes[b] = sizes[a] + sizes[b], 0
        owner[owner == b] = a
        beside[a] = (beside[a] | beside[b]) - {a, b}
        for other in beside[a]:
            beside[other] = (beside[other] - {b}) | {a}
            heapq.heappush(heap, cost(min(a, other), max(a, other)))
    return np.unique(owner, return_inverse=True)[1].reshape(grid).astype(np.int64)


def _neighbours(grid: Grid) -> Iterator[tuple[int, int]]:
    """Pairs of patches that share an edge, the lower index first."""
    rows, cols = grid
    for patch in range(rows * cols):
        if (patch + 1) % cols:
            yield patch, patch + 1
        if patch + cols < rows * cols:
            yield patch, patch + cols
