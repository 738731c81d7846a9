"""A visitor who asks, leaves, hangs up and comes back under other names, in an order that chance decides."""

from __future__ import annotations

import json
import random
import threading
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import httpx

from tests.http.visitor import PAGE_ANSWERS, HasUrl, Visitor

MOST_STREAMS = 12  # that one visitor holds open: more than the places of one visitor
IMPATIENT_SECONDS = 2.0  # after which it hangs up on a slow question that still waits for its turn
ACTIONS = ["slow", "quick", "new", "back", "hang_up", "odd", "garbage"]
ODD_PARTS: tuple[dict[str, Any], ...] = (
    {"view": None},
    {"view": 5},
    {"view": ["image=lion"]},
    {"view": "\ud800"},
    {"view": "model=nothing&image=u" + "A" * 24},
    {"view": "edits=;;&size=1e9&part=0,0,0,0"},
    {"methods": {"x": 1}},
    {"methods": [[[]], 10**30, float("nan")]},
    {"method": "\ud800"},
    {"options": {"layer": float("nan")}},
    {"name": "_" * 9},
)


class Unruly:
    """One browser that behaves in no order."""

    def __init__(self, server: HasUrl, seed: int, *, keeps_cookies: bool = True) -> None:
        self.dice = random.Random(seed)
        self.visitor = Visitor(server, timeout=60, keeps_cookies=keeps_cookies)
        self.visitor.http.get("/")
        self.pages = [self.visitor.page]
        self.streams: list[ExitStack] = []
        self.said: list[tuple[str, int, str]] = []  # (action, status, sentence) of each answer

    def act(self) -> None:
        """One thing, as chance has it."""
        name = self.dice.choice(["new"] * 6 + ["slow"] * 3 + ACTIONS)
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

    def slow(self) -> httpx.Response | None:
        """Ask for the slow figures of the Explain tab, and do not wait for them."""
        return self._open(self.visitor.asking("trust", IMPATIENT_SECONDS))

    def quick(self) -> httpx.Response:
        """Ask what a page asks first."""
        return self.visitor.post("/vit_viz/open", self.visitor.about_link({}))

    def new(self) -> httpx.Response | None:
        """Go on as another page, and ask at once."""
        self.visitor.rename()
        self.pages.append(self.visitor.page)
        return self.dice.choice([self.slow, self.quick])()

    def back(self) -> None:
        """Go on under a name from before."""
        self.visitor.page = self.dice.choice(self.pages)

    def hang_up(self) -> None:
        """Close one of the streams in the middle."""
        if self.streams:
            self.streams.pop(self.dice.randrange(len(self.streams))).close()

    def odd(self) -> httpx.Response | None:
        """Ask in a form that no page uses; a slow one waits for the places that this browser holds itself."""
        name, body = self.dice.choice(PAGE_ANSWERS), {"view": ""} | self.dice.choice(ODD_PARTS)
        try:
            return self.visitor.http.post(
                f"/vit_viz/{name}", content=json_of(body), timeout=IMPATIENT_SECONDS
            )
        except httpx.TimeoutException:
            return None

    def garbage(self) -> httpx.Response:
        return self.visitor.http.post("/vit_viz/open", content=self.dice.randbytes(40))

    def leave(self) -> None:
        """Close everything at once."""
        while self.streams:
            self.streams.pop().close()
        self.visitor.close()

    def _open(self, stream: AbstractContextManager[httpx.Response]) -> httpx.Response | None:
        if len(self.streams) >= MOST_STREAMS:
            self.hang_up()
        kept = ExitStack()
        try:
            answer = kept.enter_context(stream)
        except httpx.TimeoutException:
            return None
        if answer.status_code == 200:
            self.streams.append(kept)
            return httpx.Response(200)
        answer.read()
        kept.close()
        return answer


def json_of(body: dict[str, Any]) -> bytes:
    """As JSON, with what strict writers refuse."""
    return json.dumps(body).encode()
