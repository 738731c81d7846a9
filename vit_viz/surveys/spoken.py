"""Columns as the Survey tab calls them, so that a filter can be written with the words on the screen: `mean entropy > 0.8`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from vit_viz.surveys.columns import MEASURES, column_of

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
            words.get(column_of(method, score), []).append(f"{method} {SCORE_WORDS[score]}")
    return {name: tuple(dict.fromkeys(said)) for name, said in words.items()}


def with_columns(where: str, words: Mapping[str, tuple[str, ...]]) -> str:
    """A filter with every column by its name in the survey; texts in quotes stay as they are."""
    names = {said.lower(): name for name, many in words.items() for said in many if said != name}
    if not names:
        return where
    longest_first = "|".join(
        r"\s+".join(map(re.escape, said.split())) for said in sorted(names, key=len)[::-1]
    )
    spoken = re.compile(rf'"({longest_first})"|(?<![\w.])({longest_first})(?![\w.])', re.IGNORECASE)

    def named(match: re.Match[str]) -> str:
        return names[" ".join((match[1] or match[2]).lower().split())]

    parts, at = [], 0
    for text in _QUOTED.finditer(where):
        parts += [spoken.sub(named, where[at : text.start()]), text[0]]
        at = text.end()
    return "".join([*parts, spoken.sub(named, where[at:])])
