"""Turns at what there is little of: a device, the process that decodes pictures, the threads that make answers.

Whoever waits is called in turn: network addresses go round, then the visitors of each, then the questions of each visitor in their
order. Where too many wait, the address with most, its visitor with most, loses the newest question. Where every place is held and
one is held for long, it is given up to a visitor who holds none. Quick computations go before slow ones, and while quick questions
are open a slow one also rests after each batch, because those need the processor for more than their pass.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count

from vit_viz.errors import BusyError
from vit_viz.progress import POLL_SECONDS, StopCheck, stop_if

Who = tuple[str, str]
"""A network address, "" where it is not known, and a visitor's name."""

WHO: ContextVar[Who] = ContextVar("who", default=("", ""))
"""For whom this context computes; its default is nobody in particular."""

GONE: ContextVar[StopCheck | None] = ContextVar("gone", default=None)
"""Whether nobody waits any more for what this context computes; None where nobody is asked."""

MAX_WAITING = 1024
MAX_WAIT_SECONDS = 60.0
MOST_OVERTAKEN = 8
"""How many quick computations may pass one slow computation that came before them."""

RESTS = 3.0
LONGEST_REST_SECONDS = 2.0
"""How long slow computations leave a device alone after each batch while quick questions are open: so many times as long as the
batch took, and no longer than this. So they keep a quarter of it, however many quick questions there are."""


@dataclass(eq=False)
class _Turn:
    """Somebody who waits for a place, or holds one.

    Args:
        key: who asks again with it goes on; wake: called when there is news; end: makes whoever holds the place give it up.
        since: when it was called.
    """

    key: Hashable
    who: Who
    wake: Callable[[], object]
    is_quick: bool = False
    end: Callable[[], object] | None = None
    number: int = 0
    overtaken: int = 0
    depth: int = 1
    since: float | None = None
    refused: str = ""


_Round = OrderedDict[str, OrderedDict[Who, deque[_Turn]]]
"""By network address, then by visitor, those who wait, in their order; whoever was called goes to the end of both."""


@dataclass(eq=False)
class _Queue:
    """Who holds places and who waits, the slow and the quick; until when the slow rest.

    A crowd may wait, on the event loop: to add one, to call one and to leave cost the same however many there are.
    """

    held: list[_Turn] = field(default_factory=list)
    waiting: dict[int, _Turn] = field(default_factory=dict)  # by number
    rounds: tuple[_Round, _Round] = field(default_factory=lambda: (OrderedDict(), OrderedDict()))
    rests_until: float = 0.0

    def add(self, one: _Turn) -> None:
        """Let one wait."""
        self.waiting[one.number] = one
        visitors = self.rounds[one.is_quick].setdefault(one.who[0], OrderedDict())
        visitors.setdefault(one.who, deque()).append(one)

    def leave(self, one: _Turn, *, is_called: bool = False) -> None:
        """Let one that waits go; where it is called, its visitor and address come after all others."""
        del self.waiting[one.number]
        addresses, address = self.rounds[one.is_quick], one.who[0]
        visitors = addresses[address]
        visitors[one.who].remove(one)
        if is_called:
            visitors.move_to_end(one.who)
            addresses.move_to_end(address)
        if not visitors[one.who]:
            del visitors[one.who]
        if not visitors:
            del addresses[address]

    def next(self, each: int, *, only_quick: bool) -> _Turn | None:
        """Whose turn it is, of those who hold fewer than `each` places."""
        mine = Counter(one.who for one in self.held)

        def first(addresses: _Round) -> _Turn | None:
            lines = (line for visitors in addresses.values() for line in visitors.items())
            return next((line[0] for who, line in lines if mine[who] < each), None)

        slow, quick = (None if only_quick else first(self.rounds[False])), first(self.rounds[True])
        if slow is None or quick is None or slow.overtaken >= MOST_OVERTAKEN:
            return slow or quick
        slow.overtaken += quick.number > slow.number
        return quick

    def of(self, who: Who) -> int:
        """How many of a visitor's wait."""
        lines = (addresses[who[0]].get(who) for addresses in self.rounds if who[0] in addresses)
        return sum(len(line) for line in lines if line is not None)

    def newest_of_most(self) -> _Turn:
        """Of those that wait the newest of the visitor with most, of the address with most."""
        near = Counter[str]()
        for addresses in self.rounds:
            near.update({name: sum(map(len, visitors.values())) for name, visitors in addresses.items()})
        last = [
            line[-1]
            for addresses in self.rounds
            for visitors in addresses.values()
            for line in visitors.values()
        ]
        return max(last, key=lambda one: (near[one.who[0]], self.of(one.who), one.number))


