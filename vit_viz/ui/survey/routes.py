"""An opened survey, and what the Survey tab fetches of it: everything that depends on the filter, as plain values for JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.bundled import example_survey
from vit_viz.errors import Cancelled, ParameterError, VitVizError
from vit_viz.images import Mode
from vit_viz.session.edits import ModelEdits
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.surveys import atlas, manifest, photo_lists, trust
from vit_viz.surveys.columns import TABLES, label_of
from vit_viz.surveys.comparison import AnswerChange
from vit_viz.surveys.filters import HEAD_MEASURES, SCORE_WORDS
from vit_viz.surveys.opened import OpenedSurvey, Rows, open_survey
from vit_viz.surveys.photo_files import PhotoFiles
from vit_viz.ui.payload import rounded
from vit_viz.ui.survey.compared import EXAMPLE, KINDS, OtherSurveys, as_csv, changed, named
from vit_viz.views import choices

Value = dict[str, Any]
Changes = Mapping[int, AnswerChange]
NO_CHANGES: Changes = MappingProxyType({})
IN_A_LIST = 12
"""Photos of a list that are shown at once, and that are added to them."""
MOST_CLASSES = 1000

_UNITS = {column.name: column for column in TABLES["heads"]}

_NO_PATCHES = "How large a patch is is not known either, so no head is called local: the app runs another model than the survey's."

OTHER_MODEL = "The app runs another model than this survey's, so photos are not lit by it; start the app with the survey's model."


class OpenedRoom:
    """An opened survey in a session, whose library its photos become, and the others that it can be compared with, by name."""

    def __init__(
        self, session: Session, survey: OpenedSurvey, others: Mapping[str, Path] = MappingProxyType({})
    ) -> None:
        self.session = session
        self.survey = survey
        self.others = OtherSurveys(survey, others)
        self.files = PhotoFiles(
            survey, lambda content: session.decode(content)
        )  # the app sets another decode later
        session.library = self.files

    @property
    def model_name(self) -> str:
        """The survey's model as the page calls it; "" where the page does not offer it."""
        name = str(self.survey.manifest.get("model", ""))
        own = choices.default_name(self.session)
        if name == own or Path(self.session.default_model).name == name:
            return own
        try:
            choices.model_reference(self.session, name)
        except ParameterError:
            return ""
        return name

    def jump_words(self, model: str, edits: str) -> str:
        """Through which model a photo opens in Look, where that is not what the page shows; "" where it is.

        Args:
            model, edits: what the page shows; "" is the session's own model.
        """
        own, survey = choices.default_name(self.session), str(self.survey.manifest.get("model", ""))
        now = model or own
        opens = self.model_name
        if not opens:
            return (
                f"The survey's model, {survey or 'of no name'}, is not offered here: a photo opens in Look through {now}, whose "
                "maps and answers are not the survey's."
            )
        its_own = self.options["edits"]
        through = f"{opens} with its edits ({its_own})" if its_own else opens
        if opens == own and not self.is_own_model:
            return f"A photo opens in Look through {opens}, whose weights are not those of the survey: maps and answers can differ."
        if now == opens and edits == its_own:
            return ""
        shown = f"{now} with edits ({edits})" if edits else now
        return f"A photo opens in Look through {through}, as it was surveyed; the page now shows {shown}."

    @property
    def is_own_model(self) -> bool:
        """Whether the session's own model is the survey's: the same weights."""
        try:
            loaded = self.session.model()
        except VitVizError:
            return False
        return loaded.provenance.weights == self.survey.manifest.get("weights")

    @property
    def patch_size(self) -> tuple[int, int] | None:
        """(height, width) of the patches of the survey's model in pixels; None where the app runs another one."""
        return self.session.model().preprocess.patch_size if self.is_own_model else None

    def subject(self, row: int, visitor: str) -> Subject:
        """A photo as the survey's model received it."""
        if not self.is_own_model:
            raise ParameterError(OTHER_MODEL)
        options = self.options
        return Subject(
            self.session.default_model,
            self.files.name_of(row),
            options["mode"],
            visitor,
            size=int(options["size"]),
            edits=ModelEdits.parse(options["edits"]),
        )

    @property
    def options(self) -> dict[str, Any]:
        """How the survey made photos the model's input, and its edits of the model, as options of a view."""
        described = self.survey.manifest
        request = described.get("request", {})
        mode = request.get("mode", "crop")
        return {
            "mode": mode if mode in get_args(Mode) else "crop",
            "size": int(request.get("size", 0) or 0),
            "edits": str(described.get("edits") or ""),
        }


