"""The byte bound holds, equal keys compute once, failures are not kept."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vit_viz.cache import ByteCache
from vit_viz.errors import ParameterError


def put(cache: ByteCache[int], key: str, size: int) -> int:
    return cache.get_or_compute(key, lambda: size, size_of=lambda value: value)


def test_least_recently_used_leaves_first() -> None:
    cache: ByteCache[int] = ByteCache(10)
    for key in "abc":
        put(cache, key, 3)
    put(cache, "a", 3)
    put(cache, "d", 3)
    assert [cache.peek(key) is not None for key in "abcd"] == [True, False, True, True]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 15)), max_size=40))
def test_bytes_never_exceed_the_bound(steps: list[tuple[str, int]]) -> None:
    cache: ByteCache[int] = ByteCache(12)
    for key, size in steps:
        put(cache, key, size)
        assert 0 <= cache.stats.used_bytes <= 12


def test_value_larger_than_the_bound_is_returned_and_not_kept() -> None:
    cache: ByteCache[int] = ByteCache(10)
    put(cache, "small", 5)
    assert put(cache, "large", 11) == 11
    assert cache.peek("large") is None
    assert cache.peek("small") == 5


def test_equal_keys_at_once_compute_once() -> None:
    cache: ByteCache[int] = ByteCache(1000)
    calls, started = [], threading.Barrier(8)

    def slow() -> int:
        calls.append(1)
        threading.Event().wait(0.1)
        return 1

    def ask(_index: int) -> int:
        started.wait()
        return cache.get_or_compute("key", slow, size_of=lambda _value: 1)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [1] * 8
    assert len(calls) == 1


def test_different_keys_compute_at_the_same_time() -> None:
    cache: ByteCache[int] = ByteCache(1000)
    meet = threading.Barrier(2, timeout=5)

    def compute() -> int:
        meet.wait()
        return 1

    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda key: cache.get_or_compute(key, compute, size_of=lambda _v: 1), "ab")
        assert list(results) == [1, 1]


def test_failure_reaches_every_waiter_and_is_not_kept() -> None:
    cache: ByteCache[int] = ByteCache(10)
    started = threading.Barrier(4)

    def fail() -> int:
        threading.Event().wait(0.1)
        raise ParameterError("no")

    def ask(_index: int) -> str:
        started.wait()
        with pytest.raises(ParameterError) as caught:
            cache.get_or_compute("key", fail, size_of=lambda _v: 1)
        return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == ["no"] * 4
    assert put(cache, "key", 2) == 2


def test_evict_drops_only_what_is_unwanted() -> None:
    cache: ByteCache[int] = ByteCache(100)
    for key in ("a1", "a2", "b1"):
        put(cache, key, 1)
    assert cache.evict(lambda key: str(key).startswith("a")) == 2
    assert (cache.peek("a1"), cache.peek("b1")) == (None, 1)


def test_bound_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="positive"):
        ByteCache(0)
