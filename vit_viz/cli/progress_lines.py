"""Progress for a log: a line every few seconds with how many are done, their rate, and the time that is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

EVERY_SECONDS = 10.0
"""Between two lines; what is done sooner is told by no line at all."""


class ProgressLines:
    """Tells how many things are done.

    Args:
        clock: seconds, from any moment on.
    """

    def __init__(self, words: str, file: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._words, self._file, self._clock = words, file, clock
        self._begun: tuple[int, float] | None = None
        self._last = 0.0
        self._has_told = False

    def follow(self, done: int, total: int) -> None:
        """Note how many are done; the first call says where an earlier run ended, which says nothing about the rate."""
        now = self._clock()
        if self._begun is None:
            self._begun, self._last = (done, now), now
            return
        is_end = done >= total and self._has_told
        if now - self._last >= EVERY_SECONDS or is_end:
            self._last, self._has_told = now, True
            print(self._line(done, total, now), file=self._file, flush=True)

    def _line(self, done: int, total: int, now: float) -> str:
        assert self._begun is not None
        before, start = self._begun
        said = f"{done:,} of {total:,} {self._words}"
        if done == before or now <= start:
            return said
        rate = (done - before) / (now - start)
        left = f", {duration((total - done) / rate)} left" if done < total else ""
        return f"{said}, {rate:.3g} {self._words}/s{left}"


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> duration(89), duration(90), duration(5400)
        ('89 s', '2 min', '1.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
