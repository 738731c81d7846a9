"""What the Survey tab fetches: everything that depends on the filter, as plain values for JSON."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from vit_viz.analyses.head_statistics import OUTLIER_FACTOR
from vit_viz.surveys import atlas, photo_lists, trust
from vit_viz.surveys.columns import TABLES
from vit_viz.surveys.opened import OpenedSurvey, Rows
from vit_viz.ui.heads.answers import rounded

Value = dict[str, Any]
IN_A_LIST = 12
MOST_CLASSES = 1000

MEASURES = {
    "concentration": "concentration of its map",
    "entropy": "entropy",
    "distance": "distance",
    "prefix_mass": "attention on prefix tokens",
    "box_share": "map inside the boxes",
}
"""What is measured of every head, in the order of the chooser."""
_UNITS = {column.name: column for column in TABLES["heads"]}


def opened_value(survey: OpenedSurvey) -> Value:
    """What was opened, the same for every visitor."""
    described = survey.manifest
    return {
        "photos": survey.num_photos,
        "model": str(described.get("model", "")),
        "layers": survey.num_layers,
        "heads": survey.num_heads,
        "has_boxes": survey.has_boxes,
        "has_labels": survey.has_labels,
        "measures": [
            {"name": name, "label": label, "unit": _UNITS[name].unit, "meaning": _UNITS[name].meaning}
            for name, label in MEASURES.items()
            if name in survey.measures
        ],
        "numbers": list(photo_lists.scatter_columns(survey)),
        "columns": [
            {"name": one.name, "kind": one.kind, "unit": one.unit, "meaning": one.meaning}
            for one in survey.columns
        ],
        "outlier_factor": OUTLIER_FACTOR,
    }


def chosen_value(
    survey: OpenedSurvey,
    where: str,
    *,
    layer: int,
    head: int,
    measure: str,
    patch_size: tuple[int, int] | None,
) -> Value:
    """What the tab shows of the photos that pass a filter.

    Raises:
        ParameterError: the filter, the head or the measure is none.
    """
    rows = survey.select(where, layer=layer, head=head)
    is_in = np.zeros(survey.num_photos, bool)
    is_in[rows] = True
    right = survey.numbers["is_right"][rows]
    known = right[np.isfinite(right)]
    high, low = atlas.exemplars(survey, rows, layer=layer, head=head, measure=measure, count=IN_A_LIST)
    values = survey.heads[measure][:, layer, head]
    return {
        "count": len(rows),
        "labelled": len(known),
        "accuracy": float(known.mean()) if len(known) else None,
        "bits": base64.b64encode(np.packbits(is_in, bitorder="little").tobytes()).decode("ascii"),
        "atlas": _atlas(survey, rows, measure, patch_size),
        "lists": {
            "high": [_card(survey, row, layer, head, float(values[row])) for row in high],
            "low": [_card(survey, row, layer, head, float(values[row])) for row in low],
            "elsewhere": _elsewhere(survey, rows, layer, head),
            "all": [_card(survey, row, layer, head) for row in rows[:IN_A_LIST]],
        },
        "classes": [_class(line) for line in photo_lists.classes(survey, rows)[:MOST_CLASSES]],
    }


def method_value(survey: OpenedSurvey, rows: Rows) -> Value:
    """The table of methods."""
    table = trust.method_table(survey, rows)
    return {
        "lines": {
            method: {
                score: {"mean": one.mean, "low": one.low, "high": one.high, "photos": one.photos}
                for score, one in scores.items()
            }
            for method, scores in table.lines.items()
        },
        "conclusion": table.conclusion,
        "resamples": trust.RESAMPLES,
    }


def point_bytes(survey: OpenedSurvey, across: str, up: str, *, layer: int, head: int) -> bytes:
    """Where the dot of each photo is and whether its answer is right: float32 [3, photos], NaN where it is not known.

    Raises:
        ParameterError: there is no such number.
    """
    numbers = [photo_lists.column_of(survey, name, layer=layer, head=head) for name in (across, up)]
    return np.stack([*numbers, survey.numbers["is_right"]]).astype("<f4").tobytes()


def card_value(survey: OpenedSurvey, row: int, *, layer: int, head: int) -> Value:
    """One photo in a list."""
    return _card(survey, row, layer, head)


def _atlas(survey: OpenedSurvey, rows: Rows, measure: str, patch_size: tuple[int, int] | None) -> Value:
    over_photos = atlas.atlas(survey, rows, measure)
    named = atlas.names(survey, rows, patch_size=patch_size) if len(rows) else ()
    return {
        "measure": measure,
        "unit": _UNITS[measure].unit,
        "mean": rounded(over_photos.mean),
        "spread": rounded(over_photos.spread),
        "photos": over_photos.photos,
        "names": [
            {
                "name": one.name,
                "sentence": one.sentence,
                "evidence": one.evidence,
                "thin": one.is_thin,
            }
            for one in named
        ],
        "unknown": atlas.UNKNOWN if patch_size else f"{atlas.UNKNOWN} {_NO_PATCHES}",
    }


_NO_PATCHES = "How large a patch is is not known either, so no head is called local: the app runs another model than the survey's."


def _elsewhere(survey: OpenedSurvey, rows: Rows, layer: int, head: int) -> list[Value]:
    wrong = photo_lists.elsewhere(survey, rows, count=IN_A_LIST)
    outside = survey.numbers["outside_box"]
    return [_card(survey, row, layer, head, float(outside[row])) for row in wrong]


def _card(survey: OpenedSurvey, row: int, layer: int, head: int, value: float | None = None) -> Value:
    texts, numbers, places = survey.texts, survey.numbers, survey.places
    place = {name: float(values[row]) for name, values in places.items()}
    peak_row, peak_col = survey.peaks[row, layer, head].tolist()
    down = place["top"] + (peak_row + 0.5) / place["rows"] * place["tall"]
    across = place["left_"] + (peak_col + 0.5) / place["cols"] * place["wide"]
    return {
        "row": int(row),
        "photo": texts["photo"][row],
        "label": texts["label"][row],
        "answer": texts["answer"][row],
        "confidence": _number(float(numbers["confidence"][row])),
        "right": _truth(float(numbers["is_right"][row])),
        "value": None if value is None else _number(value),
        "size": [int(place["height"]), int(place["width"])],
        "peak": [down / place["height"], across / place["width"]],
    }


def _class(line: photo_lists.ClassLine) -> Value:
    means = {name: None if value is None else _number(value) for name, value in line.means.items()}
    return {"label": line.label, "photos": line.photos, "accuracy": line.accuracy, "means": means}


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if math.isfinite(value) else None


def _truth(value: float) -> bool | None:
    return bool(value) if math.isfinite(value) else None
