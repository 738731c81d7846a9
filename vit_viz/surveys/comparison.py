"""Two surveys of the same photos side by side: which heads moved, which photos changed their answer.

Base against fine-tuned, before against after surgery: every photo is its own control, so that all differences are paired. The
tables are read batch by batch, in step; what is kept is a few sums per head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.outputs import Output
from vit_viz.surveys import manifest
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.run import Survey

COMPARED = ("entropy", "distance", "prefix_mass", "concentration", "box_share", "peak_in_box")
"""Statistics of the table of heads that are compared; the last one is 1 where the peak lies in a box, else 0."""

CONFIDENCE = 0.95

ROUNDING = 64 * 2.0**-23
"""What a pass in fp32 (eps = 2^-23) cannot tell, as a share of a statistic's size: 7.6e-6.

Between the two kernels of linear layers, and between one thread and two, no statistic of any head and photo moved by more than 22
eps of its size (ViT-Ti/16 and the bundled model, 40 photos); what is left is for deeper models and other devices.
"""

_OF_LARGEST_ENTROPY = ("entropy", "concentration")
"""Shares of the largest entropy, added up from numbers as large as that: their size is 1, however small they are."""

Kind = Literal["right to wrong", "wrong to right", "other class"]


@dataclass(frozen=True)
class HeadChange:
    """What became of one statistic of one head, over the photos that have it in both surveys.

    Args:
        before, after: its means in the first and in the second survey.
        difference: after - before.
        low, high: ends of the 95% interval of that mean difference, by Student's t over the photos' own differences; NaN for a
            single photo.
        effect: the mean difference in standard deviations of the photos' differences (Cohen's d of paired samples); infinite where
            all photos moved by the same, 0 where the difference is no larger than rounding.
        photos: how many.
    """

    layer: int
    head: int
    statistic: str
    before: float
    after: float
    difference: float
    low: float
    high: float
    effect: float
    photos: int

    @property
    def is_beyond_chance(self) -> bool:
        """Whether the interval leaves out 0, as that of one in twenty heads would by chance, and the difference is no rounding."""
        return (self.low > 0 or self.high < 0) and not _is_rounding(self.statistic, self.before, self.after)


@dataclass(frozen=True)
class AnswerChange:
    """A photo with another first class, or another verdict, in the second survey.

    Args:
        label: as it was given; None where there is none.
        before, after: first class of either survey, by its name.
        before_probability, after_probability: of these.
    """

    photo: str
    kind: Kind
    label: str | None
    before: str
    after: str
    before_probability: float
    after_probability: float


@dataclass(frozen=True)
class Accuracies:
    """Top-1 accuracy of both over the same labelled photos.

    Args:
        lost, won: how many photos went from right to wrong, and from wrong to right.
        p: McNemar's exact p: how likely so uneven a split of these photos is, or a more uneven one, where both models are equally
            good; 1 where no photo changed sides.
    """

    before: float
    after: float
    photos: int
    lost: int
    won: int
    p: float


@dataclass(frozen=True)
class SurveyComparison:
    """What two surveys of the same photos say beside each other; see `compare_surveys`.

    Args:
        photos: how many could be read in both.
        heads: the changes of all heads, largest effect first; () where only photos were compared.
        answers: the photos that changed their answer, in the surveys' order.
        accuracy: None without labels.
        kinds: what one output of either model is.
    """

    photos: int
    heads: tuple[HeadChange, ...]
    answers: tuple[AnswerChange, ...]
    accuracy: Accuracies | None
    kinds: tuple[Output, Output] = ("softmax", "softmax")

    @property
    def compares_answers(self) -> bool:
        """Whether both models answer with classes: values are no answers that could change."""
        return "value" not in self.kinds

    @property
    def note(self) -> str:
        """What the kinds of outputs leave out of the comparison, or that their probabilities are of two kinds; "" for one kind."""
        before, after = self.kinds
        if not self.compares_answers:
            one = f"the {'first' if before == 'value' else 'second'} model"
            whose = "both models" if before == after else one
            return f"The outputs of {whose} are values and no classes, so that answers are not compared."
        if before != after:
            return f"Probabilities before are by {before}, those after by {after}: they are not of one kind."
        return ""

    @property
    def moved(self) -> tuple[HeadChange, ...]:
        """The changes of heads that chance alone would seldom bring about."""
        return tuple(one for one in self.heads if one.is_beyond_chance)

    @property
    def accuracy_words(self) -> str:
        """How many photos changed sides, in half a sentence; "" without labels."""
        if (of := self.accuracy) is None:
            return ""
        return (
            f"top-1 {of.before:.3f} before, {of.after:.3f} after, of {of.photos:,} labelled photos: {of.lost:,} right to wrong, "
            f"{of.won:,} wrong to right (McNemar's exact p = {of.p:.2g})"
        )

    @property
    def head_words(self) -> str:
        """How many statistics of heads moved, and how many would by chance, in half a sentence; "" without heads."""
        if not self.heads:
            return ""
        return (
            f"{len(self.moved):,} of {len(self.heads):,} statistics of heads moved by more than rounding: their 95% interval over "
            f"photos leaves out 0, which chance alone would do to about {len(self.heads) / 20:.0f}"
        )


def compare_surveys(
    before: Survey | str | Path, after: Survey | str | Path, *, heads: bool = True
) -> SurveyComparison:
    """Which heads moved from one survey to another of the same photos, and which photos changed their answer.

    Args:
        before, after: the surveys, or their folders; of a base model and a fine-tuned one, or without and with edits.
        heads: whether heads are compared, which needs as many layers and heads in both models.

    Raises:
        ParameterError: the surveys are of other photos, labels or boxes; one is not finished; the models' shapes differ.

    Source: McNemar 1947, Psychometrika 12:153, in its exact form; Cohen 1988, section 2.3.5 (effect of paired samples).

    Example:
        >>> import vit_viz as vv
        >>> from tempfile import TemporaryDirectory
        >>> from vit_viz.samples import sample
        >>> with TemporaryDirectory() as folder:
        ...     sample("shapes").save(f"{folder}/shapes.png")
        ...     done = vv.survey("mini", folder, f"{folder}/survey")
        ...     same = vv.compare_surveys(done, done)
        >>> same.answers, {head.difference for head in same.heads}
        ((), {0.0})
    """
    first, second = (one if isinstance(one, Survey) else Survey(Path(one)) for one in (before, after))
    for one in (first, second):
        state = one.check()
        state.refuse_damage()
        done = state.num_photos + state.num_failures
        if done != state.wanted:
            raise ParameterError(
                f"{one.folder} is not finished: {done:,} of {state.wanted:,} photos; the same vit-viz survey goes on with it."
            )
    pairs = _paired_photos(first, second)
    if not pairs:
        raise ParameterError("None of the photos could be read in both surveys.")
    changes = _heads(first, second) if heads else ()
    # whether a class's number means the same in both
    same_classes = first.manifest["classes"] == second.manifest["classes"]
    answers = tuple(change for old, new in pairs if (change := _answer(old, new, same_classes)))
    kinds = manifest.output_of(first.manifest), manifest.output_of(second.manifest)
    return SurveyComparison(len(pairs), changes, answers, _accuracies(pairs), kinds)


# --- photos

Row = Mapping[str, Any]


def _paired_photos(first: Survey, second: Survey) -> list[tuple[Row, Row]]:
    """The rows of each photo that could be read in both, in the first one's order."""
    old, new = _rows(first), _rows(second)
    names = (old.keys() | first.failures.keys(), new.keys() | second.failures.keys())
    if names[0] != names[1]:
        only = sorted(names[0] ^ names[1])
        where, are = (first if only[0] in names[0] else second), "is" if len(only) == 1 else "are"
        raise ParameterError(
            f"These are surveys of other photos: {len(only):,} {are} in one of them only, such as {only[0]!r} in {where.folder}."
        )
    common = [(old[name], new[name]) for name in old if name in new]
    for one, other in common:
        for column, words in _THE_SAME.items():
            if one[column] != other[column]:
                raise ParameterError(
                    f"{one['photo']!r} has {words} in the two surveys, so that they cannot be compared."
                )
    return common


