"""Bodies of requests: read whole, in a bounded time and up to a bounded size, before anything else is taken for them.

A sender who stops in the middle must cost nothing that others need. So no place is taken before a body is there, and only what
arrives buys time for the rest of it. Answers leave part by part, as fast as they are read: what is not read yet is held here, where
it counts, and not in a socket.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Send

IDLE_SECONDS = 20.0
"""A body of which nothing arrives for so long has ended, as has an answer of which nothing is read."""

SLOWEST = 32 * 2**10
"""Bytes that buy one more second, up to `IDLE_SECONDS` in hand: a slower line occupies room that others need."""

MOST_DISCARDED = 64 * 2**20
"""Bytes of a refused body that are still taken, so that its sender comes to read why."""


PART_BYTES = 64 * 2**10


class TooLarge(Exception):  # noqa: N818
    """A body holds more than it may."""


class Patience:
    """How long the other end of a line may keep us waiting; the time in which we do not wait for it does not count."""

    def __init__(self) -> None:
        self._left = IDLE_SECONDS

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        """While we wait.

        Raises:
            TimeoutError: nothing moved for `IDLE_SECONDS`, or less than `SLOWEST` bytes a second for long.
        """
        if self._left <= 0:
            raise TimeoutError
        began = time.monotonic()
        async with asyncio.timeout(self._left):
            yield
        self._left -= time.monotonic() - began

    def moved(self, count: int) -> None:
        """Bytes have moved: they buy time."""
        self._left = min(IDLE_SECONDS, self._left + count / SLOWEST)


def patient(receive: Receive) -> Receive:
    """A request whose sender has to go on sending; what it returns raises TimeoutError where that ends, as `Patience` says."""
    patience = Patience()

    async def take() -> Message:
        async with patience.waiting():
            message = await receive()
        patience.moved(len(message.get("body", b"")))
        return message

    return take


async def parts_of(receive: Receive) -> AsyncIterator[bytes]:
    """What arrives of a body, part by part.

    Raises:
        ClientDisconnect: the sender hung up.
        TimeoutError: the sender sends nothing any more, or too slowly.
    """
    take, more = patient(receive), True
    while more:
        message = await take()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        more = bool(message.get("more_body"))


async def read_body(receive: Receive, *, counted: Callable[[int], float] | None = None) -> bytes:
    """The whole of a body.

    Args:
        counted: told how many bytes have arrived; returns the seconds after which more may be read.

    Raises:
        BusyError: there is no room for it.
        ClientDisconnect, TimeoutError: its sender hung up, or sends nothing any more.
    """
    body = bytearray()
    async for part in parts_of(receive):
        body += part
        if counted is not None:
            await asyncio.sleep(counted(len(part)))
    return bytes(body)


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
            is_last = start + PART_BYTES >= len(body)
            async with patience.waiting():
                await send(message if is_last and not start else _part(message, part, is_last=is_last))
            patience.moved(len(part))

    return give


def _part(message: Message, part: bytes, *, is_last: bool) -> Message:
    return {**message, "body": part, "more_body": not is_last or message.get("more_body", False)}
