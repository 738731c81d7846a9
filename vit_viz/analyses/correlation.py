"""How far two maps agree: rank correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.results import PatchMap


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


def check_ranks(patch_map: PatchMap) -> None:
    """Raise ParameterError where a map is the same everywhere, so that there is no order to test or to compare."""
    if patch_map.peak is None:
        raise ParameterError(
            "This map is the same everywhere: it has no peak, and ranks no patch before another."
        )


def highest(values: NDArray[np.floating], count: int) -> NDArray[np.float64]:
    """1 for each of the highest `count` values and 0 for the others, [values]; those tied for the last places share them."""
    last = np.partition(values.ravel(), -count)[-count]
    above, tied = values > last, values == last
    share: NDArray[np.float64] = np.where(tied, (count - above.sum()) / tied.sum(), above)
    return share
