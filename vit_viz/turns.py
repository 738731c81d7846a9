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
from collections import Counter
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
        order: when its address was called last or came, when its visitor, and when it came itself: the lowest is called.
        since: when it was called, in seconds.
    """

    key: Hashable
    who: Who
    wake: Callable[[], object]
    is_quick: bool = False
    end: Callable[[], object] | None = None
    order: tuple[int, int, int] = (0, 0, 0)
    overtaken: int = 0
    depth: int = 1
    since: float | None = None
    refused: str = ""


@dataclass(eq=False)
class _Queue:
    """Who holds places and who waits; until when the slow rest."""

    held: list[_Turn] = field(default_factory=list)
    waiting: list[_Turn] = field(default_factory=list)
    rests_until: float = 0.0


@dataclass(eq=False)
class Turns:
    """Places by the name of what they are at.

    Args:
        places: that are held at once; each: of them, by one visitor; None: all.
        max_waiting: who may wait for one thing; each_waiting: of them, of one visitor.
        max_seconds: how long one may wait.
        held_seconds: how long a place is kept while somebody waits who holds none.
        clock: seconds, monotonic; a parameter so that tests need not wait.
        has_quick_questions: while it says so the slow rest; the app sets that of its door.
    """

    places: int = 1
    each: int | None = None
    max_waiting: int = MAX_WAITING
    each_waiting: int = MAX_WAITING
    max_seconds: float = 60.0
    held_seconds: float = 20.0
    clock: Callable[[], float] = time.monotonic
    has_quick_questions: StopCheck = lambda: False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _queues: dict[Hashable, _Queue] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

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
            queue = self._queues.setdefault(name, _Queue())
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
        now, waiting = next(self._numbers), queue.waiting
        near = next((one.order[0] for one in waiting if one.who[0] == me.who[0]), now)
        me.order = (near, next((one.order[1] for one in waiting if one.who == me.who), now), now)
        waiting.append(me)
        self._call(name, queue)
        if me.since is None:
            of = _counts(waiting)
            is_greedy = of(me)[1] > self.each_waiting
            if is_greedy or len(waiting) > self.max_waiting:
                gone = me if is_greedy else max(waiting, key=lambda one: (*of(one), one.order[2]))
                others = len(waiting) - 1
                gone.refused = (
                    f"The machine is busy: {others} are waiting for it already; please try again in a moment."
                )
                gone.wake()

    def _remove(self, queue: _Queue, me: _Turn) -> None:
        if me.since is None:
            queue.waiting.remove(me)
            return
        queue.held.remove(me)
        if not me.is_quick and self.has_quick_questions():
            rest = min(RESTS * (self.clock() - me.since), LONGEST_REST_SECONDS)
            queue.rests_until = self.clock() + rest

    def _call(self, name: Hashable, queue: _Queue) -> None:
        """Give free places to those whose turn it is; what nobody holds or waits for is forgotten after its rest."""
        while len(queue.held) < self.places and (one := self._next(queue)):
            queue.waiting.remove(one)
            queue.held.append(one)
            now = next(self._numbers)  # its address and its visitor come after all others
            for other in queue.waiting:
                _near, mine, came = other.order
                if other.who[0] == one.who[0]:
                    other.order = (now, now if other.who == one.who else mine, came)
            one.since = self.clock()
            one.wake()
        if not (queue.held or queue.waiting or self.clock() < queue.rests_until):
            self._queues.pop(name, None)

    def _next(self, queue: _Queue) -> _Turn | None:
        """Whose turn it is, of those who hold fewer than `each` places."""
        mine, each = Counter(one.who for one in queue.held), self.each or self.places
        rests = self.clock() < queue.rests_until and self.has_quick_questions()
        able = [one for one in queue.waiting if mine[one.who] < each and (one.is_quick or not rests)]
        slow, quick = (
            min((one for one in able if one.is_quick is kind), key=lambda one: one.order, default=None)
            for kind in (False, True)
        )
        if slow is None or quick is None or slow.overtaken >= MOST_OVERTAKEN:
            return slow or quick
        slow.overtaken += quick.order[2] > slow.order[2]
        return quick

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
                waited = f"it was not free for {self.max_seconds:.0f} seconds"
                raise BusyError(f"The machine is busy: {waited}; please try again in a moment.")

    def _make_way(self, queue: _Queue, me: _Turn) -> None:
        """Where this visitor holds nothing, end the largest of those that hold a place for long, and of no smaller address."""
        now, of = self.clock(), _counts(queue.held)
        near, mine = of(me)
        if mine or len(queue.held) < self.places:
            return
        long = [
            (*of(one), now - one.since, one.order[2], one)
            for one in queue.held
            if one.end and one.since is not None and now - one.since > self.held_seconds
            if one.who[0] == me.who[0] or of(one)[0] > near
        ]
        if long:
            largest = max(long)[-1]
            end, largest.end = largest.end, None
            if end is not None:
                end()


def _counts(turns: list[_Turn]) -> Callable[[_Turn], tuple[int, int]]:
    """How many turns the address and the visitor of one have."""
    near, mine = Counter(one.who[0] for one in turns), Counter(one.who for one in turns)
    return lambda one: (near[one.who[0]], mine[one.who])
