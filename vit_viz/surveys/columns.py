"""The tables of a survey and what each column means; `_survey.json` and the files themselves repeat it.

A filter names columns of one row per photo, which is made of all tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.faithfulness import RANDOM_ORDERS
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR, STATISTICS
from vit_viz.analyses.methods import METHODS
from vit_viz.outputs import Output

Kind = Literal[
    "text", "int", "long", "float", "double", "bool", "bytes", "ints", "floats", "doubles", "texts"
]
"""Of a column's values; "ints", "floats", "doubles" and "texts" are lists."""

Level = Literal["photos", "heads", "methods", "maps", "failures", "thumbnails"]
Values = Sequence[Any] | NDArray[Any]
Rows = dict[str, Values]
"""A table, column by column."""
Tables = dict[Level, Rows]
Files = dict[Level, bytes]
"""Tables as the content of their Parquet files."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        unit: of its numbers; "" for what has none.
        meaning: one sentence; where a value can be missing it says when.
    """

    name: str
    kind: Kind
    unit: str
    meaning: str


_PHOTO = Column("photo", "text", "", "Path of the photo from the root of the survey; the same in all tables.")
_SHARE = "share of the model's input"
_PIXELS = "pixels of the upright photo"
_PROBABLE = "Missing where outputs are values."
_LATER = "Missing in surveys that were made before this was noted."
_MAP = "The map is what the token that the output is read from looks at, over the patches."

TABLES: dict[Level, tuple[Column, ...]] = {
    "photos": (
        _PHOTO,
        Column("sha256", "text", "", "Hash of the photo's file."),
        Column("file_size", "long", "bytes", f"Size of the photo's file. {_LATER}"),
        Column("file_time", "long", "ns since 1970", f"When that file was last changed. {_LATER}"),
        Column("height", "int", _PIXELS, "Height."),
        Column("width", "int", _PIXELS, "Width."),
        Column("region", "floats", _PIXELS, "What the model received: top, left, height, width."),
        Column("rows", "int", "patches", "Rows of patches."),
        Column("cols", "int", "patches", "Columns of patches."),
        Column("label", "text", "", "The label as it was given; missing where there is none."),
        Column("label_class", "int", "class", "The model's class of the label; missing where it has none."),
        Column("boxes", "floats", _PIXELS, "The object's boxes: left, top, right, bottom of each in turn."),
        Column("box_share", "float", _SHARE, "What the boxes cover; missing without boxes."),
        Column("top_classes", "ints", "class", "The five highest outputs, the first one first."),
        Column("top_names", "texts", "", "Their names."),
        Column("top_probabilities", "floats", "probability",
               "Their softmax over all outputs, or each one's sigmoid, as `output` of the manifest says; none of values."),
        Column("margin", "float", "probability", f"First probability minus second. {_PROBABLE}"),
        Column("label_probability", "float", "probability", f"Of the label's class; missing without one. {_PROBABLE}"),
        Column("right", "bool", "", "Whether the first class is the label's; missing without a label's class."),
        Column("right_in_five", "bool", "", "Whether one of the five is; missing without a label's class."),
        Column("outlier_tokens", "ints", "index of the token",
               f"Tokens whose norm is above {OUTLIER_FACTOR:g} times the median of their state, in any state."),
        Column("outlier_patches", "int", "patches", "How many of them are patches."),
        Column("first_outlier_state", "int", "state", "The first state with one; missing where none has."),
        Column("top_values", "floats", "value", f"Of `top_classes`, where outputs are values, no classes; else missing. {_LATER}"),
    ),
    "heads": (
        _PHOTO,
        Column("layer", "int", "index", "Layer, from 0."),
        Column("head", "int", "index", "Head, from 0."),
        Column("entropy", "float", STATISTICS["entropy"].unit, "How spread a row is, mean over all queries."),
        Column("distance", "float", STATISTICS["distance"].unit, "How far patches look, mean over patches."),
        Column("prefix_mass", "float", STATISTICS["prefix_mass"].unit, "What of the attention of patches falls on prefix tokens."),
        Column("concentration", "float", "share",
               f"1 - entropy / ln P of the head's map over its P patches: 1 where it is one patch. {_MAP}"),
        Column("peak_row", "int", "patch", f"Row of the highest patch; -1 where all are equal. {_MAP}"),
        Column("peak_col", "int", "patch", f"Column of the highest patch; -1 where all are equal. {_MAP}"),
        Column("box_share", "float", "share of the map", f"What falls inside the boxes; missing without boxes. {_MAP}"),
        Column("peak_in_box", "bool", "", "Whether the centre of the highest patch lies in a box; missing where all are equal."),
    ),
    "methods": (
        _PHOTO,
        Column("method", "text", "", "Name of the explanation method."),
        Column("target", "int", "class", "The class of `pointing` and `energy`: the label's, else the first."),
        Column("pointing", "bool", "", "Whether the map's highest patch lies in a box; missing without one, or if all are equal."),
        Column("energy", "float", "share of the map", "Its positive mass inside the boxes; missing without either."),
        Column("deletion", "float", "area under the curve", "First class's probability, or its value, while the best patches go."),
        Column("insertion", "float", "area under the curve", "The same while the best patches come."),
        Column("random_deletion", "float", "area under the curve", f"Mean of {RANDOM_ORDERS} random orders."),
        Column("random_insertion", "float", "area under the curve", f"Mean of {RANDOM_ORDERS} random orders."),
        Column("beats_deletion", "bool", "", "Whether deletion lies below the 95% band of random orders."),
        Column("beats_insertion", "bool", "", "Whether insertion lies above the 95% band of random orders."),
    ),
    "maps": (
        Column("layer", "int", "index", "Layer, from 0."),
        Column("head", "int", "index", "Head, from 0."),
        Column("rows", "int", "patches", "Rows of patches; photos of another grid have rows of their own."),
        Column("cols", "int", "patches", "Columns of patches."),
        Column("photos", "int", "photos", "How many maps are added up here."),
        Column("sum", "doubles", "share of the query", f"Sum of the maps, row by row. {_MAP}"),
        Column("squares", "double", "share of the query, squared", "Sum over the maps of their squared lengths."),
    ),
    "failures": (_PHOTO, Column("sentence", "text", "", "Why the photo could not be read.")),
    "thumbnails": (
        _PHOTO,
        Column("width", "int", "pixels", "Width of the thumbnail."),
        Column("height", "int", "pixels", "Height of the thumbnail."),
        Column("webp", "bytes", "", "The thumbnail as a WebP file."),
    ),
}  # fmt: skip
"""Each level with its columns, in their order."""


