"""The stage of the Explain tab: the chosen map on the photo, whose patches can be taken away, and the options of its method."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, get_args

import gradio as gr

from vit_viz.analyses.faithfulness import patch_order
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import OptionField
from vit_viz.analyses.spec import AnyMethod
from vit_viz.capture import Trace
from vit_viz.figures.lettering import number
from vit_viz.figures.maps import drawn_words
from vit_viz.figures.request import DrawingOptions, Table
from vit_viz.figures.screen import style_of
from vit_viz.figures.styles import STRENGTHS, STYLES
from vit_viz.geometry import TokenLayout
from vit_viz.results import PatchMap
from vit_viz.session.handles import PAGE
from vit_viz.ui import pictures
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain import lead, sides
from vit_viz.ui.explain.questions import Questions, answer_value, shows_maps, whole_value
from vit_viz.ui.explain.sides import Shown
from vit_viz.ui.jobs import Stops
from vit_viz.ui.kit import Stage, words
from vit_viz.ui.page import Page, choose_query
from vit_viz.ui.payload import bar_value, cells_value, picture_address, picture_value
from vit_viz.ui.pictures import card_named
from vit_viz.views.state import ViewState

_LEAD = "lead"
_CONTROLS = ("query", "suffix", "style", "alpha", "table", "smooth")


@dataclass(frozen=True)
class OptionControl:
    """The control of one option of a method."""

    method: str
    field: OptionField
    component: Any

    @property
    def link_name(self) -> str:
        """What links, and so the view, call the option."""
        return self.field.link_name(self.method)

    def update(self, view: ViewState, layers: int, *, visible: bool) -> dict[str, Any]:
        """The control as it holds for a view of a model with so many layers."""
        value = getattr(view.options_of(self.method).for_layers(layers), self.field.name)
        if not self.field.option.is_layer:
            return gr.update(value=value, visible=visible)
        return gr.update(value=range(layers)[value], maximum=max(layers - 1, 1), visible=visible)


def _option_controls() -> Iterator[OptionControl]:
    """Lay out the controls of all methods: numbers beside each other, choices in lines of their own."""
    for method in METHODS.cards:
        for is_number, fields in groupby(
            method.options.schema(), key=lambda field: field.kind in (int, float)
        ):
            with gr.Row() if is_number else nullcontext():
                yield from [OptionControl(method.name, field, _component(field)) for field in fields]


def _component(field: OptionField) -> Any:
    option, default = field.option, field.default
    if field.choices:
        return gr.Radio(list(field.choices), value=default, label=option.label, elem_classes="vv-inline")
    if field.kind is bool:
        return gr.Checkbox(bool(default), label=option.label)
    if option.is_layer:  # of two layers, until a model is known
        return gr.Slider(0, 1, range(2)[default], step=1, label=option.label)
    return gr.Slider(option.low, option.high, default, step=option.step, label=option.label)


@dataclass(frozen=True)
class Staged:
    """The stage and the controls of the chosen method."""

    stage: Stage
    formula: gr.HTML
    query: gr.Radio
    suffix: gr.Dropdown
    options: tuple[OptionControl, ...]
    style: gr.Radio
    alpha: gr.Slider
    table: gr.Dropdown
    smooth: gr.Checkbox


def build() -> Staged:
    """Lay out the stage and, in a fold below it, the controls."""
    start = METHODS.usual.words
    stage = Stage(None, answer=None, lead=None, elem_id="vv-explain-picture")
    with gr.Accordion("Options and formula of this map", open=False, elem_classes="vv-formula"):
        formula = gr.HTML(words.formulas((start.formula, start.source)), apply_default_css=False)
        query = gr.Radio(
            ["class"],
            value="class",
            label="from which token (or “choose the query” on the photo)",
            elem_classes="vv-inline",
        )
        suffix = gr.Dropdown(
            [], label="or from a token after the patches", visible=False, elem_id="vv-suffix"
        )
        options = tuple(_option_controls())
        start_drawing = DrawingOptions()
        style = gr.Radio(list(STYLES), value=start_drawing.style, label="style", elem_classes="vv-inline")
        with gr.Row():
            alpha = gr.Slider(0, 1, start_drawing.alpha, step=0.05, label="strength")
            tables = list(get_args(Table))
            table = gr.Dropdown(tables, value=start_drawing.table, label="colours of heat", visible=False)
            smooth = gr.Checkbox(start_drawing.smooth, label="smooth")
    return Staged(stage, formula, query, suffix, options, style, alpha, table, smooth)


def wire(tab: Staged, page: Page, stops: Stops) -> None:
    """Let the controls change the view, draw it, and answer what is taken away."""
    for name in ("query", "alpha", "table", "smooth"):
        page.option(getattr(tab, name), name)
    page.option(tab.suffix, "query")
    page.explain(tab.style, "style")
    page.action(tab.style.input, _with_style, inputs=[tab.style])
    for option in tab.options:
        page.option(option.component, option.link_name)
    choose_query(tab.stage, page)

    def remove(view: ViewState, owner: str, data: dict[str, Any]) -> Any:
        said = {"seq": data.get("seq"), "key": str(data.get("key", ""))[:600]}
        try:
            questions = Questions.of(page, view, owner)
            return gr.update(answer=said | answer_value(questions, str(data.get("gone", ""))))
        except Exception as error:
            return gr.update(answer=said | {"error": sentence(error)})

    page.reply(tab.stage.remove, remove, [tab.stage])
    _wire_lead(tab.stage, page, stops)
    controls = [tab.formula, *(getattr(tab, name) for name in _CONTROLS)]
    outputs = [tab.stage, *controls, *(option.component for option in tab.options)]
    page.drawing("explain", partial(_draw, stops, tab.options), outputs)


def _wire_lead(stage: Stage, page: Page, stops: Stops) -> None:
    """Let two classes' maps subtracted be put to the test."""

    def measure(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        try:
            shown = _shown(Questions.of(page, view, owner))
            yield from lead.measured(shown, stops.start(PAGE.get(), _LEAD, shown.questions.key))
        except Exception as error:
            yield gr.update(lead={"key": str(data.get("key", ""))[:600], "error": sentence(error)})

    page.job(stage.measure, measure, [stage])
    page.reply(stage.halt, lambda _view, _owner, _data: stops.stop(PAGE.get(), _LEAD))


def _with_style(view: ViewState, style: Any) -> ViewState:
    """Another style, with the strength that it starts with."""
    strength = STRENGTHS.get(style, view.drawing.alpha)
    return view.after_action().with_options({"style": style, "alpha": strength})


def _draw(
    stops: Stops, options: tuple[OptionControl, ...], page: Page, view: ViewState, owner: str
) -> Iterator[tuple[Any, ...]]:
    """Dim, then the map with its caption, and the controls as they hold for this model; what runs about something else ends."""
    others = [gr.skip()] * (1 + len(_CONTROLS) + len(options))
    has_maps = shows_maps(view)
    yield {"revision": view.revision, "busy": True} if has_maps else gr.skip(), *others
    try:
        questions = Questions.of(page, view, owner)
        stops.keep_only(PAGE.get(), questions.key)
        if has_maps:
            yield _drawn(options, _shown(questions))
    except Exception as error:
        yield {"revision": view.revision, "error": sentence(error)}, *others


def _drawn(options: tuple[OptionControl, ...], shown: Shown) -> tuple[Any, ...]:
    method, view, trace = shown.method, shown.view, shown.questions.trace
    updates = [
        option.update(view, trace.num_layers, visible=option.method == method.name) for option in options
    ]
    return stage_value(shown), *_controls(view, method, trace.layout), *updates


def _shown(questions: Questions) -> Shown:
    """The chosen map; a slow one that was not made gives way to the first quick one."""
    session, subject, trace = questions.page.session, questions.subject, questions.trace
    view, problems = questions.targeted.view.fitted(
        layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout
    )
    method = card_named(view.method)
    if method.is_slow and not session.keeps(pictures.map_request(session, subject, view)):
        usual = METHODS.usual
        problems += (
            f"{method.words.label} takes longer: its card computes it. {usual.words.label} is shown instead.",
        )
        method, view = usual, replace(view, method=usual.name)
    view, why = sides.fitted(view, method)
    problems += (why,) if why else ()
    return Shown(questions, view, method, pictures.explanation(session, subject, view), problems)


def stage_value(shown: Shown) -> dict[str, Any]:
    """The picture of the map, the numbers of its patches, their order, and what the model says of the whole photo."""
    questions, view, patch_map = shown.questions, shown.view, shown.patch_map
    session, subject, trace = questions.page.session, questions.subject, questions.trace
    drawn, (low, high), scale = pictures.on_scale(session, subject, view, patch_map)
    style, why = style_of(session, subject, view.drawing.style, signed=drawn.signed)
    box = trace.crop_box
    assert box is not None  # a session traces photos, which have one
    height, width = box.original_size
    value = picture_value(
        view,
        picture_address(session, subject, view, "explain"),
        caption=_caption(shown, scale, why or style),
        trace=trace,
        bar=bar_value(
            low,
            high,
            table="diverging" if drawn.signed else view.drawing.table,
            unit=sides.unit(shown, drawn.unit),
            style=style,
        ),
        note=" ".join([*shown.problems, patch_map.note, _prefix_words(patch_map)]).strip(),
        pick=shown.method.follows_pin,
    )
    return value | {
        "cells": cells_value(drawn),
        "key": view.about,
        "target": view.target,
        "method": shown.method.words.label,
        "grid": list(trace.layout.grid),
        "region": list(box.region),
        "photo_size": [height, width],
        "order": ",".join(str(patch) for patch in patch_order(patch_map).tolist()),
        "whole": whole_value(questions),
        "said": sides.sentence(shown),
        "sides": sides.value(shown),
        "lead": lead.value(shown),
        "is_own": pictures.explanation_request(session, subject, view) == questions.request(shown.method),
    }


def _caption(shown: Shown, scale: str, style: str) -> str:
    view, method, how = shown.view, shown.method, shown.view.drawing
    target = sides.words(shown) or "its own embedding"
    parts = [
        view.model,
        shown.patch_map.caption.split(", towards the ")[0],
        view.options_of(method.name).caption(),
        "the same for every class" if shown.patch_map.class_blind else f"for {target}",
        _not_followed(view, method, shown.questions.trace),
        f"scale: {scale}",
        drawn_words(style, smooth=how.smooth, alpha=how.alpha),
    ]
    return " · ".join(part for part in parts if part)


def _not_followed(view: ViewState, method: AnyMethod, trace: Trace) -> str:
    """That a pinned token does not matter to this map, where it does not."""
    if not view.query or method.follows_pin or view.query == trace.layout.default_query:
        return ""
    return f"explains the output, not the pinned {trace.layout.describe(view.query_of(trace.layout))}"


def _prefix_words(patch_map: PatchMap) -> str:
    """What fell on other tokens, which no map over the photo shows; the registers as one, suffix tokens by kind."""
    prefix = patch_map.prefix
    known = {name: value for name, value in prefix.items() if not name.startswith("register")}
    if len(known) < len(prefix):
        known["registers"] = sum(prefix.values()) - sum(known.values())
    known |= patch_map.suffix_kinds
    is_share = patch_map.value_range[1] <= 1.0
    parts = [f"{name} {f'{value:.1%}' if is_share else number(value)}" for name, value in known.items()]
    return f"Outside the photo: {', '.join(parts)}." if parts else ""


def _controls(view: ViewState, method: AnyMethod, layout: TokenLayout) -> tuple[Any, ...]:
    """Updates for the formula and the controls of `_CONTROLS`."""
    queries = [
        query for query in dict.fromkeys([layout.output_query, *layout.prefix]) if query not in layout.suffix
    ]
    suffix = list(layout.suffix)
    query = view.query or layout.output_query
    return (
        words.formulas((method.words.formula, method.words.source)),
        gr.update(choices=queries, value=query if query in queries else None, visible=method.follows_pin),
        gr.update(
            choices=suffix,
            value=query if query in suffix else None,
            visible=method.follows_pin and bool(suffix),
        ),
        gr.update(value=view.drawing.style),
        gr.update(value=view.drawing.alpha),
        gr.update(value=view.drawing.table, visible=view.drawing.style == "heat"),
        gr.update(value=view.drawing.smooth),
    )
