"""How much of something each visitor may use at full speed, and how fast after that: a leaky bucket for each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from cachetools import LRUCache

MOST_KNOWN = 1000
"""Visitors whose level is remembered."""


class Pace:
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
