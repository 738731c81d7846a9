"""Memory that was freed, given back to the system."""

from __future__ import annotations

import contextlib
import ctypes
import sys


def give_memory_back() -> None:
    """Let the C library return what it keeps of freed memory: glibc keeps what many threads freed of many pictures.

    Takes milliseconds. Elsewhere than on Linux with glibc it does nothing.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
