"""How far two maps agree: rank correlation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
