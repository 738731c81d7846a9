"""How far the methods agree about one photo: rank correlations of their maps, pair by pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.correlation import highest, ranks, spearman
from vit_viz.analyses.explain import ComparisonOptions, compared_maps
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import Job, asks
from vit_viz.errors import ParameterError
from vit_viz.results import PatchMap, StateMatrix
from vit_viz.sentences import formatted

ALIKE = 0.9
"""Rank correlation from which on two maps are said to look alike."""


@dataclass(frozen=True, eq=False, repr=False)
class Agreement(StateMatrix):
    """Rank correlation of every two maps, [maps, maps], in [-1, 1]; 1 with themselves.

    Args:
        top_fifth: share of the highest fifth of the patches that two maps have in common, [maps, maps]; 0.2 by chance. Patches that
            are tied for the last places share them; NaN for a map that is the same everywhere.
        by_chance: in how large a share of all ways to slide one map around the grid it agrees at least so well, [maps, maps].
    """

    top_fifth: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    by_chance: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))

    def to_words(self) -> str:
        """Which maps look alike, and which stands apart; a map that is the same everywhere agrees with nothing, and is left out."""
        varied = [
            i for i in range(len(self.names)) if not self.top_fifth.size or not np.isnan(self.top_fifth[i, i])
        ]
        names, values = [self.names[i] for i in varied], self.values[np.ix_(varied, varied)]
        if len(names) < 2:
            return ""
        one, other = max(combinations(range(len(names)), 2), key=lambda pair: values[pair])
        alike = _alike(values)
        if len(alike) > 2:
            least = min(values[pair] for pair in combinations(alike, 2))
            *others, last = (names[i] for i in alike)
            said = f"{', '.join(others)} and {last} look alike ({formatted(least, '.2f')} or more)"
        elif alike:
            said = f"{names[one]} and {names[other]} look alike ({formatted(values[one, other], '.2f')})"
        else:
            closest = f"{names[one]} and {names[other]} ({formatted(values[one, other], '.2f')})"
            said = f"No two maps look alike: the closest are {closest}"
        if len(names) < 3:
            return f"{said}."
        means = [float(np.delete(row, i).mean()) for i, row in enumerate(values)]
        apart = int(np.argmin(means))
        mean = formatted(means[apart], ".2f")
        return f"{said}; {names[apart]} agrees least with the others ({mean} in the mean)."


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


def agreement(maps: Mapping[str, PatchMap]) -> Agreement:
    """How far the maps of several methods agree: Spearman's correlation of each two, over patches.

    Smooth maps agree more by chance than scattered ones, so beside each correlation stands a test that keeps their smoothness: one
    of the two maps is slid around the grid, over its edges, by each of the rows x cols offsets; `by_chance` is the share of those
    at which it correlates at least as well, at its own place included. All at once, by Fourier transforms of the ranks.

    Args:
        maps: by the names that they have in the matrix.

    Raises:
        ParameterError: there is none, or their grids differ.

    Source: Spearman 1904, doi:10.2307/1412159; Harris et al. 2020, arXiv:2012.06862 (shifts as a test of what is smooth).

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> maps = vv.explain("mini", sample("shapes"), methods=("relevance", "rollout"))
        >>> vv.agreement(maps).values.round(2)
        array([[1.  , 0.93],
               [0.93, 1.  ]], dtype=float32)
    """
    if len({one.grid for one in maps.values()}) != 1:
        raise ParameterError("Maps are compared on one grid of patches, and there must be one at least.")
    values = [one.values for one in maps.values()]
    count = max(1, round(values[0].size / 5))
    flat = [name for name, one in maps.items() if one.peak is None]
    # 1 at the highest fifth of each map; one that is the same everywhere has none
    tops = [highest(one.values, count) if one.peak else np.full(one.grid, np.nan) for one in maps.values()]
    return Agreement(
        np.array([[spearman(one, other) for other in values] for one in values], dtype=np.float32),
        tuple(maps),
        unit="Spearman correlation",
        value_range=(-1.0, 1.0),
        method="agreement of methods",
        provenance=next(iter(maps.values())).provenance,
        top_fifth=np.array(
            [[np.minimum(one, other).sum() / count for other in tops] for one in tops], dtype=np.float32
        ),
        by_chance=np.array(
            [[_by_chance(one, other) for other in values] for one in values], dtype=np.float32
        ),
        note=" ".join(f"{name} is the same everywhere: its correlations say nothing." for name in flat),
    )


def _by_chance(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Share of the offsets around the grid at which two maps correlate at least as well as at their own places."""
    spectra = [np.fft.fft2(ranks(values).reshape(one.shape)) for values in (one, other)]
    products = np.fft.ifft2(spectra[0] * spectra[1].conj()).real  # sums over patches, at every offset
    return float((products >= products[0, 0] - 1e-9 * one.size**3).mean())


def _agreement(job: Job, options: ComparisonOptions) -> Agreement:
    explained = compared_maps(job, options)
    compared = agreement({METHODS[name].words.label: one for name, one in explained.maps.items()})
    target = {} if job.target is None else {"target": job.target}
    missing = (f"Without {METHODS[name].words.label}: {why}" for name, why in explained.missing.items())
    return replace(
        compared,
        provenance=job.trace.provenance.with_parameters(
            method="agreement", methods=options.methods, **target
        ),
        note=" ".join([compared.note, *missing]).strip(),
    )


AGREEMENT = asks(
    _agreement,
    label="Agreement of methods",
    also_called="correlation of methods, do methods agree",
    shows="whether the methods point at the same patches: the rank correlation of every two maps.",
    hides="which of them is right: methods can agree and all be wrong.",
    formula=r"$\rho_{ab} = \mathrm{corr}(\mathrm{rank}\, m_a, \mathrm{rank}\, m_b)$ over patches",
    source="Spearman 1904, doi:10.2307/1412159",
    runs="one pass for all quick methods, and more for each slow one",
    options=ComparisonOptions,
    reads="image",
    cost="many passes",
    forwards=4,
    takes_target=True,
    takes_options=True,
)
