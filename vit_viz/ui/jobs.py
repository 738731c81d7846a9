"""Long computations on the page: each runs beside its handler, which says how far it is, until its visitor stops it or leaves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vit_viz.progress import time_left

POLL_SECONDS = 0.2
MOST_STOPS = 4096


@dataclass(frozen=True)
class Step:
    """How far a computation is, or what it found.

    Args:
        share: of the work that is done, in [0, 1].
        result: the result, once `is_last`.
        left: about how long it will still take, in words; "" where it is not known yet, or less than a second.
    """

    share: float
    result: Any = None
    is_last: bool = False
    left: str = ""

    @property
    def far(self) -> str:
        """The share, and the time that is left, in words."""
        return f"{self.share:.0%}" + (f" ({self.left})" if self.left else "")


@dataclass
class Stops:
    """Which computations of which page were told to end. Starting one of a name ends the one that ran under it."""

    _running: dict[tuple[str, str], tuple[str, threading.Event]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, page: str, name: str, about: str = "") -> threading.Event:
        """The signal of a new computation about something."""
        stop = threading.Event()
        with self._lock:
            self._end([(page, name)])
            self._end(
                list(self._running)[: max(0, len(self._running) + 1 - MOST_STOPS)]
            )  # of pages that were closed
            self._running[page, name] = about, stop
        return stop

    def stop(self, page: str, name: str) -> None:
        """End a page's computation of a name."""
        with self._lock:
            self._end([(page, name)])

    def keep_only(self, page: str, about: str) -> None:
        """End what runs for a page about anything else."""
        with self._lock:
            self._end([k for k, (topic, _stop) in self._running.items() if k[0] == page and topic != about])

    def _end(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            if key in self._running:
                self._running.pop(key)[1].set()


def steps(run: Callable[..., Any], stop: threading.Event, *, quiet: float = 0.0) -> Iterator[Step]:
    """Run in a thread of its own and tell how far it is; the last step holds what was found.

    Args:
        run: takes `progress` and `cancelled`, as `Session.run` does.
        quiet: seconds at the beginning in which nothing is told but the end.

    Raises:
        Cancelled: `stop` was set.
        Exception: whatever `run` raised.
    """
    told, outcome = [0.0], list[Any]()

    def work() -> None:
        try:
            result = run(progress=lambda share: told.__setitem__(0, share), cancelled=stop.is_set)
            outcome.append(Step(1.0, result, True))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    said, started = -1.0, time.monotonic()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            taken = time.monotonic() - started
            if thread.is_alive() and told[0] != said and taken >= quiet:
                said = told[0]
                yield Step(said, left=time_left(said, taken))
    finally:  # the handler was closed: nobody waits for the result any more
        if thread.is_alive():
            stop.set()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    yield outcome[0]
