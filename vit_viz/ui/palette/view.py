"""The questions as they are declared, for the palette, which finds them by their words, and the panel, which asks them; both are in
vit_viz/web/palette."""

from __future__ import annotations

import json

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.explorer.value import Value, declared
from vit_viz.figures.files import formats_of
from vit_viz.session.inputs import TARGET, query_sentence
from vit_viz.views.state import GROUPS, link_options
from vit_viz.views.tab_options import HEAD_MEASURES

LISTING = "questions.json"


def listing() -> bytes:
    """Every question in words, in their order, then every measure by which the Heads tab sorts its heads, as JSON.

    "tab" is the one that draws it, "" where it opens in the panel, and "link" what links say where it is shown; "controls" are
    what it takes, the query and the class first, which links have under names of their own. A measure that a question opens
    already has no second row, and no controls; its heads stand the largest first. Browsers fetch the list when palette or panel
    is first opened, so that the page itself stays small, and keep it until it changes.
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
                "called": words.also_called,
                "shows": words.shows,
                "hides": words.hides,
                "source": words.source,
                "also": " ".join(options),
                "tab": place.tab if place else "",
                "slow": question.is_slow,
                "runs": f"Computing it takes {words.runs}." if words.runs else "",
                "link": {"ask": None} | there if place else {"ask": question.name},
                "photo": question.takes_image,
                "formats": list(formats_of(question.name)),
                "controls": _controls(question),
            }
        )
    placed = {question.place.view.get("measure") for question in QUESTIONS.values() if question.place}
    said += [
        {
            "name": f"heads.{name}",
            "label": f"Heads by {measure.label}",
            "called": measure.also_called,
            "shows": measure.sentence,
            "also": measure.group,
            "tab": "heads",
            "slow": False,
            # no layer is named, so the first head is chosen
            "link": {
                "ask": None,
                "tab": "heads",
                "face": "atlas",
                "measure": name,
                "order": "value",
                "layer": None,
            },
        }
        for name, measure in HEAD_MEASURES.items()
        if name not in placed
    ]
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode()


def _controls(question: AnyQuestion) -> list[Value]:
    """What a question takes, each with its words."""
    texts = [("query", "q", "query", query_sentence(question))] if question.follows_pin else []
    texts += [("target", "target", "class", TARGET)] if question.takes_target else []
    return [
        *(
            {"name": name, "link": link, "label": label, "sentence": said, "default": ""}
            for name, link, label, said in texts
        ),
        *(declared(field) for field in question.options.schema()),
    ]
