"""Turns at a device: one at a time, in order, never a long queue; and what ends a computation early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import copy_context
from functools import partial

import pytest

from tests.waiting import PATIENCE, until
from vit_viz.errors import BusyError, Cancelled
from vit_viz.progress import within
from vit_viz.turns import GONE, MOST_OVERTAKEN, WHO, Turns, Who


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def held(turns: Turns, device: str = "cpu") -> Iterator[Callable[[], None]]:
    """Another thread that holds a device until it is told to let go, at the latest at the end."""
    inside, free = threading.Event(), threading.Event()

    def hold() -> None:
        with turns.turn(device):
            inside.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert inside.wait(PATIENCE)
    yield free.set
    free.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()


@contextmanager
def holding(turns: Turns, who: Who) -> Iterator[Callable[[], None]]:
    """The same for somebody."""
    token = WHO.set(who)
    context = copy_context()
    WHO.reset(token)
    with ExitStack() as stack:
        inside, free = threading.Event(), threading.Event()

        def hold() -> None:
            with turns.turn("cpu"):
                inside.set()
                free.wait(60)

        thread = threading.Thread(target=context.run, args=(hold,))
        thread.start()
        stack.callback(thread.join, PATIENCE)
        stack.callback(free.set)
        assert inside.wait(PATIENCE)
        yield free.set


class Waiter:
    """A thread that asks for a turn and notes what became of it."""

    def __init__(
        self, turns: Turns, log: list[object], name: object, *, who: Who = ("", ""), **options: object
    ) -> None:
        self.error: BaseException | None = None

        def ask() -> None:
            WHO.set(who)
            try:
                with turns.turn("cpu", **options):  # type: ignore[arg-type]
                    log.append(name)
            except Exception as error:
                self.error = error

        def has_come() -> bool:
            """Not by how many wait: another may have been refused for it, and be gone."""
            queue = turns._queues.get("cpu")
            return queue is not None and self.thread.ident in {
                one.key for one in [*queue.waiting, *queue.held]
            }

        self.thread = threading.Thread(target=ask)
        self.thread.start()
        until(lambda: has_come() or not self.thread.is_alive())

    def end(self) -> BaseException | None:
        """What ended it."""
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.error


def test_who_came_first_is_served_first() -> None:
    turns, log = Turns(), list[object]()
    with held(turns) as let_go:
        waiters = [Waiter(turns, log, place) for place in range(6)]
        let_go()
        assert [waiter.end() for waiter in waiters] == [None] * 6
    assert log == [0, 1, 2, 3, 4, 5]


ADA, BOB, CAROL, EVE = ("1.1.1.1", "ada"), ("1.1.1.1", "bob"), ("2.2.2.2", "carol"), ("3.3.3.3", "eve")


def test_addresses_go_round_then_their_visitors_then_the_questions_of_each() -> None:
    turns, log = Turns(), list[object]()
    came = [
        ("a1", ADA),
        ("a2", ADA),
        ("a3", ADA),
        ("b1", BOB),
        ("c1", CAROL),
        ("b2", BOB),
        ("c2", CAROL),
        ("e1", EVE),
    ]
    with held(turns) as let_go:
        waiters = [Waiter(turns, log, name, who=who) for name, who in came]
        let_go()
        assert [waiter.end() for waiter in waiters] == [None] * len(came)
    assert log == ["a1", "c1", "e1", "b1", "c2", "a2", "b2", "a3"]


def test_a_newcomer_is_called_within_one_round_however_many_questions_others_have() -> None:
    turns, log = Turns(), list[object]()
    with held(turns) as let_go:
        greedy = [Waiter(turns, log, who, who=("", who)) for who in ("x", "y") for _ in range(20)]
        newcomer = Waiter(turns, log, "new", who=("", "new"))
        let_go()
        assert newcomer.end() is None
        assert [one.end() for one in greedy] == [None] * 40
    assert log.index("new") == 2


def test_who_takes_a_question_back_keeps_the_turn_of_the_next() -> None:
    """Slow and quick ones go round by themselves; nobody who left is called, and nothing is left of them."""
    turns, log, back = Turns(), list[object](), threading.Event()
    with held(turns) as let_go:
        gone = [Waiter(turns, log, "gone", who=who, cancelled=back.is_set) for who in (ADA, CAROL)]
        names = [("a", ADA), ("b", BOB), ("c", CAROL), ("e", EVE), ("e2", EVE)]
        stay = [Waiter(turns, log, name, who=who) for name, who in names]
        back.set()
        assert all(isinstance(one.end(), Cancelled) for one in gone)
        assert turns.waiting("cpu") == len(names)
        let_go()
        assert [one.end() for one in stay] == [None] * len(names)
    assert log == ["a", "c", "e", "b", "e2"]
    assert turns._queues == {}


def test_where_too_many_wait_the_address_with_most_loses_its_newest() -> None:
    """And of that address the visitor with most: never whoever has just come with less."""
    turns, log = Turns(max_waiting=5), list[object]()
    with held(turns) as let_go:
        theirs = [Waiter(turns, log, n, who=who) for n, who in enumerate((ADA, ADA, BOB, ADA, CAROL))]
        newcomer = Waiter(turns, log, "new", who=EVE)
        assert isinstance(theirs[3].end(), BusyError)
        other = Waiter(turns, log, "other", who=CAROL)
        assert isinstance(theirs[1].end(), BusyError)
        let_go()
        for one in (theirs[0], theirs[2], theirs[4], newcomer, other):
            assert one.end() is None


def test_of_visitors_with_equally_many_the_last_to_come_is_refused_so_that_who_waits_is_served() -> None:
    turns, log = Turns(max_waiting=3), list[object]()
    with held(turns) as let_go:
        waiters = [Waiter(turns, log, n, who=("", str(n))) for n in range(3)]
        assert isinstance(Waiter(turns, log, 3, who=("", "3")).end(), BusyError)
        let_go()
        assert [one.end() for one in waiters] == [None] * 3


def test_one_visitor_waits_with_a_few_and_holds_a_few() -> None:
    turns, log = Turns(places=3, each=2, each_waiting=1), list[object]()
    with ExitStack() as places:
        free = [places.enter_context(holding(turns, who)) for who in (ADA, ADA)]
        second = Waiter(turns, log, "second", who=ADA)
        assert isinstance(Waiter(turns, log, "third", who=ADA).end(), BusyError)
        assert Waiter(turns, log, "bob", who=BOB).end() is None  # there is a place that ada may not have
        free[0]()
        assert second.end() is None
    assert log == ["bob", "second"]


def test_a_slow_computation_is_passed_by_so_many_quick_ones_and_no_more() -> None:
    turns, log = Turns(), list[object]()
    with held(turns) as let_go:
        slow = Waiter(turns, log, "slow")
        quick = [Waiter(turns, log, n, is_quick=True) for n in range(MOST_OVERTAKEN + 3)]
        let_go()
        assert [one.end() for one in (slow, *quick)] == [None] * (len(quick) + 1)
    assert log == [*range(MOST_OVERTAKEN), "slow", *range(MOST_OVERTAKEN, len(quick))]


def test_what_nobody_waits_for_any_more_leaves_the_queue() -> None:
    turns, gone = Turns(), threading.Event()
    GONE.set(gone.is_set)
    try:
        gone.set()
        with held(turns), pytest.raises(Cancelled):
            turns.turn("cpu").__enter__()
        assert turns.waiting("cpu") == 0
    finally:
        GONE.set(None)


def played_in_places(turns: Turns, clock: Clock, who: list[Who], newcomer: Who, seconds: float) -> list[int]:
    """Which of those who hold places are told to give theirs up to a newcomer, who comes so many seconds later."""
    ended: list[int] = []

    async def play() -> None:
        with ExitStack() as places:
            for number, one in enumerate(who):
                WHO.set(one)
                await turns.enter(places, "answers", partial(ended.append, number))
                clock.now += 1
            clock.now += seconds
            WHO.set(newcomer)
            with ExitStack() as place, suppress(BusyError):
                await turns.enter(place, "answers", lambda: None)

    asyncio.run(play())
    return ended


@pytest.mark.parametrize(
    ("who", "newcomer", "seconds", "ended"),
    [
        ([ADA, ADA, BOB], CAROL, 99, [0]),  # the visitor with most, of the address with most
        ([BOB, ADA, ADA], CAROL, 99, [1]),
        ([ADA, BOB, CAROL], EVE, 99, [0]),  # the address with most, and there who has held for longest
        ([CAROL, ADA, EVE], BOB, 99, [1]),  # of an address that has as many as any
        ([ADA, ADA, BOB], ADA, 99, []),
        ([BOB, ADA, ADA], BOB, 99, []),
        ([ADA, ADA, BOB], CAROL, 0, []),  # not for long yet
    ],
)
def test_who_holds_most_places_for_long_gives_one_up_to_somebody_who_has_none(
    who: list[Who], newcomer: Who, seconds: float, ended: list[int]
) -> None:
    clock = Clock()
    turns = Turns(places=3, max_seconds=0.0, clock=clock)
    assert played_in_places(turns, clock, who, newcomer, seconds) == ended


def test_one_holds_a_device_at_a_time() -> None:
    turns, crowd, served, inside, most = Turns(), 8, 0, 0, 0

    def work() -> None:
        nonlocal served, inside, most
        with turns.turn("cpu"):
            inside += 1
            most = max(most, inside)
            served += 1
            until(lambda: turns.waiting("cpu") == crowd - served or inside > 1)  # all others stand outside
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(crowd)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (served, most) == (crowd, 1)


def test_devices_do_not_wait_for_each_other() -> None:
    turns = Turns(max_seconds=0.0)
    with held(turns, "cuda"), turns.turn("cpu"):
        assert turns.waiting("cuda") == 0


def test_who_holds_a_turn_may_take_it_again() -> None:
    turns, log = Turns(max_seconds=60), list[object]()
    with turns.turn("cpu"):
        with turns.turn("cpu"):
            waiter = Waiter(turns, log, "other")
        assert log == []  # the inner end gave nothing away
    assert waiter.end() is None


def test_one_too_many_is_told_at_once_that_the_machine_is_busy() -> None:
    turns, log = Turns(max_waiting=2), list[object]()
    with held(turns) as let_go:
        waiters = [Waiter(turns, log, place) for place in range(2)]
        with pytest.raises(BusyError, match=r"^The machine is busy: 2 .* please try again in a moment\.$"):
            turns.turn("cpu").__enter__()
        let_go()
        assert [waiter.end() for waiter in waiters] == [None, None]


def test_who_waits_too_long_is_told_that_the_machine_is_busy() -> None:
    turns = Turns(max_seconds=0.0)
    with held(turns), pytest.raises(BusyError, match="not free for 0 seconds"), turns.turn("cpu"):
        pass
    assert turns.waiting("cpu") == 0


def test_a_cancelled_waiter_leaves_the_queue_and_the_next_one_moves_up() -> None:
    turns, log, leave = Turns(max_waiting=2), list[object](), threading.Event()
    with held(turns) as let_go:
        leaver = Waiter(turns, log, "leaver", cancelled=leave.is_set)
        stayer = Waiter(turns, log, "stayer")
        leave.set()
        assert isinstance(leaver.end(), Cancelled)
        assert turns.waiting("cpu") == 1
        let_go()
        assert stayer.end() is None
    assert log == ["stayer"]


def test_a_turn_that_comes_to_a_cancelled_waiter_goes_to_the_next() -> None:
    turns, log = Turns(), list[object]()
    asked = 0

    def cancelled() -> bool:  # true only once the turn has come
        return turns.waiting("cpu") < 2 and asked > 0

    with held(turns) as let_go:
        leaver = Waiter(turns, log, "leaver", cancelled=cancelled)
        stayer = Waiter(turns, log, "stayer")
        asked = 1
        let_go()
        assert isinstance(leaver.end(), Cancelled)
        assert stayer.end() is None
    assert log == ["stayer"]


def test_an_exception_in_a_turn_gives_the_device_back() -> None:
    turns = Turns(max_seconds=1.0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn("cpu"), turns.turn("cpu"):
            _ = 1 / 0
    with held(turns):
        assert turns.waiting("cpu") == 0


def test_a_crowd_with_failures_and_cancellations_ends() -> None:
    turns, ended = Turns(max_waiting=5, max_seconds=5), list[str]()

    def try_it(number: int) -> None:
        with suppress(ValueError, BusyError, Cancelled), turns.turn("cpu", cancelled=lambda: number % 5 == 0):
            if number % 3 == 0:
                raise ValueError

    def work(place: int) -> None:
        for step in range(30):
            try_it(place + step)
        ended.append("done")

    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(ended) == 16
    with turns.turn("cpu"):
        assert turns.waiting("cpu") == 0


# --- what ends a computation


def test_a_computation_that_takes_too_long_ends_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("vit_viz.turns.time.monotonic", lambda: now)
    check = within(3)
    now = 1003.0
    assert not check()
    now = 1003.1
    with pytest.raises(Cancelled, match=r"^This took longer than 3 seconds and was ended; .*\.$"):
        check()


def test_any_check_ends_it() -> None:
    first, second = threading.Event(), threading.Event()
    check = within(60, first.is_set, None, second.is_set)
    assert not check()
    second.set()
    assert check()


class Resting:
    """Turns at which a slow computation has just ended that took so many seconds, while quick questions were open."""

    def __init__(self, *, took: float, quick: bool = True) -> None:
        self.clock, self.is_asked = Clock(), quick
        self.turns, self.log = Turns(clock=self.clock), list[object]()
        self.turns.has_quick_questions = lambda: self.is_asked
        with self.turns.turn("cpu"):
            self.clock.now += took

    def slow(self) -> Waiter:
        """Another slow computation, which asks for the device now."""
        return Waiter(self.turns, self.log, "slow")


@pytest.mark.parametrize(("took", "rest"), [(0.125, 0.375), (0.5, 1.5), (7.0, 2.0)])
def test_a_slow_computation_rests_while_quick_questions_are_open(took: float, rest: float) -> None:
    resting = Resting(took=took)
    waiter = resting.slow()
    resting.clock.now += rest - 0.0625
    with resting.turns.turn("cpu", is_quick=True):
        resting.log.append("quick")
    assert resting.log == ["quick"]
    assert resting.turns.waiting("cpu") == 1
    resting.clock.now += 0.0625
    assert waiter.end() is None
    assert resting.log == ["quick", "slow"]


def test_it_goes_on_when_nobody_asks_any_more() -> None:
    resting = Resting(took=0.5)
    waiter = resting.slow()
    assert resting.turns.waiting("cpu") == 1
    resting.is_asked = False
    assert waiter.end() is None
    assert resting.log == ["slow"]


def test_it_does_not_rest_where_nobody_asked() -> None:
    resting = Resting(took=0.5, quick=False)
    assert resting.turns._queues == {}, "nothing to remember"
    resting.is_asked = True
    with resting.turns.turn("cpu"):
        resting.log.append("at once")
    assert resting.log == ["at once"]


def test_quick_computations_do_not_make_slow_ones_rest() -> None:
    resting = Resting(took=0.0)
    with resting.turns.turn("cpu", is_quick=True):
        resting.clock.now += 9
    with resting.turns.turn("cpu"):
        resting.log.append("at once")
    assert resting.log == ["at once"]


def test_a_quick_computation_that_waited_does_not_make_slow_ones_rest_either() -> None:
    resting = Resting(took=0.0)

    class Lasting(list[object]):
        def append(self, name: object) -> None:
            resting.clock.now += 9
            super().append(name)

    with held(resting.turns) as let_go:
        waiter = Waiter(resting.turns, Lasting(), "quick", is_quick=True)
        let_go()
        assert waiter.end() is None
    with resting.turns.turn("cpu"):
        resting.log.append("at once")
    assert resting.log == ["at once"]


def test_who_holds_the_device_does_not_rest_inside() -> None:
    resting = Resting(took=0.5)
    with resting.turns.turn("cpu", is_quick=True), resting.turns.turn("cpu"):
        resting.log.append("inside")
    assert resting.log == ["inside"]


def test_all_slow_computations_rest_together_and_in_order() -> None:
    resting = Resting(took=0.5)
    first = Waiter(resting.turns, resting.log, "first")
    second = Waiter(resting.turns, resting.log, "second")
    assert resting.turns.waiting("cpu") == 2
    resting.clock.now += 1.5
    assert [first.end(), second.end()] == [None, None]
    assert resting.log == ["first", "second"]


def test_one_that_rests_can_be_cancelled() -> None:
    resting, stop = Resting(took=0.5), threading.Event()
    waiter = Waiter(resting.turns, resting.log, "slow", cancelled=stop.is_set)
    stop.set()
    assert isinstance(waiter.end(), Cancelled)
    assert resting.turns.waiting("cpu") == 0
