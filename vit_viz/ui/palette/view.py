"""The palette, which finds any question by its words, and the panel, where one that no tab draws better is asked by itself."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from vit_viz import samples
from vit_viz.analyses.head_statistics import MeasureWords
from vit_viz.analyses.options import OptionField
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.answer import arrays_of
from vit_viz.capture.given import class_index
from vit_viz.errors import ParameterError
from vit_viz.explorer.value import Value, described
from vit_viz.figures.answers import formats_of
from vit_viz.geometry import parse_query
from vit_viz.session.answers import facts_of
from vit_viz.session.handles import OWNER, PAGE
from vit_viz.session.inputs import TARGET, query_sentence
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.jobs import Stops, steps
from vit_viz.ui.kit import Palette, QuestionPanel
from vit_viz.ui.page import QUICK, Page
from vit_viz.ui.payload import figure_address, picture_address
from vit_viz.ui.pictures import ASKED, asked_request
from vit_viz.ui.scripts import file_address
from vit_viz.views.choices import model_reference, subject_of
from vit_viz.views.panel import Panel
from vit_viz.views.places import looking_at
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HEAD_MEASURES

STOPPED = "Stopped."
_JOB = "question"
LISTING = "questions.json"
MOST_FACTS = 40
_MOST = 12  # of a list
_HEADS = "heads."  # begins the names of the measures of heads in the list
_UNTOLD = ("provenance", "crop_box", "value_range", "signed", "class_blind", "method")
"""Of the facts: said by the figure, or of no use to those who look at it."""


def build_palette(page: Page) -> None:
    """The button that opens the palette, and the palette: what is chosen there opens on its tab or in the panel."""
    tabs = {tab.name: tab.label for tab in page.tabs}
    palette = Palette({"tabs": tabs}, questions=file_address(LISTING, listing()), elem_id="vv-palette")
    page.explain(palette, "Finds everything that can be asked of the model, by its words.")

    def ask(request: gr.Request, seen: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        name = str(dict(event._data or {}).get("name", ""))
        before, view = page.views.apply(
            request.session_hash or "", seen, lambda newest: _looking_at(newest, name).after_action()
        )
        return view.revision, *page.after(before, view, push=True)

    palette.ask(ask, [page.view], [page.arrival, *page.outputs], **QUICK)


def build_panel(page: Page) -> None:
    """The panel in front of the page, which asks one question by itself."""
    panel, stops = QuestionPanel(elem_id="vv-panel", job=None, refused=None), Stops()

    def choose(request: gr.Request, seen: ViewState, event: gr.EventData) -> tuple[Any, ...]:
        options, refused = dict(dict(event._data or {}).get("options") or {}), dict[str, str]()

        def change(newest: ViewState) -> ViewState:
            refused.clear()
            return chosen(page.session, newest, OWNER.get(), options, refused).after_action()

        before, view = page.views.apply(request.session_hash or "", seen, change)
        told = {"of": dict(refused), "values": options, "revision": view.revision}
        return gr.update(refused=told), *page.after(before, view)

    def start(view: ViewState, owner: str, _data: object) -> Iterator[Any]:
        if view.panel is not None:
            yield from _followed(page, view, owner, stops.start(PAGE.get(), _JOB, key_of(view)))

    panel.choose(choose, [page.view], [panel, *page.outputs], **QUICK)
    page.gesture(panel.run, lambda view, _owner, _data: view.with_options({"run": True}).after_action())
    page.gesture(panel.close, lambda view, _owner, _data: view.after_action(panel=None))
    page.job(panel.start, start, [panel])
    page.reply(panel.stop, lambda _view, _owner, _data: stops.stop(PAGE.get(), _JOB))
    page.drawing("panel", lambda p, view, owner: _draw(p, stops, view, owner), [panel])


# --- actions


def _looking_at(view: ViewState, name: str) -> ViewState:
    """The view that shows what was chosen in the palette, by its name there."""
    if not name.startswith(_HEADS):
        return looking_at(view, QUESTIONS.named(name))
    measured = view.with_options({"tab": "heads", "face": "atlas", "measure": name.removeprefix(_HEADS)})
    return replace(measured, panel=None)


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
    read = {name if name in ("query", "target") else f"ask.{name}": value for name, value in options.items()}
    read["run"] = False  # something else would be computed
    if target := str(read.get("target", "")).strip():
        is_number = all(part.isdigit() for part in target.split("-"))
        labels = session.model(model_reference(session, view.model)).labels
        read["target"] = target if is_number else class_index(target, labels)
    changed = view.with_options(read)
    if "query" in read and changed.query not in ("", "pool"):
        session.trace_of(subject_of(session, view, owner)).layout.weights(parse_query(changed.query))
    return changed


# --- drawings


def _draw(page: Page, stops: Stops, view: ViewState, owner: str) -> Iterator[Any]:
    """The question, then its answer, unless that costs many passes and is not kept; whatever ran for another one ends."""
    stops.keep_only(PAGE.get(), key_of(view))
    if view.panel is None:
        yield {"revision": view.revision, "key": ""}
        return
    try:
        value, is_quick = _value(page, view, view.panel, owner)
    except Exception as error:
        value, is_quick = _words(view, view.panel) | {"error": sentence(error)}, False
    yield gr.update(value=value)
    if is_quick:
        yield from _followed(page, view, owner, stops.start(PAGE.get(), _JOB, key_of(view)))


def _words(view: ViewState, panel: Panel) -> dict[str, Any]:
    return {
        "revision": view.revision,
        "key": key_of(view),
        "own": view.image not in samples.sample_names(),
        "question": question_value(panel.question),
    }


def _value(page: Page, view: ViewState, panel: Panel, owner: str) -> tuple[dict[str, Any], bool]:
    """What the panel is told of a question, and whether the answer follows at once."""
    session, question = page.session, panel.question
    subject = subject_of(session, view, owner)
    layers = session.trace_of(subject).num_layers if question.takes_image else 0
    told = _words(view, panel) | {"controls": controls(view, panel, layers)}
    try:
        is_kept = session.keeps(asked_request(session, subject, view))
    except ParameterError as error:
        return told | {"error": sentence(error)}, False
    is_quick = is_kept or not question.is_slow
    return told | {"quick": is_quick, "runs": panel.runs}, is_quick


def _followed(page: Page, view: ViewState, owner: str, stop: threading.Event) -> Iterator[dict[str, Any]]:
    """Follow the answer from the first batch to what is said of it."""
    assert view.panel is not None
    session, key = page.session, key_of(view)

    def tell(**said: Any) -> dict[str, Any]:
        return gr.update(job={"key": key} | said)

    yield tell(share=0.0)
    try:
        subject = subject_of(session, view, owner)
        request = asked_request(session, subject, view)
        for step in steps(partial(session.run, request), stop):
            if not step.is_last:
                yield tell(share=step.share, left=step.left)
            else:
                yield tell(answer=answer_value(session, subject, view, step.result))
    except Exception as error:
        yield tell(error=STOPPED if stop.is_set() else sentence(error))


# --- what is shown


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
        "name": f"{_HEADS}{name}",
        "label": f"Heads by {words.label}",
        "shows": words.sentence,
        "also": words.group,
        "tab": "heads",
        "slow": False,
    }


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
    return told + [_control(field, chosen[field.name], layers) for field in question.options.schema()]


def _text(name: str, label: str, sentence: str, value: str) -> Value:
    return {"name": name, "label": label, "sentence": sentence, "default": "", "value": value}


def _control(field: OptionField, value: Any, layers: int) -> Value:
    option = field.option
    said = described(field) | {"label": option.label, "sentence": option.sentence, "value": value}
    return said | ({"low": 0, "high": max(layers - 1, 1)} if option.is_layer and layers else {})


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
