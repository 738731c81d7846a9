"""The pass through the model that all tabs wait for: where it takes a while, how far it is, and a button that ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from vit_viz.session.handles import PAGE
from vit_viz.ui.jobs import Step, steps
from vit_viz.ui.page import Page
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState

QUIET_SECONDS = 0.7
"""What is done sooner shows no bar."""


def follow(page: Page, view: ViewState, owner: str) -> Iterator[dict[str, Any]]:
    """How far the pass is, from a while after it began until it is there; what goes wrong is said by those who draw of it."""
    session, is_shown = page.session, False
    with suppress(Exception):
        run = partial(session.run, subject_of(session, view, owner).request("trace"))
        for step in steps(run, threading.Event(), quiet=QUIET_SECONDS):
            if not step.is_last:
                is_shown = True
                yield _value(view, step)
        page.views.has_shown(PAGE.get(), view.about)
    if is_shown:
        yield {}


def cancelled(page: Page, page_id: str, owner: str) -> tuple[Any, ...]:
    """The values for the page's outputs once what is computed for a page was ended: the view that it left for this pass.

    Where it left none, as on arrival, it stays on this one, and all that is drawn of it says that it was ended.
    """
    left = page.views.before_pass(page_id)
    answer = tuple(gr.skip() for _ in page.outputs)
    if left is not None:

        def again(newest: ViewState) -> ViewState:
            now = {name: getattr(newest, name) for name in ("tab", "arrival", "told")}
            return replace(left, **now).after_action(revision=newest.revision + 1)

        before, view = page.views.apply(page_id, left, again)
        answer = page.after(before, view, push=False)
    page.session.end_computations(owner)
    return answer


def _value(view: ViewState, step: Step) -> dict[str, Any]:
    amount = step.far if step.share else ""
    return {"words": f"Running {view.model} …", "amount": amount, "share": step.share or None, "stop": True}
