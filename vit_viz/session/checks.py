"""Checks of modules that are not ours, beside the first picture of them (`vit_viz.capture.verified`)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from vit_viz.capture import Trace
from vit_viz.capture.structure_check import StructureCheck
from vit_viz.errors import BusyError, Cancelled, CaptureError
from vit_viz.progress import StopCheck
from vit_viz.turns import Turns

logger = logging.getLogger(__name__)


class BackgroundChecks:
    """Runs checks one after another, in a thread that lasts as long as there are any.

    Each pass of a check waits for its turn at the device, behind quick questions. A check ends where nobody wants it any more; when
    somebody asks again, it begins anew. It also ends with the program, which waits for the pass that is being run.

    Args:
        turns: at the devices.
        has_model: whether a model is still here, by its name.
    """

    def __init__(self, turns: Turns, *, has_model: Callable[[str], bool]) -> None:
        self._turns, self._has_model = turns, has_model
        self._lock = threading.Lock()
        self._models: dict[StructureCheck, set[str]] = {}  # which models want it; the first is being run
        self._thread: threading.Thread | None = None

    def begin(self, recorded: Trace, *, model: str) -> None:
        """Find out what is not known of a trace of the model of this name, beside whatever else happens."""
        check = recorded.known
        if not isinstance(check, StructureCheck) or check.finding is not None:
            return
        with self._lock:
            self._models.setdefault(check, set()).add(model)
            if self._thread is None:
                # No daemon: the interpreter would end under a pass, and the process with an abort.
                self._thread = threading.Thread(target=self._work, name="vit_viz checks", daemon=False)
                self._thread.start()

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to find out."""
        with self._lock:
            return self._thread is None

    def _work(self) -> None:
        while (check := self._next()) is not None:
            unwanted = partial(self._is_unwanted, check)
            try:
                check.result(turn=partial(self._turn, check, unwanted), cancelled=unwanted)
            except CaptureError:
                pass  # which is the finding
            except (BusyError, Cancelled):
                logger.info("a check was ended before it had found out anything")
            except Exception:
                logger.exception("a check failed")
            with self._lock:
                del self._models[check]

    def _next(self) -> StructureCheck | None:
        """The check that has waited longest; None ends the thread."""
        with self._lock:
            check = next(iter(self._models), None)
            if check is None:
                self._thread = None
            return check

    def _is_unwanted(self, check: StructureCheck) -> bool:
        """Whether no other thread waits for it, and its models have left, or the program is ending."""
        if check.is_awaited:
            return False
        with self._lock:
            models = list(self._models.get(check, ()))
        return not threading.main_thread().is_alive() or not any(map(self._has_model, models))

    @contextmanager
    def _turn(self, check: StructureCheck, unwanted: StopCheck) -> Iterator[None]:
        """A turn at the device for one pass; none while somebody waits for the check, who may hold the device."""
        device = check.device.type, check.device.index or 0
        with ExitStack() as stack:
            try:
                turn = self._turns.turn(device, cancelled=lambda: check.is_awaited or unwanted())
                stack.enter_context(turn)
            except Cancelled:
                if not check.is_awaited:
                    raise
            yield
