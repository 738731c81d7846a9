"""Visitors who want nothing but to look at a picture of their own, while somebody else attacks the app; and the attacks."""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.http.attacks import asked_on_line, cookie_of
from tests.http.hostile import encoded, photo
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import PATIENCE
from vit_viz.surface import BRING

NEIGHBOURS = 20
UNREAD = 12  # lines of an attacker that stay open: more than may wait
LOOKS = 3  # at numbers of the own picture, for each neighbour
SPREAD_SECONDS = 12.0  # over which they come


@dataclass
class Experience:
    """What the neighbours met.

    Args:
        refusals: every sentence or status that said no.
        wrong: who saw other numbers than on a calm day.
        seconds: how long each step took.
    """

    refusals: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    numbers: dict[int, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def timed(self, step: Callable[[], Any]) -> Any:
        """What a step returns; note how long it took."""
        started = time.monotonic()
        result = step()
        with self.lock:
            self.seconds.append(time.monotonic() - started)
        return result


def visit(server: Server, number: int, seen: Experience) -> None:
    """One neighbour opens the page, brings a picture, and looks at its numbers."""
    with Visitor(server, timeout=90) as visitor:
        seen.refusals += seen.timed(visitor.arrive).refusals
        picture = encoded(photo(3000 + number, width=150 + number, height=131), "PNG")
        seen.refusals += seen.timed(lambda: visitor.bring("mine.png", picture)).refusals
        seen.refusals += seen.timed(lambda: visitor.ask("open")).refusals
        trace = visitor.opened().get("trace")
        for look in range(LOOKS):
            path = f"/vit_viz/numbers/{trace}?layer={look}&head={look + 1}&query=3,4&at=5,6"
            answer = seen.timed(lambda path=path: visitor.http.get(path))
            if answer.status_code != 200:
                seen.refusals.append(f"{answer.status_code} {answer.text[:80]}")
            else:
                seen.numbers[number * LOOKS + look] = answer.json()
        if "--api" in server.flags:  # a program asks, too
            body = {"image": {"sample": "lion"}}
            answer = seen.timed(lambda: httpx.post(f"{server.url}/api/v1/classes", json=body, timeout=90))
            if answer.status_code != 200:
                seen.refusals.append(f"{answer.status_code} {answer.text[:80]}")


def neighbours(
    server: Server,
    *,
    calm: Experience | None = None,
    spread_seconds: float = SPREAD_SECONDS,
) -> Experience:
    """What twenty visitors meet, who come one after the other.

    Args:
        calm: what they met when nobody attacked, to compare with.
        spread_seconds: over which they come.
    """
    seen = Experience()

    def come(number: int) -> None:
        time.sleep(spread_seconds * number / NEIGHBOURS)
        try:
            visit(server, number, seen)
        except Exception as error:
            seen.refusals.append(repr(error))

    threads = [threading.Thread(target=come, args=(i,), daemon=True) for i in range(NEIGHBOURS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    if calm is not None:
        seen.wrong = [
            str(key) for key, value in calm.numbers.items() if seen.numbers.get(key, value) != value
        ]
    return seen


@dataclass(frozen=True)
class Target:
    """An app by its address only."""

    url: str


Attack = Callable[[Target, Any, Any], None]
"""Of a server; tells by an event that it has begun, and by another it is told to stop."""


@contextmanager
def under(attack: Attack, server: Server) -> Iterator[None]:
    """While somebody attacks; the attack is over when the block is."""
    spawning = multiprocessing.get_context("spawn")
    begun, stop = spawning.Event(), spawning.Event()
    process = spawning.Process(target=_attack, args=(attack, server.url, begun, stop), daemon=True)
    process.start()
    try:
        assert begun.wait(PATIENCE)
        yield
    finally:
        stop.set()
        process.join(60)
        process.kill()


def _attack(attack: Attack, url: str, begun: Any, stop: Any) -> None:
    """In a process of its own, which leaves the processor to the app and its visitors: attackers bring their own."""
    os.nice(15)
    attack(Target(url), begun, stop)


def trust_that_nobody_reads(server: Target, begun: Any, stop: Any) -> None:
    """24 visitors ask for the trust figures of pictures of their own, again and again, and read nothing."""
    visitors = [Visitor(server, timeout=60) for _ in range(24)]
    for number, visitor in enumerate(visitors):
        if stop.is_set():
            break
        visitor.arrive("?tab=explain")
        visitor.bring("mine.png", encoded(photo(5000 + number), "PNG"))
    lines: list[socket.socket] = []
    while not stop.is_set():
        for visitor in visitors:
            about = visitor.asked("trust", {})[1]
            lines.append(asked_on_line(server, "trust", visitor.cookie, **about))
        begun.set()
        stop.wait(0.5)
        while len(lines) > UNREAD * len(visitors):
            lines.pop(0).close()
    for line in lines:
        line.close()
    for visitor in visitors:
        visitor.close()


def uploads_broken_off(server: Target, begun: Any, stop: Any) -> None:
    """Pictures of 19 MB that end just before their end, eight at once; 400 at most."""
    address = urlsplit(server.url)
    block = bytes(10**6)

    def broken() -> None:
        head = (
            f"POST {BRING} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: 19000200\r\n"
            f"Cookie: {cookie_of(server)}\r\n\r\n"
        ).encode()
        for _ in range(50):
            if stop.is_set():
                return
            try:
                with socket.create_connection((address.hostname, address.port), timeout=20) as line:
                    line.sendall(head)
                    for _ in range(19):
                        line.sendall(block)
                        begun.set()
            except OSError:
                pass  # the server has had enough

    threads = [threading.Thread(target=broken, daemon=True) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
