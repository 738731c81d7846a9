"""Memory that was freed, given back to the system: two calls of glibc, which do nothing elsewhere than on Linux with glibc."""

from __future__ import annotations

import contextlib
import ctypes
import sys

_M_ARENA_MAX = -8  # malloc.h


def share_one_heap() -> None:
    """Let all threads allocate from one heap; to be called before there are threads.

    Otherwise glibc gives each thread a heap of its own, and of what is free at the end of such a heap `give_memory_back` returns
    nothing: a server that decodes pictures in ten threads keeps up to ten times the largest picture.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, 1)


def give_memory_back() -> None:
    """Let the C library return what it keeps of freed memory: glibc keeps what was freed of many pictures. Takes milliseconds."""
    libc = _glibc()
    if libc is not None:
        libc.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    with contextlib.suppress(OSError):
        libc = ctypes.CDLL(None)
        return libc if hasattr(libc, "malloc_trim") else None
    return None
