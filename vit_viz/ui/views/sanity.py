"""The sanity check of the Explain tab: does the chosen map depend on what the model has learned?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from vit_viz.render.figures import curve_figure
from vit_viz.results import Curve
from vit_viz.session import Request
from vit_viz.ui.aims import aimed
from vit_viz.ui.boundary import guarded, sentence
from vit_viz.ui.choices import subject_of
from vit_viz.ui.methods import aim_of, method_named
from vit_viz.ui.page import DRAWING, QUICK, Page
from vit_viz.ui.parts.explanation import Meter
from vit_viz.ui.state import ViewState
from vit_viz.ui.views import words
from vit_viz.ui.watching import Stops, steps

_LABEL = "Re-initialise the weights, step by step"


@dataclass(frozen=True)
class Sanity:
    """The components of the check."""

    meter: Meter
    caption: gr.HTML
    curve: gr.Plot
    stops: Stops = field(default_factory=Stops)


def build() -> Sanity:
    """Lay out the check."""
    words.section(
        "Does the map show the model, or only the photo?",
        "The head and then block after block lose what they learned. A map that depends on it falls apart, and the curve falls; a "
        "curve that stays near 1 means that the map shows the photo, not the model (Adebayo et al. 2018, arXiv:1810.03292).",
    )
    meter = Meter({"label": _LABEL}, elem_id="vv-sanity")
    caption = gr.HTML("", elem_classes="vv-plot-caption", apply_default_css=False)
    curve = gr.Plot(show_label=False, container=False, elem_id="vv-sanity-curve", buttons=[], visible=False)
    return Sanity(meter, caption, curve)


def wire(sanity: Sanity, page: Page) -> None:
    """Run the check when it is asked for; another map empties it."""

    @guarded
    def start(view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
        yield from _checked(page, view, owner, sanity.stops.start(owner, "sanity", _about(view)))

    @guarded
    def stop(owner: str) -> None:
        sanity.stops.stop(owner, "sanity")

    def draw(page: Page, view: ViewState, owner: str) -> Iterator[tuple[Any, ...]]:
        sanity.stops.keep_only(owner, _about(view))
        yield _known(page, view, owner)

    outputs = [sanity.meter, sanity.caption, sanity.curve]
    sanity.meter.start(start, [page.view, page.owner], outputs, **DRAWING | {"trigger_mode": "multiple"})
    sanity.meter.stop(stop, [page.owner], None, **QUICK)
    page.drawing("explain", draw, outputs)


def _about(view: ViewState) -> str:
    return f"{view.model}|{view.image}|{view.mode}|{view.target}|{view.method}"


def _request(page: Page, view: ViewState, owner: str) -> Request:
    subject = subject_of(page.session, view, owner)
    aim = aimed(page.session, subject, view)
    return Request.of(
        subject.model,
        subject.image,
        "randomisation",
        mode=subject.mode,
        owner=owner,
        method=view.method,
        target=aim_of(aim.view),
    )


def _known(page: Page, view: ViewState, owner: str) -> tuple[Any, ...]:
    """The curve of the chosen map where it is at hand, else nothing but the button."""
    label = method_named(view.method).label
    meter = {"label": _LABEL, "words": f"For {label}.", "turn": view.turn}
    try:
        request = _request(page, view, owner)
        if page.session.keeps(request):
            return _shown(page.session.run(request), label, meter)
    except Exception as error:
        return meter | {"words": sentence(error)}, "", gr.update(visible=False)
    return meter, "", gr.update(visible=False)


def _shown(curve: Any, label: str, meter: dict[str, Any]) -> tuple[Any, ...]:
    assert isinstance(curve, Curve)
    return (
        meter,
        words.plain(_outcome(label, curve)),
        gr.update(value=curve_figure({label: curve}), visible=True),
    )


def _checked(page: Page, view: ViewState, owner: str, stop: threading.Event) -> Iterator[tuple[Any, ...]]:
    """Follow the check of the chosen method to its curve."""
    method = method_named(view.method)
    none = gr.skip(), gr.skip()
    if method.runs:
        text = f"{method.label} would have to be made anew for every block; choose one of the quick maps."
        yield {"label": _LABEL, "error": text, "turn": view.turn}, *none
        return
    yield {"label": _LABEL, "share": 0.0, "words": f"{method.label}: the trained model …"}, *none
    try:
        request = _request(page, view, owner)
        for step in steps(lambda p, c: page.session.run(request, progress=p, cancelled=c), stop):
            if step.is_last:
                meter = {"label": _LABEL, "words": f"For {method.label}.", "done": view.turn}
                yield _shown(step.found, method.label, meter)
            else:
                said = f"{method.label}: {step.share:.0%}"
                yield {"label": _LABEL, "share": step.share, "words": said}, *none
    except Exception as error:
        yield {"label": _LABEL, "error": sentence(error), "turn": view.turn}, *none


def _outcome(label: str, curve: Curve) -> str:
    """What the curve says, in one sentence."""
    last = float(curve.y[-1])
    verdict = (
        "it depends on what the model learned"
        if abs(last) < 0.5
        else "much of it does not depend on what the model learned"
    )
    return f"{label}: with everything re-initialised, the map's rank correlation with the original is {last:.2f}; {verdict}."
