"""The memory of traces: what an arena gives back may be used again."""

from __future__ import annotations

import torch

from vit_viz.capture.buffers import Arena, BufferPool


def test_released_memory_is_free_although_the_arena_is_still_held() -> None:
    pool = BufferPool()
    arena = Arena(pool, slots=3)
    arena.store("q", torch.ones(5, 7))
    address = arena.view("q", 0).data_ptr()
    arena.release()
    assert pool.take(3 * 5 * 7, torch.float32, torch.device("cpu")).data_ptr() == address


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
