"""The byte bound holds, equal keys compute once, failures are not kept."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from tests.waiting import PATIENCE, until
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.session.cache import ByteCache

UNIT = 100_000  # bytes, so that keys and places in the table weigh little


def put(cache: ByteCache[int], key: str, size: int) -> int:
    return cache.get_or_compute(key, lambda: size, size_of=lambda value: UNIT * value)


def test_least_recently_used_leaves_first() -> None:
    cache: ByteCache[int] = ByteCache(10 * UNIT)
    for key in "abc":
        put(cache, key, 3)
    put(cache, "a", 3)
    put(cache, "d", 3)
    assert [cache.peek(key) is not None for key in "abcd"] == [True, False, True, True]


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 15)), max_size=40))
def test_bytes_never_exceed_the_bound(steps: list[tuple[str, int]]) -> None:
    cache: ByteCache[int] = ByteCache(12 * UNIT)
    for key, size in steps:
        put(cache, key, size)
        assert 0 <= cache.stats.used_bytes <= 12 * UNIT


def test_value_larger_than_the_bound_is_returned_and_not_kept() -> None:
    cache: ByteCache[int] = ByteCache(10 * UNIT)
    put(cache, "small", 5)
    assert put(cache, "large", 11) == 11
    assert cache.peek("large") is None
    assert cache.peek("small") == 5


def test_equal_keys_at_once_compute_once() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)
    calls, started = [], threading.Barrier(8)

    def slow() -> int:
        calls.append(1)
        until(lambda: cache.stats.hits == 7 or len(calls) > 1)  # all others wait for it
        return 1

    def ask(_index: int) -> int:
        started.wait()
        return cache.get_or_compute("key", slow, size_of=lambda _value: 1)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [1] * 8
    assert len(calls) == 1


def test_different_keys_compute_at_the_same_time() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)
    meet = threading.Barrier(2, timeout=60)

    def compute() -> int:
        meet.wait()
        return 1

    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda key: cache.get_or_compute(key, compute, size_of=lambda _v: 1), "ab")
        assert list(results) == [1, 1]


def test_failure_reaches_every_waiter_and_is_not_kept() -> None:
    cache: ByteCache[int] = ByteCache(10 * UNIT)
    started = threading.Barrier(4)

    def fail() -> int:
        until(lambda: cache.stats.hits == 3)  # all others wait for it
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
    cache: ByteCache[int] = ByteCache(100 * UNIT)
    for key in ("a1", "a2", "b1"):
        put(cache, key, 1)
    assert cache.evict(lambda key: str(key).startswith("a")) == 2
    assert (cache.peek("a1"), cache.peek("b1")) == (None, 1)


def test_what_made_room_and_what_was_dropped_counts_as_evicted() -> None:
    cache: ByteCache[int] = ByteCache(10 * UNIT)
    for key, size in (
        ("a", 4),
        ("b", 3),
        ("large", 11),
        ("c", 5),
    ):  # c takes the place of a; large is not kept
        put(cache, key, size)
    assert (cache.stats.entries, cache.stats.evictions) == (2, 1)
    assert 8 * UNIT <= cache.stats.used_bytes < 9 * UNIT
    put(cache, "a", 1)  # a second time
    assert (cache.stats.entries, cache.stats.evictions) == (3, 1)
    cache.clear()
    assert (cache.stats.entries, cache.stats.evictions, cache.stats.used_bytes) == (0, 4, 0)


def test_keys_are_counted() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)
    cache.get_or_compute("short", lambda: 1, size_of=lambda _v: 0)
    short = cache.stats.used_bytes
    cache.get_or_compute(("part", ("x" * 1000, "y" * 1000)), lambda: 1, size_of=lambda _v: 0)
    assert 0 < short < 1000
    assert cache.stats.used_bytes > short + 2000


@dataclass(frozen=True)
class Place:
    """A key such as a request: a value with parts."""

    name: str
    inside: object = None


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: Place(text),
        lambda text: Place("", (text,)),
        lambda text: (Place("", Place(text)), 3),
        lambda text: frozenset([Place(text)]),
    ],
)
def test_the_parts_of_a_key_are_counted_wherever_they_stand(wrap: Callable[[str], Hashable]) -> None:
    def used(text: str) -> int:
        cache: ByteCache[int] = ByteCache(UNIT)
        cache.get_or_compute(wrap(text), lambda: 1, size_of=lambda _v: 0)
        return cache.stats.used_bytes

    assert used("x" * 3000) - used("") == 3000  # a letter of ASCII takes a byte


def test_a_class_is_a_key_without_parts() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)
    for key in (Place, ("of", Place)):
        assert cache.get_or_compute(key, lambda: 4, size_of=lambda _v: 7) == 4
        assert cache.peek(key) == 4


def test_a_value_that_fills_the_bound_to_the_last_byte_is_kept() -> None:
    def kept(bound: int) -> bool:
        cache: ByteCache[int] = ByteCache(bound)
        cache.get_or_compute("key", lambda: 1, size_of=lambda _v: 5000)
        return cache.peek("key") == 1

    whole: ByteCache[int] = ByteCache(UNIT)
    whole.get_or_compute("key", lambda: 1, size_of=lambda _v: 5000)
    size = whole.stats.used_bytes
    assert size == 5000 + sys.getsizeof("key") + 512
    assert (kept(size), kept(size - 1)) == (True, False)


def test_hits_and_misses_are_counted() -> None:
    cache: ByteCache[int] = ByteCache(10 * UNIT)
    for key in "abaca":
        put(cache, key, 1)
    assert (cache.stats.hits, cache.stats.misses, cache.stats.entries) == (2, 3, 3)
    cache.peek("a")
    assert (cache.stats.hits, cache.stats.misses) == (2, 3)  # to look is not to ask


@pytest.mark.parametrize("size", [0, -3])
def test_a_bound_that_holds_nothing_is_refused_in_a_sentence(size: int) -> None:
    with pytest.raises(ParameterError, match=f"^A cache needs a positive number of bytes, not {size}\\.$"):
        ByteCache(size)
    assert ByteCache(1).max_bytes == 1


def test_a_failure_of_the_size_is_no_entry() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)

    def fails(_value: int) -> int:
        raise ParameterError("no size")

    with pytest.raises(ParameterError, match="no size"):
        cache.get_or_compute("key", lambda: 1, size_of=fails)
    assert cache.stats.entries == 0
    assert put(cache, "key", 0) == 0  # nobody waits for it


def waiting(cache: ByteCache[int], stop: threading.Event) -> tuple[threading.Thread, list[object]]:
    """A thread that waits for somebody else's "key" until it is told to stop, and what became of it."""
    outcome: list[object] = []

    def ask() -> None:
        try:
            outcome.append(
                cache.get_or_compute("key", lambda: 2, size_of=lambda _v: 1, cancelled=stop.is_set)
            )
        except Cancelled as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread, outcome


