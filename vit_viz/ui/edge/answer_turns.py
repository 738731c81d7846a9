"""Answers on their way: how many are made at once, and how many bytes of them wait for their readers, shared among visitors.

An answer is asked for, waits for its turn, is made, and is sent. Waiting costs next to nothing, so it is bounded loosely. Making
takes a thread and memory, so few are made at once, and whoever has fewest being made is next. What was made lies in memory until
its reader has taken it: whoever does not read gets nothing more. An answer has no thread before its turn comes; all of this lives
on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Literal

from starlette.requests import ClientDisconnect

from vit_viz.errors import BusyError
from vit_viz.ui.edge.admission import ANSWERS, Admission, give_back, names_of

MAKING = 8
"""Answers that are made at once; of one visitor, and of one network address where that is known:"""
MAKING_OF_ONE = 2
MAKING_OF_ADDRESS = 4

UNREAD_BYTES = 256 * 2**20
"""Of answers that were made and not yet read; of one visitor:"""
UNREAD_BYTES_OF_ONE = 48 * 2**20

UNREAD = "Answers to earlier questions of yours are still on their way; please wait until they have arrived."


@dataclass(eq=False)
class Passing:
    """One answer on its way.

    Args:
        visitor: who asked; address: from where, "" where that is not known.
        number: in the order in which they came.
        state: what becomes of it: it waits, is made in a place of `AnswerTurns` or elsewhere, or was made.
        size: bytes that were made and not yet read.
        called: set when its turn comes.
    """

    visitor: str
    address: str
    number: int
    state: Literal["waiting", "making", "elsewhere", "made"]
    size: int = 0
    called: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def names(self) -> tuple[str, ...]:
        """Under which it counts while it is made."""
        return names_of(self.visitor, self.address)


class AnswerTurns:
    """All answers that are on their way.

    Args:
        admission: where those that come have their places.
        making, making_of_one, making_of_address: answers made at once.
        unread, unread_of_one: bytes that wait for their readers.
    """

    def __init__(
        self,
        admission: Admission,
        *,
        making: int = MAKING,
        making_of_one: int = MAKING_OF_ONE,
        making_of_address: int = MAKING_OF_ADDRESS,
        unread: int = UNREAD_BYTES,
        unread_of_one: int = UNREAD_BYTES_OF_ONE,
    ) -> None:
        self.admission = admission
        self.making = making
        self.making_of_one = making_of_one
        self.making_of_address = making_of_address
        self.unread = unread
        self.unread_of_one = unread_of_one
        self._numbers = count()
        self._waiting: dict[str, deque[Passing]] = {}  # by visitor
        self._making: Counter[str] = Counter()  # answers, by visitor and by address
        self._unread: Counter[str] = Counter()  # bytes, by visitor

    @asynccontextmanager
    async def turn(
        self, visitor: str, address: str, gone: Callable[[], Awaitable[object]]
    ) -> AsyncIterator[Passing]:
        """Wait until an answer may be made; inside it is on its way.

        Args:
            gone: ends when the visitor hangs up.
        """
        with self.admission.place(ANSWERS, visitor, address):
            one = Passing(visitor, address, next(self._numbers), "waiting")
            self._waiting.setdefault(visitor, deque()).append(one)
            try:
                self._call()
                if one.state == "waiting":
                    await _first(one.called.wait(), gone())
                if one.state == "waiting":
                    raise ClientDisconnect
                yield one
            finally:
                if one.state == "waiting":
                    self._take_out(one)
                self.made(one, 0)

    @asynccontextmanager
    async def beside(self, visitor: str, address: str) -> AsyncIterator[Passing]:
        """Let an answer pass that has its place elsewhere: only its bytes count here."""
        one = Passing(visitor, address, next(self._numbers), "elsewhere")
        if not self._has_room(one):
            raise BusyError(UNREAD)
        try:
            yield one
        finally:
            self.made(one, 0)

    def made(self, one: Passing, size: int) -> None:
        """An answer was made, or a part of it: its place is free, and its bytes count until it has left."""
        if one.state == "making":
            give_back(self._making, one.names)
        one.state = "made"
        self._unread[one.visitor] += size - one.size
        if not self._unread[one.visitor]:
            del self._unread[one.visitor]
        one.size = size
        self._call()

    @property
    def is_busy(self) -> bool:
        """Whether an answer waits for its turn or is being made."""
        return bool(self._waiting) or self._making[""] > 0

    @property
    def unread_bytes(self) -> int:
        """Bytes that wait for their readers now."""
        return self._unread.total()

    def _call(self) -> None:
        """Call those whose turn it is: of those who may, whoever has fewest being made, and then who came first."""
        while self._making[""] < self.making:
            may = [first for mine in self._waiting.values() if self._may(first := mine[0])]
            if not may:
                return
            called = min(may, key=lambda one: (*(self._making[name] for name in one.names[1:]), one.number))
            self._take_out(called)
            self._making.update(called.names)
            called.state = "making"
            called.called.set()

    def _take_out(self, one: Passing) -> None:
        """Let one wait no more."""
        self._waiting[one.visitor].remove(one)
        if not self._waiting[one.visitor]:
            del self._waiting[one.visitor]

    def _may(self, one: Passing) -> bool:
        has_place = self._making[f"visitor {one.visitor}"] < self.making_of_one
        is_near = one.address and self._making[f"address {one.address}"] >= self.making_of_address
        return has_place and not is_near and self._has_room(one)

    def _has_room(self, one: Passing) -> bool:
        """Whether more may be made for a visitor: the more of theirs is unread, the less of the whole is left for them."""
        return self.unread_bytes < self.unread * (1 - Fraction(self._unread[one.visitor], self.unread_of_one))


async def _first(*awaited: Awaitable[object]) -> None:
    """Wait until one of several ends, and end the others."""
    tasks = [asyncio.ensure_future(one) for one in awaited]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
