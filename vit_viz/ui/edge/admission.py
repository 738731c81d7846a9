"""How many questions may wait for an answer, shared fairly: the more a visitor has waiting, the fewer places are left for the next.

A visitor with nothing waiting finds every place of a lane open; one who has n of at most m waiting finds only the share 1 - n / m
of them. So nobody can fill the lane, a newcomer still gets in when others are greedy, and a burst of clicks does no harm.
Slow analyses have a lane of their own, so that they never take the places of arrivals, pictures and quick answers.

How much of something each visitor may use at full speed, and how fast after that, is a `Buckets`: a leaky bucket for each.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from cachetools import LRUCache

from vit_viz.errors import BusyError

QUICK = "quick"
"""The lane of what is answered at once."""

SLOW = "slow"
"""The lane of what computes for a long time."""

SLOW_OF_PAGE = frozenset({"trust", "sanity", "lead"})
"""What pages ask beside the questions of the library (vit_viz.ui.opened) that takes long."""

ANSWERS = "answers"
"""What is fetched beside questions: pages, scripts, files, pictures, numbers; each waits for its turn."""

STREAMS = "streams"
"""What agents hold open to be told something."""

YOURS = "You have too many questions waiting; please wait until some of them are answered."
OTHERS = "The server is busy with the questions of other visitors; please try again in a moment."


MOST_KNOWN = 1000
"""Visitors whose level is remembered."""


@dataclass(frozen=True)
class Lane:
    """Places for questions of one kind.

    Args:
        places: questions in all that wait or are being answered.
        each: of them, for one visitor.
        each_address: of them, for one network address, behind which many visitors may be.
    """

    places: int
    each: int
    each_address: int

    def check(self, *, waiting: int, mine: int, of_address: int = 0) -> None:
        """Let one more question in.

        Args:
            waiting: questions in the lane; mine: of this visitor; of_address: of this network address, where it is known.
        """
        taken = max(Fraction(mine, self.each), Fraction(of_address, self.each_address))
        if waiting >= self.places * (1 - taken):  # 20 * (1 - 0.7) is more than 6 in floating point
            raise BusyError(YOURS if taken > 0.5 else OTHERS)


LANES = {
    QUICK: Lane(places=256, each=48, each_address=160),
    SLOW: Lane(places=64, each=8, each_address=32),
    ANSWERS: Lane(places=1024, each=256, each_address=512),
    STREAMS: Lane(places=64, each=4, each_address=16),
}


class Admission:
    """Who holds places of which lane now. All of this lives on the event loop."""

    def __init__(self) -> None:
        self._held = {lane: Counter[str]() for lane in LANES}

    @contextmanager
    def place(self, lane: str, visitor: str, address: str) -> Iterator[None]:
        """Let one more in; inside it waits or is being answered."""
        held, names = self._held[lane], names_of(visitor, address)
        all_held, mine, *near = (held[name] for name in names)
        LANES[lane].check(waiting=all_held, mine=mine, of_address=sum(near))
        held.update(names)
        try:
            yield
        finally:
            give_back(held, names)

    def holds(self, lane: str) -> bool:
        """Whether anybody has a place of a lane; asked from any thread."""
        return self._held[lane][""] > 0


def names_of(visitor: str, address: str) -> tuple[str, ...]:
    """Under which names something counts: all, those of its visitor, those of its network address where that is known."""
    return ("", f"visitor {visitor}", *((f"address {address}",) if address else ()))


def give_back(held: Counter[str], names: tuple[str, ...]) -> None:
    """Count one less under each name; who has nothing any more is forgotten."""
    held.subtract(names)
    for name in names:
        if not held[name]:
            del held[name]


class Buckets:
    """The levels of visitors by name.

    Args:
        burst: how much passes at full speed.
        per_second: how much runs out of a bucket in a second.
        most_known: visitors who are remembered; of more, the one who used nothing for longest is forgotten.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        burst: float,
        per_second: float,
        most_known: int = MOST_KNOWN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.burst = burst
        self.per_second = per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: LRUCache[str, tuple[float, float]] = LRUCache(most_known)
        """What is in the bucket of a visitor, and when that was."""

    def pour(self, visitor: str, amount: float) -> float:
        """Add to a visitor's bucket; returns the seconds until it has run down to the burst."""
        with self._lock:
            level = self._level(visitor) + amount
            self._levels[visitor] = level, self._clock()
        return max(0.0, level - self.burst) / self.per_second

    def passes(self, visitor: str, amount: float) -> bool:
        """Add to a visitor's bucket what still fits into the burst; whether it did. What did not fit does not count."""
        with self._lock:
            level = self._level(visitor) + amount
            if level > self.burst:
                return False
            self._levels[visitor] = level, self._clock()
        return True

    def _level(self, visitor: str) -> float:
        """What is in the bucket of a visitor now."""
        level, since = self._levels.get(visitor, (0.0, self._clock()))
        return max(0.0, level - (self._clock() - since) * self.per_second)
