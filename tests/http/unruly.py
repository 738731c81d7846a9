"""A visitor who asks, leaves, hangs up, cancels and comes back under other names, in an order that chance decides."""

from __future__ import annotations

import json
import random
import secrets
import threading
from contextlib import ExitStack
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx

from tests.http.visitor import HasUrl, Visitor

MOST_STREAMS = 6  # that one visitor holds open
STOPPED = "Queue is stopped."
METHODS = ["relevance", "rollout", "grad_cam", "attention"]
ACTIONS = ["slow", "quick", "new", "back", "listen", "beat", "hang_up", "cancel", "odd", "garbage"]
ODD_PARTS: tuple[dict[str, Any], ...] = (
    {"batched": True},
    {"simple_format": True},
    {"fn_index": -1},
    {"fn_index": 10**30},
    {"fn_index": 2.5},
    {"data": {"x": 1}},
    {"data": []},
    {"data": [float("nan"), "\ud800", [[[]]]]},
    {"event_data": "\ud800"},
    {"event_data": [1]},
    {"trigger_id": "x"},
    {"trigger_id": -1},
    {"event_id": "mine"},
    {"oauth_token": 5},
    {"session_hash": {"a": 1}},
    {"session_hash": "_" * 9},
)


class NoCookies(DefaultCookiePolicy):
    """A browser that keeps no cookies."""

    def set_ok(self, *_: object) -> bool:
        return False


def trust(visitor: Visitor) -> httpx.Response:
    """Ask for the slow figures of the Explain tab, and do not wait for them."""
    event = visitor.event("vv-gallery", "trust")
    return visitor.join(event["id"], visitor.inputs(event, ()), {"known": [], "methods": METHODS})


def arrive(visitor: Visitor) -> httpx.Response:
    """Open a page as its script does, and do not wait for what it shows."""
    event = visitor.event("", "arrive")
    return visitor.join(event["id"], visitor.inputs(event, ()), {"search": ""})


class Unruly:
    """One who obeys no order.

    Args:
        server: the app.
        config: what the page says of its components and events.
        seed: of the order.
        keeps_cookies: without, all pages count as those of one visitor.
    """

    def __init__(
        self, server: HasUrl, config: dict[str, Any], seed: int, *, keeps_cookies: bool = True
    ) -> None:
        self.dice = random.Random(seed)
        self.visitor = Visitor(server, timeout=60, config=config)
        if not keeps_cookies:
            self.visitor.http.cookies.jar.set_policy(NoCookies())
        self.visitor.http.get("/")
        self.pages = [self.visitor.page]
        self.events: list[tuple[str, str]] = []  # (page, event) that were taken in
        self.streams: list[ExitStack] = []
        self.said: list[tuple[str, int, str]] = []  # (action, status, sentence) of each answer

    def act(self) -> None:
        """One thing, as chance has it."""
        name = self.dice.choice(["new"] * 6 + ["slow"] * 2 + ACTIONS)
        answer = getattr(self, name)()
        if answer is not None:
            self.said.append((name, answer.status_code, answer.text))

    def run(self, over: threading.Event, *, actions: int) -> None:
        """Act until it is over, at most so often."""
        for _ in range(actions):
            if over.is_set():
                break
            self.act()
        self.leave()

    def slow(self) -> httpx.Response:
        return self._noted(trust(self.visitor))

    def quick(self) -> httpx.Response:
        return self._noted(arrive(self.visitor))

    def new(self) -> httpx.Response:
        """Go on under a new name, and ask at once."""
        self.visitor.page = "".join(self.dice.choices("abcdefghij0123456789", k=14)) + secrets.token_hex(3)
        self.pages.append(self.visitor.page)
        return self.dice.choice([self.slow, self.quick])()

    def back(self) -> None:
        """Go on under a name from before."""
        self.visitor.page = self.dice.choice(self.pages)

    def listen(self) -> httpx.Response:
        return self._open("/gradio_api/queue/data", {"session_hash": self.visitor.page})

    def beat(self) -> httpx.Response:
        return self._open(f"/gradio_api/heartbeat/{self.visitor.page}", {})

    def hang_up(self) -> None:
        """Close one of the streams in the middle."""
        if self.streams:
            self.streams.pop(self.dice.randrange(len(self.streams))).close()

    def cancel(self) -> httpx.Response:
        """End a question of one of the own pages, or one that is over, or that never was."""
        page, event = self.dice.choice([*self.events[-12:], (self.visitor.page, "nothing")])
        body = {"session_hash": page, "event_id": event, "fn_index": 1}
        return self.visitor.http.post("/gradio_api/cancel", json=body)

    def odd(self) -> httpx.Response:
        """Ask in a form that no page uses."""
        event = self.visitor.event("", "arrive")
        body = {
            "data": self.visitor.inputs(event, ()),
            "fn_index": event["id"],
            "session_hash": self.visitor.page,
        } | self.dice.choice(ODD_PARTS)
        return self._noted(self.visitor.http.post("/gradio_api/queue/join", content=json_of(body)))

    def garbage(self) -> httpx.Response:
        path = self.dice.choice(["queue/join", "cancel"])
        return self.visitor.http.post(f"/gradio_api/{path}", content=self.dice.randbytes(40))

    def leave(self) -> None:
        """Close everything at once."""
        while self.streams:
            self.streams.pop().close()
        self.visitor.close()

    def _noted(self, joined: httpx.Response) -> httpx.Response:
        if joined.status_code == 200:
            self.events.append((self.visitor.page, joined.json()["event_id"]))
        return joined

    def _open(self, path: str, query: dict[str, str]) -> httpx.Response:
        if len(self.streams) >= MOST_STREAMS:
            self.hang_up()
        kept = ExitStack()
        answer = kept.enter_context(self.visitor.http.stream("GET", path, params=query))
        if answer.status_code == 200:
            self.streams.append(kept)
            return httpx.Response(200)
        answer.read()
        kept.close()
        return answer


def json_of(body: dict[str, Any]) -> bytes:
    """As JSON, with what strict writers refuse."""
    return json.dumps(body).encode()
