"""Choosing a model: the page stays on the one it has until the new one is there, and says how far that is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import gradio as gr

from vit_viz.checkpoints.catalog import entry_of
from vit_viz.errors import BusyError
from vit_viz.session.handles import OWNER
from vit_viz.session.session import Session
from vit_viz.ui.edge.user_errors import sentence
from vit_viz.ui.header import offers, passes
from vit_viz.ui.kit import Loading, Models
from vit_viz.ui.page import QUICK, Page
from vit_viz.views import choices
from vit_viz.views.state import ViewState

MOST_LOADS = 4
"""Models that are loaded at the same time; a request for another one is refused."""
_POLL_SECONDS = 0.15
Value = dict[str, Any]


@dataclass(eq=False)
class Waiting:
    """One page that waits for a model.

    Args:
        name: of the model, as the page calls it.
        arrival: number of the page's last arrival at an address, until now.
        ended: that its visitor cancelled, or chose another model, for which the page waits now.
        problem: why the model is not there, in one sentence; "" where it is.
        question: what the visitor is asked before it is downloaded; None where nothing has to be.
    """

    name: str = ""
    arrival: int = 0
    ended: Literal["", "cancelled", "replaced"] = ""
    problem: str = ""
    question: Value | None = None


async def fetched(page: Page, loads: Loads, page_id: str, waiting: Waiting) -> AsyncIterator[Value]:
    """Values for the part that follows a download, until the model is there or the wait ended; `waiting` says which."""
    try:
        ref = choices.model_reference(page.session, waiting.name)
        async for value in loads.until_loaded(ref, page_id, waiting):
            yield value
    except Exception as error:
        waiting.problem = sentence(error)
    if waiting.ended == "cancelled":
        waiting.problem = f"The download of {waiting.name} was cancelled; nothing of it was kept."


async def question_before(page: Page, loads: Loads, waiting: Waiting) -> AsyncIterator[Value]:
    """Values for the part that follows a download while the Hub is asked what would be fetched; `waiting` has the question."""
    try:
        ref = choices.model_reference(page.session, waiting.name)
        if offers.is_here(page.session, ref):
            return
        asking = loads.in_background(lambda: offers.download_question(ref))
        while not (asking.done() or waiting.ended):
            yield {"words": f"Looking for {waiting.name} …", "amount": "", "share": None, "stop": True}
            await asyncio.wait([asking], timeout=_POLL_SECONDS)
        waiting.question = asking.result() if asking.done() else None
    except Exception as error:
        waiting.problem = sentence(error)


def wire(picker: Models, loading: Loading, page: Page, loads: Loads) -> None:
    """Let the picker choose a model, ask before it is downloaded, and let the part beside it end the download."""

    async def choose(
        request: gr.Request, view: ViewState, event: gr.EventData
    ) -> AsyncIterator[tuple[Any, ...]]:
        unchanged = tuple(gr.skip() for _ in page.outputs)
        data, page_id = dict(event._data or {}), request.session_hash or ""
        waiting = loads.begin(page_id, str(data.get("name") or "").strip())
        if not data.get("agreed"):
            async for value in question_before(page, loads, waiting):
                yield value, gr.skip(), *unchanged
        if waiting.question or (waiting.ended and not waiting.problem):
            loads.end(page_id, waiting)
            if waiting.ended != "replaced":
                question = waiting.question and waiting.question | {"seq": data.get("seq", 0)}
                yield {}, gr.update(question=question), *unchanged
            return
        if not waiting.problem:
            async for value in fetched(page, loads, page_id, waiting):
                yield value, gr.skip(), *unchanged
        loads.end(page_id, waiting)
        if waiting.ended == "replaced":
            return
        if waiting.problem and view.model:  # the page stays as it is
            yield {"error": waiting.problem}, gr.skip(), *unchanged
            return
        model = "" if waiting.problem else waiting.name
        changed = page.changed(request, view, lambda newest: _on_model(page, newest, model))
        yield {"error": waiting.problem}, gr.skip(), *changed

    def cancel(request: gr.Request) -> tuple[Any, ...]:
        page_id = request.session_hash or ""
        if loads.cancel(page_id):
            return tuple(gr.skip() for _ in page.outputs)
        return passes.cancelled(page, page_id, OWNER.get())

    picker.choose(choose, [page.view], [loading, picker, *page.outputs], **QUICK)
    loading.stop(cancel, [], page.outputs, **QUICK)


def _on_model(page: Page, view: ViewState, name: str) -> ViewState:
    """The view on the model that was chosen; on the own model, saying so, where there is no such name."""
    view, problems = choices.settled(page.session, view.on_subject(model=name))
    return view.after_action(notes=problems)


@dataclass(eq=False)
class _Load:
    """One model that is being loaded."""

    done: int = 0
    total: int = 0
    waiting: int = 0
    error: BaseException | None = None
    over: threading.Event = field(default_factory=threading.Event)
    unwanted: threading.Event = field(default_factory=threading.Event)

    def note_progress(self, done: int, total: int) -> None:
        """Note how far the download is."""
        self.done, self.total = done, total

    def value(self, title: str) -> Value:
        """What the page shows meanwhile."""
        if not self.done:
            return {"words": f"Looking for {title} …", "amount": "", "share": None, "stop": True}
        if self.done == self.total:
            return {"words": f"Loading {title} …", "amount": "", "share": 1.0, "stop": True}
        megabytes = (
            f"{self.done / 1e6:.0f} of {self.total / 1e6:.0f} MB"
            if self.total
            else f"{self.done / 1e6:.0f} MB"
        )
        share = self.done / self.total if self.total else None
        return {"words": f"Downloading {title}", "amount": megabytes, "share": share, "stop": True}


class Loads:
    """What is being loaded for the pages of a session, and which page waits for it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._running: dict[str, _Load] = {}
        self._pages: dict[str, Waiting] = {}
        self._askers = ThreadPoolExecutor(MOST_LOADS, thread_name_prefix="hub-question")

    def begin(self, page: str, name: str = "", arrival: int | None = None) -> Waiting:
        """Begin the wait of a page for a model of a name, in place of what it waited for before.

        Args:
            arrival: its number, where this is one; of two, the later stands, in whichever order they come.
        """
        with self._lock:
            before = self._pages.get(page) or Waiting()
            waiting = Waiting(name, before.arrival if arrival is None else arrival)
            if waiting.arrival < before.arrival:
                waiting.ended = "replaced"
                return waiting
            before.ended = "replaced"
            self._pages[page] = waiting
        return waiting

    def cancel(self, page: str) -> bool:
        """End the wait of a page; returns whether it waited."""
        with self._lock:
            waiting = self._pages.get(page)
            if waiting is not None:
                waiting.ended = "cancelled"
        return waiting is not None

    async def until_loaded(self, ref: str, page: str, waiting: Waiting) -> AsyncIterator[Value]:
        """How far a model is, until the session has it, or the wait ended.

        Args:
            ref: as `Session.model` takes it.
            page: who waits, as it was said to `begin`.

        Raises:
            BusyError: too many other models are being loaded.
            Exception: whatever loading it raised.
        """
        try:
            if not (waiting.ended or self._session.has_model(ref)):
                entry = entry_of(ref)
                with self._wanted(ref) as load:
                    async for value in _followed(load, entry.title if entry else ref, waiting):
                        yield value
                    if load.error is not None and not waiting.ended:
                        raise load.error
        finally:
            self.end(page, waiting)

    def end(self, page: str, waiting: Waiting) -> None:
        """Forget the wait of a page, unless it waits for another model meanwhile."""
        with self._lock:
            if self._pages.get(page) is waiting:
                del self._pages[page]

    def in_background(self, ask: Callable[[], Value]) -> asyncio.Future[Value]:
        """Run a question to the Hub in a thread; `MOST_LOADS` at a time, the others wait."""
        asking = asyncio.get_running_loop().run_in_executor(self._askers, ask)
        asking.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # nobody may be left to hear
        return asking

    @contextmanager
    def _wanted(self, ref: str) -> Iterator[_Load]:
        """The load of a model, kept running as long as somebody is in this context."""
        with self._lock:
            load = self._running.get(ref)
            if load is None:
                if len(self._running) >= MOST_LOADS:
                    raise BusyError(
                        "Several other models are being downloaded; please try again in a minute."
                    )
                load = self._running[ref] = _Load()
                threading.Thread(target=self._run, args=(ref, load), daemon=True).start()
            load.waiting += 1
        try:
            yield load
        finally:
            with self._lock:
                load.waiting -= 1
                if not load.waiting:
                    load.unwanted.set()
                    self._forget(ref, load)

    def _run(self, ref: str, load: _Load) -> None:
        try:
            self._session.model(ref, progress=load.note_progress, cancelled=load.unwanted.is_set)
        except BaseException as error:
            load.error = error
        finally:
            with self._lock:
                self._forget(ref, load)
            load.over.set()

    def _forget(self, ref: str, load: _Load) -> None:
        if self._running.get(ref) is load:
            del self._running[ref]


async def _followed(load: _Load, title: str, waiting: Waiting) -> AsyncIterator[Value]:
    said: Value = {}
    while not (load.over.is_set() or waiting.ended):
        await asyncio.sleep(_POLL_SECONDS)
        value = load.value(title)
        if value != said and not (load.over.is_set() or waiting.ended):
            said = value
            yield value
