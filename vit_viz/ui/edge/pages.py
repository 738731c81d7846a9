"""The pages that visitors have open: whose each is, whether it still listens, and how many there may be.

A page identifies itself by a random text that Gradio calls the session. It belongs to the first cookie that uses it, and is refused
with any other. A page is open while its heartbeat or its stream of messages is open, and is remembered for a while after that, so
that a laptop that wakes up finds its state.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from vit_viz.errors import BusyError, ParameterError

MOST_PAGES = 1000
"""Fewer than the 2000 sessions that Gradio keeps, so that Gradio drops none that is remembered here."""

MOST_OF_ONE = 16
MOST_OF_ADDRESS = 200

REMEMBERED_SECONDS = 3600.0
ABANDONED_SECONDS = 1.5
"""How long after it was closed a page counts as abandoned."""

OPENING_SECONDS = 15.0
"""How long an open page may take to open its stream of messages after a question: networks and machines can be slow."""

NOT_YOURS = "This page belongs to another visit; please reload it."
TOO_MANY_OF_YOURS = (
    "Too many pages of this app are open, or wait for answers, in this browser; "
    "please close some and reload this one."
)
TOO_MANY = "Too many visitors are here at the moment; please try again in a few minutes."


@dataclass(eq=False)
class OpenPage:
    """One opened page.

    Args:
        name: as Gradio calls its session.
        visitor: the cookie that it came with, or what stands for one.
        owner: under which its pictures and computations are kept.
        address: network address from which it came, where that tells visitors apart, else "".
        heartbeats, listeners: connections that are open now.
        joining: questions that are being taken in.
        left_at: when a connection last ended, by the clock of `Pages`; or when the page was first seen.
        stopped_listening_at: when it last stopped listening; or when the page was first seen.
        asked_at: when it last asked something.
    """

    name: str
    visitor: str
    owner: str
    address: str = ""
    heartbeats: int = 0
    listeners: int = 0
    joining: int = 0
    left_at: float = 0.0
    stopped_listening_at: float = 0.0
    asked_at: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether a connection of it is open."""
        return self.heartbeats > 0 or self.listeners > 0

    def is_abandoned(self, now: float) -> bool:
        """Whether it has not listened for a while: it was closed, or did not open a stream for the answer to a question.

        Of a page that is open nothing is known by its stream's end: it may have asked while the stream before was being closed.
        """
        if self.listeners:
            return False
        is_there = self.heartbeats > 0 or self.asked_at >= max(self.left_at, self.stopped_listening_at)
        patience = OPENING_SECONDS if is_there else ABANDONED_SECONDS
        return now - max(self.asked_at, self.stopped_listening_at) >= patience


