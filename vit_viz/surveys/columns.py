"""The tables of a survey and what each column means; `survey.json` and the files themselves repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.faithfulness import RANDOM_ORDERS
from vit_viz.analyses.head_statistics import OUTLIER_FACTOR, STATISTICS

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
        Column("top_probabilities", "floats", "probability", "Their softmax over all outputs."),
        Column("margin", "float", "probability", "First probability minus second."),
        Column("label_probability", "float", "probability", "Of the label's class; missing without one."),
        Column(
            "right", "bool", "", "Whether the first class is the label's; missing without a label's class."
        ),
        Column("right_in_five", "bool", "", "Whether one of the five is; missing without a label's class."),
        Column(
            "outlier_tokens",
            "ints",
            "index of the token",
            f"Tokens whose norm is above {OUTLIER_FACTOR:g} times the median of their state, in any state.",
        ),
        Column("outlier_patches", "int", "patches", "How many of them are patches."),
        Column("first_outlier_state", "int", "state", "The first state with one; missing where none has."),
    ),
    "heads": (
        _PHOTO,
        Column("layer", "int", "index", "Layer, from 0."),
        Column("head", "int", "index", "Head, from 0."),
        Column("entropy", "float", STATISTICS["entropy"].unit, "How spread a row is, mean over all queries."),
        Column("distance", "float", STATISTICS["distance"].unit, "How far patches look, mean over patches."),
        Column(
            "prefix_mass",
            "float",
            STATISTICS["prefix_mass"].unit,
            "What of the attention of patches falls on prefix tokens.",
        ),
        Column(
            "concentration",
            "float",
            "share",
            f"1 - entropy / ln P of the head's map over its P patches: 1 where it is one patch. {_MAP}",
        ),
        Column("peak_row", "int", "patch", f"Row of the highest patch. {_MAP}"),
        Column("peak_col", "int", "patch", f"Column of the highest patch. {_MAP}"),
        Column(
            "box_share",
            "float",
            "share of the map",
            f"What falls inside the boxes; missing without boxes. {_MAP}",
        ),
        Column("peak_in_box", "bool", "", "Whether the centre of the highest patch lies in a box."),
    ),
    "methods": (
        _PHOTO,
        Column("method", "text", "", "Name of the explanation method."),
        Column(
            "target", "int", "class", "The class of `pointing` and `energy`: the label's, else the first."
        ),
        Column(
            "pointing", "bool", "", "Whether the map's highest patch lies in a box; missing without boxes."
        ),
        Column(
            "energy",
            "float",
            "share of the map",
            "Its positive mass inside the boxes; missing without boxes.",
        ),
        Column(
            "deletion",
            "float",
            "area under the curve",
            "First class's probability while the best patches go.",
        ),
        Column("insertion", "float", "area under the curve", "The same while the best patches come."),
        Column("random_deletion", "float", "area under the curve", f"Mean of {RANDOM_ORDERS} random orders."),
        Column(
            "random_insertion", "float", "area under the curve", f"Mean of {RANDOM_ORDERS} random orders."
        ),
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
        Column(
            "squares", "double", "share of the query, squared", "Sum over the maps of their squared lengths."
        ),
    ),
    "failures": (
        _PHOTO,
        Column("sentence", "text", "", "Why the photo could not be read."),
    ),
    "thumbnails": (
        _PHOTO,
        Column("width", "int", "pixels", "Width of the thumbnail."),
        Column("height", "int", "pixels", "Height of the thumbnail."),
        Column("webp", "bytes", "", "The thumbnail as a WebP file."),
    ),
}
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
