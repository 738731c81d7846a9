"""Bodies on their way: how much of them there may be, how fast it may come, and that a sender who stalls gives the room back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from tests.ui.loops import played
from vit_viz.errors import BusyError
from vit_viz.ui.edge import bodies
from vit_viz.ui.edge.bodies import (
    BURST_BYTES,
    BYTES_PER_SECOND,
    FULL,
    TOO_MANY_OF_YOURS,
    Arrivals,
    discard,
    paced,
)


def sent(*parts: bytes, then: str = "http.request") -> Callable[[], Any]:
    """A body that arrives part by part; `then` is what comes at its end."""
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting.append({"type": then, "body": b"", "more_body": False})

    async def receive() -> Any:
        return waiting.pop(0)

    return receive


async def read(arrivals: Arrivals, receive: Callable[[], Any], visitor: str = "ada") -> bytes:
    """A body that is answered at once."""
    async with arrivals.body(receive, visitor) as body:
        return body


def test_bytes_of_one_visitor_and_of_all_count_until_their_request_is_answered() -> None:
    """Each bound is reached and not passed."""
    arrivals = Arrivals(total_bytes=100, visitor_bytes=60)

    async def play() -> None:
        async with arrivals.body(sent(b"x" * 20, b"", b"y" * 9), "ada") as body:
            assert body == b"x" * 20 + b"y" * 9
            assert await read(arrivals, sent(bytes(31))) == bytes(31)
            receive = sent(bytes(31), b"z", b"rest")
            with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
                await read(arrivals, receive)
            assert (await receive())["body"] == b"rest", "it is read no further"
            async with arrivals.body(sent(bytes(31)), "eve"):
                assert len(await read(arrivals, sent(bytes(40)), "bob")) == 40
                with pytest.raises(BusyError, match=FULL):
                    await read(arrivals, sent(bytes(41)), "bob")
            with pytest.raises(ClientDisconnect):
                await read(arrivals, sent(b"half", then="http.disconnect"))
            assert arrivals._held == {"ada": 29}
        assert not arrivals._held
        assert len(await read(arrivals, sent(bytes(60)))) == 60

    played(play())


def test_a_visitor_sends_a_large_picture_at_full_speed_and_a_flood_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, pauses = [100.0], list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(sleep=sleep, timeout=asyncio.timeout))
    arrivals = Arrivals(clock=lambda: now[0])

    async def play() -> None:
        await read(arrivals, sent(bytes(BURST_BYTES), bytes(3 * BYTES_PER_SECOND)))
        await read(arrivals, sent(b"x"), "bob")
        await read(arrivals, sent(bytes(BYTES_PER_SECOND)))  # another request is the same visitor
        now[0] += 4
        await read(arrivals, sent())

    played(play())
    assert [pause for pause in pauses if pause] == pytest.approx([3, 3, 4, 4])
    assert pauses[-1] == 0


def test_what_nobody_wants_is_taken_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_DISCARDED", 5)
    receive = sent(b"abc", b"def", b"rest")
    played(discard(receive))
    assert played(receive())["body"] == b"rest"
    played(discard(sent(b"abc", then="http.disconnect")))


@pytest.mark.parametrize("is_sender", [True, False])
def test_each_second_of_the_slowest_rate_buys_one_more(
    monkeypatch: pytest.MonkeyPatch, is_sender: bool
) -> None:
    """How long the next bytes may take: what is left of the idle time and what moved has bought, and never more than at first."""
    idle = bodies.IDLE_SECONDS
    now, allowed = [0.0], list[float]()
    moving = [(0.0, 2.0), (idle - 2.0, 0.0), (1.5, 1.5), (2.0, 0.0)]  # seconds, then bytes in seconds
    moved = iter(moving)
    arrivals = Arrivals()

    def timeout(seconds: float) -> nullcontext[None]:
        allowed.append(seconds)
        return nullcontext()

    async def receive() -> Any:
        passed, bought = next(moved)
        now[0] += passed
        return {"type": "http.request", "body": bytes(int(bought * bodies.SLOWEST)), "more_body": True}

    async def send(_message: Any) -> None:
        now[0] += next(moved)[0]

    async def sleep(_seconds: float) -> None:
        pass

    monkeypatch.setattr(bodies, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(timeout=timeout, sleep=sleep))
    monkeypatch.setattr(bodies, "PART_BYTES", 2**30)

    async def write() -> None:
        give = paced(send)
        for _, bought in [*moving, (0.0, 0.0)]:
            await give({"type": "http.response.body", "body": bytes(int(bought * bodies.SLOWEST))})

    with pytest.raises(TimeoutError):
        played(read(arrivals, receive) if is_sender else write())
    assert allowed == pytest.approx([idle, idle, 2.0, 2.0])
    assert not arrivals._held
