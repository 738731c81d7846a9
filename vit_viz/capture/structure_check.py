"""A check of a module that takes dozens of passes: run once, by whoever asks first, while others wait for it.

Around each pass stand a turn at the device, and a look whether the check is still wanted.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from vit_viz.capture.report import Check, Structure
from vit_viz.errors import CaptureError, VitVizError
from vit_viz.lazy import nn, torch
from vit_viz.progress import POLL_SECONDS, StopCheck, stop_if

Finding = Structure | CaptureError
"""What was found out; the error where the pictures would mislead."""

_GONE = Check("unknown", "The model was gone before its structure was checked.")


class StructureCheck:
    """A check of one module and layout: run once, by whoever asks first, while others wait for it.

    It holds on to the module until the finding is there, unless it is told to let go.

    Args:
        find: finds it out.
        device: where the module runs.

    Attributes:
        finding: what was found out, or None while it is not.
    """

    def __init__(
        self, module: nn.Module, find: Callable[[nn.Module], Finding], *, device: torch.device
    ) -> None:
        self.device = device
        self._held: nn.Module | None = None
        self._module = weakref.ref(module)
        self._find: Callable[[nn.Module], Finding] | None = find
        self._state = threading.Condition()
        self._is_running = False
        self._waiting = 0
        self.finding: Finding | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether a thread waits for another one that runs it."""
        return self._waiting > 0

    def hold(self, module: nn.Module) -> None:
        """Keep the module until the finding is there."""
        with self._state:
            self._held = module if self.finding is None else None

    def let_go(self) -> None:
        """Keep the module no longer than others do; where it goes before it was checked, the finding is "unknown"."""
        self._held = None

    def result(self, *, turn: Turn | None = None, cancelled: StopCheck | None = None) -> Structure:
        """The finding: known, awaited, or found out here.

        Args:
            turn: makes a context that is held for one pass.
            cancelled: asked between passes, and while another thread runs the check, which goes on without us.
        """
        while self.finding is None:
            if self._begins():
                self._run(_Guard(turn or nullcontext, cancelled))
            else:
                self._wait(cancelled)
        return result_or_raise(self.finding)

    def _begins(self) -> bool:
        """Whether this thread is the one that runs it."""
        with self._state:
            begins = not self._is_running and self.finding is None
            self._is_running = self._is_running or begins
            return begins

    def _wait(self, cancelled: StopCheck | None) -> None:
        """Wait until the thread that runs it has ended, with a finding or without."""
        with self._state:
            self._waiting += 1
            try:
                while self._is_running:
                    self._state.wait(None if cancelled is None else POLL_SECONDS)
                    stop_if(cancelled)
            finally:
                self._waiting -= 1

    def _run(self, guard: _Guard) -> None:
        finding: Finding | None = None
        before, _STATE.guard = _guard(), guard
        try:
            module, find = self._module(), self._find
            assert find is not None
            finding = Structure(_GONE, _GONE, _GONE) if module is None else find(module)
        finally:
            _STATE.guard = before
            with self._state:
                self.finding, self._is_running = finding, False
                if finding is not None:
                    self._held = self._find = None  # with the pixels that it holds
                self._state.notify_all()


def result_or_raise(finding: Finding) -> Structure:
    """What was found out, or the refusal anew: an exception that is raised twice would grow."""
    if isinstance(finding, CaptureError):
        raise CaptureError(str(finding))
    return finding


Turn = Callable[[], AbstractContextManager[None]]


@dataclass
class _Guard:
    """What stands around the passes that this thread runs for a check.

    A check may take any exception of a pass for a property of the model, so an interruption is kept here: every later pass ends at
    once with the same one, and `raise_interruption` says at the end whether there was one.
    """

    turn: Turn  # makes a context that is held for one pass
    cancelled: StopCheck | None  # asked before each pass
    interruption: VitVizError | None = None


@contextmanager
def guarded_pass() -> Iterator[None]:
    """Hold a turn for a pass of this thread, where a check is running in it."""
    guard = _guard()
    if guard is None:
        yield
        return
    raise_interruption()
    turn = guard.turn()
    try:
        stop_if(guard.cancelled)
        turn.__enter__()
    except VitVizError as error:
        guard.interruption = error
        raise
    try:
        yield
    finally:
        turn.__exit__(None, None, None)


def raise_interruption() -> None:
    """Raise what interrupted a pass of this thread's check, where one was interrupted: it found out nothing."""
    guard = _guard()
    if guard is not None and guard.interruption is not None:
        raise guard.interruption


def _guard() -> _Guard | None:
    return getattr(_STATE, "guard", None)


_STATE = threading.local()
