"""What the palette and the panel ask.

POST /vit_viz/place   {"view": LINK, "name": NAME}: where a question of the palette is shown, as the part of the link that changes
POST /vit_viz/panel   {"view": LINK}: the question of the link in words, its controls, and whether its answer comes by itself; with
                      {"options": {NAME: VALUE}} the part of the link that these change, a sentence for each that is not possible
POST /vit_viz/answer  {"view": LINK}: the answer to that question in words, and where its files are fetched
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from numpy.typing import NDArray
from starlette.routing import Route

from vit_viz import samples
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.answer import arrays_of
from vit_viz.capture.given import class_index
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import Value, control
from vit_viz.figures.files import formats_of
from vit_viz.geometry import parse_query
from vit_viz.sentences import sentence
from vit_viz.session.answers import facts_of
from vit_viz.session.inputs import TARGET, query_sentence
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.opened import PageCall, page_route
from vit_viz.ui.palette.view import OF_HEADS
from vit_viz.ui.payload import figure_address, picture_address
from vit_viz.ui.pictures import ASKED, asked_request
from vit_viz.views.choices import model_reference, subject_of
from vit_viz.views.panel import OPTION, OPTIONS, Panel, is_of_panel
from vit_viz.views.places import looking_at
from vit_viz.views.state import ViewState

MOST_FACTS = 40
_MOST = 12  # of a list
_UNTOLD = ("provenance", "crop_box", "value_range", "signed", "class_blind", "method")
"""Of the facts: said by the figure, or of no use to those who look at it."""


def routes(session: Session) -> list[Route]:
    """The three."""
    return [page_route(session, name, answer) for name, answer in _ANSWERS.items()]


# --- the palette


def _place(asked: PageCall) -> dict[str, str | None]:
    """The question of the panel, if it opens there, and what else changes; of a question that opens there every option is usual."""
    view = _looking_at(asked.view, str(asked.body.get("name", "")))
    return _changed(asked.view, view) | {"ask": view.panel.name if view.panel else None}


def _looking_at(view: ViewState, name: str) -> ViewState:
    """The view that shows what was chosen in the palette, by its name there."""
    if not name.startswith(OF_HEADS):
        return looking_at(view, QUESTIONS.named(name))
    measured = view.with_options({"tab": "heads", "face": "atlas", "measure": name.removeprefix(OF_HEADS)})
    return replace(measured, panel=None)


def _changed(before: ViewState, view: ViewState) -> dict[str, str | None]:
    """The part of the link that changed, without what is about the panel."""
    was = before.to_link()
    return {
        name: text for name, text in view.to_link().items() if text != was.get(name) and not is_of_panel(name)
    }


# --- the panel


def _panel(asked: PageCall) -> dict[str, Any]:
    view, panel = asked.view, asked.view.panel
    if panel is None:
        return {}
    if "options" in asked.body:
        return _chosen(asked, panel)
    try:
        return _words(view, panel) | _asked(asked, panel)
    except Exception as error:
        return _words(view, panel) | {"error": sentence(error)}


def _words(view: ViewState, panel: Panel) -> dict[str, Any]:
    return {
        "key": key_of(view),
        "own": view.image not in samples.sample_names(),
        "question": question_value(panel.question),
    }


def _asked(asked: PageCall, panel: Panel) -> dict[str, Any]:
    """The controls of a question, and whether its answer comes by itself: unless that costs many passes and is not kept."""
    session, question = asked.session, panel.question
    layers = 0
    if question.takes_image:
        layers = session.run(asked.subject.request("trace"), cancelled=asked.cancelled).num_layers
    told: dict[str, Any] = {"controls": controls(asked.view, panel, layers)}
    try:
        is_kept = session.keeps(asked_request(session, asked.subject, asked.view))
    except ParameterError as error:
        return told | {"error": sentence(error)}
    return told | {"quick": is_kept or not question.is_slow}


def _chosen(asked: PageCall, panel: Panel) -> dict[str, Any]:
    options, refused = asked.body["options"], dict[str, str]()
    if not isinstance(options, dict):
        raise ParameterError("What is chosen has names and values.")
    view = chosen(asked.session, asked.view, asked.owner, options, refused)
    link = _changed(asked.view, view)
    if view.panel and view.panel.options != panel.options:
        written = {name: text for name, text in view.to_link().items() if name.startswith(OPTION)}
        link[OPTIONS] = urlencode(written)
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
    return answer_value(asked.session, asked.subject, asked.view, answer)


_ANSWERS = {"place": _place, "panel": _panel, "answer": _answer}


# --- what is told


def key_of(view: ViewState) -> str:
    """What an answer is about: equal for equal questions."""
    if view.panel is None:
        return ""
    question = view.panel.question
    query, target = view.query * question.follows_pin, view.target * question.takes_target
    return repr((view.about, view.panel.name, view.panel.options.changed(), query, target))


def question_value(question: AnyQuestion) -> Value:
    """A question in words."""
    words = question.words
    runs = f"Computing it takes {words.runs}." if words.runs else ""
    return {
        "name": question.name,
        "label": words.label,
        "shows": words.shows,
        "hides": words.hides,
        "source": words.source,
        "runs": runs,
        "formats": list(formats_of(question.name)),
        "slow": question.is_slow,
    }


def controls(view: ViewState, panel: Panel, layers: int) -> list[Value]:
    """A control for everything that the question takes, with what is chosen.

    Args:
        layers: of the model; 0 where the question is about no picture.
    """
    question = panel.question
    chosen = (panel.options.for_layers(layers) if layers else panel.options).values()
    told = []
    if question.follows_pin:
        told.append(_text("query", "query", query_sentence(question), view.query))
    if question.takes_target:
        told.append(_text("target", "class", TARGET, view.target))
    return told + [
        control(field, layers) | {"value": chosen[field.name]} for field in question.options.schema()
    ]


def _text(name: str, label: str, sentence: str, value: str) -> Value:
    return {"name": name, "label": label, "sentence": sentence, "default": "", "value": value}


def answer_value(session: Session, subject: Subject, view: ViewState, answer: object) -> Value:
    """What is said of an answer, and where its files are fetched."""
    address = figure_address(picture_address(session, subject, view, ASKED))
    return {"facts": [list(fact) for fact in facts_shown(answer)], "address": address}


def facts_shown(answer: object) -> list[tuple[str, str]]:
    """An answer in pairs of words: what it says beside its figure, then each array with its shape and its ends."""
    told = [*_facts(facts_of(answer), ""), *_arrays(arrays_of(answer))]
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


def _arrays(arrays: Mapping[str, NDArray[Any]]) -> Iterator[tuple[str, str]]:
    for name, array in arrays.items():
        shape = " x ".join(map(str, array.shape)) or "one number"
        values = array[np.isfinite(array)] if array.dtype.kind == "f" else array
        ends = f", {_word(values.min().item())} to {_word(values.max().item())}" if values.size else ""
        yield name.replace("_", " ").replace(".", " ") or "values", f"{shape}{ends}"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