class Turns:
    """Places by the name of what they are at.

    Args:
        places: that are held at once; each: of them, by one visitor.
        max_waiting: who may wait for one thing; each_waiting: of them, of one visitor.
        max_seconds: how long one may wait.
        held_seconds: how long a place is kept while somebody waits who holds none.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        places: int = 1,
        each: int | None = None,
        max_waiting: int = MAX_WAITING,
        each_waiting: int = MAX_WAITING,
        max_seconds: float = MAX_WAIT_SECONDS,
        held_seconds: float = 20.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places, self.each = places, each or places
        self.max_waiting, self.each_waiting, self.max_seconds = max_waiting, each_waiting, max_seconds
        self.held_seconds = held_seconds
        self.has_quick_questions: StopCheck = lambda: False  # the app sets that of its door
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: dict[Hashable, _Queue] = {}
        self._numbers = count()

    @contextmanager
    def turn(
        self, name: Hashable, *, cancelled: StopCheck | None = None, is_quick: bool = False
    ) -> Iterator[None]:
        """Hold a place for one batch, in a thread; one that holds it already goes on.

        Args:
            is_quick: whether this is all of a quick computation, which may pass slow ones that wait.
            cancelled: called while waiting; True ends it. Without, it ends where nobody waits any more.
        """
        news, cancelled = threading.Event(), cancelled or GONE.get()
        me = _Turn(threading.get_ident(), WHO.get(), news.set, is_quick)
        with self._holding(name, me) as mine:
            deadline = time.monotonic() + self.max_seconds
            while mine.since is None:
                news.wait(POLL_SECONDS)
                stop_if(cancelled)
                self._look(name, mine, deadline)
            stop_if(cancelled if mine is me else None)
            yield

    async def enter(self, places: ExitStack, name: Hashable, end: Callable[[], object]) -> None:
        """The same for a task, until `places` is closed; `end` makes it give up its place."""
        news, loop = asyncio.Event(), asyncio.get_running_loop()
        me = _Turn(object(), WHO.get(), lambda: loop.call_soon_threadsafe(news.set), end=end)
        places.enter_context(self._holding(name, me))
        deadline = time.monotonic() + self.max_seconds
        while me.since is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), 10 * POLL_SECONDS)
            self._look(name, me, deadline)

    def waiting(self, name: Hashable) -> int:
        """How many wait for a thing now."""
        with self._lock:
            return len(self._queues[name].waiting) if name in self._queues else 0

    def is_held(self, name: Hashable) -> bool:
        """Whether anybody has a place, or waits for one; asked from any thread."""
        return name in self._queues

    @contextmanager
    def _holding(self, name: Hashable, me: _Turn) -> Iterator[_Turn]:
        with self._lock:
            if (queue := self._queues.get(name)) is None:
                queue = self._queues[name] = _Queue()
            mine = next((one for one in queue.held if one.key == me.key), me)
            if mine is me:
                self._add(name, queue, me)
            else:
                mine.depth += 1
        try:
            yield mine
        finally:
            with self._lock:
                mine.depth -= 1
                if not mine.depth:
                    self._remove(queue, mine)
                    self._call(name, queue)

    def _add(self, name: Hashable, queue: _Queue, me: _Turn) -> None:
        """Let one more in, or wait, and nobody too many."""
        me.number = next(self._numbers)
        queue.add(me)
        self._call(name, queue)
        is_greedy = queue.of(me.who) > self.each_waiting
        if me.since is None and (is_greedy or len(queue.waiting) > self.max_waiting):
            gone = me if is_greedy else queue.newest_of_most()
            others = len(queue.waiting) - 1
            gone.refused = (
                f"The machine is busy: {others} are waiting for it already; please try again in a moment."
            )
            gone.wake()

    def _remove(self, queue: _Queue, me: _Turn) -> None:
        if me in queue.held:
            queue.held.remove(me)
            if not me.is_quick and me.since is not None and self.has_quick_questions():
                took = self._clock() - me.since
                queue.rests_until = self._clock() + min(RESTS * took, LONGEST_REST_SECONDS)
        elif me.number in queue.waiting:
            queue.leave(me)

    def _rests(self, queue: _Queue) -> bool:
        """Whether slow computations leave a device to quick questions for now."""
        return self._clock() < queue.rests_until and self.has_quick_questions()

    def _call(self, name: Hashable, queue: _Queue) -> None:
        """Give free places to those whose turn it is; what nobody holds or waits for is forgotten after its rest."""
        while len(queue.held) < self.places and queue.waiting:
            one = queue.next(self.each, only_quick=self._rests(queue))
            if one is None:
                break
            queue.leave(one, is_called=True)
            queue.held.append(one)
            one.since = self._clock()
            one.wake()
        if not (queue.held or queue.waiting or self._clock() < queue.rests_until):
            self._queues.pop(name, None)

    def _look(self, name: Hashable, me: _Turn, deadline: float) -> None:
        """Whether there is news for one who waits; a rest may be over, a place held for too long."""
        with self._lock:
            queue = self._queues[name]
            self._call(name, queue)
            if me.since is not None:
                return
            if me.refused:
                raise BusyError(me.refused)
            self._make_way(queue, me)
            if time.monotonic() > deadline:
                raise BusyError(
                    f"The machine is busy: it was not free for {self.max_seconds:.0f} seconds; please try again in a moment."
                )

    def _make_way(self, queue: _Queue, me: _Turn) -> None:
        """Where this visitor holds nothing, end the largest of those that hold a place for long, and of no smaller address."""
        now, of = self._clock(), _counts(queue.held)
        (near, mine), address = of(me), me.who[0]
        long = [
            one
            for one in queue.held
            if one.end and now - (one.since or now) > self.held_seconds
            if one.who[0] == address or of(one)[0] > near
        ]
        if long and not mine and len(queue.held) >= self.places:
            largest = max(long, key=lambda one: (*of(one), now - (one.since or now), one.number))
            end, largest.end = largest.end, None
            if end is not None:
                end()


def _counts(turns: list[_Turn]) -> Callable[[_Turn], tuple[int, int]]:
    """How many turns the address and the visitor of one have."""
    near, mine = Counter(one.who[0] for one in turns), Counter(one.who for one in turns)
    return lambda one: (near[one.who[0]], mine[one.who])
