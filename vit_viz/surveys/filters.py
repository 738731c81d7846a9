"""Expressions that a visitor may filter photos by: comparisons, arithmetic and a few functions of listed columns, nothing else.

DuckDB's own parser reads the text; what it reads there is allowed by name, part by part, so that whatever a newer DuckDB learns is
refused until somebody allows it. The database has no access to files or settings besides (vit_viz.surveys.opened).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.sentences import did_you_mean
from vit_viz.surveys.columns import MEASURES, column_of, label_of

LONGEST = 4000
"""Characters of an expression."""
MOST_CORNERS = 48
"""Corners of a polygon; of all polygons of an expression:"""
MOST_CORNERS_IN_ALL = 2 * MOST_CORNERS
HEAD_PREFIX = "head_"

_KINDS = frozenset(
    {
        *("CONJUNCTION", "COMPARISON", "BETWEEN", "OPERATOR", "CONSTANT"),
        *("COLUMN_REF", "FUNCTION", "CAST", "CASE", "TYPE"),
    }
)
_FUNCTIONS = frozenset(
    {
        *("+", "-", "*", "/", "//", "%", "||", "~~", "!~~", "~~*", "!~~*"),
        *("abs", "round", "floor", "ceil", "sqrt", "ln", "log10", "exp", "least", "greatest", "isnan"),
        *("lower", "upper", "length", "contains", "starts_with", "ends_with", "prefix", "suffix"),
    }
)
_TYPES = frozenset({"boolean", "integer", "bigint", "float", "double", "varchar", "decimal"})
_INSIDE = re.compile(r"\binside\s*\(\s*([a-z]\w*)\s*,\s*([a-z]\w*)\s*,\s*'([-+\d.e ,]*)'\s*\)", re.IGNORECASE)

_TOO_DEEP = "This filter is nested too deeply; please simplify it."

Read = Callable[[str], str]
"""A query as DuckDB reads it, as JSON."""


def checked(where: str, read: Read, columns: Mapping[str, Sequence[str]]) -> str:
    """An expression that may be evaluated.

    Args:
        where: as it was written; `inside(x, y, '0 0, 1 0, 1 1')` stands for a point inside a polygon.
        columns: that it may name, each with the words for it on the screen.
    """
    text = where.strip()
    if len(text) > LONGEST:
        raise ParameterError(f"A filter has at most {LONGEST} characters.")
    if ";" in text or not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise ParameterError("A filter is one expression, as after WHERE in SQL, without a semicolon.")
    corners = sum(match[3].count(",") + 1 for match in _INSIDE.finditer(text))
    if corners > MOST_CORNERS_IN_ALL:
        raise ParameterError(f"The polygons of a filter have at most {MOST_CORNERS_IN_ALL} corners in all.")
    text = _INSIDE.sub(_polygon, text)
    try:
        reading = json.loads(read(f"SELECT row FROM photos WHERE ({text}\n)"))
    except RecursionError as error:
        raise ParameterError(_TOO_DEEP) from error
    if "depth" in str(reading.get("error_message", "")):
        raise ParameterError(_TOO_DEEP)
    if reading.get("error"):
        raise ParameterError(f"This filter is no expression of SQL: {_broken(reading, where.strip())}")
    condition = _condition(reading["statements"])
    for part in _parts(condition):
        _check(part, columns)
    return text


def _broken(reading: dict[str, Any], text: str) -> str:
    """Where an expression breaks off; the bracket that DuckDB names then is ours."""
    message = first_line(str(reading.get("error_message", "")))
    if message.endswith('near ")"') and text.count("(") >= text.count(")"):
        return f"it ends too early, after {text[-40:]!r}."
    return f"{message}."


def first_line(message: str) -> str:
    """What DuckDB says is wrong, in one line, without its own heading."""
    line = next((line for line in message.splitlines() if line.strip()), "it failed").strip()
    return re.sub(r"^\w+ Error: ", "", line)[:200]


def _condition(statements: list[Any]) -> dict[str, Any]:
    """The expression of a filter, where there is nothing else than that."""
    expected = ["select_list", "from_table", "where_clause", "type", "aggregate_handling"]
    query = statements[0]["node"] if len(statements) == 1 else {}
    others = [
        name for name, value in query.items() if name not in expected and value not in (None, [], {"map": []})
    ]
    table = query.get("from_table") or {}
    if others or query.get("type") != "SELECT_NODE" or table.get("type") != "BASE_TABLE":
        raise ParameterError("A filter is one expression, as after WHERE in SQL, and nothing else.")
    condition: dict[str, Any] = query["where_clause"]
    return condition


def _parts(condition: Any) -> Iterator[dict[str, Any]]:
    """All parts of an expression that have a kind."""
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if "class" in one:
                yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _check(part: dict[str, Any], columns: Mapping[str, Sequence[str]]) -> None:
    kind = str(part["class"])
    if kind == "SUBQUERY":
        raise ParameterError("A filter cannot hold a query of its own (SELECT, FROM).")
    if kind not in _KINDS:
        raise ParameterError(
            f"A filter cannot hold {kind.lower().replace('_', ' ')}s: it compares columns of one photo."
        )
    if kind == "COLUMN_REF":
        names: list[str] = part["column_names"]
        if len(names) != 1 or names[0].lower() not in (*columns, "row"):
            wrong = ".".join(names)[:60]
            words_allowed = [words for name, many in columns.items() for words in (name, *many)]
            advice = did_you_mean(wrong.lower(), words_allowed, "the list of columns says which there are")
            raise ParameterError(f"There is no column {wrong!r} to filter by{advice}")
    elif kind == "FUNCTION" and (
        part["function_name"] not in _FUNCTIONS or part.get("schema") or part.get("catalog")
    ):
        allowed = ", ".join(sorted(name for name in _FUNCTIONS if name.isalnum()))
        raise ParameterError(
            f"A filter cannot use the function {part['function_name'][:40]!r}; it can use {allowed}."
        )
    elif kind == "TYPE" and str(part.get("type_name", "")).lower() not in _TYPES:
        raise ParameterError(f"A filter cannot use the type {str(part.get('type_name', ''))[:40]!r}.")
    elif kind == "CAST" and "type_expr" not in part:  # of an older DuckDB, where a type is no part of its own
        name = str(part.get("cast_type", {}).get("id", "")).lower()
        if name not in _TYPES:
            raise ParameterError(f"A filter cannot use the type {name[:40]!r}.")


def _polygon(match: re.Match[str]) -> str:
    """A point inside a polygon, by how often a ray from it crosses the border."""
    x, y, text = match.groups()
    try:
        corners = [(float(across), float(up)) for across, up in (pair.split() for pair in text.split(","))]
    except ValueError as error:
        raise ParameterError(
            "The corners of inside(x, y, '...') are pairs of numbers: '0 0, 1 0, 1 1'."
        ) from error
    if not 3 <= len(corners) <= MOST_CORNERS:
        raise ParameterError(f"inside(x, y, '...') takes 3 to {MOST_CORNERS} corners, not {len(corners)}.")
    edges = zip(corners, (*corners[1:], corners[0]), strict=True)
    crossed = [
        f"CAST((({y} < {y1!r}) <> ({y} < {y2!r})) AND {x} < {(x2 - x1) / (y2 - y1)!r} * ({y} - ({y1!r})) + ({x1!r}) AS INTEGER)"
        for (x1, y1), (x2, y2) in edges
        if y1 != y2
    ]
    return f"(({' + '.join(crossed) or '0'}) % 2 = 1)"


# --- columns as the Survey tab calls them: `mean entropy > 0.8`


HEAD_MEASURES = {
    "concentration": "concentration of its map",
    "entropy": "entropy",
    "distance": "distance",
    "prefix_mass": "attention on prefix tokens",
    "box_share": "map inside the boxes",
}
"""What is measured of every head, in the order of the chooser."""

SCORE_WORDS = {
    "pointing": "points at the object",
    "energy": "map on the object",
    "insertion": "insertion over random",
    "deletion": "deletion below random",
}
"""The headings of the table of methods. The last two are differences of two columns, which have names of their own."""

_QUOTED = re.compile(r"'(?:[^']|'')*'")


def words_of(columns: Iterable[str], methods: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """What each column is called on the screen, the words of the tables and choosers first; by its name in the survey."""
    words = {name: [name.replace("_", " ")] for name in columns}
    words.get("is_right", []).append("right")
    for name in MEASURES:
        words.get(f"head_{name}", []).append(HEAD_MEASURES[name])
    for method in methods:
        for score in ("pointing", "energy"):
            words.get(column_of(method, score), []).append(f"{label_of(method)} {SCORE_WORDS[score]}")
    return {name: tuple(dict.fromkeys(texts)) for name, texts in words.items()}


def with_columns(where: str, words: Mapping[str, tuple[str, ...]]) -> str:
    """A filter with every column by its name in the survey; texts in quotes stay as they are."""
    names = {word.lower(): name for name, many in words.items() for word in many if word != name}
    if not names:
        return where
    longest_first = "|".join(
        r"\s+".join(map(re.escape, word.split())) for word in sorted(names, key=len)[::-1]
    )
    spoken = re.compile(rf'"({longest_first})"|(?<![\w.])({longest_first})(?![\w.])', re.IGNORECASE)

    def named(match: re.Match[str]) -> str:
        return names[" ".join((match[1] or match[2]).lower().split())]

    parts, at = [], 0
    for text in _QUOTED.finditer(where):
        parts += [spoken.sub(named, where[at : text.start()]), text[0]]
        at = text.end()
    return "".join([*parts, spoken.sub(named, where[at:])])
