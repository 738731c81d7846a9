"""The pages that visitors have open: whose each is, and how many there may be.

A page has a random name, which it says as long as it is open, by a connection that the server keeps alive: its heartbeat. The name
belongs to the first browser that uses it, and is refused with any other. It is remembered for a while after the page was closed, so
that a laptop that wakes up finds its pictures.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from vit_viz.errors import BusyError, ParameterError
from vit_viz.ui.edge.admission import Buckets

MOST_PAGES = 1000
MOST_OF_ONE = 16
MOST_OF_ADDRESS = 200

MOST_HEARTBEATS = 4
"""Of one page: it needs one, and for a moment two while it reconnects."""

REMEMBERED_SECONDS = 3600.0

AT_ONCE = 16
PER_SECOND = 1
"""How many pages one visitor opens at full speed, and how many a second after that; from one network address that is known:"""
AT_ONCE_FROM_ADDRESS = 200
PER_SECOND_FROM_ADDRESS = 8

NOT_YOURS = "This page belongs to another visit; please reload it."
OPEN_ALREADY = "This page is open already; please reload it."
TOO_MANY_OF_YOURS = (
    "Too many pages of this app are open in this browser; please close some and reload this one."
)
TOO_MANY = "Too many visitors are here at the moment; please try again in a few minutes."
TOO_QUICKLY = (
    "Pages of this app were opened too quickly one after the other; please reload this one in a few seconds."
)


@dataclass(eq=False)
class OpenPage:
    """One opened page.

    Args:
        visitor: the cookie that it came with, or what stands for one.
        owner: under which its pictures and computations are kept.
        address: network address from which it came, where that tells visitors apart, else "".
        heartbeats: connections that are open now.
        left_at: when one last ended, or when the page was first seen, by the clock of `Pages`.
    """

    visitor: str
    owner: str
    address: str = ""
    heartbeats: int = 0
    left_at: float = 0.0


class Pages:
    """Pages by name, the one that was opened last behind all others. All of this lives on the event loop.

    Args:
        on_left: called with the owner when the last page of a visitor was closed.
        most: pages in all; most_of_one: pages of one visitor; most_of_address: of one network address, where that is known.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        on_left: Callable[[str], object] = lambda _owner: None,
        most: int = MOST_PAGES,
        most_of_one: int = MOST_OF_ONE,
        most_of_address: int = MOST_OF_ADDRESS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.on_left = on_left
        self.most = most
        self.most_of_one = most_of_one
        self.most_of_address = most_of_address
        self._clock = clock
        self._pages: OrderedDict[str, OpenPage] = OrderedDict()
        self._pace = Buckets(burst=AT_ONCE, per_second=PER_SECOND, clock=clock)
        self._pace_from = Buckets(burst=AT_ONCE_FROM_ADDRESS, per_second=PER_SECOND_FROM_ADDRESS, clock=clock)

    @contextmanager
    def heartbeat(self, name: str, visitor: str, owner: str, address: str = "") -> Iterator[None]:
        """While a page is open in a browser; a new one takes the place of an old one that is closed."""
        page = self._pages.get(name)
        if page is None:
            self._forget_old()
            if not (self._pace.passes(visitor, 1) and (not address or self._pace_from.passes(address, 1))):
                raise BusyError(TOO_QUICKLY)
            self._make_room(visitor, address)
            page = self._pages[name] = OpenPage(visitor, owner, address)
        if page.visitor != visitor:
            raise ParameterError(NOT_YOURS)
        if page.heartbeats >= MOST_HEARTBEATS:
            raise BusyError(OPEN_ALREADY)
        self._pages.move_to_end(name)
        page.heartbeats += 1
        try:
            yield
        finally:
            page.heartbeats -= 1
            page.left_at = self._clock()
            if not any(other.heartbeats for other in self._pages.values() if other.owner == owner):
                self.on_left(owner)

    def find(self, name: str) -> OpenPage | None:
        """The page of a name, where it is known."""
        return self._pages.get(name)

    def __len__(self) -> int:
        return len(self._pages)

    def _forget_old(self) -> None:
        before = self._clock() - REMEMBERED_SECONDS
        old = [name for name, page in self._pages.items() if not page.heartbeats and page.left_at <= before]
        for name in old:
            del self._pages[name]

    def _make_room(self, visitor: str, address: str) -> None:
        """Forget a closed page where there are too many."""
        pages = list(self._pages.items())
        mine = [(name, page) for name, page in pages if page.visitor == visitor]
        near = [(name, page) for name, page in pages if address and page.address == address]
        if len(mine) >= self.most_of_one:
            self._drop_closed(mine, TOO_MANY_OF_YOURS)
        elif len(near) >= self.most_of_address:
            self._drop_closed(near, TOO_MANY)
        elif len(pages) >= self.most:
            held = Counter(page.visitor for _, page in pages)
            self._drop_closed(sorted(pages, key=lambda named: -held[named[1].visitor]), TOO_MANY)

    def _drop_closed(self, pages: list[tuple[str, OpenPage]], otherwise: str) -> None:
        closed = next((name for name, page in pages if not page.heartbeats), None)
        if closed is None:
            raise BusyError(otherwise)
        del self._pages[closed]
