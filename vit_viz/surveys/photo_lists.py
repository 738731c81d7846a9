"""Photos of a survey in lists: wrong and looking elsewhere, one line per class, any two numbers beside each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.surveys.opened import OpenedSurvey, Rows

MEANS = ("confidence", "margin", "mean_entropy", "mean_concentration", "outside_box")
"""What is averaged over the photos of a class."""


@dataclass(frozen=True)
class ClassLine:
    """The photos of one label: the share that is right, and the `MEANS`, as far as they are known."""

    label: str
    photos: int
    accuracy: float | None
    means: dict[str, float | None]


def elsewhere(survey: OpenedSurvey, rows: Rows, *, count: int) -> Rows:
    """Photos whose answer is wrong and sure while the model looks outside the boxes: the highest confidence x share outside first.

    A photo without a label or a box is not in the list.
    """
    numbers = survey.numbers
    score = numbers["confidence"][rows] * numbers["outside_box"][rows]
    is_wrong = numbers["is_right"][rows] == 0
    chosen = is_wrong & np.isfinite(score)
    best: Rows = rows[chosen][np.argsort(-score[chosen], kind="stable")[:count]]
    return best


def column_of(survey: OpenedSurvey, column: str, *, layer: int = 0, head: int = 0) -> NDArray[np.float64]:
    """A number of every photo, [photos]; of a head for the columns head_..."""
    name = column.removeprefix("head_")
    if column.startswith("head_") and name in survey.measures:
        layer, head = survey.checked(layer, head)
        return survey.heads[name][:, layer, head].astype(np.float64)
    if column not in survey.numbers:
        raise ParameterError(f"The survey has no numeric column {column[:40]!r} for photos.")
    return survey.numbers[column]


def scatter_columns(survey: OpenedSurvey) -> tuple[str, ...]:
    """Numbers that are known of at least one photo, and that say more than yes or no."""
    wide = [one.name for one in survey.columns if one.kind in ("int", "float")]
    of_photos = [name for name in wide if name in survey.numbers and np.isfinite(survey.numbers[name]).any()]
    return (*of_photos, *(f"head_{name}" for name in survey.measures))


def classes(survey: OpenedSurvey, rows: Rows) -> tuple[ClassLine, ...]:
    """One line per label, the most frequent first, then by name."""
    labels = np.array(survey.texts["label"], dtype=object)[rows]
    is_labelled = labels != ""
    names, places = np.unique(labels[is_labelled].astype(str), return_inverse=True)
    chosen = rows[is_labelled]
    counts = np.bincount(places, minlength=len(names))
    right = _means(survey.numbers["is_right"][chosen], places, len(names))
    means = {name: _means(survey.numbers[name][chosen], places, len(names)) for name in MEANS}
    lines = [
        ClassLine(
            str(label),
            int(counts[at]),
            _or_none(right[at]),
            {name: _or_none(values[at]) for name, values in means.items()},
        )
        for at, label in enumerate(names)
    ]
    return tuple(sorted(lines, key=lambda line: -line.photos))  # np.unique sorted the names


def _means(values: NDArray[np.float64], places: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """The mean of each group over what is known; NaN where nothing is."""
    is_measured = np.isfinite(values)
    sums = np.bincount(places[is_measured], values[is_measured], minlength=count)
    numbers = np.bincount(places[is_measured], minlength=count)
    return np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan)


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
