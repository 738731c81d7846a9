"""Models on their way to the page: one download per model, however many wait for it; it is cancelled when nobody waits any more.

Waiting takes neither a thread nor one of the places in the queue that drawings use, so that a long download of one visitor holds
nobody up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from vit_viz.checkpoints.catalog import entry_of
from vit_viz.errors import BusyError
from vit_viz.session.session import Session

MOST_LOADS = 4
"""Models that are loaded at the same time; a request for another one is refused."""

_POLL_SECONDS = 0.15

Value = dict[str, Any]


@dataclass(eq=False)
class Waiting:
    """One page that waits for a model, until its visitor cancels or chooses another."""

    ended: Literal["", "cancelled", "replaced"] = ""


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

    def begin(self, page: str) -> Waiting:
        """Begin the wait of a page, in place of what it waited for before."""
        waiting = Waiting()
        with self._lock:
            before = self._pages.get(page)
            if before is not None:
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
            if not self._session.has_model(ref):
                entry = entry_of(ref)
                with self._wanted(ref) as load:
                    async for value in _followed(load, entry.title if entry else ref, waiting):
                        yield value
                    if load.error is not None and not waiting.ended:
                        raise load.error
        finally:
            with self._lock:
                if self._pages.get(page) is waiting:
                    del self._pages[page]

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
