"""Long computations on the page: each runs beside its handler, which says how far it is, until its visitor stops it or leaves."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vit_viz.analyses.watch import Progress, StopCheck

POLL_SECONDS = 0.2
MOST_STOPS = 4096
MOST_PAGES = 10_000

Run = Callable[[Progress, StopCheck], Any]


@dataclass(frozen=True)
class Step:
    """How far a computation is, or what it found.

    Args:
        share: of the work that is done, in [0, 1].
        found: the result, once `is_last`.
    """

    share: float
    found: Any = None
    is_last: bool = False


@dataclass
class Stops:
    """Which computations of which visitor were told to end. Starting one of a name ends the one that ran under it."""

    _running: dict[tuple[str, str], tuple[str, threading.Event]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, owner: str, name: str, about: str = "") -> threading.Event:
        """The signal of a new computation about something."""
        stop = threading.Event()
        with self._lock:
            self._end([(owner, name)])
            self._end(
                list(self._running)[: max(0, len(self._running) + 1 - MOST_STOPS)]
            )  # of visitors who left
            self._running[owner, name] = about, stop
        return stop

    def stop(self, owner: str, name: str) -> None:
        """End a visitor's computation of a name."""
        with self._lock:
            self._end([(owner, name)])

    def keep_only(self, owner: str, about: str) -> None:
        """End what runs for a visitor about anything else."""
        with self._lock:
            self._end([k for k, (topic, _stop) in self._running.items() if k[0] == owner and topic != about])

    def _end(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            if key in self._running:
                self._running.pop(key)[1].set()


class Pages:
    """Whose page is open: a visitor has left when the last of their pages is closed. Loading a page again opens it anew.

    Args:
        most: pages that are remembered; closing one that was forgotten tells nothing.
    """

    def __init__(self, *, most: int = MOST_PAGES) -> None:
        self.most = most
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, page: str, owner: str) -> None:
        """A page is here, and whose it is."""
        with self._lock:
            self._owners[page] = owner
            self._owners.move_to_end(page)
            while len(self._owners) > self.most:
                self._owners.popitem(last=False)

    def close(self, page: str) -> str:
        """A page is gone; returns the visitor who left with it, or "" while another of their pages is open."""
        with self._lock:
            owner = self._owners.pop(page, "")
            return "" if owner in self._owners.values() else owner


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
