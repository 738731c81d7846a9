"""How alike two positions are by how far apart they are, and what that says in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.position_tables import GridOptions
from vit_viz.analyses.positions import position_similarity
from vit_viz.analyses.spec import Place, Question, Words
from vit_viz.checkpoints import Model
from vit_viz.geometry import Grid
from vit_viz.lazy import nn
from vit_viz.results import Curve, TokenMatrix

UNALIKE = 0.1
"""A mean cosine down to which places count as alike."""
TOLD_APART = 0.05
"""The least difference of two mean cosines of which anything is said."""

_Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class LikenessByDistance:
    """The similarity of two positions over the straight line between them, rounded to whole steps of a patch.

    Args:
        mean: over all pairs so many steps apart, [steps]; the first is of each position with itself.
        low: what a tenth of them stay below, [steps].
        high: what a tenth of them exceed, [steps].
        pairs: how many there are, each counted once, [steps].
        straight: the mean of those that lie in one row or in one column, [steps]; NaN where there are none.
        askew: the mean of all others, [steps]; NaN where there are none.
        along: the mean of two positions of one row, by the columns between them, [cols].
        down: likewise of one column, [rows].
    """

    mean: _Floats
    low: _Floats
    high: _Floats
    pairs: NDArray[np.int64]
    straight: _Floats
    askew: _Floats
    along: _Floats
    down: _Floats


def position_distance(loaded: Model | nn.Module | str | Path, *, grid: Grid | None = None) -> Curve:
    """How alike the positions of two patches are by how far apart they lie, and what that says in words.

    The mean of `position_similarity` over all pairs of patches whose distance, in a straight line, rounds to a number of steps; the
    band holds eight in ten of them.

    Args:
        loaded: a loaded model or its name, or the model itself.
        grid: (rows, cols); None means the grid that the model was made for.

    Returns:
        The unit of `position_similarity` over steps of a patch, from 0; the note says what positions tell apart.

    Raises:
        ParameterError: as `position_similarity`.

    Example:
        >>> import vit_viz as vv
        >>> vv.position_distance("mini").note.partition(":")[0]
        'Positions know rows and columns'
    """
    matrix = position_similarity(loaded, grid=grid)
    likeness = likeness_by_distance(matrix)
    rows, cols = matrix.grid
    return Curve(
        np.arange(len(likeness.mean), dtype=np.float32),
        likeness.mean,
        "steps of a patch, in a straight line",
        matrix.unit,
        "likeness of positions by distance",
        matrix.provenance.with_parameters(method="position_distance", grid=f"{rows} x {cols}"),
        band=(likeness.low, likeness.high),
        note=" ".join(filter(None, (f"{finding(likeness)}.", by_direction(likeness)))),
    )


def likeness_by_distance(matrix: TokenMatrix) -> LikenessByDistance:
    """What the similarity of positions becomes with the distance between them.

    Args:
        matrix: what `position_similarity` gave, which is symmetric.
    """
    rows, cols = matrix.grid
    tiles = matrix.values.reshape(rows, cols, rows, cols)
    straight: list[list[_Floats]] = [[] for _ in range(round(math.hypot(rows - 1, cols - 1)) + 1)]
    askew: list[list[_Floats]] = [[] for _ in straight]
    along, down = np.empty(cols, np.float32), np.empty(rows, np.float32)
    for lower in range(rows):
        band = tiles.diagonal(lower, 0, 2)  # [cols, other cols, rows - lower]
        for right in range(1 - cols if lower else 0, cols):
            values = band.diagonal(right, 0, 1)  # [rows - lower, cols - |right|]
            group = askew if lower and right else straight
            group[round(math.hypot(lower, right))].append(values.ravel())
            if not lower:
                along[right] = values.mean()
            if not right:
                down[lower] = values.mean()
    apart = [np.concatenate(one + other) for one, other in zip(straight, askew, strict=True)]
    low, high = np.array([np.percentile(values, (10, 90)) for values in apart], np.float32).T
    return LikenessByDistance(
        _means([[values] for values in apart]),
        low,
        high,
        np.array([values.size for values in apart]),
        _means(straight),
        _means(askew),
        along,
        down,
    )


def _means(groups: list[list[_Floats]]) -> _Floats:
    """The mean of each group of numbers; NaN where it has none."""
    means = [np.concatenate(group).mean(dtype=np.float64) if group else np.nan for group in groups]
    return np.array(means, np.float32)


def finding(likeness: LikenessByDistance) -> str:
    """What positions tell apart, with the numbers that say so."""
    mean = likeness.mean
    if len(mean) < 2:
        return "There is one position, and none to compare it with"
    unalike = np.flatnonzero(mean <= UNALIKE)
    far = max(1, int(unalike[0] if len(unalike) else mean.argmin()))
    near = f"neighbours are {_told(mean[1])} alike"
    if far == 1:
        return f"Positions tell each place from all others: even {near}"
    numbers = f"{near}, places {far} steps apart {_told(mean[far])}"
    if mean[1] - mean[far] < TOLD_APART:
        return f"Positions hardly tell near from far: {numbers}"
    better = (likeness.straight - likeness.askew)[2 : min(len(likeness.along), len(likeness.down))]
    knows_lines = len(better) > 0 and np.nanmean(better) > TOLD_APART
    return f"Positions {'know rows and columns' if knows_lines else 'tell near from far'}: {numbers}"


def by_direction(likeness: LikenessByDistance) -> str:
    """Whether likeness falls otherwise along a row than down a column; nothing where there is but one of either."""
    count = min(len(likeness.along), len(likeness.down))
    if count < 2:
        return ""
    apart = likeness.along[1:count] - likeness.down[1:count]
    if abs(apart.mean()) < TOLD_APART:
        return "Along a row it falls as it does down a column."
    step = 1 + int((apart * np.sign(apart.mean())).argmax())
    along, down = _told(likeness.along[step]), _told(likeness.down[step])
    how = "slowly" if apart.mean() > 0 else "quickly"
    steps = "1 step" if step == 1 else f"{step} steps"
    return f"Along a row it falls more {how} than down a column: at {steps} {along} against {down}."


def _told(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")


POSITION_DISTANCE = Question(
    name="position_distance",
    words=Words(
        label="Positions by distance",
        shows="how alike two positions are by how far apart they lie, and whether positions know rows and columns.",
        hides="which two positions: those of one distance are taken together.",
        formula=r"$\mathrm{mean}_{d(i, j) = s} \cos(p_i, p_j)$",
        source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
        class_blind=True,
    ),
    options=GridOptions,
    run=lambda job, options: position_distance(job.loaded, grid=options.grid),
    reads="model",
    place=Place("positions", {"position_part": "similarity", "position_grid": "trained"}),
)
