"""The stage of the Explain tab: the chosen map on the photo, whose patches can be taken away, and the options of its method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import gradio as gr

from vit_viz.analyses.faithfulness import patch_order
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.capture import Trace
from vit_viz.drawing.options import DrawingOptions, Table
from vit_viz.geometry import TokenLayout
from vit_viz.render.captioned import drawn_words
from vit_viz.render.lettering import number
from vit_viz.render.styles import STRENGTHS, STYLES
from vit_viz.results import PatchMap
from vit_viz.session.handles import OWNER
from vit_viz.ui import pictures
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain import option_controls
from vit_viz.ui.explain.answers import answer_value, whole_value
from vit_viz.ui.explain.methods import card_named
from vit_viz.ui.explain.option_controls import OptionControl
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.kit import Stage, words
from vit_viz.ui.kit.queries import pick, step
from vit_viz.ui.page import QUICK, Page
from vit_viz.ui.payload import bar_value, cells_value, picture_address, picture_value
from vit_viz.views.state import ViewState

_CONTROLS = ("query", "suffix", "style", "alpha", "table", "smooth")


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
    stage = Stage(None, answer=None, elem_id="vv-explain-picture")
    with gr.Accordion("Options and formula of this map", open=False, elem_classes="vv-formula"):
        formula = gr.HTML(words.formulas((start.formula, start.source)), apply_default_css=False)
        query = gr.Radio(
            ["class"],
            value="class",
            label="from which token (or “choose the query” on the photo)",
            elem_classes="vv-inline",
        )
        suffix = gr.Dropdown([], label="or from a token after the patches", visible=False)
        options = option_controls.build()
        start_drawing = DrawingOptions()
        style = gr.Radio(list(STYLES), value=start_drawing.style, label="style", elem_classes="vv-inline")
        with gr.Row():
            alpha = gr.Slider(0, 1, start_drawing.alpha, step=0.05, label="strength")
            tables = list(get_args(Table))
            table = gr.Dropdown(tables, value=start_drawing.table, label="colours of heat", visible=False)
            smooth = gr.Checkbox(start_drawing.smooth, label="smooth")
    return Staged(stage, formula, query, suffix, options, style, alpha, table, smooth)


def wire(tab: Staged, page: Page) -> None:
    """Let the controls change the view, draw it, and answer what is taken away."""
    for name in ("query", "alpha", "table", "smooth"):
        control = getattr(tab, name)
        page.action(control.input, _option(name), inputs=[control])
    page.action(tab.style.input, _with_style, inputs=[tab.style])
    for option in tab.options:
        page.action(option.component.input, _option(option.link_name), inputs=[option.component])
    page.action(tab.suffix.input, _option("query"), inputs=[tab.suffix])
    page.gesture(tab.stage.pick, lambda view, owner, data: pick(page.session, view, owner, data))
    page.gesture(tab.stage.step, lambda view, owner, data: step(page.session, view, owner, data))

    def remove(view: ViewState, event: gr.EventData) -> Any:
        data = dict(event._data or {})
        said = {"seq": data.get("seq"), "key": str(data.get("key", ""))[:600]}
        try:
            questions = Questions.of(page, view, OWNER.get())
            return gr.update(answer=said | answer_value(questions, str(data.get("gone", ""))))
        except Exception as error:
            return gr.update(answer=said | {"error": sentence(error)})

    tab.stage.remove(remove, [page.view], [tab.stage], **QUICK)
    controls = [tab.formula, *(getattr(tab, name) for name in _CONTROLS)]
    outputs = [tab.stage, *controls, *(option.component for option in tab.options)]
    page.drawing("explain", partial(_draw, tab.options), outputs)


def _option(name: str) -> Any:
    def reduce(view: ViewState, value: Any) -> ViewState:
        return view.after_action().with_options({name: value})

    return reduce


def _with_style(view: ViewState, style: Any) -> ViewState:
    """Another style, with the strength that it starts with."""
    strength = STRENGTHS.get(style, view.drawing.alpha)
    return view.after_action().with_options({"style": style, "alpha": strength})


def _draw(
    options: tuple[OptionControl, ...], page: Page, view: ViewState, owner: str
) -> Iterator[tuple[Any, ...]]:
    """Dim, then the map with its caption, and the controls as they hold for this model."""
    others = [gr.skip()] * (1 + len(_CONTROLS) + len(options))
    yield {"revision": view.revision, "busy": True}, *others
    try:
        yield _drawn(options, page, view, owner)
    except Exception as error:
        yield {"revision": view.revision, "error": sentence(error)}, *others


def _drawn(options: tuple[OptionControl, ...], page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    shown = _shown(Questions.of(page, view, owner))
    method, view, trace = shown.method, shown.view, shown.questions.trace
    updates = [
        option.update(view, trace.num_layers, visible=option.method == method.name) for option in options
    ]
    return stage_value(shown), *_controls(view, method, trace.layout), *updates


@dataclass(frozen=True)
class Shown:
    """What stands on the stage: the method, which may not be the chosen one, its map, and what had to give way in sentences."""

    questions: Questions
    view: ViewState
    method: AnyMethod
    patch_map: PatchMap
    problems: tuple[str, ...]


def _shown(questions: Questions) -> Shown:
    """The chosen map; a slow one that was not made gives way to the first quick one."""
    session, subject, trace = questions.page.session, questions.subject, questions.trace
    view, problems = questions.targeted.view.fitted(
        layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout
    )
    method = card_named(view.method)
    if method.is_slow and not session.keeps(pictures.explanation_request(session, subject, view)):
        usual = METHODS.usual
        problems += (
            f"{method.words.label} takes longer: its card computes it. {usual.words.label} is shown instead.",
        )
        method, view = usual, replace(view, method=usual.name)
    return Shown(questions, view, method, pictures.explanation(session, subject, view), problems)


def stage_value(shown: Shown) -> dict[str, Any]:
    """The picture of the map, the numbers of its patches, their order, and what the model says of the whole photo."""
    questions, view, patch_map = shown.questions, shown.view, shown.patch_map
    session, subject, trace = questions.page.session, questions.subject, questions.trace
    drawn, (low, high), scale = pictures.on_scale(session, subject, view, patch_map)
    style, why = pictures.style_of(session, subject, view, signed=drawn.signed)
    box = trace.crop_box
    assert box is not None  # a session traces photos, which have one
    height, width = box.original_size
    value = picture_value(
        view,
        picture_address(session, subject, view, "explain"),
        caption=_caption(shown, scale, why or style),
        trace=trace,
        area=(0.0, 0.0, float(height), float(width)),
        bar=bar_value(
            low, high, table="diverging" if drawn.signed else view.drawing.table, unit=drawn.unit, style=style
        ),
        note=" ".join([*shown.problems, patch_map.note, _prefix_words(patch_map)]).strip(),
        pick=shown.method.takes_query,
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
    }


def _caption(shown: Shown, scale: str, style: str) -> str:
    view, method, how = shown.view, shown.method, shown.view.drawing
    target = shown.questions.targeted.words or "its own embedding"
    parts = [
        view.model,
        shown.patch_map.caption.split(", towards the ")[0],
        view.options_of(method.name).caption(),
        "the same for every class" if method.words.class_blind else f"for {target}",
        _not_followed(view, method, shown.questions.trace),
        f"scale: {scale}",
        drawn_words(style, smooth=how.smooth, alpha=how.alpha),
    ]
    return " · ".join(part for part in parts if part)


def _not_followed(view: ViewState, method: AnyMethod, trace: Trace) -> str:
    """That a pinned token does not matter to this map, where it does not."""
    if not view.query or method.takes_query or view.query == trace.layout.default_query:
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
        query for query in dict.fromkeys([layout.default_query, *layout.prefix]) if query not in layout.suffix
    ]
    suffix = list(layout.suffix)
    query = view.query or layout.default_query
    return (
        words.formulas((method.words.formula, method.words.source)),
        gr.update(
            choices=queries,
            value=query if query in queries else None,
            visible=method.takes_query,
        ),
        gr.update(
            choices=suffix,
            value=query if query in suffix else None,
            visible=method.takes_query and bool(suffix),
        ),
        gr.update(value=view.drawing.style),
        gr.update(value=view.drawing.alpha),
        gr.update(value=view.drawing.table, visible=view.drawing.style == "heat"),
        gr.update(value=view.drawing.smooth),
    )
