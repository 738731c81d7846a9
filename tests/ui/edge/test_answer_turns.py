"""Turns of answers: whose turn it is, what may lie unread, and who rests; each rule for two visitors who differ in one thing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sized
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from starlette.requests import ClientDisconnect

from tests.ui.loops import played
from vit_viz.errors import BusyError
from vit_viz.ui.edge.admission import ANSWERS, LANES, Admission, Lane
from vit_viz.ui.edge.answer_turns import UNREAD, AnswerTurns, Passing


async def never() -> None:
    """A visitor who stays."""
    await asyncio.Event().wait()


@dataclass
class Asked:
    """Answers that were asked for, in the order in which their turns came."""

    answer_turns: AnswerTurns
    begun: list[str] = field(default_factory=list)
    passing: dict[str, Passing] = field(default_factory=dict)
    _ends: dict[str, asyncio.Event] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def ask(self, name: str, visitor: str, address: str = "") -> None:
        """Ask for one, and let everything happen that can."""
        self._ends[name] = asyncio.Event()

        async def answer() -> None:
            async with self.answer_turns.turn(visitor, address, never) as one:
                self.begun.append(name)
                self.passing[name] = one
                await self._ends[name].wait()

        self._tasks.append(asyncio.create_task(answer()))
        await settled()

    async def end(self, name: str) -> None:
        """End one that was begun."""
        self._ends[name].set()
        await settled()

    async def end_all(self) -> None:
        """End them all, those that wait after the others."""
        for event in self._ends.values():
            event.set()
        await asyncio.gather(*self._tasks)


async def settled() -> None:
    """Let what is ready run."""
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def asked_of(turns: AnswerTurns) -> AsyncIterator[Asked]:
    asked = Asked(turns)
    yield asked
    await asked.end_all()
    assert not turns.is_busy
    assert turns.unread_bytes == 0
    remembered: list[Sized] = [turns.admission._held[ANSWERS], turns._making, turns._unread, turns._waiting]
    assert [len(one) for one in remembered] == [0] * 4


def test_whoever_has_fewest_being_made_is_next_and_then_whoever_came_first() -> None:
    async def play() -> list[str]:
        async with asked_of(
            AnswerTurns(Admission(), making=3, making_of_one=2, making_of_address=9)
        ) as asked:
            for name in ("ada1", "ada2", "ada3", "ada4", "bob1", "bob2", "eve1"):
                await asked.ask(name, name[:3])
            assert asked.begun == ["ada1", "ada2", "bob1"]  # two of one visitor at most
            await asked.end("ada1")
            assert asked.begun[3:] == ["eve1"]  # who has none before who has one, though bob2 came first
            await asked.end("eve1")
            await asked.end("bob1")
            await asked.end("bob2")
            await asked.end("ada2")
            return asked.begun[4:]

    assert played(play()) == ["ada3", "bob2", "ada4"]


@pytest.mark.parametrize(
    ("addresses", "begun"), [(("x", "x", "x"), 2), (("x", "x", "y"), 3), (("", "", ""), 3)]
)
def test_the_share_of_an_address_counts_where_it_is_known(addresses: tuple[str, ...], begun: int) -> None:
    async def play() -> int:
        async with asked_of(
            AnswerTurns(Admission(), making=9, making_of_one=2, making_of_address=2)
        ) as asked:
            for number, address in enumerate(addresses):
                await asked.ask(str(number), f"visitor{number}", address)
            return len(asked.begun)

    assert played(play()) == begun


def test_so_many_wait_and_the_next_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LANES, ANSWERS, Lane(places=30, each=3, each_address=9))

    async def play() -> None:
        async with asked_of(AnswerTurns(Admission(), making=2, making_of_one=1)) as asked:
            for number in range(3):
                await asked.ask(f"ada{number}", "ada")
            with pytest.raises(BusyError):
                async with asked.answer_turns.turn("ada", "", never):
                    pass
            await asked.ask("bob", "bob")
            assert asked.begun == ["ada0", "bob"]

    played(play())


def test_who_hangs_up_while_waiting_leaves_no_trace() -> None:
    async def play() -> None:
        async with asked_of(AnswerTurns(Admission(), making=1)) as asked:
            await asked.ask("ada", "ada")

            async def left() -> None:
                return

            with pytest.raises(ClientDisconnect):
                async with asked.answer_turns.turn("bob", "", left):
                    pytest.fail("its turn came")
            await asked.ask("eve", "eve")
            await asked.end("ada")
            assert asked.begun == ["ada", "eve"]

    played(play())


def test_what_lies_unread_keeps_its_reader_from_more_and_nobody_else() -> None:
    async def play() -> None:
        async with asked_of(
            AnswerTurns(Admission(), making=9, making_of_one=9, unread=100, unread_of_one=40)
        ) as asked:
            for name in ("ada1", "ada2", "bob1"):
                await asked.ask(name, name[:3])
            asked.answer_turns.made(asked.passing["ada1"], 39)
            await asked.ask("ada3", "ada")  # 39 of 40, and 39 < 100 * (1 - 39 / 40) is false
            assert "ada3" not in asked.begun
            await asked.ask("bob2", "bob")
            assert "bob2" in asked.begun
            asked.answer_turns.made(asked.passing["ada1"], 1)  # the rest of it was read
            await settled()
            await asked.ask("ada4", "ada")
            assert asked.begun[-2:] == ["ada3", "ada4"]

    played(play())


@pytest.mark.parametrize(("unread", "is_let_in"), [(99, True), (100, False), (101, False)])
def test_all_that_lies_unread_is_bounded(unread: int, is_let_in: bool) -> None:
    async def play() -> bool:
        async with asked_of(AnswerTurns(Admission(), making=9, unread=100, unread_of_one=1000)) as asked:
            await asked.ask("ada", "ada")
            asked.answer_turns.made(asked.passing["ada"], unread)
            await asked.ask("bob", "bob")
            return "bob" in asked.begun

    assert played(play()) == is_let_in


def test_an_answer_with_a_place_elsewhere_counts_by_its_bytes_alone() -> None:
    async def play() -> None:
        turns = AnswerTurns(Admission(), making=1, unread=100, unread_of_one=40)
        async with turns.beside("ada", "") as first, turns.beside("ada", ""):
            assert not turns.is_busy
            turns.made(first, 40)
            with pytest.raises(BusyError, match=UNREAD):
                async with turns.beside("ada", ""):
                    pass
            async with turns.beside("bob", ""):
                assert turns.unread_bytes == 40
        async with turns.beside("ada", ""):
            assert turns.unread_bytes == 0

    played(play())
