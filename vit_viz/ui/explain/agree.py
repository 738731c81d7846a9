"""Which methods agree on a photo, as the Explain tab shows it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.agreement import agreement
from vit_viz.analyses.methods import METHODS
from vit_viz.errors import VitVizError
from vit_viz.results import PatchMap
from vit_viz.sentences import formatted
from vit_viz.ui.explain.questions import Questions

ALIKE = 0.9
"""Rank correlation from which on two maps are said to look alike."""


def value(questions: Questions) -> dict[str, Any] | None:
    """The rank correlations of all maps that are at hand, and what they say; None where there are not two."""
    maps = maps_at_hand(questions)
    if len(maps) < 2:
        return None
    matrix = agreement(maps)
    return {
        "names": list(matrix.names),
        "values": [[float(f"{one:.3g}") for one in row] for row in matrix.values.tolist()],
        "words": sentence(list(matrix.names), matrix.values),
    }


def maps_at_hand(questions: Questions) -> dict[str, PatchMap]:
    """The maps of the cards that need not be waited for, by the names of their methods."""
    session, maps = questions.page.session, dict[str, PatchMap]()
    for method in METHODS.cards:
        request = questions.request(method)
        if method.is_slow and not session.keeps(request):
            continue
        try:
            explained: PatchMap = session.run(request)
        except VitVizError:
            continue  # its card says why
        if explained.peak is not None:  # one that is the same everywhere agrees with nothing
            maps[method.words.label] = explained
    return maps


def sentence(names: list[str], values: NDArray[np.float32]) -> str:
    """Which maps look alike, and which stands apart, with the numbers."""
    pairs = list(combinations(range(len(names)), 2))
    one, other = max(pairs, key=lambda pair: values[pair])
    alike = _alike(values)
    if len(alike) > 2:
        least = min(values[pair] for pair in combinations(alike, 2))
        *others, last = (names[i] for i in alike)
        said = f"{', '.join(others)} and {last} look alike ({formatted(least, '.2f')} or more)"
    elif alike:
        said = f"{names[one]} and {names[other]} look alike ({formatted(values[one, other], '.2f')})"
    else:
        said = f"No two maps look alike: the closest are {names[one]} and {names[other]} ({formatted(values[one, other], '.2f')})"
    if len(names) < 3:
        return f"{said}."
    means = [float(np.delete(row, i).mean()) for i, row in enumerate(values)]
    apart = int(np.argmin(means))
    return (
        f"{said}; {names[apart]} agrees least with the others ({formatted(means[apart], '.2f')} in the mean)."
    )


def _alike(values: NDArray[np.float32]) -> list[int]:
    """The most maps of which each two look alike, grown from each map in the order of likeness."""
    best: list[int] = []
    for first in range(len(values)):
        group = [first]
        for other in np.argsort(-values[first], kind="stable").tolist():
            if other not in group and all(values[other, one] >= ALIKE for one in group):
                group.append(other)
        best = max(best, sorted(group), key=len)
    return best if len(best) > 1 else []
