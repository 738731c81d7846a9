"""Limits of memory, and freed memory given back to the system through glibc; without glibc nothing happens."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from vit_viz.errors import ParameterError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_LARGE_BYTES = 4 * 2**20


def bytes_from_environment(name: str, default: int) -> int:
    """A number of bytes that the owner of the process may set.

    Raises:
        ParameterError: the variable holds something else.
    """
    return whole_from_environment(name, default, unit="bytes")


def whole_from_environment(name: str, default: int, *, unit: str = "patches") -> int:
    """A number above 0 that the owner of the process may set.

    Raises:
        ParameterError: the variable holds something else.
    """
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text)):
        raise ParameterError(f"{name} is a number of {unit} such as {default}, not {text[:40]!r}.")
    return int(text)


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
