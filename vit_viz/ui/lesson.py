"""What the Lesson tab is told of each part of a model that one can build oneself."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

from vit_viz.lesson_parts import PARTS, Ran
from vit_viz.ui.kit.words import typeset


def parts() -> dict[str, dict[str, Any]]:
    """By name: its formula and letters, as HTML; our functions; its source and where others go wrong, as text."""
    return {
        name: {
            "formula": typeset(part.formula),
            "letters": typeset(part.letters),
            "ran": [_listing(one) for one in part.ran],
            "source": part.source,
            "mistake": part.mistake,
        }
        for name, part in PARTS.items()
    }


def _listing(ran: Ran) -> dict[str, Any]:
    """A function of ours with its place; of its docstring the first line alone, so that the code stays on the screen.

    Each line has beside it, where it is marked, which models run it.
    """
    first, text = ran.source
    lines = textwrap.dedent(text).split("\n")
    docstring = ast.parse("\n".join(lines)).body[0].body[0]  # type: ignore[attr-defined]  # the source of one function
    start, end = docstring.lineno, docstring.end_lineno
    if end > start:
        lines[start - 1 : end] = [f'{lines[start - 1]} ..."""']
    marks = [next((of for mark, of in ran.marks.items() if mark in line), None) for line in lines]
    return {
        "name": ran.name,
        "place": f"vit_viz/model/vit.py, lines {first}-{first + text.count(chr(10))}",
        "lines": list(zip(lines, marks, strict=True)),
        "of": ran.of,
    }