class Pages:
    """Pages by name, oldest first.

    Args:
        on_left: called with the owner when the last page of a visitor was closed.
        on_forgotten: called with the name of a page that is no longer remembered.
        with_questions: the names of pages whose questions wait or are being answered; they are not forgotten.
        most: pages in all; most_of_one: pages of one visitor; most_of_address: of one network address, where that is known.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        on_left: Callable[[str], object] = lambda _owner: None,
        on_forgotten: Callable[[str], object] = lambda _name: None,
        with_questions: Callable[[], Container[str]] = tuple,
        most: int = MOST_PAGES,
        most_of_one: int = MOST_OF_ONE,
        most_of_address: int = MOST_OF_ADDRESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_left = on_left
        self.on_forgotten = on_forgotten
        self.with_questions = with_questions
        self.most = most
        self.most_of_one = most_of_one
        self.most_of_address = most_of_address
        self._clock = clock
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, OpenPage] = OrderedDict()

    def admit(self, name: str, visitor: str, owner: str, address: str = "") -> OpenPage:
        """The page of a name, for its visitor; a new one takes the place of an old one that is closed and waits for nothing.

        Raises:
            ParameterError: the name is another visitor's.
            BusyError: too many pages are open or wait for answers.
        """
        gone: list[str] = []
        try:
            with self._lock:
                page = self._pages.get(name)
                if page is None:
                    gone = self._make_room(visitor, address)
                    now = self._clock()
                    page = self._pages[name] = OpenPage(
                        name, visitor, owner, address, left_at=now, stopped_listening_at=now
                    )
                if page.visitor != visitor:
                    raise ParameterError(NOT_YOURS)
                self._pages.move_to_end(name)
                return page
        finally:
            for other in gone:
                self.on_forgotten(other)

    def heartbeat(self, page: OpenPage) -> AbstractContextManager[None]:
        """While the page is open in a browser."""
        return self._connected(page, "heartbeats")

    def listening(self, page: OpenPage) -> AbstractContextManager[None]:
        """While the page takes messages."""
        return self._connected(page, "listeners")

    @contextmanager
    def asking(self, page: OpenPage) -> Iterator[None]:
        """While a question of the page is taken in, for whose answer it will listen."""
        self._asked(page, 1)
        try:
            yield
        finally:
            self._asked(page, -1)

    def find(self, name: str) -> OpenPage | None:
        """The page of a name, where it is known."""
        return self._pages.get(name)

    def abandoned(self) -> list[OpenPage]:
        """Pages that no longer listen, though they may have asked something."""
        with self._lock:
            now = self._clock()
            return [page for page in self._pages.values() if page.is_abandoned(now)]

    def has_listener(self, owner: str) -> bool:
        """Whether any page of an owner listens, or is about to."""
        with self._lock:
            now = self._clock()
            return any(not page.is_abandoned(now) for page in self._pages.values() if page.owner == owner)

    def forget_old(self) -> None:
        """Forget pages that were closed long ago."""
        with self._lock:
            before = self._clock() - REMEMBERED_SECONDS
            waiting = self.with_questions()
            old = [
                page.name
                for page in self._pages.values()
                if page.left_at <= before and _is_idle(page, waiting)
            ]
            for name in old:
                del self._pages[name]
        for name in old:
            self.on_forgotten(name)

    def __len__(self) -> int:
        return len(self._pages)

    def _asked(self, page: OpenPage, joining: int) -> None:
        with self._lock:
            page.joining += joining
            page.asked_at = self._clock()

    def _make_room(self, visitor: str, address: str) -> list[str]:
        """Forget one idle page where there are too many; returns the names of those that were forgotten."""
        pages = list(self._pages.values())
        mine = [page for page in pages if page.visitor == visitor]
        near = [page for page in pages if address and page.address == address]
        if len(mine) >= self.most_of_one:
            return [self._drop_idle(mine, TOO_MANY_OF_YOURS)]
        if len(near) >= self.most_of_address:
            return [self._drop_idle(near, TOO_MANY)]
        if len(pages) >= self.most:
            held = Counter(page.visitor for page in pages)
            return [self._drop_idle(sorted(pages, key=lambda page: -held[page.visitor]), TOO_MANY)]
        return []

    def _drop_idle(self, pages: list[OpenPage], otherwise: str) -> str:
        waiting = self.with_questions()
        for page in pages:
            if _is_idle(page, waiting):
                del self._pages[page.name]
                return page.name
        raise BusyError(otherwise)

    @contextmanager
    def _connected(self, page: OpenPage, kind: str) -> Iterator[None]:
        with self._lock:
            setattr(page, kind, getattr(page, kind) + 1)
        try:
            yield
        finally:
            with self._lock:
                setattr(page, kind, getattr(page, kind) - 1)
                page.left_at = self._clock()
                if kind == "listeners":
                    page.stopped_listening_at = page.left_at
                is_last = kind == "heartbeats" and not any(
                    other.heartbeats for other in self._pages.values() if other.owner == page.owner
                )
            if is_last:
                self.on_left(page.owner)


def _is_idle(page: OpenPage, waiting: Container[str]) -> bool:
    """Whether nothing is lost when a page is forgotten: it is closed, and waits for nothing."""
    return not page.is_open and not page.joining and page.name not in waiting
