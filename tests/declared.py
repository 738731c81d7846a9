"""What files repeat of the declarations of questions: `python -m tests.declared` writes it again, and tests compare.

Whoever adds a question, or changes its words, runs this once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from vit_viz.analyses.methods import METHODS
from vit_viz.cli import declared, outline
from vit_viz.cli.parser import command_line

_DOCS = Path(__file__).resolve().parents[1] / "docs"


def commands(page: str) -> str:
    """docs/COMMANDS.md with today's help of the command line."""
    begin, rest = re.split(r"(?<=\$ vit-viz --help\n)", page)
    return begin + command_line().format_help() + rest[rest.index("```") :]


def methods(page: str) -> str:
    """docs/METHODS.md with today's table of methods, in the order of the screen."""
    begin, rest = re.split(r"(?<=\| formula \| source \|\n)", page)
    rule, rest = rest.split("\n", 1)
    return begin + "\n".join((rule, *map(_row, METHODS), rest[rest.index("\n\n") + 1 :]))


def _row(name: str) -> str:
    words = METHODS[name].words
    formula = re.sub(
        r"\$([^$]+)\$", r"$`\1`$", words.formula
    )  # as GitHub reads it beside other signs of Markdown
    return f"| `{name}` | {words.label} | {words.shows} | {words.hides} | {formula} | {words.source} |"


FILES: dict[Path, Callable[[str], str]] = {
    outline.FILE: lambda _: declared.text(),
    _DOCS / "COMMANDS.md": commands,
    _DOCS / "METHODS.md": methods,
}
"""From what such a file holds to what it should hold."""

if __name__ == "__main__":
    for path, written in FILES.items():  # the outline first, from which the help is made
        path.write_text(written(path.read_text("utf-8")), "utf-8")