_THE_SAME = {"sha256": "two different files", "label": "different labels", "boxes": "different boxes"}
_READ = ("photo", "sha256", "label", "boxes", "top_classes", "top_names", "top_probabilities", "right")


def _rows(one: Survey) -> dict[str, Row]:
    return {row["photo"]: row for row in one.table("photos", _READ).to_pylist()}


def _answer(old: Row, new: Row, same_classes: bool) -> AnswerChange | None:
    """What changed in the answer for one photo; None where nothing did."""
    if not old["top_probabilities"] or not new["top_probabilities"]:
        return None
    by = "top_classes" if same_classes else "top_names"
    kind: Kind | None = "other class" if old[by][0] != new[by][0] else None
    if None not in (old["right"], new["right"]) and old["right"] != new["right"]:
        kind = "right to wrong" if old["right"] else "wrong to right"
    if kind is None:
        return None
    names = (old["top_names"][0], new["top_names"][0])
    shares = (old["top_probabilities"][0], new["top_probabilities"][0])
    return AnswerChange(old["photo"], kind, old["label"], *names, *shares)


def _accuracies(pairs: list[tuple[Row, Row]]) -> Accuracies | None:
    labelled = [
        (old["right"], new["right"]) for old, new in pairs if None not in (old["right"], new["right"])
    ]
    if not labelled:
        return None
    lost, won = labelled.count((True, False)), labelled.count((False, True))
    shares = [sum(one[side] for one in labelled) / len(labelled) for side in (0, 1)]
    return Accuracies(shares[0], shares[1], len(labelled), lost, won, mcnemar(lost, won))


def mcnemar(lost: int, won: int) -> float:
    """Two-sided exact p of a split of photos that changed sides, each as likely one way as the other."""
    from scipy.special import bdtr  # a start need not wait for it

    return min(1.0, 2 * float(bdtr(min(lost, won), lost + won, 0.5)))


# --- heads


