"""How far a long computation is, and whether it should go on."""

from __future__ import annotations

from collections.abc import Callable

from vit_viz.turns import StopCheck, stop_if

__all__ = ["Progress", "StopCheck", "Watch"]

Progress = Callable[[float], None]
"""Told the share that is done, in [0, 1]."""


class Watch:
    """Counts steps of a known total, reports them, and ends the computation when it is told to.

    Args:
        total: steps until everything is done.
        progress: told after each batch.
        cancelled: asked before each batch.
    """

    def __init__(
        self, total: int, *, progress: Progress | None = None, cancelled: StopCheck | None = None
    ) -> None:
        self.total = max(1, total)
        self.done = 0
        self._progress, self._cancelled = progress, cancelled

    def check(self) -> None:
        """End the computation if that is wanted.

        Raises:
            Cancelled: the caller's check said so.
        """
        stop_if(self._cancelled)

    def advance(self, steps: int = 1) -> None:
        """Note finished steps and report the share; more steps than announced stay at 1."""
        self.done += steps
        if self._progress is not None:
            self._progress(min(1.0, self.done / self.total))
