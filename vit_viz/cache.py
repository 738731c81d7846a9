"""A thread-safe cache bounded by BYTES that computes each value once.

It knows nothing about Vision Transformers: keys are hashable, values are anything, the caller says how large a value is.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from vit_viz.errors import ParameterError

Value = TypeVar("Value")


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
    key and is not kept either.

    Args:
        max_bytes: bound on the sum of the sizes of all kept values.

    Raises:
        ParameterError: the bound is not positive.
    """

    def __init__(self, max_bytes: int) -> None:
        if max_bytes <= 0:
            raise ParameterError(f"A cache needs a positive number of bytes, not {max_bytes}.")
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._pending: dict[Hashable, Future[Value]] = {}
        self._used = self._hits = self._misses = self._evictions = 0

    def get_or_compute(
        self, key: Hashable, compute: Callable[[], Value], *, size_of: Callable[[Value], int]
    ) -> Value:
        """The value of `key`: kept, awaited from whoever is computing it, or computed here."""
        with self._lock:
            if key in self._kept:
                self._hits += 1
                self._kept.move_to_end(key)
                return self._kept[key][0]
            pending = self._pending.get(key)
            if pending is None:
                self._misses += 1
                mine: Future[Value] = Future()
                self._pending[key] = mine
            else:
                self._hits += 1
        if pending is not None:
            return pending.result()
        return self._compute(key, mine, compute, size_of)

    def peek(self, key: Hashable) -> Value | None:
        """The kept value of `key`, or None; never computes."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is not None:
                self._kept.move_to_end(key)
            return entry[0] if entry is not None else None

    def evict(self, unwanted: Callable[[Hashable], bool]) -> int:
        """Drop every kept value whose key is unwanted; returns how many."""
        with self._lock:
            keys = [key for key in self._kept if unwanted(key)]
            for key in keys:
                self._drop(key)
            return len(keys)

    def clear(self) -> None:
        """Drop everything that is kept."""
        self.evict(lambda _key: True)

    @property
    def stats(self) -> CacheStats:
        """Counts so far and the bytes in use now."""
        with self._lock:
            return CacheStats(self._hits, self._misses, self._evictions, len(self._kept), self._used)

    def _compute(
        self,
        key: Hashable,
        mine: Future[Value],
        compute: Callable[[], Value],
        size_of: Callable[[Value], int],
    ) -> Value:
        try:
            value = compute()
            size = size_of(value)
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._pending[key]
            self._keep(key, value, size)
        mine.set_result(value)
        return value

    def _keep(self, key: Hashable, value: Value, size: int) -> None:
        if size > self.max_bytes:
            return
        while self._used + size > self.max_bytes:
            self._drop(next(iter(self._kept)))
        self._kept[key] = (value, size)
        self._used += size

    def _drop(self, key: Hashable) -> None:
        _value, size = self._kept.pop(key)
        self._used -= size
        self._evictions += 1
