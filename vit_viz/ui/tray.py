"""Files between their upload and the moment they are read: whose they are, and how much of them there may be."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

TRAY_BYTES = 256 * 2**20
TRAY_FILES = 2000
SWEEP_SECONDS = 30.0
_QUIET_SECONDS = 300.0  # a file that is being received and has not grown for so long will not grow any more


@dataclass
class _Entry:
    size: int
    visitors: set[str] = field(default_factory=set)


class Tray:
    """Uploaded files by path; of too many, the oldest are deleted.

    Gradio gives equal files of equal names the same path, so that one file may have several visitors.

    Args:
        max_bytes: bound on the files that wait together.
        max_files: bound on their number.
        clock: seconds since the epoch, as files are stamped; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_bytes: int = TRAY_BYTES,
        max_files: int = TRAY_FILES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.max_bytes = max_bytes
        self.max_files = max_files
        self._clock = clock
        self._born = clock()
        self._swept_at = 0.0
        self._lock = threading.Lock()
        self._files: OrderedDict[str, _Entry] = OrderedDict()

    def note(self, paths: Iterable[str], visitor: str) -> None:
        """Remember whose files these are, and make room for them."""
        with self._lock:
            for path in paths:
                entry = self._files.setdefault(path, _Entry(0))
                entry.size = _size(Path(path))
                entry.visitors.add(visitor)
                self._files.move_to_end(path)
            self._make_room()

    def knows(self, path: str) -> bool:
        """Whether this is one of the files."""
        with self._lock:
            return path in self._files

    def belongs_to(self, path: str, visitor: str) -> bool:
        """Whether a visitor uploaded this file; what nobody uploaded here belongs to nobody."""
        with self._lock:
            entry = self._files.get(path)
            return entry is not None and visitor in entry.visitors

    def sweep(self, folder: Path, *, everything: bool = False) -> None:
        """Delete what uploads left behind: files that never became whole, which lie loose in the upload folder, and empty folders.

        Args:
            everything: also files that still grow, because the disk is full and they cannot end well.
        """
        now = self._clock()
        with self._lock:
            if now - self._swept_at < SWEEP_SECONDS and not everything:
                return
            self._swept_at = now
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                stamped = path.stat().st_mtime
                if stamped >= self._born and (now - stamped > _QUIET_SECONDS or everything):
                    _tidy(path)

    def _make_room(self) -> None:
        """Forget what was read and deleted meanwhile; then delete the oldest until the rest fits."""
        if self._fits():
            return
        for path in [path for path in self._files if not Path(path).exists()]:
            del self._files[path]
        while self._files and not self._fits():
            delete(Path(self._files.popitem(last=False)[0]))

    def _fits(self) -> bool:
        return (
            len(self._files) <= self.max_files and sum(e.size for e in self._files.values()) <= self.max_bytes
        )


def delete(file: Path) -> None:
    """Delete an uploaded file; its folder stays for a while, because an equal file may be on its way into it."""
    with contextlib.suppress(OSError):
        file.unlink()


def _tidy(path: Path) -> None:
    """Delete an unfinished file or an empty folder."""
    with contextlib.suppress(OSError):
        if path.is_dir():
            path.rmdir()
        elif path.name.startswith("tmp"):
            path.unlink()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0
