"""The Explain tab: why the model said this, by all methods side by side, and how far each map can be trusted."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import gradio as gr

from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.spec import AnyMethod
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.session.handles import PAGE
from vit_viz.ui import pictures
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain import trust
from vit_viz.ui.explain.answers import map_value
from vit_viz.ui.explain.questions import Questions, shows_maps
from vit_viz.ui.jobs import News, Stops, steps
from vit_viz.ui.kit import WebRoom, words
from vit_viz.ui.page import Page, Tab
from vit_viz.ui.pictures import card_named
from vit_viz.views.state import ViewState


def build(page: Page) -> None:
    """Lay out the tab: the question above, the stage at the left, the cards and what is known of them at the right."""
    WebRoom("explain")
    with gr.Row(elem_classes="vv-view", elem_id="vv-explain-columns"):
        with gr.Column(scale=2, min_width=320):
            WebRoom("explain", part="stage")
        with gr.Column(scale=3, min_width=320):
            gallery = WebRoom("explain", part="gallery", tells=_TOLD, trust=None, progress=None, weights=None)
            _how_trust_is_measured()
            checked = trust.build_sanity()
    stops = Stops()
    _wire_jobs(gallery, page, stops)
    trust.wire_sanity(checked, gallery, page)


_TOLD = ("made", "compute", "stop", "trust")


def _wire_jobs(gallery: WebRoom, page: Page, stops: Stops) -> None:
    """Run what is asked for by a button; a map that was made and is chosen is drawn on the stage."""
    news = News()
    page.gesture(gallery.made, lambda view, _owner, _data: view.after_action())

    def stop(_view: ViewState, _owner: str, data: dict[str, Any]) -> None:
        stops.stop(PAGE.get(), str(data.get("name", ""))[:40] or "nothing")

    def compute(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        method, questions = _method(data), Questions.of(page, view, owner)
        yield from _computed(questions, method, stops.start(PAGE.get(), method.name, questions.key), news)

    def test(view: ViewState, owner: str, data: dict[str, Any]) -> Iterator[Any]:
        names = [*data.get("known", []), *data.get("methods", [])]
        methods = [method for method in METHODS.cards if method.name in names]
        questions = Questions.of(page, view, owner)
        yield from trust.tested(questions, methods, stops.start(PAGE.get(), "trust", questions.key))

    page.reply(gallery.stop, stop)

    def end_others(_page: Page, view: ViewState, owner: str) -> Iterator[tuple[()]]:
        with suppress(VitVizError):  # the room says it
            if shows_maps(view):
                stops.keep_only(PAGE.get(), Questions.of(page, view, owner).key)
        yield ()

    page.job(gallery.compute, compute, [gallery])
    page.job(gallery.trust, test, [gallery])
    page.drawing("explain", end_others, [])


def _how_trust_is_measured() -> None:
    words.formula(
        (
            r"deletion: area under $p(\mathrm{target})$ while the map's best patches are painted over, the lower the better;  "
            "insertion: while they are put back into a blurred photo, the higher the better",
            "20 steps; gray marks where 95% of random orders lie (10 orders: mean ± 2.37 standard deviations of their log-odds). "
            "A card's “x faster” is the mean area of random orders over that of the map, in deletion. Of two classes, the lead "
            "$z_a - z_b$ takes the place of the probability, in logits, and its band is that of the areas themselves, as is that "
            "of an output that is a value. "
            "Petsiuk et al. 2018, arXiv:1806.07421, on patches.",
        ),
        (
            r"changes with the class: $1 - \rho(m_1, m_2)$, the maps $m_1$ and $m_2$ for two classes; mirrored photo, mirrored "
            r"map: $\rho(m, m')$, with $m'$ the map of the mirrored photo, mirrored back",
            r"$\rho$: Spearman's rank correlation. Class 0: the map is the same whatever the class. Mirror 1: the map does not "
            "mind a mirror.",
        ),
        title="How this is measured",
    )


def _shows(view: ViewState) -> Hashable:
    # a slow map may have been computed since the view was drawn: with it each action draws anew, from what is kept
    method = METHODS.get(view.method)
    since = view.revision if method and method.is_slow else 0
    return view.about, view.query, view.method, since, view.target, view.options


def _method(data: dict[str, Any]) -> AnyMethod:
    return card_named(str(data.get("method", "")))


# --- long work


def _computed(
    questions: Questions, method: AnyMethod, stop: threading.Event, news: News
) -> Iterator[dict[str, Any]]:
    """Follow a slow method to its map."""
    if not method.is_slow:
        raise ParameterError(f"{method.words.label} needs no waiting.")
    page, view = PAGE.get(), questions.view(method)

    def tell(**said: Any) -> dict[str, Any]:
        return gr.update(progress=news.tell(page, questions.key, method.name, **said))

    yield tell(share=0.0, words="Starting …")
    try:
        run = partial(pictures.explanation, questions.page.session, questions.subject, view)
        for step in steps(run, stop):
            if step.is_last:
                yield tell(map=map_value(questions, method, step.result))
            else:
                yield tell(share=step.share, words=f"{step.far} of {method.words.runs}")
    except Exception as error:
        yield tell(error=sentence(error))
    yield gr.update(progress=news.latest(page, questions.key))  # what others said while this was on its way


TAB = Tab(
    "explain",
    "Explain",
    build,
    shows=_shows,
    about="Which patches made the model say a class, by many methods, and which of them deserve trust.",
)
