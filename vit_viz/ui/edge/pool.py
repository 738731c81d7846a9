"""Memory that many share: what is held has a price, bytes x seconds, and where a pool is full the dearest hold ends.

What has just come costs nothing yet, so a newcomer is never the one who ends for what others hold; and as nobody is counted, names
that cost nothing help nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Hold:
    """Bytes that are held since a moment, and what ends that."""

    def __init__(self, pool: Pool, end: Callable[[], object]) -> None:
        self.bytes, self.since, self.pool, self.end = 0, 0.0, pool, end

    def set(self, bytes_: int) -> None:
        """Hold so many from now on; whoever holds most bytes for longest makes room for more."""
        now, pool = time.monotonic(), self.pool
        if self not in pool.holds:
            return
        self.since = self.since if self.bytes else now
        pool.total += bytes_ - self.bytes  # counted as it changes: there are thousands of holds of nothing
        self.bytes = bytes_
        while pool.total > pool.limit:
            dearest = max(pool.holds, key=lambda one: (one.bytes * (now - one.since), one.bytes))
            pool.leave(dearest)
            dearest.end()


class Pool:
    """Bytes that are held at once. All of this lives on the event loop."""

    def __init__(self, limit: int) -> None:
        self.limit, self.total = limit, 0
        self.holds: set[Hold] = set()

    @contextmanager
    def hold(self, end: Callable[[], object]) -> Iterator[Hold]:
        """Something that will hold bytes, none at first; `end` is called where it is the dearest of a full pool."""
        one = Hold(self, end)
        self.holds.add(one)
        try:
            yield one
        finally:
            self.leave(one)

    def leave(self, one: Hold) -> None:
        """Let one go, unless it has gone."""
        if one in self.holds:
            self.holds.discard(one)
            self.total -= one.bytes
