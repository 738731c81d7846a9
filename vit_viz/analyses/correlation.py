"""How far two maps agree: rank correlation, and class sensitivity and stability, which are made of it; and a table of maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.results import PatchMap


def map_correlation(one: PatchMap, other: PatchMap) -> float:
    """Spearman correlation of two maps of one method; exactly 1 for class-blind methods, whose maps are the same."""
    if one.class_blind and other.class_blind and one.method == other.method:
        return 1.0
    return spearman(one.values, other.values)


def spearman(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Rank correlation in [-1, 1]; equal values share their rank. Exactly 1 for equal maps; 0 where only one is constant."""
    from scipy.stats import rankdata  # takes half a second, which no start should wait for

    if np.array_equal(one, other):
        return 1.0
    ranks = [rankdata(values.ravel()) for values in (one, other)]
    centred = [rank - rank.mean() for rank in ranks]
    norm = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum()) / norm if norm > 0 else 0.0


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


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far several maps of one image agree, pair by pair; 1 with themselves.

    Args:
        names: of the maps.
        spearman: rank correlation, [maps, maps].
        top_fifth: share of the highest fifth of the patches that two maps have in common, [maps, maps]; 0.2 by chance.
    """

    names: tuple[str, ...]
    spearman: NDArray[np.float32]
    top_fifth: NDArray[np.float32]


def agreement(maps: Mapping[str, PatchMap]) -> Agreement:
    """How far the maps of several methods agree.

    Raises:
        ParameterError: there is none, or their grids differ.
    """
    if len({one.grid for one in maps.values()}) != 1:
        raise ParameterError("Maps are compared on one grid of patches, and there must be one at least.")
    values = [one.values for one in maps.values()]
    tops = np.stack([_top_fifth(one) for one in values]).astype(np.float32)
    return Agreement(
        tuple(maps),
        np.array([[spearman(one, other) for other in values] for one in values], dtype=np.float32),
        tops @ tops.T / tops[0].sum(),
    )


def _top_fifth(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which patches have the highest values, [patches]; of equal ones the first."""
    count = max(1, round(values.size / 5))
    chosen = np.zeros(values.size, dtype=bool)
    chosen[np.argsort(-values.ravel(), kind="stable")[:count]] = True
    return chosen