def joined(parts: Sequence[Tables]) -> Tables:
    """Tables one below the other."""
    return {
        level: {
            column.name: _stacked(
                [part[level][column.name] for part in parts if column.name in part.get(level, {})]
            )
            for column in columns
        }
        for level, columns in TABLES.items()
    }


def _stacked(parts: Sequence[Values]) -> Values:
    if parts and all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [value for part in parts for value in part]


MEASURES = ("entropy", "distance", "prefix_mass", "concentration", "box_share")
"""Of every head of every photo."""
HEAD_COLUMNS = (*MEASURES, "peak_in_box")
SCORES = ("pointing", "energy", "deletion", "insertion", "random_deletion", "random_insertion")
"""Of every method."""

_HEADS = {column.name: column for column in TABLES["heads"]}
_METHODS = {column.name: column for column in TABLES["methods"]}

_OWN = (
    Column("photo", "text", "", "Path of the photo from the root of the survey."),
    Column("label", "text", "", "The label: the model's name of its class, or as it was given where it has none."),
    Column("answer", "text", "", "The model's first class."),
    Column("is_right", "bool", "", "Whether the first class is the label's; missing without a label."),
    Column("is_right_in_five", "bool", "", "Whether one of the first five classes is."),
    Column("confidence", "float", "probability", f"Of the first class. {_PROBABLE}"),
    Column("margin", "float", "probability", f"First probability minus second. {_PROBABLE}"),
    Column("label_probability", "float", "probability", f"Of the label's class. {_PROBABLE}"),
    Column("object_share", "float", "share of the model's input", "What the boxes cover; missing without boxes."),
    Column("outside_box", "float", "share of the map",
           "What of the last layer's map, mean over its heads, falls outside the boxes."),
    Column("peaks_in_box", "float", "share of the heads", "Heads of the last layer whose highest patch lies in a box."),
    Column("outlier_patches", "int", "patches", "Patches with an outlying norm in any state."),
    Column("first_outlier_state", "int", "state", "The first state with an outlier; missing where none has."),
    Column("height", "int", "pixels", "Height of the photo."),
    Column("width", "int", "pixels", "Width of the photo."),
)  # fmt: skip


_VALUE = Column("value", "float", "value", "The largest output, where outputs are values and no classes.")


def photo_columns(methods: Sequence[str], output: Output = "softmax") -> tuple[Column, ...]:
    """Every column of a survey whose methods these are, and the outputs of whose model are of this kind."""
    over = [_column(name, f"mean_{name}", "Mean over all heads: ") for name in MEASURES]
    of_head = [_column(name, f"head_{name}", "Of the chosen head: ") for name in HEAD_COLUMNS]
    of_methods = [
        Column(
            column_of(method, score),
            _METHODS[score].kind,
            _METHODS[score].unit,
            f"{label_of(method)}: {_METHODS[score].meaning}",
        )
        for method in methods
        for score in SCORES
    ]
    return (*_OWN, *([_VALUE] if output == "value" else []), *over, *of_head, *of_methods)


def column_of(method: str, score: str) -> str:
    """What a score of a method is called in an expression."""
    return f"{re.sub(r'[^a-z0-9]+', '_', method.lower()).strip('_')}_{score}"


def label_of(method: str) -> str:
    """What a method of a survey is called where people read it; its name where this version does not have it."""
    return METHODS[method].words.label if method in METHODS else method


def photos_sql(methods: Sequence[str], output: Output = "softmax") -> str:
    """Statements that make the tables `photos` and `grids` of `raw_photos`, `heads`, `methods` and `classes`."""
    means = ", ".join(f"avg({name}) AS mean_{name}" for name in MEASURES)
    scores = ", ".join(
        f"max({score}) FILTER (method = '{_quoted(method)}') AS {column_of(method, score)}"
        for method in methods
        for score in SCORES
    )
    value = "p.top_values[1] AS value, " if output == "value" else ""
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
  {value}o.* EXCLUDE (row), s.* EXCLUDE (row)
FROM raw_photos p LEFT JOIN over_heads o USING (row) LEFT JOIN last_layer l USING (row) LEFT JOIN scores s USING (row)
LEFT JOIN classes c ON c.class = p.label_class
ORDER BY p.row;
CREATE TABLE grids AS SELECT row, rows, cols, height, width, region, sha256, file FROM raw_photos ORDER BY row;
"""


def _column(name: str, called: str, words: str) -> Column:
    column = _HEADS[name]
    return Column(called, column.kind, column.unit, f"{words}{column.meaning[0].lower()}{column.meaning[1:]}")


def _quoted(text: str) -> str:
    return text.replace("'", "''")
