"""The comparison itself: it passes what rounding makes, and fails what it must, in words that help."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.comparing import assert_same

EXPECTED = torch.tensor([[30.0, -2.0, 1e-4], [0.0, 5.0, -8.0]])


def off(by: float, *, at: tuple[int, int] = (1, 0)) -> torch.Tensor:
    """The expected numbers, of which one differs."""
    actual = EXPECTED.clone()
    actual[at] += by
    return actual


@pytest.mark.parametrize("by", [0.0, 2.9e-4, -2.9e-4])
def test_a_difference_is_judged_by_the_size_of_the_whole(by: float) -> None:
    assert_same(off(by), EXPECTED)


@pytest.mark.parametrize("by", [3.1e-4, -3.1e-4])
def test_a_larger_difference_fails_and_names_its_size_and_place(by: float) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_same(off(by), EXPECTED)
    text = str(failure.value)
    assert "largest difference 0.00031 at (1, 0)" in text
    assert "instead of 0;" in text
    assert "allowed is 0.0003 = 1e-05 of the largest expected 30, and 0" in text
    assert "1 of 6 numbers" in text


def test_the_share_may_be_smaller() -> None:
    assert_same(off(2.9e-5), EXPECTED, relative=1e-6)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_same(off(3.1e-5), EXPECTED, relative=1e-6)


def test_the_size_is_that_of_the_expected_numbers() -> None:
    with pytest.raises(AssertionError, match="largest expected 30"):
        assert_same(off(1e9), EXPECTED)


def test_an_expectation_of_zeros_is_judged_by_the_floor() -> None:
    zeros = torch.zeros(2, 3)
    assert_same(zeros, zeros)
    with pytest.raises(AssertionError, match="largest difference 1e-30"):
        assert_same(torch.full((2, 3), 1e-30), zeros)
    assert_same(torch.full((2, 3), 9e-8), zeros, floor=1e-7)
    with pytest.raises(AssertionError, match="and 1e-07"):
        assert_same(torch.full((2, 3), 1.1e-7), zeros, floor=1e-7)


def test_the_floor_is_added_to_the_share() -> None:
    assert_same(off(3.9e-4), EXPECTED, floor=1e-4)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_same(off(4.1e-4), EXPECTED, floor=1e-4)


@pytest.mark.parametrize(("actual", "expected"), [
    (torch.ones(2, 3), torch.ones(3, 2)), (torch.ones(1), torch.ones(())), (np.ones((1, 3)), np.ones(3)), ([1, 1], 1),
])  # fmt: skip
def test_shapes_must_be_equal_and_are_not_broadcast(actual: Any, expected: Any) -> None:
    with pytest.raises(AssertionError, match="the shape is"):
        assert_same(actual, expected, floor=9)


@pytest.mark.parametrize("side", ["actual", "expected", "both"])
def test_nan_never_passes(side: str) -> None:
    odd = off(float("nan"), at=(0, 2))
    with pytest.raises(AssertionError, match=r"NaN at \(0, 2\)"):
        assert_same(EXPECTED if side == "expected" else odd, EXPECTED if side == "actual" else odd)


def test_infinities_must_be_the_same_and_do_not_hide_the_rest() -> None:
    masked = off(-float("inf"), at=(0, 0))
    assert_same(masked, masked.clone())
    for actual, expected in ((EXPECTED, masked), (masked, EXPECTED), (-masked, masked)):
        with pytest.raises(AssertionError, match=r"instead of .* at \(0, 0\)"):
            assert_same(actual, expected, floor=99)
    other = masked.clone()
    other[1, 1] += 1e-4  # the largest finite number is 8
    with pytest.raises(AssertionError, match=r"at \(1, 1\).*largest expected 8"):
        assert_same(other, masked)
    assert_same(np.full(2, np.inf), np.full(2, np.inf))


def test_dtypes_of_tensors_must_be_equal() -> None:
    with pytest.raises(AssertionError, match="float64"):
        assert_same(EXPECTED.double(), EXPECTED)


def test_numbers_lists_and_arrays_are_compared_alike() -> None:
    assert_same(3, 3.0)
    assert_same(np.float32(0.1), 0.1, relative=1e-7)
    assert_same([[1, 2], [3, 4]], np.array([[1.0, 2.0], [3.0, 4.00003]]))
    assert_same(torch.ones(2, dtype=torch.bfloat16), [1, 1], relative=0)
    with pytest.raises(AssertionError, match="largest difference"):
        assert_same([[1, 2], [3, 4]], [[1, 2], [3, 4.00005]])


def test_the_message_says_what_was_compared() -> None:
    with pytest.raises(AssertionError, match=r"^rollout: largest difference"):
        assert_same(off(1), EXPECTED, what="rollout")


def test_nothing_equals_nothing() -> None:
    assert_same(torch.zeros(0, 3), torch.zeros(0, 3))
