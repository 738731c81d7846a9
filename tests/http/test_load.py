"""32 visitors at once, each with pictures of their own: nobody sees another's, nothing fails, and what is kept comes at once."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.http.hostile import encoded, photo
from tests.http.visitor import Visitor
from tests.serving import Server

pytestmark = [pytest.mark.server, pytest.mark.slow]
VISITORS = 32
SECONDS = 30.0  # of the crowd, the arrivals included
EVERY = 2.0  # seconds between the actions of one visitor
TABS = {"look": "open", "lesson": "lesson_attention", "explain": "relevance", "heads": "head_tables"}
"""What the page asks when a tab is opened."""
NAME = "mine.png"  # of every picture: captions name it, so that another name is another picture


@dataclass
class Tally:
    """What the crowd saw."""

    wrong: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    actions: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def own_picture(number: int) -> bytes:
    """The picture of one visitor, as different from all others as colours allow; the sizes differ too."""
    return encoded(photo(1000 + number, width=160 + 8 * (number % 4), height=128), "PNG")


def addresses(value: dict[str, Any]) -> dict[str, str]:
    """What a page fetches for the picture that it shows, by name."""
    trace = value["trace"]
    return {
        "photo": value["photo"],
        "layer": f"/vit_viz/layer/{trace}/3",
        "rows": f"/vit_viz/rows/{trace}/4?query=class",
        "numbers": f"/vit_viz/numbers/{trace}?layer=2&head=1&query=3,4&at=5,6",
    }


def fingerprint(answer: bytes) -> str:
    return hashlib.sha256(answer).hexdigest()


def expected(server: Server) -> list[dict[str, str]]:
    """The fingerprints of every visitor's own answers, from a calm visit each."""
    found = []
    for number in range(VISITORS):
        with Visitor(server, timeout=120) as visitor:
            visitor.arrive()
            assert visitor.bring(NAME, own_picture(number)).refusals == []
            names = addresses(visitor.opened())
            found.append({name: fingerprint(visitor.http.get(path).content) for name, path in names.items()})
    for name in found[0]:
        assert len({prints[name] for prints in found}) == VISITORS, f"{name} does not tell the pictures apart"
    return found


class Guest:
    """One of the crowd: brings a picture, and then looks at it in ever other ways."""

    def __init__(self, visitor: Visitor, number: int, prints: dict[str, str], tally: Tally) -> None:
        self.visitor, self.number, self.prints, self.tally = visitor, number, prints, tally
        self.dice = random.Random(number)

    def stay(self, until: float) -> None:
        """Act every two seconds until the crowd leaves."""
        time.sleep(EVERY * self.number / VISITORS)
        try:
            self.visitor.arrive()
            self.bring()
            while time.monotonic() < until:
                started = time.monotonic()
                self.act()
                time.sleep(max(0.0, EVERY - (time.monotonic() - started)))
        except Exception as error:
            self.note_error(repr(error))
        finally:
            self.visitor.close()

    def act(self) -> None:
        """One thing that a visitor does."""
        self.tally.actions += 1
        kind = self.dice.choice(("fetch", "fetch", "fetch", "tab", "bring", "page"))
        if kind == "fetch":
            self.fetch(self.dice.choice(list(self.prints)))
        elif kind == "tab":
            tab = self.dice.choice(list(TABS))
            self.visitor.follow(tab=tab)
            self.hear(self.visitor.ask(TABS[tab]))
        elif kind == "bring":
            self.bring()
        else:
            self.check(self.visitor.http.get("/"))

    def bring(self) -> None:
        """Bring the own picture, again."""
        self.hear(self.visitor.bring(NAME, own_picture(self.number)))
        self.hear(self.visitor.ask("open"))

    def fetch(self, name: str) -> None:
        """Fetch something of the picture that the page shows, and compare it with what it must be."""
        self.visitor.follow(tab="look")
        path = addresses(self.visitor.opened())[name]
        self.check(self.visitor.http.get(path))  # the first time it may have to be drawn
        started = time.monotonic()
        answer = self.visitor.http.get(path)
        seconds = time.monotonic() - started
        self.check(answer)
        with self.tally.lock:
            self.tally.seconds.append(seconds)
            if answer.status_code == 200 and fingerprint(answer.content) != self.prints[name]:
                self.tally.wrong.append(f"visitor {self.number}, {name}")

    def check(self, answer: Any) -> None:
        if answer.status_code != 200:
            self.note_error(f"{answer.request.url.path[:40]}: {answer.status_code} {answer.text[:100]}")

    def hear(self, told: Any) -> None:
        for text in told.refusals:
            self.note_error(text)

    def note_error(self, text: str) -> None:
        with self.tally.lock:
            self.tally.errors.append(text)


def crowd(server: Server) -> Tally:
    """What 32 visitors see of a server at once."""
    tally = Tally()
    prints = expected(server)
    until = time.monotonic() + SECONDS
    threads = []
    for number in range(VISITORS):
        guest = Guest(Visitor(server, timeout=60), number, prints[number], tally)
        threads.append(threading.Thread(target=guest.stay, args=(until,), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 120)
    return tally


def test_a_crowd_gets_its_own_pictures(start_app: Callable[..., Server]) -> None:
    server = start_app("--model", "mini")
    tally = crowd(server)
    busy = [text for text in tally.errors if "busy" in text]
    print(f"{tally.actions} actions, {len(tally.seconds)} views, {len(busy)} times busy")
    assert tally.wrong == []
    assert [text for text in tally.errors if text not in busy] == []
    assert len(tally.seconds) > VISITORS
    assert "Traceback" not in server.said()
