"""What a filter can name: one row per photo, made of the tables of a survey, with words for each column."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vit_viz.surveys.columns import TABLES, Column

MEASURES = ("entropy", "distance", "prefix_mass", "concentration", "box_share")
"""Of every head of every photo."""
HEAD_COLUMNS = (*MEASURES, "peak_in_box")
SCORES = ("pointing", "energy", "deletion", "insertion", "random_deletion", "random_insertion")
"""Of every method."""

_HEADS = {column.name: column for column in TABLES["heads"]}
_METHODS = {column.name: column for column in TABLES["methods"]}

_OWN = (
    Column("photo", "text", "", "Path of the photo from the root of the survey."),
    Column(
        "label", "text", "", "The label: the model's name of its class, or as it was given where it has none."
    ),
    Column("answer", "text", "", "The model's first class."),
    Column("is_right", "bool", "", "Whether the first class is the label's; missing without a label."),
    Column("is_right_in_five", "bool", "", "Whether one of the first five classes is."),
    Column("confidence", "float", "probability", "Of the first class."),
    Column("margin", "float", "probability", "First probability minus second."),
    Column("label_probability", "float", "probability", "Of the label's class."),
    Column(
        "object_share", "float", "share of the model's input", "What the boxes cover; missing without boxes."
    ),
    Column(
        "outside_box",
        "float",
        "share of the map",
        "What of the last layer's map, mean over its heads, falls outside the boxes.",
    ),
    Column(
        "peaks_in_box",
        "float",
        "share of the heads",
        "Heads of the last layer whose highest patch lies in a box.",
    ),
    Column("outlier_patches", "int", "patches", "Patches with an outlying norm in any state."),
    Column("first_outlier_state", "int", "state", "The first state with an outlier; missing where none has."),
    Column("height", "int", "pixels", "Height of the photo."),
    Column("width", "int", "pixels", "Width of the photo."),
)


def photo_columns(methods: Sequence[str]) -> tuple[Column, ...]:
    """Every column of a survey whose methods these are."""
    over = [_said(name, f"mean_{name}", "Mean over all heads: ") for name in MEASURES]
    of_head = [_said(name, f"head_{name}", "Of the chosen head: ") for name in HEAD_COLUMNS]
    of_methods = [
        Column(
            column_of(method, score),
            _METHODS[score].kind,
            _METHODS[score].unit,
            f"{method}: {_METHODS[score].meaning}",
        )
        for method in methods
        for score in SCORES
    ]
    return (*_OWN, *over, *of_head, *of_methods)


def column_of(method: str, score: str) -> str:
    """What a score of a method is called in an expression."""
    return f"{re.sub(r'[^a-z0-9]+', '_', method.lower()).strip('_')}_{score}"


def photos_sql(methods: Sequence[str]) -> str:
    """Statements that make the tables `photos` and `grids` of `raw_photos`, `heads`, `methods` and `classes`."""
    means = ", ".join(f"avg({name}) AS mean_{name}" for name in MEASURES)
    scores = ", ".join(
        f"max({score}) FILTER (method = '{_quoted(method)}') AS {column_of(method, score)}"
        for method in methods
        for score in SCORES
    )
    return f"""
CREATE TABLE photos AS
WITH over_heads AS (SELECT row, {means} FROM heads GROUP BY row),
last_layer AS (
  SELECT row, 1 - avg(box_share) AS outside_box, avg(peak_in_box::INTEGER) AS peaks_in_box
  FROM heads WHERE layer = (SELECT max(layer) FROM heads) GROUP BY row
),
scores AS (SELECT row{", " + scores if scores else ""} FROM methods GROUP BY row)
SELECT p.row, p.photo, coalesce(c.name, p.label) AS label, p.top_names[1] AS answer, p."right" AS is_right,
  p.right_in_five AS is_right_in_five,
  p.top_probabilities[1] AS confidence, p.margin, p.label_probability, p.box_share AS object_share,
  l.outside_box, l.peaks_in_box, p.outlier_patches, p.first_outlier_state, p.height, p.width,
  o.* EXCLUDE (row), s.* EXCLUDE (row)
FROM raw_photos p LEFT JOIN over_heads o USING (row) LEFT JOIN last_layer l USING (row) LEFT JOIN scores s USING (row)
LEFT JOIN classes c ON c.class = p.label_class
ORDER BY p.row;
CREATE TABLE grids AS SELECT row, rows, cols, height, width, region, sha256, file FROM raw_photos ORDER BY row;
"""


def _said(name: str, called: str, words: str) -> Column:
    column = _HEADS[name]
    return Column(called, column.kind, column.unit, f"{words}{column.meaning[0].lower()}{column.meaning[1:]}")


def _quoted(text: str) -> str:
    return text.replace("'", "''")
