"""What the palette, which finds any question by its words, has to find; it is in vit_viz/web/palette."""

from __future__ import annotations

import json

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.views.state import GROUPS, link_options
from vit_viz.views.tab_options import HEAD_MEASURES

LISTING = "questions.json"


def listing() -> bytes:
    """Every question in words, in their order, then every measure by which the Heads tab sorts its heads, as JSON.

    "tab" is the one that draws it, "" where it opens in the panel, and "link" what links say where it is shown. A measure that a
    question opens already has no second row. Browsers fetch the list when the palette is first opened, so that the page itself
    stays small, and keep it until it changes.
    """
    in_links = {field.name: name for name, (owner, field) in link_options().items() if owner in GROUPS}
    said: list[dict[str, object]] = []
    for question in QUESTIONS.values():
        words, place = question.words, question.place
        there = {} if place is None else {in_links.get(name, name): on for name, on in place.link({}).items()}
        options = (field.option.label for field in question.options.schema())
        said.append(
            {
                "name": question.name,
                "label": words.label,
                "shows": words.shows,
                "also": " ".join([words.hides, words.source, *options]),
                "tab": place.tab if place else "",
                "slow": question.is_slow,
                "link": {"ask": None} | there if place else {"ask": question.name},
            }
        )
    placed = {question.place.view.get("measure") for question in QUESTIONS.values() if question.place}
    said += [
        {
            "name": f"heads.{name}",
            "label": f"Heads by {measure.label}",
            "shows": measure.sentence,
            "also": measure.group,
            "tab": "heads",
            "slow": False,
            "link": {"ask": None, "tab": "heads", "face": "atlas", "measure": name},
        }
        for name, measure in HEAD_MEASURES.items()
        if name not in placed
    ]
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()
