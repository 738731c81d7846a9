"""Freed memory given back to the system through glibc; without glibc nothing happens."""

from __future__ import annotations

import contextlib
import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_LARGE_BYTES = 4 * 2**20


def share_one_heap() -> None:
    """Let all threads allocate from one heap; to be called before there are threads.

    Otherwise glibc gives each thread a heap of its own, and of what is free at the end of such a heap `give_memory_back` returns
    nothing: a server that decodes pictures in ten threads keeps up to ten times the largest picture.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_ARENA_MAX, 1)


def return_large_blocks() -> None:
    """Let a block of 4 MiB or more go back to the system when it is freed.

    Otherwise glibc raises that bound to the largest block that was ever freed, up to 32 MiB, and the activations of a pass over
    3,600 patches, of 5 to 22 MiB each, leave holes in its heap: 20 to 80 MiB more at the peak.
    """
    libc = _glibc()
    if libc is not None:
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        # else that stays at 128 kB, and small blocks come and go
        libc.mallopt(_M_TRIM_THRESHOLD, 4 * _LARGE_BYTES)


def give_memory_back() -> None:
    """Return freed memory to the system, of which glibc keeps much after many pictures. Takes milliseconds."""
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
