"""Bodies of requests: read whole, in a bounded time and up to a bounded size, before anything else is taken for them.

A sender who stops in the middle must cost nothing that others need. So no place is taken before a body is there, and only what
arrives buys time for the rest of it. A picture is the body of one request: it is never written to a file, and is gone with it.
Answers leave part by part, as fast as they are read: what is not read yet is held here, where it counts, and not in a socket.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Send

from vit_viz.errors import BusyError
from vit_viz.ui.edge.admission import Buckets

IDLE_SECONDS = 20.0
"""A body of which nothing arrives for so long has ended, as has an answer of which nothing is read."""

SLOWEST = 32 * 2**10
"""Bytes that buy one more second, up to `IDLE_SECONDS` in hand: a slower line occupies room that others need."""

MOST_DISCARDED = 64 * 2**20
"""Bytes of a refused body that are still taken, so that its sender comes to read why."""

PART_BYTES = 64 * 2**10

TOTAL_BYTES = 256 * 2**20
VISITOR_BYTES = 64 * 2**20
"""Of bodies in memory, of everybody and of one visitor."""

BURST_BYTES = 24 * 2**20
BYTES_PER_SECOND = 4 * 2**20
"""How much one visitor may send at full speed, and how fast after that: enough for a large picture, too little for a flood."""

TOO_MANY_OF_YOURS = "Several of your pictures are on their way already; please wait until they are here."
FULL = "Too many pictures are on their way to the server at the moment; please try again in a minute."


class TooLarge(Exception):  # noqa: N818
    """A body holds more than it may."""


class Patience:
    """How long the other end of a line may keep us waiting; the time in which we do not wait for it does not count."""

    def __init__(self) -> None:
        self._left = IDLE_SECONDS

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """While we wait."""
        if self._left <= 0:
            raise TimeoutError
        began = time.monotonic()
        async with asyncio.timeout(self._left):
            yield
        self._left -= time.monotonic() - began

    def moved(self, count: int) -> None:
        """Bytes have moved: they buy time."""
        self._left = min(IDLE_SECONDS, self._left + count / SLOWEST)


class Arrivals:
    """Bodies in memory, from their first byte until they are answered. All of this lives on the event loop.

    Args:
        total_bytes: bound on all of them; visitor_bytes: bound on those of one visitor.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        total_bytes: int = TOTAL_BYTES,
        visitor_bytes: int = VISITOR_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total_bytes = total_bytes
        self.visitor_bytes = visitor_bytes
        self._held: Counter[str] = Counter()  # bytes by visitor
        self._pace = Buckets(burst=BURST_BYTES, per_second=BYTES_PER_SECOND, clock=clock)

    @asynccontextmanager
    async def body(self, receive: Receive, visitor: str) -> AsyncIterator[bytes]:
        """The whole of a body, while it is answered; afterwards its bytes are free again."""
        body = bytearray()
        try:
            async for part in parts_of(receive):
                body += part
                self._held[visitor] += len(part)
                if self._held[visitor] > self.visitor_bytes:
                    raise BusyError(TOO_MANY_OF_YOURS)
                if self._held.total() > self.total_bytes:
                    raise BusyError(FULL)
                await asyncio.sleep(self._pace.pour(visitor, len(part)))
            yield bytes(body)
        finally:
            self._held[visitor] -= len(body)
            self._held += Counter()  # forgets who has nothing on its way


async def parts_of(receive: Receive) -> AsyncIterator[bytes]:
    """What arrives of a body, part by part."""
    patience, more = Patience(), True
    while more:
        async with patience.waiting():
            message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        patience.moved(len(part))
        yield part
        more = bool(message.get("more_body"))


async def discard(receive: Receive) -> None:
    """Take the rest of a body that nobody wants, within bounds: who is still sending would otherwise never read the answer."""
    taken = 0
    try:
        async for part in parts_of(receive):
            taken += len(part)
            if taken > MOST_DISCARDED:
                return
    except (ClientDisconnect, TimeoutError):
        return


def replayed(body: bytes, receive: Receive) -> Receive:
    """A request whose body was read already."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def take() -> Message:
        return waiting.pop() if waiting else await receive()

    return take


def paced(send: Send) -> Send:
    """A line whose reader has to go on reading; what it returns raises TimeoutError where that ends, as `Patience` says."""
    patience = Patience()

    async def give(message: Message) -> None:
        body: bytes = message.get("body", b"")
        for start in range(0, max(1, len(body)), PART_BYTES):
            part = body[start : start + PART_BYTES]
            more = start + PART_BYTES < len(body) or message.get("more_body", False)
            async with patience.waiting():
                await send({**message, "body": part, "more_body": more} if body else message)
            patience.moved(len(part))

    return give
