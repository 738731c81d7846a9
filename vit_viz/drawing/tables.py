"""Results as CSV: numbers that read back as the same 32-bit floats, under lines that say what they are."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.mosaic import HeadMaps
from vit_viz.analyses.patches import PatchPlaces, ReceivedImage
from vit_viz.drawing.record import KEY, parsed
from vit_viz.errors import ExportError
from vit_viz.results import Curve, HeadTable, PatchMap, Ranking, TokenMatrix

Row = Sequence[object]

MOST_LINES = 1 << 21
"""Of a table: more takes longer than anybody waits, and no reader of tables opens it."""


def csv_text(result: object, text: str) -> bytes:
    """A result as a table of one number a line, with its places before it.

    Lines that begin with "# " are for people and for `csv_record`: what the numbers are, then the record. Read the rest with
    numpy.genfromtxt(file, delimiter=",", names=True, dtype=None) or pandas.read_csv(file, comment="#").

    Args:
        text: the record, as `record_text` makes it.

    Raises:
        ExportError: this result is no table.
    """
    header, rows = _table(result)
    count = getattr(result, "values", np.empty(0)).size
    if count > MOST_LINES:
        raise ExportError(f"As a table this would have {count} lines; please save it as NPZ.")
    file = io.StringIO()
    for line in (*_facts(result), f"{KEY}: {text}"):
        file.write(f"# {line}\n")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue().encode()


def csv_record(file: bytes) -> dict[str, Any]:
    """The record in a file that `csv_text` wrote.

    Raises:
        ExportError: it has none.
    """
    start = f"# {KEY}: ".encode()
    line = next((line for line in file.splitlines()[:64] if line.startswith(start)), None)
    return parsed(None if line is None else line[len(start) :], "CSV")


def _facts(result: object) -> Iterable[str]:
    """What the numbers are, one line each."""
    for name in ("method", "caption", "unit", "x_label", "y_label", "note"):
        if value := getattr(result, name, ""):
            yield f"{name}: {' '.join(str(value).split())}"
    if isinstance(result, PatchMap):
        yield from (f"{where}: {json.dumps(dict(values))}" for where, values in _beside(result) if values)


def _beside(result: PatchMap) -> tuple[tuple[str, Mapping[str, float]], ...]:
    return ("prefix", result.prefix), ("suffix", result.suffix)


def _table(result: object) -> tuple[Row, Iterable[Row]]:
    if isinstance(result, PatchMap):
        return ("row", "col", "value"), _places(result.values)
    if isinstance(result, HeadTable):
        return ("layer", "head", "value"), _places(result.values)
    if isinstance(result, HeadMaps):
        return ("layer", "head", "row", "col", "value"), _places(result.values)
    if isinstance(result, PatchPlaces):
        places = np.ndindex(result.values.shape[:2])
        rectangles = ((*place, *map(_digits, result.values[place])) for place in places)
        return ("row", "col", "top", "left", "bottom", "right"), rectangles
    if isinstance(result, ReceivedImage):
        names = ("pixel_row", "pixel_col", "channel")[: result.values.ndim]
        return (*names, "value"), ((*place, int(value)) for place, value in np.ndenumerate(result.values))
    if isinstance(result, TokenMatrix):
        extra = (
            (name, key, _digits(value)) for name, row in result.extra.items() for key, value in enumerate(row)
        )
        return ("position", "other", "value"), (*_places(result.values), *extra)
    if isinstance(result, Curve):
        columns = {"x": result.x, "y": result.y}
        if result.band is not None:
            columns |= dict(zip(("low", "high"), result.band, strict=True))
        return tuple(columns), (tuple(map(_digits, row)) for row in zip(*columns.values(), strict=True))
    if isinstance(result, Ranking):
        indices = result.indices or ("",) * len(result.names)
        scores = map(_digits, result.scores)
        return ("name", "index", "score"), zip(result.names, indices, scores, strict=True)
    raise ExportError(f"A {type(result).__name__} is no table of numbers.")


def _places(values: NDArray[np.float32]) -> Iterable[Row]:
    """Each number after its indices."""
    return ((*place, _digits(value)) for place, value in np.ndenumerate(values))


def _digits(value: np.float32) -> str:
    """The shortest digits that read back as the same 32-bit float."""
    return str(np.float32(value))
