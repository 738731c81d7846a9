"""Which tensors a function writes to, by its name."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from vit_viz.capture.replay import Replay, is_allocation, written_by

T = torch.Tensor
ONE, OTHER = torch.zeros(3), torch.ones(3)


@pytest.mark.parametrize("func", [T.add_, T.mul_, T.copy_, T.__iadd__, T.__setitem__])
def test_a_function_in_place_writes_to_its_first_argument_alone(func: Any) -> None:
    (written,) = written_by(func, (ONE, OTHER), {})
    assert written is ONE


@pytest.mark.parametrize("func", [T.add, T.__add__, T.__getitem__, torch.add, torch.softmax])
def test_another_function_writes_to_what_it_is_told_to(func: Any) -> None:
    assert written_by(func, (ONE, OTHER), {}) == ()
    (written,) = written_by(func, (ONE, OTHER), {"out": OTHER})
    assert written is OTHER


def test_what_takes_a_shape_alone_is_an_allocation() -> None:
    names = ("zeros_like", "empty_like", "new_empty", "new_zeros", "add_", "view", "clone")
    assert [is_allocation(getattr(torch, name, None) or getattr(T, name)) for name in names] == [True] * 4 + [
        False
    ] * 3


def test_what_was_written_to_since_is_computed_up_to_the_last_time() -> None:
    source = torch.ones(3)
    replay, made = Replay(source), source * 2
    replay.note(T.mul, (source, 2), {}, made, {})
    replay.note(T.add_, (made, 1), {}, made.add_(1), {})
    assert replay.run(torch.full((3,), 5.0), made).tolist() == [11.0] * 3