def computing(
    cache: ByteCache[int], error: Exception | None = None
) -> tuple[threading.Thread, threading.Event]:
    """A thread that computes "key", and the signal on which it ends."""
    started, go = threading.Event(), threading.Event()

    def compute() -> int:
        started.set()
        go.wait(60)
        if error is not None:
            raise error
        return 1

    def ask() -> None:
        try:
            cache.get_or_compute("key", compute, size_of=lambda _v: 1)
        except Cancelled:
            assert error is not None

    thread = threading.Thread(target=ask)
    thread.start()
    assert started.wait(60)
    return thread, go


def test_who_waits_may_give_up_and_the_computation_goes_on() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)
    first, go = computing(cache)
    stop = threading.Event()
    second, outcome = waiting(cache, stop)
    stop.set()
    second.join(PATIENCE)
    assert isinstance(outcome[0], Cancelled)
    go.set()
    first.join(PATIENCE)
    assert cache.peek("key") == 1


def test_who_waits_for_a_computation_that_is_cancelled_computes_it() -> None:
    cache: ByteCache[int] = ByteCache(UNIT)
    first, go = computing(cache, Cancelled("no"))
    second, outcome = waiting(cache, threading.Event())
    go.set()
    for thread in (first, second):
        thread.join(PATIENCE)
    assert outcome == [2]


def test_who_waits_with_a_check_is_served_as_soon_as_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vit_viz.session.cache.POLL_SECONDS", 30)
    cache: ByteCache[int] = ByteCache(UNIT)
    first, go = computing(cache)
    second, outcome = waiting(cache, threading.Event())
    go.set()
    for thread in (first, second):
        thread.join(PATIENCE)
    assert outcome == [1]
