"""Choosing a model: the page stays on the one it has until the new one is there, and says how far that is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.header.loading import Loads, Value
from vit_viz.ui.kit import Loading
from vit_viz.ui.page import QUICK, Page
from vit_viz.views import choices
from vit_viz.views.state import ViewState


@dataclass
class Outcome:
    """How waiting for a model ended.

    Args:
        name: of the model, as the page calls it.
        problem: why it is not there, in one sentence; "" where it is.
        is_replaced: another model was chosen meanwhile, and the wait for that one continues.
    """

    name: str
    problem: str = ""
    is_replaced: bool = False


async def fetched(page: Page, loads: Loads, page_id: str, outcome: Outcome) -> AsyncIterator[Value]:
    """Values for the part that follows a download, until the model is there or the wait ended; `outcome` says which."""
    waiting = loads.begin(page_id)
    try:
        ref = choices.model_reference(page.session, outcome.name)
        async for value in loads.until_loaded(ref, page_id, waiting):
            yield value
    except Exception as error:
        outcome.problem = sentence(error)
    if waiting.ended == "cancelled":
        outcome.problem = f"The download of {outcome.name} was cancelled; nothing of it was kept."
    outcome.is_replaced = waiting.ended == "replaced"


def wire(picker: gr.Dropdown, loading: Loading, page: Page, loads: Loads) -> None:
    """Let the picker choose a model, and the part beside it end its download."""

    async def choose(
        request: gr.Request, view: ViewState, name: str | None
    ) -> AsyncIterator[tuple[Any, ...]]:
        unchanged = tuple(gr.skip() for _ in page.outputs)
        page_id = request.session_hash or ""
        outcome = Outcome(str(name or "").strip())
        async for value in fetched(page, loads, page_id, outcome):
            yield value, gr.skip(), *unchanged
        if outcome.is_replaced:
            return
        if outcome.problem and view.model:  # the page stays as it is
            yield {"error": outcome.problem}, gr.update(value=view.model), *unchanged
            return
        model = "" if outcome.problem else outcome.name
        changed = page.changed(request, view, lambda newest: _on_model(page, newest, model))
        yield {"error": outcome.problem}, gr.skip(), *changed

    def cancel(request: gr.Request) -> None:
        loads.cancel(request.session_hash or "")

    picker.input(choose, [page.view, picker], [loading, picker, *page.outputs], **QUICK)
    loading.stop(cancel, [], [], **QUICK)


def _on_model(page: Page, view: ViewState, name: str) -> ViewState:
    """The view on the model that was chosen; on the own model, saying so, where there is no such name."""
    view, problems = choices.settled(page.session, view.on_subject(model=name))
    return view.after_action(notes=problems)
