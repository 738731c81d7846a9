"""The heads of a model over many photos: each measure with its spread, a name with its evidence, and a head's exemplars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.head_names import MARGIN, RULES
from vit_viz.errors import ParameterError
from vit_viz.sentences import formatted
from vit_viz.surveys.opened import OpenedSurvey, Rows

UNKNOWN = (
    "The survey does not hold what tells a class token from registers, a neighbour from what is merely near, or alike content: no "
    "head is called class-token reader, sink, neighbour or content here; the Heads tab says that of one photo."
)


@dataclass(frozen=True, eq=False)
class Atlas:
    """A measure of every head over some photos.

    Args:
        mean, spread: mean and standard deviation over the photos, [layers, heads]; NaN where it is known of none.
        photos: of how many photos it is known.
    """

    measure: str
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]
    photos: int


@dataclass(frozen=True)
class EvidencedName:
    """What a head is called over many photos.

    Args:
        name: "prefix reader", "local", "global", "positional" or "depends on the photo"; "unnamed" where nothing is known.
        sentence: the number that decided, with its threshold.
        evidence: share of the photos that would give this name alone; None where the name is of all photos together.
        is_thin: whether a threshold moved by a tenth would give another name.
    """

    layer: int
    head: int
    name: str
    sentence: str
    evidence: float | None
    is_thin: bool


def atlas(survey: OpenedSurvey, rows: Rows, measure: str) -> Atlas:
    """Mean and spread of a measure over some photos."""
    values = measured(survey, measure)[rows].astype(np.float64)
    mean = _mean(values)
    spread = np.sqrt(_mean(np.square(values - mean)))
    return Atlas(measure, mean, spread, int(np.isfinite(values[:, 0, 0]).sum()) if len(values) else 0)


def measured(survey: OpenedSurvey, measure: str) -> NDArray[np.float32]:
    """A measure of every head of every photo, [photos, layers, heads]."""
    if measure not in survey.measures:
        raise ParameterError(f"The survey measures {', '.join(survey.measures)}, not {measure[:40]!r}.")
    return survey.heads[measure]


def exemplars(
    survey: OpenedSurvey, rows: Rows, *, layer: int, head: int, measure: str, count: int
) -> tuple[Rows, Rows]:
    """The photos on which a measure of a head is highest, and those on which it is lowest, the most extreme first."""
    survey.checked(layer, head)
    values = measured(survey, measure)[rows, layer, head]
    of_measured = rows[np.isfinite(values)]
    order = np.argsort(values[np.isfinite(values)], kind="stable")
    return of_measured[order[::-1][:count]], of_measured[order[:count]]


def positional_shares(survey: OpenedSurvey) -> NDArray[np.float64]:
    """What of the variance of a head's maps, over patches and photos, the place alone explains, [layers, heads].

    With M the mean map, m the map of one photo, P patches and u the mean of all: (|M|^2 - P u^2) / (mean |m|^2 - P u^2). Over all
    photos of the survey, whatever is filtered: sums of maps are kept, not the maps. Photos of several grids count by their number.

    Source: METHODS section 11: a head is positional where its mean map explains most of the variance of its maps over photos.
    """
    shape = (survey.num_layers, survey.num_heads)
    shares, counts = np.zeros(shape), np.zeros(shape)
    for (layer, head, _rows, _cols), (photos, total, squares) in survey.map_sums.items():
        if photos < 2:
            continue
        mean = total / photos
        flat = mean.mean() ** 2 * len(mean)
        whole = squares / photos - flat
        explained = (float(mean @ mean) - flat) / whole if whole > 1e-12 else 0.0
        shares[layer, head] += photos * explained
        counts[layer, head] += photos
    return np.where(counts > 0, shares / np.maximum(counts, 1), np.nan)


def names(
    survey: OpenedSurvey, rows: Rows, *, patch_size: tuple[int, int] | None = None
) -> tuple[EvidencedName, ...]:
    """A name for every head by the rules of `vit_viz.analyses.head_names`, as far as a survey's measures decide them.

    Args:
        patch_size: (height, width) of the model's patches in pixels; None where it is not known, and no head is called local.
    """
    positional = positional_shares(survey)
    numbers: dict[str, NDArray[np.float64]] = {
        "prefix": survey.heads["prefix_mass"][rows].astype(np.float64),
        "distance": _distances(survey, rows, patch_size),
        "unevenness": 1 - survey.heads["entropy"][rows].astype(np.float64),
    }
    means = {name: _mean(values) for name, values in numbers.items()} | {"positional": positional}
    return tuple(
        _named(layer, head, {name: float(one[layer, head]) for name, one in means.items()}, numbers)
        for layer, head in np.ndindex(survey.num_layers, survey.num_heads)
    )


@dataclass(frozen=True)
class _Rule:
    name: str
    number: str
    bound: float
    is_least: bool
    words: str

    def holds(self, value: float, slack: float = 0.0) -> bool:
        """Whether a number passes, with its threshold moved by a share of itself: above 0 makes it easier; NaN never does."""
        return value >= self.bound * (1 - slack) if self.is_least else value <= self.bound * (1 + slack)


_OF_ALL = "of the variance of its output's maps over all photos is explained by the place"
_KNOWN = {rule.name: rule for rule in RULES}
_READER = _KNOWN["class-token reader"].at_least["class token"]
_WORDS = "of the attention of patches falls on tokens that are no patches"
_RULES = (
    _Rule("prefix reader", "prefix", _READER, True, _WORDS),
    _Rule(
        "local",
        "distance",
        _KNOWN["local"].at_most["distance"],
        False,
        "of the largest distance between patches",
    ),
    _Rule("global", "unevenness", _KNOWN["global"].at_most["unevenness"], False, "from even attention"),
    _Rule("positional", "positional", _KNOWN["positional"].at_least["positional"], True, _OF_ALL),
)
"""In the order in which they are tried, with the thresholds of the Heads tab."""


def _first(numbers: Mapping[str, float], slack: float = 0.0) -> _Rule | None:
    return next((rule for rule in _RULES if rule.holds(numbers[rule.number], slack)), None)


def _named(
    layer: int, head: int, means: Mapping[str, float], numbers: Mapping[str, NDArray[np.float64]]
) -> EvidencedName:
    rule = _first(means)
    is_thin = any(_first(means, slack) is not rule for slack in (-MARGIN, MARGIN))
    if rule is None:
        share = means["positional"]
        if not np.isfinite(share):
            return EvidencedName(layer, head, "unnamed", "Too few photos to tell.", None, True)
        return EvidencedName(
            layer, head, "depends on the photo", f"Only {share:.2f} {_OF_ALL}.", None, is_thin
        )
    compared = "at least" if rule.is_least else "at most"
    sentence = f"{formatted(means[rule.number], '.2f')} {rule.words} ({compared} {rule.bound:g})."
    if rule.number not in numbers:
        return EvidencedName(layer, head, rule.name, sentence, None, is_thin)
    values = numbers[rule.number][:, layer, head]
    measured = values[np.isfinite(values)]
    passed = measured >= rule.bound if rule.is_least else measured <= rule.bound
    return EvidencedName(layer, head, rule.name, sentence, float(passed.mean()), is_thin)


def _distances(survey: OpenedSurvey, rows: Rows, patch_size: tuple[int, int] | None) -> NDArray[np.float64]:
    """Distances as shares of the diagonal between the outermost patches, as the rules have them."""
    pixels = survey.heads["distance"][rows].astype(np.float64)
    if patch_size is None:
        return np.full_like(pixels, np.nan)
    tall, wide = (
        (survey.places[side][rows] - 1) * one for side, one in zip(("rows", "cols"), patch_size, strict=True)
    )
    return pixels / np.maximum(np.hypot(tall, wide), 1e-9)[:, None, None]


def _mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over the photos of which a number is known; NaN where that is none."""
    is_measured = ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # 0 / 0
        mean: NDArray[np.float64] = values.sum(0, where=is_measured) / is_measured.sum(0)
    return mean
