"""Progress of a long computation, and whether it should go on: its caller, its time limit or its visitor may end it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vit_viz.errors import Cancelled

StopCheck = Callable[[], bool]
"""Called between batches and while waiting; True ends the computation with `Cancelled`, which it may also raise itself."""

Progress = Callable[[float], None]
"""Called with the share that is done, in [0, 1]."""

ProgressLike = Progress | bool | None
"""As callers pass it: None (or True) shows a bar where somebody watches, a terminal or a notebook; False shows nothing."""

CountProgress = Callable[[int, int], None]
"""Called with how many are done, and how many there are."""

DELAY_SECONDS = 0.5
"""What is done sooner shows no bar."""

POLL_SECONDS = 0.1
"""Seconds between two looks at a StopCheck while waiting."""


def stop_if(cancelled: StopCheck | None) -> None:
    """End the computation if its check says so."""
    if cancelled is not None and cancelled():
        raise Cancelled("The computation was cancelled; nothing of it was kept.")


def part_of(progress: Progress | None, begin: float, end: float) -> Progress | None:
    """Progress of a part, as that of the whole, of which the part is what lies between two shares."""
    return None if progress is None else lambda share: progress(begin + (end - begin) * share)


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
        self._progress, self.cancelled = progress, cancelled

    def check(self) -> None:
        """End the computation if its check says so."""
        stop_if(self.cancelled)

    def advance(self, steps: int = 1) -> None:
        """Note finished steps and report the share; never more than 1."""
        self.done += steps
        if self._progress is not None:
            self._progress(min(1.0, self.done / self.total))


# --- on the screen


def time_left(share: float, seconds: float) -> str:
    """How long the rest takes where a share took so many seconds: "about 3 s left"."""
    left = seconds * (1 - share) / share if share > 0 else 0.0
    return f"about {duration(left)} left" if left >= 1 else ""


def duration(seconds: float) -> str:
    """A time for people, as they would guess it."""
    if seconds < 90:
        return f"{max(1, round(seconds))}\N{NO-BREAK SPACE}s"
    return f"{round(seconds / 60)}\N{NO-BREAK SPACE}min"


def is_watched() -> bool:
    """Whether somebody reads what is written meanwhile: at a terminal, or in a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel") or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def bar(words: str, progress: ProgressLike = None) -> Iterator[Progress | None]:
    """What is told the share that is done: `progress`, or by default a bar where somebody watches; False shows nothing."""
    if callable(progress) or progress is False or not is_watched():
        yield progress if callable(progress) else None
        return
    from tqdm import tqdm  # comes with huggingface_hub

    options: dict[str, Any] = {"delay": DELAY_SECONDS, "mininterval": 0, "miniters": 0, "leave": False}
    form = "{desc} {bar:30} {percentage:3.0f}%"
    with tqdm(total=1.0, desc=words, bar_format=form, **options) as shown:

        def follow(share: float) -> None:
            shown.update(share - shown.n)

        yield follow


@contextmanager
def counting(words: str, progress: CountProgress | bool | None = None) -> Iterator[CountProgress | None]:
    """The same for things that are counted, with their rate and the time that is left."""
    if callable(progress) or progress is False or not is_watched():
        yield progress if callable(progress) else None
        return
    from tqdm import tqdm

    with tqdm(unit=f" {words}", smoothing=0.1, dynamic_ncols=True) as shown:

        def follow(done: int, total: int) -> None:
            if shown.total is None:  # what an earlier run has done says nothing about the rate
                shown.total, shown.initial, shown.n, shown.last_print_n = total, done, done, done
            shown.update(done - shown.n)

        yield follow
