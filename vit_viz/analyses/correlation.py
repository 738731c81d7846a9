"""How far two maps agree: rank correlation, and class sensitivity and stability, which are made of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vit_viz.results import PatchMap


def map_correlation(one: PatchMap, other: PatchMap) -> float:
    """Spearman correlation of two maps of one method; exactly 1 for class-blind methods, whose maps are the same."""
    if one.class_blind and other.class_blind and one.method == other.method:
        return 1.0
    return spearman(one.values, other.values)


def spearman(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Rank correlation in [-1, 1]; equal values share their rank. Exactly 1 for equal maps; 0 where only one is constant."""
    if np.array_equal(one, other):
        return 1.0
    centred = [ranks(values) for values in (one, other)]
    norm = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / norm if norm > 0 else 0.0


def ranks(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """The rank of each value less the mean rank, [values]; equal values share theirs."""
    from scipy.stats import rankdata  # takes half a second, which no start should wait for

    rank: NDArray[np.float64] = rankdata(values.ravel())
    rank -= rank.mean()
    return rank


def class_sensitivity_of(first: PatchMap, second: PatchMap) -> float:
    """How much a map depends on the class, in [0, 2]: 1 - Spearman correlation of the maps for two classes.

    Exactly 0 for class-blind methods.
    """
    return 1 - map_correlation(first, second)


def mirror_stability_of(original: PatchMap, mirrored: PatchMap) -> float:
    """How far a map stays when the image is mirrored, in [-1, 1].

    Spearman correlation with the map of the mirrored image, mirrored back.
    """
    return spearman(original.values, mirrored.values[:, ::-1])
