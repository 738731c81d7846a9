"""The causal map on the page: what it costs, and how far it is while it runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, get_args

import gradio as gr

from vit_viz.analyses.ablation import CausalMap
from vit_viz.analyses.head_estimate import Ablation
from vit_viz.progress import Progress, StopCheck
from vit_viz.session.handles import PAGE
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.explain.gallery import duration
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.heads.answers import Numbers, asked, causal_value
from vit_viz.ui.visit.jobs import News, steps
from vit_viz.views.state import ViewState

STOPPED = "Stopped; the heads that were done are shown."
PASSES_PER_HEAD = 0.45
"""Of a whole one: a run starts behind the layers before its head."""


def view_of(questions: Questions, how: str | None = None) -> ViewState:
    """The view with its target fixed, and perhaps another way of switching off."""
    view = questions.targeted.view
    return view if how is None else view.with_options({"how": how})


def cost_words(questions: Questions) -> str:
    """How often the model runs for a causal map and, where a pass was measured, about how long that takes."""
    heads = questions.trace.num_layers * questions.trace.num_heads
    words = f"switches off {heads} heads, one after the other, at about half a pass each"
    seconds = questions.page.session.pass_seconds(questions.subject)
    return words if seconds is None else f"{words}: about {duration(seconds * PASSES_PER_HEAD * heads)}"


def known_maps(questions: Questions) -> dict[str, Numbers]:
    """The causal maps that are kept, by the way of switching off."""
    session, maps = questions.page.session, {}
    for how in get_args(Ablation):
        request = asked(questions.subject, view_of(questions, how), "causal map")
        if session.keeps(request):
            causal = session.run(request)
            assert isinstance(causal, CausalMap)
            maps[how] = causal_value(causal)
    return maps


def followed(questions: Questions, stop: threading.Event, news: News) -> Iterator[dict[str, Any]]:
    """Follow a causal map from its first batch to its last."""
    page, view = PAGE.get(), view_of(questions)
    how, session = view.heads.how, questions.page.session
    request, shown = asked(questions.subject, view, "causal map"), deque[CausalMap](maxlen=1)

    def run(progress: Progress, cancelled: StopCheck) -> Any:
        return session.run(request, progress=progress, cancelled=cancelled, preview=shown.append)

    def tell(**said: Any) -> dict[str, Any]:
        there = causal_value(shown[0]) if shown else {}
        return gr.update(causal=news.tell(page, questions.key, how, **(there | said)))

    yield tell(running=True, share=0.0)
    try:
        for step in steps(run, stop):
            if step.is_last:
                shown.append(step.result)
            yield tell(running=not step.is_last, share=step.share)
    except Exception as error:
        yield tell(running=False, error=STOPPED if shown and stop.is_set() else sentence(error))
    yield gr.update(causal=news.latest(page, questions.key))  # what others said while this was on its way
