"""What the panel asks.

POST /vit_viz/panel   {"view": LINK}: the question of the link in words, its controls, and whether its answer comes by itself; with
                      {"options": {NAME: VALUE}} the part of the link that these change, a sentence for each that is not possible
POST /vit_viz/answer  {"view": LINK}: the answer to that question in words, and where its files are fetched
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import numpy as np

from vit_viz import samples
from vit_viz.answer import arrays_of
from vit_viz.capture.given import class_index
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import Value, control
from vit_viz.figures.files import formats_of
from vit_viz.geometry import parse_query
from vit_viz.sentences import formatted, sentence
from vit_viz.session.inputs import TARGET, query_sentence
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.serialization import facts_of
from vit_viz.session.session import Session
from vit_viz.ui.explain.questions import target_of
from vit_viz.ui.opened import PageCall
from vit_viz.ui.page import Answers
from vit_viz.ui.payload import about_of
from vit_viz.views.choices import model_reference, subject_of
from vit_viz.views.panel import OPTION, OPTIONS, Panel, is_of_panel
from vit_viz.views.state import ViewState

MOST_FACTS = 40
_MOST = 12  # of a list
_UNTOLD = ("provenance", "crop_box", "value_range", "signed", "class_blind", "method")
"""Of the facts: said by the figure, or of no use to those who look at it."""


# --- the panel


def _panel(asked: PageCall) -> dict[str, Any]:
    """The question in words, its controls, and whether its answer comes by itself: unless that costs many passes and is not kept.

    Its key is equal for equal questions.
    """
    session, view, panel = asked.session, asked.view, asked.view.panel
    if panel is None:
        return {}
    if "options" in asked.body:
        return _chosen(asked, panel)
    question, words = panel.question, panel.question.words
    query, target = view.query * question.follows_pin, view.target * question.takes_target
    told: dict[str, Any] = {
        "key": repr((view.about, panel.name, panel.options.changed(), query, target)),
        "own": view.image not in samples.sample_names(),
        "about": about_of(view) if question.takes_image else {"model": view.model},
        "question": {
            "name": question.name,
            "label": words.label,
            "shows": words.shows,
            "hides": words.hides,
            "source": words.source,
            "runs": f"Computing it takes {words.runs}." if words.runs else "",
            "formats": list(formats_of(question.name)),
            "slow": question.is_slow,
        },
    }
    try:
        layers = 0
        if question.takes_image:
            layers = session.run(asked.subject.request("trace"), cancelled=asked.cancelled).num_layers
        told["controls"] = controls(view, panel, layers)
        is_kept = session.keeps(asked_request(session, asked.subject, view))
        return told | {"quick": is_kept or not question.is_slow}
    except Exception as error:
        return told | {"error": sentence(error)}


def _chosen(asked: PageCall, panel: Panel) -> dict[str, Any]:
    options, refused = asked.body["options"], dict[str, str]()
    if not isinstance(options, dict):
        raise ParameterError("What is chosen has names and values.")
    view = chosen(asked.session, asked.view, asked.owner, options, refused)
    was, now = asked.view.to_link(), view.to_link()
    link = {name: text for name, text in now.items() if text != was.get(name) and not is_of_panel(name)}
    if view.panel and view.panel.options != panel.options:
        link[OPTIONS] = urlencode({name: text for name, text in now.items() if name.startswith(OPTION)})
    return {"refused": refused, "link": link | ({"run": None} if link else {})}


def chosen(
    session: Session, view: ViewState, owner: str, options: Mapping[str, Any], refused: dict[str, str]
) -> ViewState:
    """The view with what was chosen in the panel; where not all of it is possible, with what is.

    Args:
        refused: takes one sentence for each option that is not possible, by its name.
    """
    try:
        return _with(session, view, owner, options)
    except ParameterError as error:
        if len(options) == 1:
            refused.update(dict.fromkeys(options, sentence(error)))
            return view
    for name, value in options.items():
        view = chosen(session, view, owner, {name: value}, refused)
    return view


def _with(session: Session, view: ViewState, owner: str, options: Mapping[str, Any]) -> ViewState:
    read = {
        name if name in ("query", "target") else f"{OPTION}{name}": value for name, value in options.items()
    }
    read["run"] = False  # something else would be computed
    if target := str(read.get("target", "")).strip():
        is_number = all(part.isdigit() for part in target.split("-"))
        labels = session.model(model_reference(session, view.model)).labels
        read["target"] = target if is_number else class_index(target, labels)
    changed = view.with_options(read)
    if "query" in read and changed.query not in ("", "pool"):
        session.trace_of(subject_of(session, view, owner)).layout.weights(parse_query(changed.query))
    return changed


def _answer(asked: PageCall) -> dict[str, Any]:
    request = asked_request(asked.session, asked.subject, asked.view)
    answer = asked.session.run(request, progress=asked.progress, cancelled=asked.cancelled)
    return {"facts": [list(fact) for fact in facts_shown(answer)]}


def asked_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What the question in the panel asks, of the query and the target of the view."""
    if view.panel is None:
        raise ParameterError("This link asks no question.")
    question, asked = view.panel.question, dict[str, Any](view.panel.options.values())
    if question.follows_pin and view.query:
        asked["query"] = parse_query(view.query)
    if question.takes_target:
        asked["target"] = target_of(view)
    return request_for(session, subject, question.name, **asked)


ANSWERS: Answers = {"panel": _panel, "answer": _answer}


# --- what is told


def controls(view: ViewState, panel: Panel, layers: int) -> list[Value]:
    """A control for everything that the question takes, with what is chosen.

    Args:
        layers: of the model; 0 where the question is about no picture.
    """
    question = panel.question
    texts = [("query", "query", query_sentence(question), view.query)] if question.follows_pin else []
    texts += [("target", "class", TARGET, view.target)] if question.takes_target else []
    told: list[Value] = [
        {"name": name, "label": label, "sentence": said, "default": "", "value": value}
        for name, label, said, value in texts
    ]
    chosen = (panel.options.for_layers(layers) if layers else panel.options).values()
    return told + [
        control(field, layers) | {"value": chosen[field.name]} for field in question.options.schema()
    ]


def facts_shown(answer: object) -> list[tuple[str, str]]:
    """An answer in pairs of words: what it says beside its figure, then each array with its shape and its ends."""
    told = [*_facts(facts_of(answer), "")]
    for name, array in arrays_of(answer).items():
        shape = " x ".join(map(str, array.shape)) or "one number"
        values = array[np.isfinite(array)] if array.dtype.kind == "f" else array
        ends = f", {_word(values.min().item())} to {_word(values.max().item())}" if values.size else ""
        told.append((name.replace("_", " ").replace(".", " ") or "values", f"{shape}{ends}"))
    return told[:MOST_FACTS]


def _facts(value: object, name: str) -> Iterator[tuple[str, str]]:
    """The leaves of the facts that are worth telling, each behind the names that lead to it."""
    if isinstance(value, Mapping):
        for inner, part in value.items():
            if inner not in _UNTOLD:
                yield from _facts(part, f"{name} {inner}".strip())
    elif isinstance(value, list) and value and not isinstance(value[0], str | int | float):
        for place, part in enumerate(value):
            yield from _facts(part, f"{name} {place}".strip())
    elif value not in (None, "", [], False):
        words = ", ".join(map(_word, value[:_MOST])) if isinstance(value, list) else _word(value)
        if isinstance(value, list) and len(value) > _MOST:
            words += f", … ({len(value)} in all)"
        yield name.replace("_", " ") or "answer", words


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return formatted(value, ".4g") if isinstance(value, float) else str(value)