def _heads(first: Survey, second: Survey) -> tuple[HeadChange, ...]:
    """All heads and statistics, the largest effect first; what no photo has is left out."""
    sums: _Sums | None = None
    for old, new, shape in _in_step(first, second):
        sums = sums or _Sums(shape)
        sums.add(old, new)
    changes = () if sums is None else sums.changes()
    return tuple(
        sorted(changes, key=lambda one: (-abs(one.effect), -abs(one.difference), one.layer, one.head))
    )


Values = NDArray[np.float64]
Shape = tuple[int, int]


def _in_step(first: Survey, second: Survey) -> Iterator[tuple[Values, Values, Shape]]:
    """The statistics of photos of both, [photos, layers * heads, statistics], a batch at a time.

    Batches may hold different photos, so that what has no counterpart yet waits for it; a photo that one of them could not read
    waits until the end."""
    waiting: tuple[dict[str, Values], dict[str, Values]] = ({}, {})
    shapes: set[Shape] = set()
    for parts in zip_longest(_batches(first), _batches(second), fillvalue=None):
        for held, part in zip(waiting, parts, strict=True):
            if part is not None:
                held.update(part[0])
                shapes.add(part[1])
        if len(shapes) > 1:
            sizes = " and ".join(f"{layers} x {heads}" for layers, heads in sorted(shapes))
            raise ParameterError(
                f"The models have {sizes} layers and heads, so only their photos can be compared: heads=False or --photos-only."
            )
        names = [name for name in waiting[0] if name in waiting[1]]
        if names:
            old, new = (np.stack([held.pop(name) for name in names]) for held in waiting)
            yield old, new, next(iter(shapes))


def head_shape(one: Survey) -> Shape | None:
    """(layers, heads) of the model of a survey; None where it has no photos."""
    return next((shape for _photos, shape in _batches(one)), None)


def _batches(one: Survey) -> Iterator[tuple[dict[str, Values], Shape]]:
    """({photo: its statistics}, (layers, heads)) of each batch that has photos."""
    from vit_viz.surveys import parquet

    for number in sorted(parquet.batches(one.folder)):
        table = parquet.table_of(one.folder, number, "heads", ("photo", "layer", "head", *COMPARED))
        if not table.num_rows:
            continue
        layers, heads = (int(table[name].to_numpy().max()) + 1 for name in ("layer", "head"))
        columns = [table[name].cast("double").to_numpy() for name in COMPARED]
        values = np.stack(columns, -1).reshape(-1, layers * heads, len(COMPARED))
        names = table["photo"].to_pylist()[:: layers * heads]
        yield dict(zip(names, values, strict=True)), (layers, heads)


class _Sums:
    """Count, means and squared deviations of the photos' differences, added up batch by batch without losing digits.

    Source: Chan, Golub & LeVeque 1983, The American Statistician 37:242, formula (2.1).
    """

    def __init__(self, shape: Shape) -> None:
        self._heads = shape[1]
        size = (math.prod(shape), len(COMPARED))
        self._count, self._before, self._after = (np.zeros(size) for _ in range(3))
        self._mean, self._squares = np.zeros(size), np.zeros(size)

    def add(self, old: Values, new: Values) -> None:
        """Add photos, [photos, layers * heads, statistics]; NaN where one has no such value."""
        there = ~np.isnan(old) & ~np.isnan(new)
        count, differences = there.sum(0), np.where(there, new - old, 0.0)
        mean = differences.sum(0) / np.maximum(count, 1)
        squares = np.square(np.where(there, differences - mean, 0.0)).sum(0)
        total = np.maximum(self._count + count, 1)
        gap = mean - self._mean
        self._squares += squares + np.square(gap) * self._count * count / total
        self._mean += gap * count / total
        self._count += count
        self._before += np.where(there, old, 0.0).sum(0)
        self._after += np.where(there, new, 0.0).sum(0)

    def changes(self) -> Iterator[HeadChange]:
        """One change for each head and statistic that some photo has: its interval is by Student's t."""
        from scipy.special import stdtrit  # a start need not wait for it

        for place, column in zip(*np.nonzero(self._count), strict=True):
            count, mean = int(self._count[place, column]), float(self._mean[place, column])
            before, after = (float(sums[place, column]) / count for sums in (self._before, self._after))
            spread = math.sqrt(self._squares[place, column] / (count - 1)) if count > 1 else math.nan
            reach = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * spread / math.sqrt(count)
            layer, head = divmod(int(place), self._heads)
            name, effect = COMPARED[column], 0.0
            if mean and not _is_rounding(name, before, after):
                effect = mean / spread if spread > 0 else math.copysign(math.inf, mean)
            yield HeadChange(
                layer, head, name, before, after, mean, mean - reach, mean + reach, effect, count
            )


def _is_rounding(statistic: str, before: float, after: float) -> bool:
    """Whether two means of a statistic differ by no more than its arithmetic can tell."""
    size = 1.0 if statistic in _OF_LARGEST_ENTROPY else max(abs(before), abs(after))
    return abs(after - before) <= ROUNDING * size


def unit_of(statistic: str) -> str:
    """What a statistic is measured in."""
    unit = {column.name: column.unit for column in TABLES["heads"]}[statistic]
    return unit or "share of the photos"