def open_room(session: Session, folder: str | Path, *others: str | Path) -> OpenedRoom:
    """Open the survey in a folder, or the bundled one: "example".

    Args:
        others: what it can be compared with.
    """
    own, *rest = (example_survey() if str(one) == EXAMPLE else Path(one) for one in (folder, *others))
    for one in rest:
        manifest.read(one)
    names = {name: one for name, one in named([own, *rest]).items() if one != own.resolve()}
    return OpenedRoom(session, open_survey(own), names)


def opened_value(survey: OpenedSurvey, others: Sequence[str] = ()) -> Value:
    """What was opened, the same for every visitor.

    Args:
        others: names of the surveys that it can be compared with.
    """
    described = survey.manifest
    return {
        "others": list(others),
        "photos": survey.num_photos,
        "model": str(described.get("model", "")),
        "layers": survey.num_layers,
        "heads": survey.num_heads,
        "has_boxes": survey.has_boxes,
        "has_labels": survey.has_labels,
        "measures": [
            {"name": name, "label": label, "unit": _UNITS[name].unit, "meaning": _UNITS[name].meaning}
            for name, label in HEAD_MEASURES.items()
            if name in survey.measures
        ],
        "numbers": list(photo_lists.scatter_columns(survey)),
        "columns": [asdict(column) | {"words": survey.words[column.name]} for column in survey.columns],
    }


def chosen_value(
    files: PhotoFiles,
    where: str,
    *,
    layer: int,
    head: int,
    measure: str,
    patch_size: tuple[int, int] | None,
    changes: Changes = NO_CHANGES,
) -> Value:
    """What the tab shows of the photos that pass a filter; a filter that is none is answered by what is wrong with it.

    A refusal would be an error in the browser's console, at every key that somebody hits wrong.

    Args:
        changes: the photos that changed their answer in another survey.
    """
    survey = files.survey
    survey.checked(layer, head)
    try:
        rows = survey.select(where, layer=layer, head=head)
    except (ParameterError, Cancelled) as error:
        return {"refused": str(error)}
    is_in = np.zeros(survey.num_photos, bool)
    is_in[rows] = True
    right = survey.numbers["is_right"][rows]
    labelled = right[np.isfinite(right)]
    lists = lists_of(survey, rows, layer=layer, head=head, measure=measure, changes=changes)
    return {
        "count": len(rows),
        "labelled": len(labelled),
        "accuracy": float(labelled.mean()) if len(labelled) else None,
        "bits": base64.b64encode(np.packbits(is_in, bitorder="little").tobytes()).decode("ascii"),
        "atlas": _atlas(survey, rows, measure, patch_size),
        "lists": {which: one.cards(files, layer, head) for which, one in lists.items() if which != "changed"},
        "totals": {which: len(one.rows) for which, one in lists.items()},
        "classes": [
            asdict(line)
            | {
                "means": {
                    name: value if value is None else rounded(value) for name, value in line.means.items()
                }
            }
            for line in photo_lists.classes(survey, rows)[:MOST_CLASSES]
        ],
    }


@dataclass(frozen=True, eq=False)
class PhotoList:
    """Photos in an order, with the number of each that gave it, [photos of the survey]; None in the survey's own order.

    `changes` says of each what became of its answer in another survey; None where the list is of this one alone.
    """

    rows: Rows
    values: NDArray[np.floating[Any]] | None
    measured: str
    changes: Changes | None = None

    def cards(self, files: PhotoFiles, layer: int, head: int, begin: int = 0) -> list[Value]:
        """A page of the list."""
        page = self.rows[begin : begin + IN_A_LIST]
        return [
            card_value(files, row, layer, head, None if self.values is None else float(self.values[row]))
            | ({} if self.changes is None else {"change": changed(self.changes[row])})
            for row in page
        ]

    def csv(self, survey: OpenedSurvey) -> str:
        """The whole list, a photo a line, by its path from the root of the survey."""
        amount = "value" if "value" in survey.numbers else "confidence"
        after = [] if self.changes is None else ["change", "answer_after", "confidence_after"]
        lines = [["photo", "label", "answer", "is_right", amount, *filter(None, [self.measured]), *after]]
        for row in self.rows:
            texts = [survey.texts[name][row] for name in ("photo", "label", "answer")]
            numbers = [_truth(survey.numbers["is_right"][row]), rounded(survey.numbers[amount][row])]
            value = [] if self.values is None else [rounded(self.values[row])]
            one = self.changes and self.changes[row]
            change = [one.kind, one.after, rounded(one.after_probability)] if one else []
            lines.append([*texts, *numbers, *value, *change])
        return as_csv(lines)


