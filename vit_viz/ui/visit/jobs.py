"""Long computations on the page: each runs beside its handler, which says how far it is, until its visitor stops it or leaves."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vit_viz.progress import Progress, StopCheck

POLL_SECONDS = 0.2
MOST_STOPS = 4096

Run = Callable[[Progress, StopCheck], Any]


@dataclass(frozen=True)
class Step:
    """How far a computation is, or what it found.

    Args:
        share: of the work that is done, in [0, 1].
        result: the result, once `is_last`.
    """

    share: float
    result: Any = None
    is_last: bool = False


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


@dataclass
class News:
    """What each computation of a page last said of itself, for pages that follow several at once.

    Those computations write the same property of the page, side by side: each writes what all of them said.
    """

    _said: OrderedDict[tuple[str, str], dict[str, dict[str, Any]]] = field(default_factory=OrderedDict)
    _count: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, page: str, about: str, name: str, **said: Any) -> dict[str, Any]:
        """Note what a computation says; returns what all of this page say about the same, {"key": about, "of": {name: ...}}.

        Every entry has a number, `seq`, the larger the newer.
        """
        with self._lock:
            known = self._said.setdefault((page, about), {})
            known[name] = said | {"seq": next(self._count)}
            self._said.move_to_end((page, about))
            while len(self._said) > MOST_STOPS:  # of pages that were closed
                self._said.popitem(last=False)
            return {"key": about, "of": dict(known)}

    def latest(self, page: str, about: str) -> dict[str, Any]:
        """What all computations of a page said last about something."""
        with self._lock:
            return {"key": about, "of": dict(self._said.get((page, about), {}))}


def steps(run: Run, stop: threading.Event) -> Iterator[Step]:
    """Run in a thread of its own and tell how far it is; the last step holds what was found.

    Raises:
        Cancelled: `stop` was set.
        Exception: whatever `run` raised.
    """
    told, outcome = [0.0], list[Any]()

    def work() -> None:
        try:
            outcome.append(Step(1.0, run(lambda share: told.__setitem__(0, share), stop.is_set), True))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    said = -1.0
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            if thread.is_alive() and told[0] != said:
                said = told[0]
                yield Step(said)
    finally:  # the handler was closed: nobody waits for the result any more
        if thread.is_alive():
            stop.set()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    yield outcome[0]
