"""How far a long computation is, and whether it should go on: its caller, its time limit or its visitor may end it."""

from __future__ import annotations

import time
from collections.abc import Callable

from vit_viz.errors import Cancelled

StopCheck = Callable[[], bool]
"""Called between batches and while waiting; True ends the computation with `Cancelled`, which it may also raise itself."""

Progress = Callable[[float], None]
"""Called with the share that is done, in [0, 1]."""


POLL_SECONDS = 0.1
"""Seconds between two looks at a StopCheck while waiting."""


def stop_if(cancelled: StopCheck | None) -> None:
    """End the computation if its check says so.

    Raises:
        Cancelled: the check returned True.
    """
    if cancelled is not None and cancelled():
        raise Cancelled("The computation was cancelled; nothing of it was kept.")


def within(seconds: float, *checks: StopCheck | None) -> StopCheck:
    """A check that combines others and ends a computation that takes longer than this from now on."""
    deadline = time.monotonic() + seconds

    def check() -> bool:
        if time.monotonic() > deadline:
            raise Cancelled(
                f"This took longer than {seconds:.0f} seconds and was ended; a quicker method, a smaller model or the size 'crop' "
                "needs less."
            )
        return any(one() for one in checks if one is not None)

    return check


class Watch:
    """Counts steps of a known total, reports them, and ends the computation when its check says so.

    Args:
        total: steps until everything is done.
        progress: called after each batch.
        cancelled: called before each batch.
    """

    def __init__(
        self, total: int, *, progress: Progress | None = None, cancelled: StopCheck | None = None
    ) -> None:
        self.total = max(1, total)
        self.done = 0
        self._progress, self._cancelled = progress, cancelled

    def check(self) -> None:
        """End the computation if its check says so.

        Raises:
            Cancelled: the check returned True.
        """
        stop_if(self._cancelled)

    def advance(self, steps: int = 1) -> None:
        """Note finished steps and report the share; never more than 1."""
        self.done += steps
        if self._progress is not None:
            self._progress(min(1.0, self.done / self.total))
