"""The surveys that the opened one can be compared with, and what the Survey tab says of a comparison, as values for JSON."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from cachetools import LRUCache, TTLCache

from vit_viz.bundled import example_survey
from vit_viz.errors import ParameterError
from vit_viz.surveys.comparison import (
    AnswerChange,
    HeadChange,
    SurveyComparison,
    compare_surveys,
    head_shape,
    unit_of,
)
from vit_viz.surveys.filters import HEAD_MEASURES
from vit_viz.surveys.names import several, shown
from vit_viz.surveys.opened import OpenedSurvey
from vit_viz.surveys.run import Survey
from vit_viz.ui.payload import rounded

Value = dict[str, Any]

EXAMPLE = "example"
"""The word that opens the bundled survey."""

KINDS = {"lost": "right to wrong", "won": "wrong to right", "other": "other class"}
"""The lists of photos that changed their answer, those that changed sides first, and what the comparison calls them."""

REFUSED_SECONDS = 10.0
_KEPT = 4
_WORDS = HEAD_MEASURES | {"peak_in_box": "peak inside the boxes"}


@dataclass(frozen=True, eq=False)
class Compared:
    """The opened survey beside another one.

    Args:
        comparison: what the comparison of the two says.
        note: why heads are not compared; "" where they are.
        changes: of the photos that changed their answer, by their number in the opened survey.
    """

    name: str
    model: str
    comparison: SurveyComparison
    note: str
    changes: Mapping[int, AnswerChange]

    def value(self) -> Value:
        """What the tab says of it."""
        words = (self.comparison.accuracy_words, self.comparison.head_words)
        accuracy, heads = (f"{said[:1].upper()}{said[1:]}." if said else "" for said in words)
        moved = [
            {key: rounded(one) if isinstance(one, float) else one for key, one in asdict(head).items()}
            | {"words": _WORDS[head.statistic], "unit": unit_of(head.statistic)}
            for head in self.comparison.moved
        ]
        return {
            "name": self.name,
            "model": self.model,
            "photos": self.comparison.photos,
            "changed": len(self.comparison.answers) if self.comparison.compares_answers else None,
            "note": self.comparison.note,
            "accuracy": accuracy,
            "heads": heads or self.note,
            "moved": moved,
        }

    def csv(self) -> str:
        """The heads that moved, a statistic a line, the largest effect first."""
        names = [*(field.name for field in fields(HeadChange)), "unit"]
        return as_csv([names, *([*astuple(one), unit_of(one.statistic)] for one in self.comparison.moved)])


def as_csv(lines: Iterable[Iterable[Any]]) -> str:
    """Lines of a table as a file."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(lines)
    return file.getvalue()


class OtherSurveys:
    """The surveys that an opened one can be compared with, by the names that links hold: never the paths of their folders.

    Args:
        folders: by name, see `named`.
        refused_for: seconds for which what was refused is not tried again; the survey may be finished after them.
    """

    def __init__(
        self, survey: OpenedSurvey, folders: Mapping[str, Path], *, refused_for: float = REFUSED_SECONDS
    ) -> None:
        self.survey = survey
        self._folders = dict(folders)
        self._lock = threading.Lock()  # one comparison at a time: both read whole surveys
        self._kept: LRUCache[str, Compared] = LRUCache(_KEPT)
        self._refused: TTLCache[str, ParameterError] = TTLCache(_KEPT, refused_for)
        self._rows = {photo: row for row, photo in enumerate(survey.texts["photo"])}

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which they were given."""
        return tuple(self._folders)

    def compared(self, name: str) -> Compared:
        """The comparison with a survey; it is kept."""
        if name not in self._folders:
            there = f"there is {several(self.names)}" if self._folders else "the app opened one survey only"
            raise ParameterError(f"No survey called {name[:60]!r} is open here to compare with: {there}.")
        with self._lock:
            if name in self._kept:
                return self._kept[name]
            if refusal := self._refused.get(name):
                raise ParameterError(str(refusal))
            try:
                self._kept[name] = kept = self._compare(name)
            except ParameterError as error:
                self._refused[name] = error
                raise
        return kept

    def _compare(self, name: str) -> Compared:
        before, after = Survey(self.survey.folder), Survey(self._folders[name])
        note, own = "", (self.survey.num_layers, self.survey.num_heads)
        try:
            if (shape := head_shape(after)) not in (own, None):
                mine, others = (f"{layers} x {heads}" for layers, heads in (own, shape))
                note = (
                    f"Heads cannot be compared: this survey's model has {mine} layers and heads, that of {name} {others}. "
                    "Their answers are compared."
                )
            comparison = compare_surveys(before, after, heads=not note)
            model, edits = (
                str(after.manifest.get("model", "")) or "a model of no name",
                after.manifest.get("edits"),
            )
        except ParameterError as error:  # by names: whoever visits may not know where folders lie
            said = str(error)
            for folder, label in ((after.folder, name), (before.folder, "this survey")):
                said = said.replace(str(folder), label).replace(shown(str(folder)), label)
            raise ParameterError(said) from error
        there = [
            one for one in comparison.answers if one.photo in self._rows
        ]  # it may have been extended since
        changes = {self._rows[one.photo]: one for one in there}
        return Compared(name, f"{model} with edits ({edits})" if edits else model, comparison, note, changes)


def named(folders: Sequence[Path]) -> dict[str, Path]:
    """Folders by the last parts of their paths, as many as tell them apart, the bundled one by the word that opens it; one that is
    given twice is there once.

    Example:
        >>> [*named([Path("base/survey"), Path("tuned/survey"), Path("tuned/survey/")])]
        ['base/survey', 'tuned/survey']
        >>> [*named([Path("/home/ada/base"), Path("/home/ada/tuned")])]
        ['base', 'tuned']
    """
    bundled = example_survey().resolve()
    parts = {
        folder: (EXAMPLE,) if folder == bundled else folder.parts
        for folder in (one.resolve() for one in folders)
    }
    count = 1
    while len({of_one[-count:] for of_one in parts.values()}) < len(parts):
        count += 1
    return {"/".join(of_one[-count:]): folder for folder, of_one in parts.items()}


def changed(one: AnswerChange) -> Value:
    """What became of a photo's answer, for its card."""
    return {
        "kind": one.kind,
        "was": one.before,
        "now": one.after,
        "confidences": rounded([one.before_probability, one.after_probability]),
    }
