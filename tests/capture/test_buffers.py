"""The memory of traces: what an arena gives back may be used again."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from vit_viz.capture.buffers import Arena, BufferPool
from vit_viz.errors import CaptureError


def test_released_memory_is_free_although_the_arena_is_still_held() -> None:
    pool = BufferPool()
    arena = Arena(pool, slots=3)
    arena.store("q", torch.ones(5, 7))
    address = arena.view("q", 0).data_ptr()
    arena.release()
    assert pool.take(3 * 5 * 7, torch.float32, torch.device("cpu")).data_ptr() == address


def test_memory_that_is_released_amid_a_pass_is_no_part_of_what_is_watched_of_it() -> None:
    """A finalizer runs in whatever thread collects garbage, also in one that records."""
    arena = Arena(BufferPool(), slots=1)
    arena.store("q", torch.zeros(3, 5))
    seen: list[str] = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Watch():
        del arena
        gc.collect()
    assert seen == []


def test_memory_that_a_view_still_shows_is_not_given_out() -> None:
    pool = BufferPool()
    arena = Arena(pool, slots=3)
    arena.store("q", torch.ones(5, 7))
    kept = arena.view("q", 0)
    arena.release()
    assert pool.take(3 * 5 * 7, torch.float32, torch.device("cpu")).data_ptr() != kept.data_ptr()


def test_a_buffer_is_recycled_for_as_many_numbers_or_down_to_half_as_many() -> None:
    device = torch.device("cpu")
    for asked, is_recycled in ((101, False), (100, True), (50, True), (49, False)):
        pool, buffer = BufferPool(), torch.empty(100)
        address = buffer.data_ptr()
        buffers = [buffer]
        del buffer
        pool.give_back(buffers)
        taken = pool.take(asked, torch.float32, device)
        assert (taken.data_ptr() == address and len(taken) == 100) == is_recycled, asked


CPU = torch.device("cpu")


def filled(*sizes: int, most: int, dtype: torch.dtype = torch.float32) -> tuple[BufferPool, list[int]]:
    """A pool that was given buffers of so many numbers, the oldest first, and where they lie."""
    pool = BufferPool(most)
    buffers = [torch.empty(size, dtype=dtype) for size in sizes]
    addresses = [buffer.data_ptr() for buffer in buffers]
    pool.give_back(buffers)
    assert buffers == []
    return pool, addresses


def test_the_smallest_buffer_that_fits_is_recycled() -> None:
    pool, addresses = filled(90, 60, 80, most=10_000)
    taken = pool.take(50, torch.float32, CPU)
    assert taken.data_ptr() == addresses[1]
    assert pool.idle_bytes == 4 * (90 + 80)


@pytest.mark.parametrize(
    ("dtype", "device"), [(torch.int32, CPU), (torch.float32, torch.device("meta"))], ids=["dtype", "device"]
)
def test_a_buffer_of_another_kind_is_not_recycled(dtype: torch.dtype, device: torch.device) -> None:
    pool, _ = filled(60, most=10_000)
    taken = pool.take(60, dtype, device)
    assert (taken.dtype, taken.device) == (dtype, device)
    assert pool.idle_bytes == 4 * 60


@pytest.mark.parametrize(
    ("most", "left"), [(840, (70, 80, 60)), (839, (80, 60)), (560, (80, 60)), (559, (60,))]
)
def test_idle_memory_is_kept_up_to_its_limit_and_the_oldest_is_freed(
    most: int, left: tuple[int, ...]
) -> None:
    pool, _ = filled(70, 80, 60, most=most)
    assert pool.idle_bytes == 4 * sum(left)


def test_an_arena_grows_by_twice_as_much_and_keeps_what_it_holds() -> None:
    pool = BufferPool()
    arena = Arena(pool, slots=2)
    tensors = [torch.full((5, 7), float(number)) for number in range(5)]
    assert [arena.store("k", tensor) for tensor in tensors] == [0, 1, 2, 3, 4]
    stacked = arena.stacked("k")
    assert torch.equal(stacked, torch.stack(tensors))
    assert arena.stacked("q") is None
    del stacked
    arena.release()
    assert pool.idle_bytes == 4 * 5 * 7 * (2 + 4 + 8)


def test_an_arena_keeps_single_precision_of_whatever_it_is_given() -> None:
    arena = Arena(BufferPool(), slots=0)
    with torch.inference_mode():
        arena.store("k", torch.tensor([1.5, 2.5]).double())
    kept = arena.view("k", 0)
    assert (kept.dtype, kept.tolist(), kept.is_inference()) == (torch.float32, [1.5, 2.5], False)


def test_layers_of_another_shape_are_named() -> None:
    arena = Arena(BufferPool(), slots=3)
    arena.store("k", torch.ones(5, 7))
    arena.store("q", torch.ones(5, 9))
    with pytest.raises(CaptureError, match=r"but k is \[5, 7\] in one layer of this model and \[5, 8\]"):
        arena.store("k", torch.ones(5, 8))
