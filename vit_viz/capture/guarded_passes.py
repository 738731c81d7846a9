"""What stands around every pass of a long check: a turn at the device, and a look whether the check is still wanted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from vit_viz.errors import VitVizError
from vit_viz.progress import StopCheck, stop_if

Turn = Callable[[], AbstractContextManager[None]]


class GuardedPasses:
    """Guards the passes that this thread runs inside `guarding`.

    A check may take any exception of a pass for a property of the model, so an interruption is kept here: every later pass ends at
    once with the same one, and `raise_interruption` says at the end whether there was one.

    Args:
        turn: makes a context that is held for one pass; None for none.
        cancelled: asked before each pass.
    """

    def __init__(self, turn: Turn | None = None, cancelled: StopCheck | None = None) -> None:
        self._turn = turn or nullcontext
        self._cancelled = cancelled
        self._interruption: VitVizError | None = None

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Guard every pass of this thread."""
        before = _guard()
        _STATE.guard = self
        try:
            yield
        finally:
            _STATE.guard = before

    def raise_interruption(self) -> None:
        """Raise what interrupted a pass, where one was interrupted."""
        if self._interruption is not None:
            raise self._interruption

    @contextmanager
    def one_pass(self) -> Iterator[None]:
        """Hold a turn for one pass.

        Raises:
            Cancelled: the check is not wanted any more.
            BusyError: no turn is to be had.
        """
        self.raise_interruption()
        turn = self._turn()
        try:
            stop_if(self._cancelled)
            turn.__enter__()
        except VitVizError as error:
            self._interruption = error
            raise
        try:
            yield
        finally:
            turn.__exit__(None, None, None)


def guarded_pass() -> AbstractContextManager[None]:
    """The guard around a pass of this thread; nothing where no check is running in it."""
    guard = _guard()
    return nullcontext() if guard is None else guard.one_pass()


def raise_interruption() -> None:
    """Raise what interrupted a pass of this thread's check, where one was interrupted: it found out nothing.

    Raises:
        Cancelled, BusyError: as `GuardedPasses.one_pass`.
    """
    guard = _guard()
    if guard is not None:
        guard.raise_interruption()


def _guard() -> GuardedPasses | None:
    return getattr(_STATE, "guard", None)


_STATE = threading.local()
