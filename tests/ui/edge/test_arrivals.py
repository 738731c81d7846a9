"""Bodies on their way: how much of them there may be, how fast it may come, and that a sender who stalls gives the room back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect

from tests.ui.loops import played
from vit_viz.errors import BusyError
from vit_viz.ui.edge import bodies
from vit_viz.ui.edge.arrivals import BURST_BYTES, BYTES_PER_SECOND, FULL, TOO_MANY_OF_YOURS, Arrivals
from vit_viz.ui.edge.bodies import discard, read_body


def test_bytes_count_until_their_request_is_answered() -> None:
    arrivals = Arrivals(visitor_bytes=33)
    with arrivals.arriving("ada") as arrived:
        assert arrivals._held.total() == 0
        for count in (13, 0, 20):
            arrived(count)
        assert arrivals._held.total() == 33
    assert arrivals._held.total() == 0
    with pytest.raises(BusyError), arrivals.arriving("ada") as arrived:
        arrived(34)
    assert arrivals._held.total() == 0
    assert not arrivals._held


def test_of_one_visitor_the_bound_is_reached_and_not_passed() -> None:
    arrivals = Arrivals(total_bytes=100, visitor_bytes=60)
    with ExitStack() as held:
        first, second = (held.enter_context(arrivals.arriving("ada")) for _ in range(2))
        first(29)
        second(31)
        with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
            second(1)
        with arrivals.arriving("bob") as his:
            his(39)  # what was refused still lies there
    assert arrivals._held.total() == 0


def test_of_all_visitors_the_bound_is_reached_and_not_passed() -> None:
    arrivals = Arrivals(total_bytes=100, visitor_bytes=60)
    with arrivals.arriving("ada") as hers, arrivals.arriving("bob") as his:
        hers(51)
        his(49)
        with pytest.raises(BusyError, match=FULL):
            his(1)
    with arrivals.arriving("eve") as theirs:
        theirs(60)


def test_a_visitor_sends_a_large_picture_at_full_speed_and_a_flood_slowly() -> None:
    now = [100.0]
    arrivals = Arrivals(clock=lambda: now[0])
    with arrivals.arriving("ada") as hers, arrivals.arriving("bob") as his:
        assert hers(BURST_BYTES) == 0
        assert hers(3 * BYTES_PER_SECOND) == pytest.approx(3)
        assert his(1) == 0
    with arrivals.arriving("ada") as again:  # another request is the same visitor
        assert again(BYTES_PER_SECOND) == pytest.approx(4)
        now[0] += 4
        assert again(0) == 0


# --- how bodies are read


def sent(*parts: bytes, then: str = "http.request") -> Callable[[], Any]:
    """A body that arrives part by part; `then` is what comes at its end."""
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting.append({"type": then, "body": b"", "more_body": False})

    async def receive() -> Any:
        return waiting.pop(0)

    return receive


def test_a_body_is_read_whole_and_counted_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, pauses = list[int](), list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    def counted(count: int) -> float:
        counts.append(count)
        return count / 10

    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(sleep=sleep, timeout=asyncio.timeout))
    assert played(read_body(sent(b"ab", b"", b"cde"), counted=counted)) == b"abcde"
    assert counts == [2, 0, 3, 0]
    assert pauses == [0.2, 0.0, 0.3, 0.0]


def test_a_body_for_which_there_is_no_room_is_read_no_further() -> None:
    arrivals = Arrivals(visitor_bytes=3)
    receive = sent(b"ab", b"cd", b"ef")

    async def play() -> None:
        with arrivals.arriving("ada") as arrived:
            await read_body(receive, counted=arrived)

    with pytest.raises(BusyError, match=TOO_MANY_OF_YOURS):
        played(play())
    assert played(receive())["body"] == b"ef"
    assert arrivals._held.total() == 0


def test_a_body_whose_sender_hangs_up_is_none() -> None:
    with pytest.raises(ClientDisconnect):
        played(read_body(sent(b"half", then="http.disconnect")))


def test_what_nobody_wants_is_taken_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOST_DISCARDED", 5)
    receive = sent(b"abc", b"def", b"rest")
    played(discard(receive))
    assert played(receive())["body"] == b"rest"
    played(discard(sent(b"abc", then="http.disconnect")))


def test_who_sends_too_slowly_gives_the_room_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps no place, though each comes before the idle time is over."""
    now, arrivals = [0.0], Arrivals()
    monkeypatch.setattr(bodies, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def receive() -> Any:
        now[0] += bodies.IDLE_SECONDS - 1
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def play() -> None:
        with arrivals.arriving("ada") as arrived:
            await read_body(receive, counted=arrived)

    with pytest.raises(TimeoutError):
        played(play())
    assert now[0] < 4 * bodies.IDLE_SECONDS
    assert arrivals._held.total() == 0


def test_each_second_of_the_slowest_rate_buys_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long the next bytes may take: what is left of the idle time and what arrived has bought, and never more than at first."""
    idle = bodies.IDLE_SECONDS
    now, allowed = [0.0], list[float]()
    arriving = iter([(0.0, 2.0), (idle - 2.0, 0.0), (1.5, 3.0), (3.5, 0.0)])  # seconds, then bytes in seconds

    def timeout(seconds: float) -> nullcontext[None]:
        allowed.append(seconds)
        return nullcontext()

    async def receive() -> Any:
        passed, bought = next(arriving)
        now[0] += passed
        return {"type": "http.request", "body": bytes(int(bought * bodies.SLOWEST)), "more_body": True}

    monkeypatch.setattr(bodies, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(timeout=timeout))
    with pytest.raises(TimeoutError):
        played(read_body(receive))
    assert allowed == pytest.approx([idle, idle, 2.0, 3.5])
