"""A thread-safe cache bounded by BYTES that computes each value once.

It knows nothing about Vision Transformers: keys are hashable, values are anything, the caller says how large a value is. Keys are
counted too, since some hold more than their value.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from dataclasses import dataclass, fields, is_dataclass
from typing import Generic, TypeVar

from cachetools import LRUCache

from vit_viz.errors import Cancelled, ParameterError
from vit_viz.progress import POLL_SECONDS, StopCheck, stop_if

Value = TypeVar("Value")

_PLACE_BYTES = 512  # of an entry in the tables


@dataclass(frozen=True)
class CacheStats:
    """What a cache did so far; `used_bytes` and `entries` are of this moment."""

    hits: int
    misses: int
    evictions: int
    entries: int
    used_bytes: int


class ByteCache(Generic[Value]):
    """Least recently used values within a byte budget; equal keys compute once, also at the same moment.

    A value larger than the whole budget is returned and not kept. An exception of `compute` reaches everyone who waits for that
    key and is not kept either; only when it was cancelled, one of those who wait computes it instead.

    Args:
        max_bytes: bound on the sum of the sizes of all kept values and their keys.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes <= 0:
            raise ParameterError(f"A cache needs a positive number of bytes, not {max_bytes}.")
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: LRUCache[Hashable, tuple[Value, int]] = LRUCache(
            max_bytes, getsizeof=lambda entry: entry[1]
        )
        self._pending: dict[Hashable, Future[Value]] = {}
        self._hits = self._misses = self._insertions = 0

    def get_or_compute(
        self,
        key: Hashable,
        compute: Callable[[], Value],
        *,
        size_of: Callable[[Value], int],
        cancelled: StopCheck | None = None,
    ) -> Value:
        """The value of `key`: kept, computed here, or awaited from whoever computes it, which goes on where we are cancelled."""
        while True:
            with self._lock:
                if key in self._kept:
                    self._hits += 1
                    return self._kept[key][0]
                pending = self._pending.get(key)
                if pending is None:
                    self._misses += 1
                    mine: Future[Value] = Future()
                    self._pending[key] = mine
                else:
                    self._hits += 1
            if pending is None:
                return self._compute(key, mine, compute, size_of)
            while not pending.done():
                stop_if(cancelled)
                wait([pending], timeout=None if cancelled is None else POLL_SECONDS)
            if not isinstance(pending.exception(), Cancelled):
                return pending.result()

    def peek(self, key: Hashable) -> Value | None:
        """The kept value of `key`, or None; never computes."""
        with self._lock:
            entry = self._kept.get(key)
            return entry[0] if entry is not None else None

    def evict(self, unwanted: Callable[[Hashable], bool]) -> int:
        """Drop every kept value whose key is unwanted; returns how many."""
        with self._lock:
            keys = [key for key in self._kept if unwanted(key)]
            for key in keys:
                del self._kept[key]
            return len(keys)

    def clear(self) -> None:
        """Drop everything that is kept."""
        self.evict(lambda _key: True)

    @property
    def stats(self) -> CacheStats:
        """Counts so far and the bytes in use now."""
        with self._lock:
            entries = len(self._kept)
            used = int(self._kept.currsize)
            return CacheStats(self._hits, self._misses, self._insertions - entries, entries, used)

    def _compute(
        self,
        key: Hashable,
        mine: Future[Value],
        compute: Callable[[], Value],
        size_of: Callable[[Value], int],
    ) -> Value:
        try:
            value = compute()
            size = size_of(value) + _key_bytes(key) + _PLACE_BYTES
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            if size <= self.max_bytes:
                self._kept[key] = (value, size)  # the least recently used make room
                self._insertions += 1
        mine.set_result(value)
        return value


def _key_bytes(key: object) -> int:
    size = sys.getsizeof(key)
    if isinstance(key, tuple | frozenset):
        return size + sum(_key_bytes(part) for part in key)
    if is_dataclass(key) and not isinstance(key, type):
        return size + sum(_key_bytes(getattr(key, field.name)) for field in fields(key))
    return size
