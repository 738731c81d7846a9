"""Sharing devices between computations, and ending those of visitors who leave.

One computation at a time holds a device. The others wait in the order in which they came, but quick ones before slow ones; while
quick questions are open, a slow one also rests after each batch, because those need the processor for more than their pass. The
queue is never long: a computation that would have to wait too long is refused at once.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vit_viz.errors import BusyError
from vit_viz.progress import POLL_SECONDS, StopCheck, stop_if

MAX_WAITING = 40
"""Most computations that wait for one device: fewer than there are threads, so that what needs no device is still served."""

MAX_WAIT_SECONDS = 60.0
LONGEST_SECONDS = 180.0
MOST_OVERTAKEN = 8
"""How many quick computations may pass one slow computation that came before them."""

RESTS = 3.0
LONGEST_REST_SECONDS = 2.0
"""How long slow computations leave a device alone after each batch while quick questions are open: so many times as long as the
batch took, and no longer than this. So they keep a quarter of it, however many quick questions there are."""

SLOW_WAIT_SECONDS = 600.0
"""How long a slow computation waits for others of the same visitor."""


@dataclass(eq=False)
class _Waiter:
    thread: int
    is_quick: bool = False
    overtaken: int = 0
    called: threading.Event = field(default_factory=threading.Event)

    @property
    def may_be_overtaken(self) -> bool:
        """Whether a quick computation may go first."""
        return not self.is_quick and self.overtaken < MOST_OVERTAKEN


@dataclass(eq=False)
class _Queue:
    """The thread that holds a device, how often it has entered, and what waits for it.

    Args:
        began_slow: when the slow computation that holds it began; None for a quick one.
        rests_until: before which no slow one begins while quick questions are open.
    """

    holder: int | None = None
    depth: int = 0
    waiting: deque[_Waiter] = field(default_factory=deque)
    began_slow: float | None = None
    rests_until: float = 0.0

    def add(self, waiter: _Waiter) -> None:
        """Add a computation: a quick one goes before the slow ones that have not been overtaken too often."""
        at = len(self.waiting)
        while waiter.is_quick and at and self.waiting[at - 1].may_be_overtaken:
            at -= 1
            self.waiting[at].overtaken += 1
        self.waiting.insert(at, waiter)

    def hold(self, thread: int, *, began_slow: float | None) -> None:
        """Pass the device to a thread."""
        self.holder, self.depth, self.began_slow = thread, 1, began_slow

    def release(self, now: float, *, rests: bool) -> None:
        """Nobody holds the device; after a slow computation it may rest."""
        if rests and self.began_slow is not None:
            self.rests_until = now + min(RESTS * (now - self.began_slow), LONGEST_REST_SECONDS)
        self.holder, self.depth, self.began_slow = None, 0, None

    def call_next(self, now: float, *, only_quick: bool) -> None:
        """Pass the device to the first in the queue, or the first quick one; no newcomer can get in between."""
        waiter = next((one for one in self.waiting if one.is_quick or not only_quick), None)
        if waiter is not None:
            self.waiting.remove(waiter)
            self.hold(waiter.thread, began_slow=None if waiter.is_quick else now)
            waiter.called.set()


class Turns:
    """A lock for each device: one holder at a time, first come first served, a bounded number of waiters.

    Args:
        max_waiting: computations that may wait for one device; the next one is refused.
        max_seconds: how long one may wait.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_waiting: int = MAX_WAITING,
        max_seconds: float = MAX_WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_waiting = max_waiting
        self.max_seconds = max_seconds
        self.has_quick_questions: StopCheck = lambda: False  # the app sets that of its guard
        self._clock = clock
        self._lock = threading.Lock()
        self._queues: dict[Hashable, _Queue] = {}

    @contextmanager
    def turn(
        self, device: Hashable, *, cancelled: StopCheck | None = None, is_quick: bool = False
    ) -> Iterator[None]:
        """Hold a device for one batch; a thread that holds it already goes on.

        Args:
            is_quick: whether this is all of a quick computation, which may pass slow ones that wait.
            cancelled: called while waiting; True ends it.
        """
        queue = self._enter(device, cancelled, is_quick)
        try:
            yield
        finally:
            with self._lock:
                queue.depth -= 1
                if not queue.depth:
                    queue.release(self._clock(), rests=self.has_quick_questions())
                    self._call_next(device, queue)

    def waiting(self, device: Hashable) -> int:
        """How many wait for a device now."""
        with self._lock:
            queue = self._queues.get(device)
            return 0 if queue is None else len(queue.waiting)

    def _enter(self, device: Hashable, cancelled: StopCheck | None, is_quick: bool) -> _Queue:
        me = threading.get_ident()
        with self._lock:
            queue = self._queues.setdefault(device, _Queue())
            if queue.holder == me:
                queue.depth += 1
                return queue
            if queue.holder is None and (is_quick or not (queue.waiting or self._rests(queue))):
                queue.hold(me, began_slow=None if is_quick else self._clock())
                return queue
            if len(queue.waiting) >= self.max_waiting:
                raise BusyError(
                    f"The machine is busy: {len(queue.waiting)} are waiting for it already; please try again in a moment."
                )
            waiter = _Waiter(me, is_quick)
            queue.add(waiter)
        try:
            self._wait(device, queue, waiter, cancelled)
        except BaseException:
            with self._lock:
                if waiter.called.is_set():  # the device came at the same moment: pass it on
                    queue.release(self._clock(), rests=False)
                else:
                    queue.waiting.remove(waiter)
                self._call_next(device, queue)
            raise
        return queue

    def _rests(self, queue: _Queue) -> bool:
        """Whether slow computations leave a device to quick questions for now."""
        return self._clock() < queue.rests_until and self.has_quick_questions()

    def _call_next(self, device: Hashable, queue: _Queue) -> None:
        """Pass a device that nobody holds to whoever may have it; one that nobody waits for is forgotten after its rest."""
        if queue.holder is None:
            now = self._clock()
            queue.call_next(now, only_quick=self._rests(queue))
            if queue.holder is None and not queue.waiting and now >= queue.rests_until:
                self._queues.pop(device, None)

    def _wait(self, device: Hashable, queue: _Queue, waiter: _Waiter, cancelled: StopCheck | None) -> None:
        deadline = time.monotonic() + self.max_seconds
        while not waiter.called.wait(POLL_SECONDS):
            with self._lock:
                self._call_next(device, queue)  # its rest may be over
            stop_if(cancelled)
            if time.monotonic() > deadline:
                raise BusyError(
                    f"The machine is busy: it was not free for {self.max_seconds:.0f} seconds; please try again in a moment."
                )
        stop_if(cancelled)


class Visits:
    """Ends the computations of visitors who leave. Nothing is kept about them: one who returns counts as new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._signals: weakref.WeakValueDictionary[str, threading.Event] = weakref.WeakValueDictionary()

    def check(self, owner: str) -> StopCheck | None:
        """A check whether the visitor has left since this call; None where no visitor asks."""
        if not owner:
            return None
        with self._lock:
            signal = self._signals.get(owner)
            if signal is None:
                signal = self._signals[owner] = threading.Event()
            return signal.is_set

    def end(self, owner: str) -> None:
        """End what is running for a visitor."""
        with self._lock:
            signal = self._signals.pop(owner, None)
        if signal is not None:
            signal.set()
