"""Which explanation method to trust on the photos of a survey: means with 95% intervals, and one sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.sentences import formatted
from vit_viz.surveys.columns import column_of, label_of
from vit_viz.surveys.opened import OpenedSurvey, Rows

RESAMPLES = 1000
SEED = 0
FEWEST = 20
"""Photos below which nothing is concluded."""

SCORES = {
    "pointing": "points at the object",
    "energy": "has most of its map on the object",
    "insertion": "finds what is enough for the answer",
    "deletion": "finds what the answer needs",
}
"""What a method does well where its score is high; the first that is known decides. Deletion and insertion are gains over random
orders, so that 0 is chance and higher is better."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95% interval, by the percentiles of `RESAMPLES` bootstrap samples of so many photos with a known score."""

    mean: float
    low: float
    high: float
    photos: int

    def overlaps(self, other: Estimate) -> bool:
        """Whether the intervals share a number."""
        return self.low <= other.high and other.low <= self.high

    def __str__(self) -> str:
        """In words: 0.85 (0.82 to 0.87)."""
        mean, low, high = (formatted(one, ".2f") for one in (self.mean, self.low, self.high))
        return f"{mean} ({low} to {high})"


@dataclass(frozen=True)
class MethodTable:
    """Scores of every method over some photos.

    Args:
        lines: by method, then by score of `SCORES`; what is known of no photo is left out.
        conclusion: one sentence.
    """

    lines: dict[str, dict[str, Estimate]]
    conclusion: str


def method_table(survey: OpenedSurvey, rows: Rows) -> MethodTable:
    """How well each method of a survey does on some photos.

    All methods are resampled with the same photos.

    Source: Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 13 (percentile intervals).
    """
    methods = tuple(survey.manifest.get("methods", ()))
    keys = [(method, score) for method in methods for score in SCORES]
    if not keys or not len(rows):
        return MethodTable({}, NONE if not keys else "No photo passes the filter.")
    values = np.stack([_scores(survey, method, score)[rows] for method, score in keys], -1)
    estimates = dict(zip(keys, intervals(values), strict=True))
    lines = {
        method: {score: one for score in SCORES if (one := estimates[method, score]) is not None}
        for method in methods
    }
    return MethodTable(lines, _conclusion(lines))


NONE = "This survey scored no explanation methods: make it again with --methods to compare them."


def intervals(values: NDArray[np.float64]) -> list[Estimate | None]:
    """The mean of each column of [photos, columns] over its rows that are not NaN, with the interval; None where all are."""
    is_measured = np.isfinite(values)
    filled = np.where(is_measured, values, 0.0)
    columns = np.concatenate([filled, is_measured.astype(np.float64)], -1)
    random, size, resampled = (
        np.random.default_rng(SEED),
        len(values),
        np.empty((RESAMPLES, columns.shape[1])),
    )
    for sample in range(RESAMPLES):
        weights = np.bincount(random.integers(0, size, size, dtype=np.int32), minlength=size)
        resampled[sample] = weights @ columns
    sums, counts = np.split(resampled, 2, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums / counts
        exact = filled.sum(0) / is_measured.sum(0)
    estimates: list[Estimate | None] = []
    for column, number in enumerate(is_measured.sum(0).tolist()):
        if not number:
            estimates.append(None)
            continue
        low, high = np.nanpercentile(means[:, column], (2.5, 97.5))
        estimates.append(Estimate(float(exact[column]), float(low), float(high), number))
    return estimates


def _scores(survey: OpenedSurvey, method: str, score: str) -> NDArray[np.float64]:
    numbers = survey.numbers
    if score in ("pointing", "energy"):
        return numbers[column_of(method, score)]
    gain = numbers[column_of(method, score)] - numbers[column_of(method, f"random_{score}")]
    return -gain if score == "deletion" else gain


def _conclusion(lines: dict[str, dict[str, Estimate]]) -> str:
    """What the first score that is known says; it says where intervals overlap."""
    score = next((score for score in SCORES if any(score in line for line in lines.values())), None)
    if score is None:
        return "No method has a score on these photos: none of them has a box."
    ranked = sorted(
        ((line[score], label_of(method)) for method, line in lines.items() if score in line),
        key=lambda one: -one[0].mean,
    )
    best, name = ranked[0]
    if best.photos < FEWEST:
        return f"Only {best.photos} of these photos have a score: too few to prefer a method."
    begins = f"On these {best.photos:,} photos {name} {SCORES[score]} best, {best}"
    alike = [other for estimate, other in ranked[1:] if best.overlaps(estimate)]
    if alike:
        return (
            f"{begins}, but its interval overlaps that of {_listed(alike)}: they cannot be told apart here."
        )
    rest = "no other method's interval reaches it" if len(ranked) > 1 else "no other was scored"
    return f"{begins}; {rest}."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
