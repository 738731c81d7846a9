"""The app outlives whatever one visitor does to it: pages that come and go while their questions wait, hang-ups, odd questions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import httpx
import pytest

from tests.http.hostile import encoded, photo
from tests.http.unruly import Unruly
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.server

PLACES = 4  # of one visitor, for slow questions
MINUTE = 60.0
NEW_PAGES = 14


@pytest.fixture(scope="module")
def alone(start_app: Callable[..., Server]) -> Server:
    """An app that nobody else uses."""
    return start_app("--model", "mini")


def assert_is_answered(server: Server) -> None:
    """Somebody who has just come is served as ever."""
    with Visitor(server, timeout=90) as honest:
        assert honest.arrive().refusals == []
        assert honest.bring("mine.png", encoded(photo(61), "PNG")).refusals == []
        assert honest.ask("open").refusals == []


@pytest.mark.parametrize("keeps_cookies", [True, False])
def test_pages_that_go_while_their_questions_wait_harm_nobody(alone: Server, keeps_cookies: bool) -> None:
    """Slow questions of ever new pages, each of which is left at once."""
    said = []
    for _ in range(NEW_PAGES):
        with Visitor(alone, keeps_cookies=keeps_cookies) as eve, ExitStack() as held:
            eve.http.get("/")
            said += [held.enter_context(eve.asking("trust")).status_code for _ in range(3)]
    assert set(said) <= {200, 429}
    assert_is_answered(alone)
    assert "Traceback" not in alone.said()


# --- in any order


def finds_all_places(visitor: Visitor) -> bool:
    """Whether a visitor may have as many slow questions waiting as ever."""
    with ExitStack() as held:
        asked = [held.enter_context(visitor.asking("trust")) for _ in range(PLACES)]
        return all(answer.status_code == 200 for answer in asked)


@pytest.mark.slow
def test_the_app_lives_through_a_minute_of_everything_at_once(alone: Server) -> None:
    """Nothing fails on the way, and every place of the slow lane is given back; one of three browsers keeps no cookies."""
    crowd = [Unruly(alone, 30 + number, keeps_cookies=number != 2) for number in range(3)]
    before, over = len(alone.said()), threading.Event()
    threads = [threading.Thread(target=one.run, args=(over,), kwargs={"actions": 100_000}) for one in crowd]
    for thread in threads:
        thread.start()
    try:
        end = time.monotonic() + MINUTE
        while time.monotonic() < end:
            assert_is_answered(alone)
            assert httpx.get(f"{alone.url}/health", timeout=60).status_code == 200
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert not any(one.streams for one in crowd)  # each acted to the end
    statuses = [{status for _, status, _ in one.said} for one in crowd]
    assert all(200 in of_one for of_one in statuses)
    assert {200, 400} <= set().union(*statuses) <= {200, 400, 404, 429}
    assert "Traceback" not in alone.said()[before:]
    with Visitor(alone, timeout=120) as after:
        after.arrive("?tab=explain")
        assert after.ask("trust").refusals == []
        until(lambda: finds_all_places(after), what="the end of what nobody waits for")
