"""Bodies of requests in memory, from their first byte until they are answered: how much of one visitor's, and of everybody's.

A picture is the body of one request: it is never written to a file, and is gone with its request.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vit_viz.errors import BusyError
from vit_viz.ui.edge.admission import Buckets

TOTAL_BYTES = 256 * 2**20
VISITOR_BYTES = 64 * 2**20

BURST_BYTES = 24 * 2**20
BYTES_PER_SECOND = 4 * 2**20
"""How much one visitor may send at full speed, and how fast after that: enough for a large picture, too little for a flood."""

TOO_MANY_OF_YOURS = "Several of your pictures are on their way already; please wait until they are here."
FULL = "Too many pictures are on their way to the server at the moment; please try again in a minute."


class Arrivals:
    """What has arrived and is not yet answered. All of this lives on the event loop.

    Args:
        total_bytes: bound on all of it; visitor_bytes: bound on that of one visitor.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        total_bytes: int = TOTAL_BYTES,
        visitor_bytes: int = VISITOR_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total_bytes = total_bytes
        self.visitor_bytes = visitor_bytes
        self._held: Counter[str] = Counter()  # bytes by visitor
        self._pace = Buckets(burst=BURST_BYTES, per_second=BYTES_PER_SECOND, clock=clock)

    @contextmanager
    def arriving(self, visitor: str) -> Iterator[Callable[[int], float]]:
        """While one body arrives and is answered; afterwards its bytes are free again.

        Yields:
            What counts bytes that have arrived: it returns the seconds after which more may be read, and raises BusyError where
            there is no room for them.
        """
        size = 0

        def arrived(count: int) -> float:
            nonlocal size
            size += count
            self._held[visitor] += count
            if self._held[visitor] > self.visitor_bytes:
                raise BusyError(TOO_MANY_OF_YOURS)
            if self._held.total() > self.total_bytes:
                raise BusyError(FULL)
            return self._pace.pour(visitor, count)

        try:
            yield arrived
        finally:
            self._held[visitor] -= size
            self._held += Counter()  # forgets who has nothing on its way
