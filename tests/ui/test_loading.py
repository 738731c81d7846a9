"""Waiting for a model: one download however many wait, no thread per page, and an end when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ui.loops import played
from vit_viz.errors import BusyError, Cancelled, CheckpointError
from vit_viz.ui.header import models
from vit_viz.ui.header.models import MOST_LOADS, Loads, Value, Waiting, _Load


class SlowSession:
    """A session whose models take until they are released."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.loaded: set[str] = set()
        self.ended: list[str] = []
        self.looks = 0  # how often a download looked whether somebody still wants it
        self.release = threading.Event()
        self.error: Exception | None = None

    def has_model(self, ref: str) -> bool:
        return ref in self.loaded

    def model(self, ref: str, *, progress: Callable[[int, int], None], cancelled: Callable[[], bool]) -> None:
        self.asked.append(ref)
        progress(43_000_000, 88_000_000)
        while not self.release.wait(0.01):
            self.looks += 1
            if cancelled():
                self.ended.append(ref)
                raise Cancelled("cancelled")
        if self.error is not None:
            raise self.error
        self.loaded.add(ref)


@pytest.fixture
def session() -> SlowSession:
    return SlowSession()


@pytest.fixture
def loads(session: SlowSession) -> Loads:
    return Loads(session)  # type: ignore[arg-type]  # has what Loads asks of a session


async def wait_for(loads: Loads, ref: str, page: str, told: list[Value] | None = None) -> list[Value]:
    """Everything that a page is told while it waits; `told` already holds it while it goes on."""
    told = [] if told is None else told
    async for value in loads.until_loaded(ref, page, loads.begin(page)):
        told.append(value)
    return told


async def soon(condition: Callable[[], Any]) -> None:
    """Wait for a condition that is about to hold; `played` ends what would wait for ever."""
    while not condition():
        await asyncio.sleep(0.01)


def test_fifty_pages_wait_for_one_download_without_a_thread_each(loads: Loads, session: SlowSession) -> None:
    async def play() -> list[list[Value]]:
        threads, told = threading.active_count(), [list[Value]() for _ in range(50)]
        pages = [asyncio.create_task(wait_for(loads, "a/b", f"page {i}", told[i])) for i in range(50)]
        await soon(lambda: all(told))
        assert threading.active_count() <= threads + 1
        session.release.set()
        return await asyncio.gather(*pages)

    told = played(play())
    assert session.asked == ["a/b"]
    assert all(values[0]["amount"] == "43 of 88 MB" for values in told)
    assert told[0][0]["words"] == "Downloading a/b"


def test_a_model_that_is_there_is_not_waited_for(loads: Loads, session: SlowSession) -> None:
    session.loaded.add("a/b")
    assert played(wait_for(loads, "a/b", "page")) == []
    assert session.asked == []


def test_a_download_goes_on_while_somebody_waits_and_ends_with_the_last(
    loads: Loads, session: SlowSession
) -> None:
    async def play() -> None:
        told = [list[Value](), list[Value]()]
        pages = [
            asyncio.create_task(wait_for(loads, "a/b", name, told[i]))
            for i, name in enumerate(("ada", "ben"))
        ]
        await soon(lambda: all(told))
        assert loads.cancel("ada")
        await pages[0]
        looks = session.looks
        await soon(lambda: session.looks > looks + 1)  # it has looked again since she left
        assert session.ended == []
        loads.cancel("ben")
        await pages[1]
        await soon(lambda: session.ended == ["a/b"])

    played(play())


def test_a_page_that_is_closed_ends_its_download(loads: Loads, session: SlowSession) -> None:
    async def play() -> None:
        page = asyncio.create_task(wait_for(loads, "a/b", "ada"))
        await soon(lambda: session.asked)
        page.cancel()
        await soon(lambda: session.ended == ["a/b"])

    played(play())


def test_another_choice_ends_the_one_before(loads: Loads, session: SlowSession) -> None:
    async def play() -> None:
        first = loads.begin("ada")
        page = asyncio.create_task(_all(loads.until_loaded("a/b", "ada", first)))
        await soon(lambda: session.asked)
        second = asyncio.create_task(wait_for(loads, "c/d", "ada"))
        await page
        assert first.ended == "replaced"
        await soon(lambda: session.ended == ["a/b"])
        session.release.set()
        await second
        assert session.loaded == {"c/d"}

    played(play())


def test_a_failure_reaches_everyone_who_waits(loads: Loads, session: SlowSession) -> None:
    session.error = CheckpointError("one sentence")
    session.release.set()

    async def play() -> list[Any]:
        pages = [wait_for(loads, "a/b", name) for name in ("ada", "ben")]
        return await asyncio.gather(*pages, return_exceptions=True)

    assert [str(error) for error in played(play())] == ["one sentence"] * 2


def test_too_many_downloads_at_once_are_refused_in_a_sentence(loads: Loads, session: SlowSession) -> None:
    async def play() -> None:
        pages = [asyncio.create_task(wait_for(loads, f"a/{i}", f"page {i}")) for i in range(MOST_LOADS)]
        await soon(lambda: len(session.asked) == MOST_LOADS)
        with pytest.raises(BusyError, match="try again in a minute"):
            await wait_for(loads, "one/more", "page")
        session.release.set()
        await asyncio.gather(*pages)

    played(play())


@pytest.mark.parametrize(
    ("over", "ended"), [(True, ""), (False, "cancelled"), (False, "replaced"), (True, "cancelled")]
)
def test_nothing_is_told_of_a_wait_that_has_ended_meanwhile(
    monkeypatch: pytest.MonkeyPatch, over: bool, ended: Any
) -> None:
    load, waiting = _Load(done=3, total=7), Waiting()

    async def sleep(_seconds: float) -> None:
        load.over.set() if over else None
        waiting.ended = ended

    monkeypatch.setattr(models, "asyncio", SimpleNamespace(sleep=sleep))
    assert played(_all(models._followed(load, "a/b", waiting))) == []


def test_the_same_words_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    load, steps = _Load(done=3_000_000, total=7_000_000), iter([3_000_000, 5_000_000, 5_000_000])

    async def sleep(_seconds: float) -> None:
        load.done = next(steps, 0)
        load.over.set() if not load.done else None

    monkeypatch.setattr(models, "asyncio", SimpleNamespace(sleep=sleep))
    told = played(_all(models._followed(load, "a/b", Waiting())))
    assert [value["amount"] for value in told] == ["3 of 7 MB", "5 of 7 MB"]


async def _all(values: Any) -> list[Value]:
    return [value async for value in values]


@pytest.mark.parametrize(
    ("done", "total", "words", "amount", "share"),
    [
        (0, 0, "Looking for x …", "", None),
        (0, 8_000_000, "Looking for x …", "", None),
        (2_000_000, 8_000_000, "Downloading x", "2 of 8 MB", 0.25),
        (2_000_000, 0, "Downloading x", "2 MB", None),
        (8_000_000, 8_000_000, "Loading x …", "", 1.0),
    ],
)
def test_a_download_says_how_far_it_is(
    done: int, total: int, words: str, amount: str, share: float | None
) -> None:
    load = _Load()
    load.note_progress(done, total)
    assert load.value("x") == {"words": words, "amount": amount, "share": share, "stop": True}
