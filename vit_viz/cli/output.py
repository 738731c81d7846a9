"""What a command writes: files that are there whole or not at all, lines in a log, a table, one line for an error."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from vit_viz.errors import ParameterError
from vit_viz.progress import CountProgress, bar


def one_line(error: BaseException) -> str:
    """What an exception says, without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


@contextlib.contextmanager
def fetching(words: str) -> Iterator[CountProgress | None]:
    """A bar for a download, which tells bytes."""
    with bar(words) as follow:
        yield None if follow is None else lambda done, total: follow(done / total if total else 0.0)


def table(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> str:
    """Rows of words in columns that are as wide as their longest word; the last one is as it is."""
    lines = [list(head), *rows] if head else list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            [*(word.ljust(width) for word, width in zip(line[:-1], widths, strict=False)), line[-1]]
        ).rstrip()
        for line in lines
    )


EVERY_SECONDS = 10.0
"""Between two lines; what is done sooner is told by no line at all."""


class ProgressLines:
    """Tells how many things are done, by a clock that counts seconds from any moment on."""

    def __init__(self, words: str, file: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._words, self._file, self._clock = words, file, clock
        self._begun: tuple[int, float] | None = None
        self._last = 0.0
        self._has_printed = False

    def follow(self, done: int, total: int) -> None:
        """Note how many are done; the first call says where an earlier run ended, which says nothing about the rate."""
        now = self._clock()
        if self._begun is None:
            self._begun, self._last = (done, now), now
            return
        is_end = done >= total and self._has_printed
        if now - self._last < EVERY_SECONDS and not is_end:
            return
        self._last, self._has_printed = now, True
        before, start = self._begun
        line = f"{done:,} of {total:,} {self._words}"
        if done != before and now > start:
            rate = (done - before) / (now - start)
            left = f", {duration((total - done) / rate)} left" if done < total else ""
            line = f"{line}, {rate:.3g} {self._words}/s{left}"
        print(line, file=self._file, flush=True)


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    Example:
        >>> duration(89), duration(90), duration(5400)
        ('89 s', '2 min', '1.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# --- files


def check_folder(folder: Path, *, parents: bool) -> None:
    """See, before anything is computed, that files can be written into a folder; with `parents` it may still have to be made."""
    there = folder
    while parents and not there.exists() and there != there.parent:
        there = there.parent
    if not there.exists():
        raise ParameterError(f"There is no folder {str(folder)!r}: make it, or add --parents.")
    if not there.is_dir():
        raise ParameterError(f"{str(there)!r} is a file, so no file can be written into it.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ParameterError(f"The folder {str(there)!r} cannot be written to.")


def written(file: Path, content: bytes, *, parents: bool = False) -> None:
    """Write a file beside its place and move it there; with `parents` its folder is made where there is none."""
    if parents:
        file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as half:
            half.write(content)
        mask = os.umask(0)  # which can only be asked by setting it
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
