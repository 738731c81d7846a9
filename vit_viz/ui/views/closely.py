"""A closer look at one map of the Explain tab: large, with its options, its formula and what it does not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from vit_viz.capture import Trace
from vit_viz.geometry import TokenLayout
from vit_viz.render.lettering import number
from vit_viz.results import PatchMap
from vit_viz.ui import pictures
from vit_viz.ui.aims import aimed
from vit_viz.ui.boundary import sentence
from vit_viz.ui.choices import subject_of
from vit_viz.ui.methods import FAST_METHODS, METHODS, Method, method_named
from vit_viz.ui.page import Page
from vit_viz.ui.parts import Picture
from vit_viz.ui.payload import bar_value, cells_value, picture_address, picture_value
from vit_viz.ui.state import ViewState
from vit_viz.ui.views import words
from vit_viz.ui.views.queries import pick, step


@dataclass(frozen=True)
class Closely:
    """The components of the closer look."""

    words: gr.HTML
    formula: gr.HTML
    method: gr.Dropdown
    query: gr.Radio
    suffix: gr.Dropdown
    share: gr.Slider
    fusion: gr.Radio
    discard: gr.Slider
    first: gr.Slider
    last: gr.Slider
    alpha: gr.Slider
    table: gr.Dropdown
    smooth: gr.Checkbox
    picture: Picture


def build() -> Closely:
    """Lay out the closer look."""
    start = FAST_METHODS[0]
    words.section("A closer look")
    with gr.Row(elem_classes="vv-view"):
        with gr.Column(scale=3, min_width=320):
            picture = Picture(elem_id="vv-explain-picture")
        with gr.Column(scale=2, min_width=280, elem_classes="vv-controls"):
            said = words.explain(shows=start.shows, hides=start.hides)
            method = gr.Dropdown(
                [(m.label, m.name) for m in METHODS],
                value=start.name,
                label="method",
            )
            query = gr.Radio(
                ["class"],
                value="class",
                label="whose rollout (or click a patch in the photo)",
                elem_classes="vv-inline",
            )
            suffix = gr.Dropdown([], label="or whose: a token after the patches", visible=False)
            with gr.Row():
                share = gr.Slider(0, 1, 0.5, step=0.05, label="attention share")
                discard = gr.Slider(0, 0.95, 0, step=0.05, label="discard ratio")
            fusion = gr.Radio(
                ["mean", "max", "min"], value="mean", label="head fusion", elem_classes="vv-inline"
            )
            with gr.Row():
                first = gr.Slider(0, 1, 0, step=1, label="first layer")
                last = gr.Slider(0, 1, 1, step=1, label="last layer")
            with gr.Accordion("drawing", open=False), gr.Row():
                alpha = gr.Slider(0, 1, 0.55, step=0.05, label="overlay strength")
                table = gr.Dropdown(["viridis", "magma", "cividis", "gray"], value="viridis", label="colours")
                smooth = gr.Checkbox(False, label="smooth")
            formula = words.formula((start.formula, start.source))
    return Closely(
        said,
        formula,
        method,
        query,
        suffix,
        share,
        fusion,
        discard,
        first,
        last,
        alpha,
        table,
        smooth,
        picture,
    )


def wire(tab: Closely, page: Page) -> None:
    """Let the controls change the view, and draw it."""
    for name in (
        "method",
        "query",
        "share",
        "fusion",
        "discard",
        "first",
        "last",
        "alpha",
        "table",
        "smooth",
    ):
        control = getattr(tab, name)
        page.action(control.input, _option(name), inputs=[control])
    page.action(tab.suffix.input, _option("query"), inputs=[tab.suffix])
    page.gesture(tab.picture.pick, lambda view, owner, data: pick(page.session, view, owner, data))
    page.gesture(tab.picture.step, lambda view, owner, data: step(page.session, view, owner, data))
    outputs = [tab.picture, tab.words, tab.formula, tab.method, tab.query, tab.suffix, tab.share]
    outputs += [tab.fusion, tab.discard, tab.first, tab.last, tab.alpha, tab.table, tab.smooth]
    page.drawing("explain", _draw, outputs)


def _option(name: str) -> Any:
    def reduce(view: ViewState, value: Any) -> ViewState:
        return view.next_turn().with_options({name: value})

    return reduce


def _draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
    """Dim, then the map with its caption, and the controls as they hold for this model."""
    yield {"turn": view.turn, "busy": True}, *(gr.skip() for _ in range(13))
    try:
        yield _drawn(page, view, owner)
    except Exception as error:
        yield {"turn": view.turn, "error": sentence(error)}, *(gr.skip() for _ in range(13))


def _drawn(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    session = page.session
    subject = subject_of(session, view, owner)
    trace = session.trace(subject.model, subject.image, mode=subject.mode, owner=owner)
    aim = aimed(session, subject, view)
    view, problems = aim.view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    method = method_named(view.method)
    if method.runs and not session.keeps(pictures.explanation_request(session, subject, view)):
        problems += (
            f"{method.label} takes longer: its button above makes it. {FAST_METHODS[0].label} is shown instead.",
        )
        method = FAST_METHODS[0]
        view = replace(view, method=method.name)
    found = pictures.explanation(session, subject, view)
    drawn, (low, high), scale = pictures.on_scale(session, subject, view, found)
    what = found.caption.split(", towards the ")[0]
    aims = (
        "class-blind, the same for every class"
        if method.class_blind
        else f"for {aim.words or 'its own embedding'}"
    )
    parts = [
        view.model,
        what,
        _how(view, method),
        aims,
        _not_followed(view, method, trace),
        f"scale: {scale}",
        f"overlay {view.alpha:.0%}",
    ]
    caption = " · ".join(part for part in parts if part)
    height, width = found.crop_box.original_size if found.crop_box else (1, 1)
    value = picture_value(
        view,
        picture_address(session, subject, view, "explain"),
        caption=caption,
        trace=trace,
        area=(0.0, 0.0, float(height), float(width)),
        bar=bar_value(low, high, table="diverging" if drawn.signed else view.table, unit=drawn.unit),
        note=" ".join([*problems, found.note, _prefix_words(found)]).strip(),
    )
    value["cells"] = cells_value(drawn)
    return value, *_controls(view, method, trace.num_layers, trace.layout)


def _not_followed(view: ViewState, method: Method, trace: Trace) -> str:
    """That a pinned token does not matter to this map, where it does not."""
    if not view.query or "query" in method.options or view.query == trace.layout.default_query:
        return ""
    return f"explains the output, not the pinned {trace.layout.describe(view.query_of(trace.layout))}"


def _how(view: ViewState, method: Method) -> str:
    """The options that shaped the map, in words."""
    words_of = {
        "share": f"attention share {view.share:g}",
        "fusion": f"{view.fusion} over heads",
        "discard": f"discard {view.discard:g}" if view.discard else "",
    }
    return ", ".join(words_of[option] for option in method.options if words_of.get(option))


def _prefix_words(found: PatchMap) -> str:
    """What fell on other tokens, which no map over the photo shows; the registers as one, suffix tokens by kind."""
    prefix = found.prefix
    known = {name: value for name, value in prefix.items() if not name.startswith("register")}
    if len(known) < len(prefix):
        known["registers"] = sum(prefix.values()) - sum(known.values())
    known |= found.suffix_kinds
    is_share = found.value_range[1] <= 1.0
    parts = [f"{name} {f'{value:.1%}' if is_share else number(value)}" for name, value in known.items()]
    return f"Outside the photo: {', '.join(parts)}." if parts else ""


def _controls(view: ViewState, method: Method, layers: int, layout: TokenLayout) -> tuple[Any, ...]:
    """Updates for everything but the picture, in the order of `wire`."""
    has = {option: option in method.options for option in ("share", "fusion", "discard", "layers")}
    top = max(layers - 1, 1)
    queries = [
        query for query in dict.fromkeys([layout.default_query, *layout.prefix]) if query not in layout.suffix
    ]
    suffix = list(layout.suffix)
    query = view.query or layout.default_query
    return (
        words.sentences(shows=method.shows, hides=method.hides),
        words.formulas((method.formula, method.source)),
        gr.update(value=method.name),
        gr.update(
            choices=queries,
            value=query if query in queries else None,
            visible="query" in method.options,
        ),
        gr.update(
            choices=suffix,
            value=query if query in suffix else None,
            visible="query" in method.options and bool(suffix),
        ),
        gr.update(value=view.share, visible=has["share"]),
        gr.update(value=view.fusion, visible=has["fusion"]),
        gr.update(value=view.discard, visible=has["discard"]),
        gr.update(value=view.first, maximum=top, visible=has["layers"]),
        gr.update(value=view.last, maximum=top, visible=has["layers"]),
        gr.update(value=view.alpha),
        gr.update(value=view.table),
        gr.update(value=view.smooth),
    )
