"""The sanity check of the Explain tab: does the chosen map depend on what the model has learned?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from vit_viz.analyses.spec import AnyMethod
from vit_viz.render.figures import captioned_figure, curve_figure
from vit_viz.results import Curve
from vit_viz.session.handles import OWNER, PAGE
from vit_viz.ui.edge.user_errors import guarded, sentence
from vit_viz.ui.explain.methods import card_named
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.kit import Gallery, Meter, words
from vit_viz.ui.page import LONG, QUICK, Page
from vit_viz.ui.visit.jobs import Stops, steps
from vit_viz.views.state import ViewState

_LABEL = "Re-initialise the weights, step by step"
_WHY = (
    "The head and then block after block lose what they learned. A map that depends on it falls apart, and the curve falls; one "
    "that stays near 1 means that the map shows the photo, not the model (Adebayo et al. 2018, arXiv:1810.03292)."
)


@dataclass(frozen=True)
class Sanity:
    """The components of the check."""

    meter: Meter
    caption: gr.HTML
    curve: gr.Plot
    stops: Stops = field(default_factory=Stops)


def build() -> Sanity:
    """Lay out the check."""
    title = "Does the map show the model, or only the photo? Re-initialise the weights"
    with gr.Accordion(title, open=False, elem_classes="vv-formula", elem_id="vv-sanity-fold"):
        gr.HTML(words.plain(_WHY), apply_default_css=False)
        meter = Meter({"label": _LABEL}, elem_id="vv-sanity")
        caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
        curve = gr.Plot(
            show_label=False, container=False, elem_id="vv-sanity-curve", buttons=[], visible=False
        )
    return Sanity(meter, caption, curve)


def wire(sanity: Sanity, gallery: Gallery, page: Page) -> None:
    """Run the check when it is asked for; another map empties it. What it found is said in the gallery too."""

    @guarded
    def start(view: ViewState) -> Iterator[tuple[Any, ...]]:
        stop = sanity.stops.start(PAGE.get(), "sanity", _about(view))
        yield from _checked(page, view, OWNER.get(), stop)

    @guarded
    def stop() -> None:
        sanity.stops.stop(PAGE.get(), "sanity")

    def draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
        sanity.stops.keep_only(PAGE.get(), _about(view))
        yield _known(page, view, owner)

    outputs = [sanity.meter, sanity.caption, sanity.curve, gallery]
    sanity.meter.start(start, [page.view], outputs, **LONG)
    sanity.meter.stop(stop, [], None, **QUICK)
    page.drawing("explain", draw, outputs)


def _about(view: ViewState) -> str:
    return f"{view.about}|{view.target}|{view.method}"


def _known(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    """The curve of the chosen map where it is at hand, else nothing but the button."""
    method = card_named(view.method)
    meter = {"label": _LABEL, "words": f"For {method.words.label}.", "revision": view.revision}
    try:
        questions = Questions.of(page, view, owner)
        request = questions.randomised_request(method)
        if page.session.keeps(request):
            return _shown(page.session.run(request), questions, method, meter)
    except Exception as error:
        meter |= {"words": sentence(error)}
    return meter, "", gr.update(visible=False), gr.skip()


def _shown(curve: Any, questions: Questions, method: AnyMethod, meter: dict[str, Any]) -> tuple[Any, ...]:
    assert isinstance(curve, Curve)
    outcome = _outcome(curve)
    label, view = method.words.label, questions.targeted.view
    name = questions.page.session.name_of(view.image, owner=questions.subject.owner)
    target = questions.targeted.words or "its own embedding"
    figure = captioned_figure(
        curve_figure({label: curve}),
        title=f"{label}, weights re-initialised",
        caption=f"{view.model} · {name} · for {target} · {outcome} · vit_viz",
    )
    return (
        meter,
        words.plain(f"{label}: {outcome}"),
        gr.update(value=figure, visible=True),
        gr.update(weights={"key": questions.key, "method": method.name, "words": outcome}),
    )


def _checked(page: Page, view: ViewState, owner: str, stop: threading.Event) -> Iterator[tuple[Any, ...]]:
    """Follow the check of the chosen method to its curve."""
    method = card_named(view.method)
    none = gr.skip(), gr.skip(), gr.skip()
    if method.is_slow:
        text = (
            f"{method.words.label} would have to be recomputed for every block; choose one of the quick maps."
        )
        yield {"label": _LABEL, "error": text, "revision": view.revision}, *none
        return
    yield {"label": _LABEL, "share": 0.0, "words": f"{method.words.label}: the trained model …"}, *none
    try:
        questions = Questions.of(page, view, owner)
        request = questions.randomised_request(method)
        for step in steps(lambda p, c: page.session.run(request, progress=p, cancelled=c), stop):
            if step.is_last:
                meter = {"label": _LABEL, "words": f"For {method.words.label}.", "done": view.revision}
                yield _shown(step.result, questions, method, meter)
            else:
                said = f"{method.words.label}: {step.share:.0%}"
                yield {"label": _LABEL, "share": step.share, "words": said}, *none
    except Exception as error:
        yield {"label": _LABEL, "error": sentence(error), "revision": view.revision}, *none


def _outcome(curve: Curve) -> str:
    """What the curve says, in one sentence."""
    last = float(curve.y[-1])
    verdict = (
        "it depends on what the model learned"
        if abs(last) < 0.5
        else "much of it does not depend on what the model learned"
    )
    return f"With all weights re-initialised, the map's rank correlation with the original is {last:.2f}: {verdict}."
