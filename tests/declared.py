"""What files repeat of what is declared elsewhere: `python -m tests.declared` writes it again, and tests compare.

Whoever adds a question, an option of a view, or changes its words, runs this once.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.views.test_old_links import OLD
from vit_viz.analyses.methods import METHODS
from vit_viz.cli.parser import command_line
from vit_viz.explorer.value import link_fields
from vit_viz.ui.palette.view import listing
from vit_viz.views.panel import is_of_panel
from vit_viz.views.state import ViewState

_ROOT = Path(__file__).resolve().parents[1]
_DOCS = _ROOT / "docs"


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


_ASKING = [
    "ask=segments&ask.count=7&ask.method=cut&ask.box=1,2,3,4",
    "run=1&ask.cols=6&ask.rows=5&ask=position_components",
    "tab=heads&ask=links&q=3,4&layer=2",
    "ask=saliency&run=0&target=7",
    "image=tower&ask=ablation&run=1&ask.how=mean&style=tint",
]
"""Links to questions in the panel."""


def links() -> str:
    """What a link may hold, some links with what Python reads in them, and where they lead: for tests/js/store.test.js."""
    fields, by_chance = link_fields(), random.Random(42)
    searches = [search.lstrip("?") for search in OLD] + _ASKING
    others = [
        field for field in fields if not is_of_panel(field["link"])
    ]  # whose values depend on the question
    for _ in range(60):
        chosen = by_chance.sample(others, by_chance.randint(1, 8))
        searches.append(urlencode({field["link"]: _text_of(field, by_chance) for field in chosen}))
    read = [
        {name: text for name, text in ViewState.from_address(search)[0].to_link().items() if text is not None}
        for search in searches
    ]
    pairs = (json.dumps(pair) for pair in zip(searches, read, strict=True))
    parts = {"fields": map(json.dumps, fields), "links": pairs, "looks": map(json.dumps, _looks())}
    lists = (f'"{name}": [\n' + ",\n".join(lines) + "\n]" for name, lines in parts.items())
    return "{" + ",\n".join(lists) + "}\n"


def questions() -> str:
    """What the palette finds questions by, a line each: for tests/js/palette.test.js."""
    names = ("name", "label", "called", "shows", "hides", "source", "also", "tab", "slow", "link")
    lines = [
        json.dumps({name: one[name] for name in names if name in one}, ensure_ascii=False)
        for one in json.loads(listing())
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _looks() -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Links, what is looked at instead, and the link that this leads to."""
    edits = "off 3.1;temperature 7=0.5;forbid class>2-4,3-5@6-8;forbid patches>registers;forbid token 5>patches;forbid 0,0>class"
    full = {"model": "a", "image": "b", "mode": "crop", "size": 9, "part": "1,2,40,50", "edits": edits}
    full |= {"layer": 3, "style": "tint", "target": "7-9", "tab": "tokens", "gone": "best.12"}
    looks = []
    in_words = {"sentences": "a cat | a dog | grass", "templates": "a photo of {}."}
    for more in ({"q": "3,4;3,5"}, {"q": "register 1"}, {}, in_words):
        search = urlencode(full | more)
        for change in (
            *(
                {"model": "c"},
                {"image": "d"},
                {"mode": "fit"},
                {"size": 12},
                {"part": "5,6,70,80"},
                {"part": ""},
            ),
            {"model": "c", "size": 4},
        ):
            after = ViewState.from_address(search)[0].on_subject(**change).to_link()
            looks.append((search, change, {name: text for name, text in after.items() if text is not None}))
    return looks


def _text_of(field: dict[str, Any], by_chance: random.Random) -> str:
    """Something that may stand in a link: mostly what is possible, sometimes not."""
    if "choices" in field and by_chance.random() < 0.9:
        return str(
            by_chance.choice([*field["choices"], "nothing", 3] if "numbered" in field else field["choices"])
        )
    if isinstance(field["default"], bool):
        return by_chance.choice(["0", "1"])
    if field.get("numbered"):
        return by_chance.choice(["0", "11", "-1", "many"])
    if "low" in field:
        value = by_chance.uniform(field["low"] - 1, field["high"] + 1)
        return by_chance.choice([f"{value:.5f}" if "step" in field else str(round(value)), "3.5", "", "many"])
    return str(
        by_chance.choice(
            {"q": ["class", "3,4", "register 1"], "target": ["7", "7-9"]}.get(
                field["link"], [field["default"]]
            )
        )
    )


FILES: dict[Path, Callable[[str], str]] = {
    _DOCS / "COMMANDS.md": commands,
    _DOCS / "METHODS.md": methods,
    _ROOT / "tests" / "js" / "links.json": lambda _: links(),
    _ROOT / "tests" / "js" / "questions.json": lambda _: questions(),
}
"""From what such a file holds to what it should hold."""

if __name__ == "__main__":
    for path, written in FILES.items():
        path.write_text(written(path.read_text("utf-8") if path.exists() else ""), "utf-8")
