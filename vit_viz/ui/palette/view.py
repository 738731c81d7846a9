"""The palette, which finds any question by its words; it and the panel, which asks one by itself, are in vit_viz/web/palette."""

from __future__ import annotations

import json

from vit_viz.analyses.head_statistics import MeasureWords
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.ui.kit import web_room
from vit_viz.ui.page import Page
from vit_viz.ui.scripts import file_address
from vit_viz.views.tab_options import HEAD_MEASURES

LISTING = "questions.json"
OF_HEADS = "heads."
"""Begins the names of the measures of heads in the list."""


def build_palette(page: Page) -> None:
    """The button that opens the palette, and the palette: what is chosen there opens on its tab or in the panel."""
    tabs = {tab.name: tab.label for tab in page.tabs}
    palette = web_room("palette", piece="palette", tabs=tabs, questions=file_address(LISTING, listing()))
    page.explain(palette, "Finds everything that can be asked of the model, by its words.")


def listing() -> bytes:
    """Every question in words, in their order, then every measure by which the Heads tab sorts its heads, as JSON.

    Browsers fetch it when the palette is first opened, so that the page itself stays small, and keep it until it changes.
    """
    placed = {question.place.view.get("measure") for question in QUESTIONS.values() if question.place}
    said = [_listed(question) for question in QUESTIONS.values()]
    said += [_measure_listed(name, words) for name, words in HEAD_MEASURES.items() if name not in placed]
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _listed(question: AnyQuestion) -> dict[str, object]:
    """A question as the palette shows and finds it: "tab" is the one that draws it, "" where it opens in the panel."""
    words = question.words
    options = (field.option.label for field in question.options.schema())
    return {
        "name": question.name,
        "label": words.label,
        "shows": words.shows,
        "also": " ".join([words.hides, words.source, *options]),
        "tab": question.place.tab if question.place else "",
        "slow": question.is_slow,
    }


def _measure_listed(name: str, words: MeasureWords) -> dict[str, object]:
    """A measure of heads; one that a question opens already has no second row."""
    return {
        "name": f"{OF_HEADS}{name}",
        "label": f"Heads by {words.label}",
        "shows": words.sentence,
        "also": words.group,
        "tab": "heads",
        "slow": False,
    }