def lists_of(
    survey: OpenedSurvey, rows: Rows, *, layer: int, head: int, measure: str, changes: Changes = NO_CHANGES
) -> dict[str, PhotoList]:
    """The lists of the photos that pass a filter, each whole."""
    passing = np.intersect1d(rows, np.fromiter(changes, np.int64), assume_unique=True)
    kinds: dict[str, Rows] = {
        which: passing[[changes[row].kind == kind for row in passing.tolist()]] if len(passing) else passing
        for which, kind in KINDS.items()
    }
    kinds["changed"] = np.concatenate([*kinds.values()])
    high, low = atlas.exemplars(survey, rows, layer=layer, head=head, measure=measure, count=len(rows))
    values, measured = survey.heads[measure][:, layer, head], f"{measure} of layer {layer}, head {head}"
    wrong = photo_lists.elsewhere(survey, rows, count=len(rows))
    return {
        "high": PhotoList(high, values, measured),
        "low": PhotoList(low, values, measured),
        "elsewhere": PhotoList(wrong, survey.numbers["outside_box"], "outside_box"),
        "all": PhotoList(rows, None, ""),
        **{which: PhotoList(of_kind, None, "", changes) for which, of_kind in kinds.items()},
    }


def method_value(survey: OpenedSurvey, rows: Rows) -> Value:
    """The table of methods."""
    told = asdict(trust.method_table(survey, rows))
    lines = {label_of(method): line for method, line in told["lines"].items()}
    return told | {"lines": lines, "scores": SCORE_WORDS, "resamples": trust.RESAMPLES}


def point_bytes(survey: OpenedSurvey, across: str, up: str, *, layer: int, head: int) -> bytes:
    """Where the dot of each photo is and whether its answer is right: float32 [3, photos], NaN where it is not known."""
    numbers = [photo_lists.column_of(survey, name, layer=layer, head=head) for name in (across, up)]
    return np.stack([*numbers, survey.numbers["is_right"]]).astype("<f4").tobytes()


def _atlas(survey: OpenedSurvey, rows: Rows, measure: str, patch_size: tuple[int, int] | None) -> Value:
    over_photos = atlas.atlas(survey, rows, measure)
    named = atlas.names(survey, rows, patch_size=patch_size) if len(rows) else ()
    return {
        "measure": measure,
        "unit": _UNITS[measure].unit,
        "mean": rounded(over_photos.mean),
        "spread": rounded(over_photos.spread),
        "photos": over_photos.photos,
        "names": [asdict(one) for one in named],
        "unknown": atlas.UNKNOWN if patch_size else f"{atlas.UNKNOWN} {_NO_PATCHES}",
    }


def card_value(files: PhotoFiles, row: int, layer: int, head: int, value: float | None = None) -> Value:
    """One photo in a list, and which pictures there are of it, so that no other is fetched."""
    survey = files.survey
    texts, numbers, places = survey.texts, survey.numbers, survey.places
    place = {name: float(values[row]) for name, values in places.items()}
    peak_row, peak_col = survey.peaks[row, layer, head].tolist()
    down = place["top"] + (peak_row + 0.5) / place["rows"] * place["tall"]
    across = place["left_"] + (peak_col + 0.5) / place["cols"] * place["wide"]
    return ({"number": rounded(numbers["value"][row])} if "value" in numbers else {}) | {
        "row": int(row),
        "photo": texts["photo"][row],
        "label": texts["label"][row],
        "answer": texts["answer"][row],
        "confidence": rounded(numbers["confidence"][row]),
        "right": _truth(numbers["is_right"][row]),
        "value": value if value is None else rounded(value),
        "size": [int(place["height"]), int(place["width"])],
        "peak": None if peak_row < 0 else [down / place["height"], across / place["width"]],
        "small": bool(survey.has_thumbnail[row]),
        "there": files.is_there(row),
    }


def _truth(value: float) -> bool | None:
    return bool(value) if math.isfinite(value) else None
