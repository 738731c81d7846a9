"""Who may compute now, and until when: turns at a device, and the reasons for which a long computation ends early.

One computation at a time holds a device, the others wait in the order in which they came, and the queue is never long: whoever
would have to wait too long is told so at once. A computation ends early when its caller, its time limit or its visitor says so.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from vit_viz.errors import BusyError, Cancelled

StopCheck = Callable[[], bool]
"""Asked between batches and while waiting; True ends the computation with `Cancelled`, which it may also raise in its own words."""

MAX_WAITING = 40
"""Computations that wait for one device: fewer than there are threads, so that what needs no turn is served all the same."""

MAX_WAIT_SECONDS = 60.0
LONGEST_SECONDS = 180.0
SLOW_WAIT_SECONDS = 600.0
"""How long a slow answer waits for other ones to the same visitor."""

POLL_SECONDS = 0.1


def stop_if(cancelled: StopCheck | None) -> None:
    """End the computation if that is wanted.

    Raises:
        Cancelled: the check said so.
    """
    if cancelled is not None and cancelled():
        raise Cancelled("The computation was cancelled; nothing of it was kept.")


def within(seconds: float, *checks: StopCheck | None) -> StopCheck:
    """A check that joins others and ends a computation that takes longer than this from now on."""
    deadline = time.monotonic() + seconds

    def check() -> bool:
        if time.monotonic() > deadline:
            raise Cancelled(
                f"This took longer than {seconds:.0f} seconds and was ended; a quicker method, a smaller model or the size 'crop' "
                "needs less."
            )
        return any(one() for one in checks if one is not None)

    return check


@dataclass(eq=False)
class _Place:
    """One who waits."""

    thread: int
    called: threading.Event = field(default_factory=threading.Event)


@dataclass(eq=False)
class _Line:
    """Who holds a device, how many times over, and who waits for it."""

    holder: int | None = None
    depth: int = 0
    waiting: deque[_Place] = field(default_factory=deque)

    def call_next(self) -> None:
        """Hand the turn to whoever came first; nobody else can walk in between."""
        self.holder, self.depth = None, 0
        if self.waiting:
            place = self.waiting.popleft()
            self.holder, self.depth = place.thread, 1
            place.called.set()


class Turns:
    """Turns at each device: one holder at a time, first come first served, a bounded number of waiters.

    Args:
        max_waiting: computations that may wait for one device; the next one is refused.
        max_seconds: how long one may wait.
    """

    def __init__(self, *, max_waiting: int = MAX_WAITING, max_seconds: float = MAX_WAIT_SECONDS) -> None:
        self.max_waiting = max_waiting
        self.max_seconds = max_seconds
        self._lock = threading.Lock()
        self._lines: dict[Hashable, _Line] = {}

    @contextmanager
    def turn(self, device: Hashable, *, cancelled: StopCheck | None = None) -> Iterator[None]:
        """Hold a device for one batch; whoever holds it already goes on.

        Args:
            cancelled: asked while waiting.

        Raises:
            BusyError: too many wait already, or the wait took too long.
            Cancelled: `cancelled` said so; the place in the queue is free again.
        """
        line = self._enter(device, cancelled)
        try:
            yield
        finally:
            with self._lock:
                line.depth -= 1
                if not line.depth:
                    self._call_next(device, line)

    def waiting(self, device: Hashable) -> int:
        """How many wait for a device now."""
        with self._lock:
            line = self._lines.get(device)
            return 0 if line is None else len(line.waiting)

    def _enter(self, device: Hashable, cancelled: StopCheck | None) -> _Line:
        me = threading.get_ident()
        with self._lock:
            line = self._lines.setdefault(device, _Line())
            if line.holder in (None, me):
                line.holder = me
                line.depth += 1
                return line
            if len(line.waiting) >= self.max_waiting:
                raise BusyError(
                    f"The machine is busy: {len(line.waiting)} are waiting for it already; please try again in a moment."
                )
            place = _Place(me)
            line.waiting.append(place)
        try:
            self._wait(place, cancelled)
        except BaseException:
            with self._lock:
                if place.called.is_set():  # the turn came at the same moment: the next one has it
                    self._call_next(device, line)
                else:
                    line.waiting.remove(place)
            raise
        return line

    def _call_next(self, device: Hashable, line: _Line) -> None:
        line.call_next()
        if line.holder is None:
            del self._lines[device]

    def _wait(self, place: _Place, cancelled: StopCheck | None) -> None:
        deadline = time.monotonic() + self.max_seconds
        while not place.called.wait(POLL_SECONDS):
            stop_if(cancelled)
            if time.monotonic() > deadline:
                raise BusyError(
                    f"The machine is busy: it was not free for {self.max_seconds:.0f} seconds; please try again in a moment."
                )
        stop_if(cancelled)


class Visits:
    """Visitors whose computations end when they leave. Nothing is remembered of one who left: coming back is as coming first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._signals: weakref.WeakValueDictionary[str, threading.Event] = weakref.WeakValueDictionary()

    def check(self, owner: str) -> StopCheck | None:
        """Whether the visitor left since this was called; None where nobody in particular asks."""
        if not owner:
            return None
        with self._lock:
            signal = self._signals.get(owner)
            if signal is None:
                signal = self._signals[owner] = threading.Event()
            return signal.is_set

    def end(self, owner: str) -> None:
        """End what runs for a visitor now."""
        with self._lock:
            signal = self._signals.pop(owner, None)
        if signal is not None:
            signal.set()
