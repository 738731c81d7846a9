"""Unguessable names under which the browser may fetch what belongs to one visitor, for a limited time.

A handle stands for a subject: which visitor, which model, which image, which mode. It is worth nothing once it has expired, says
nothing about the image, and is the same for the same subject, so that the browser's cache is of use.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

HANDLE_SECONDS = 3600.0
MAX_HANDLES = 20_000

Mode = Literal["fit", "crop", "stretch"]


@dataclass(frozen=True)
class Subject:
    """What all pictures on a screen are about: one image in one model, for one visitor."""

    model: str
    image: str
    mode: Mode = "fit"
    owner: str = ""


class Handles:
    """Subjects by handle; a handle that nobody used for a while, or the oldest one of too many, is forgotten.

    Args:
        max_seconds: time after its last use at which a handle expires.
        max_count: handles that are kept at most.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        *,
        max_seconds: float = HANDLE_SECONDS,
        max_count: int = MAX_HANDLES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_seconds = max_seconds
        self.max_count = max_count
        self._clock = clock
        self._lock = threading.Lock()
        self._subjects: OrderedDict[str, tuple[Subject, float]] = OrderedDict()
        self._handles: dict[Subject, str] = {}

    def issue(self, subject: Subject) -> str:
        """The handle of a subject: the one it has, or a new random one."""
        with self._lock:
            self._expire()
            handle = self._handles.get(subject) or secrets.token_urlsafe(24)
            self._handles[subject] = handle
            self._touch(handle, subject)
            while len(self._subjects) > self.max_count:
                _old, (forgotten, _used_at) = self._subjects.popitem(last=False)
                del self._handles[forgotten]
            return handle

    def find(self, handle: str) -> Subject | None:
        """The subject of a handle, or None where it is unknown or expired."""
        with self._lock:
            self._expire()
            entry = self._subjects.get(handle)
            if entry is None:
                return None
            self._touch(handle, entry[0])
            return entry[0]

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._subjects)

    def _touch(self, handle: str, subject: Subject) -> None:
        self._subjects[handle] = (subject, self._clock())
        self._subjects.move_to_end(handle)

    def _expire(self) -> None:
        oldest = self._clock() - self.max_seconds
        while self._subjects:
            handle, (subject, used_at) = next(iter(self._subjects.items()))
            if used_at >= oldest:
                return
            del self._subjects[handle]
            del self._handles[subject]
