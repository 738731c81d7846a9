"""The queue outlives whatever one visitor does to it: pages that come and go while their questions wait, cancels, hang-ups."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.http.hostile import encoded, photo
from tests.http.unruly import STOPPED, NoCookies, Unruly, arrive, trust
from tests.http.visitor import Visitor
from tests.serving import Server

pytestmark = pytest.mark.server

SLOW_PAGES = 8  # with a slow question each: as many as one visitor may have waiting
MINUTE = 60.0
NEW_PAGES = 14  # after them: more than are remembered of one visitor


@pytest.fixture(scope="module")
def alone(start_app: Callable[..., Server]) -> Server:
    """An app that nobody else uses."""
    return start_app("--model", "mini")


@pytest.fixture(scope="module")
def config(alone: Server) -> dict[str, Any]:
    with Visitor(alone) as visitor:
        return visitor.config


def rename(visitor: Visitor) -> None:
    """Go on as another page of the same browser."""
    visitor.page = secrets.token_hex(8)


def assert_is_answered(server: Server, config: dict[str, Any]) -> None:
    """Somebody who has just come is served as ever."""
    with Visitor(server, timeout=90, config=config) as honest:
        assert honest.arrive().refusals == []
        assert honest.bring("mine.png", encoded(photo(61), "PNG"), follow=True).refusals == []


@pytest.mark.parametrize("keeps_cookies", [True, False])
def test_pages_that_go_while_their_questions_wait_do_not_stop_the_queue(
    alone: Server, config: dict[str, Any], keeps_cookies: bool
) -> None:
    """Eight slow questions of eight pages, and then so many pages that the first ones have to make room."""
    with Visitor(alone, config=config) as eve:
        if not keeps_cookies:
            eve.http.cookies.jar.set_policy(NoCookies())
        eve.http.get("/")
        said = []
        for ask in [trust] * SLOW_PAGES + [arrive] * NEW_PAGES:
            rename(eve)
            said.append(ask(eve))
    assert STOPPED not in [answer.json().get("detail") for answer in said]
    assert_is_answered(alone, config)
    assert "KeyError" not in alone.said()


# --- in any order


def unruly_crowd(server: Server, config: dict[str, Any], seed: int) -> list[Unruly]:
    """Three browsers, one of which keeps no cookies."""
    return [Unruly(server, config, 10 * seed + number, keeps_cookies=number != 2) for number in range(3)]


def assert_outlived(server: Server, crowd: list[Unruly], *, before: int) -> None:
    """Nothing failed on the way, and every place of the slow lane has been given back.

    Args:
        before: characters of the log from another test.
    """
    said = [answer for one in crowd for answer in one.said]
    assert [answer for answer in said if answer[1] >= 500 or STOPPED in answer[2]] == []
    assert {200, 400, 429} <= {status for _, status, _ in said}
    log = server.said()[before:]
    for word in ("Traceback", "KeyError", "had stopped", "tending the app failed"):
        assert word not in log, log[-2000:]
    with Visitor(server, timeout=120) as after:
        assert after.http.get("/health").status_code == 200
        after.arrive("?tab=explain")
        told = after.act("vv-gallery", "trust", data={"known": [], "methods": ["rollout"]}, follow=False)
        assert told.refusals == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_joins_leaves_evictions_hang_ups_and_cancels_in_turn_leave_the_queue_alive(
    alone: Server, config: dict[str, Any], seed: int
) -> None:
    """Of each visitor one action at a time, so that a seed always tells the same story."""
    before, crowd = len(alone.said()), unruly_crowd(alone, config, seed)
    for step in range(60):
        for one in crowd:
            one.act()
        if step % 20 == 19:
            assert_is_answered(alone, config)
    for one in crowd:
        assert len(one.pages) > 16  # of which some have to make room
        one.leave()
    assert_outlived(alone, crowd, before=before)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3])
def test_the_queue_lives_through_a_minute_of_everything_at_once(
    alone: Server, config: dict[str, Any], seed: int
) -> None:
    before, crowd, over = len(alone.said()), unruly_crowd(alone, config, seed), threading.Event()
    threads = [threading.Thread(target=one.run, args=(over,), kwargs={"actions": 100_000}) for one in crowd]
    for thread in threads:
        thread.start()
    try:
        end = time.monotonic() + MINUTE
        while time.monotonic() < end:
            assert_is_answered(alone, config)
            assert httpx.get(f"{alone.url}/health", timeout=60).status_code == 200
    finally:
        over.set()
        for thread in threads:
            thread.join(120)
    assert sum(len(one.said) for one in crowd) > 300
    assert_outlived(alone, crowd, before=before)
