"""Comparisons: of numbers that two computations must agree on, and of a result with what it travelled as."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


def assert_same(
    actual: Any, expected: Any, *, relative: float = 1e-5, floor: float = 0.0, what: str = ""
) -> None:
    """Two computations of the same numbers agree: max |actual - expected| <= relative * max |expected| + floor.

    The order in which a matrix product adds up differs between processors, kernels and numbers of threads, and its rounding error
    follows the size of what is added, not that of the sum. So each difference is judged by the size of the whole tensor: element by
    element, the few sums that nearly cancel would fail on one machine and pass on another.

    Args:
        actual: array, tensor, number or nested list.
        expected: the same, of the same shape; of two tensors also dtype and device must be equal.
        relative: largest difference that is allowed, as a share of the largest expected absolute value.
        floor: absolute difference that is allowed besides; by default nothing but zeros equal an expectation of zeros.
        what: name of what is compared, where a test compares several things.

    Raises:
        AssertionError: they differ; it names the largest difference, its place and what it was judged by.
    """
    __tracebackhide__ = True
    if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        ours, theirs = (actual.dtype, actual.device), (expected.dtype, expected.device)
        assert ours == theirs, f"{ours} instead of {theirs}"
    a, b = _in_double(actual), _in_double(expected)
    assert a.shape == b.shape, f"the shape is {a.shape} instead of {b.shape}"
    for name, numbers in (("actual", a), ("expected", b)):
        assert not np.isnan(numbers).any(), f"NaN at {_first(np.isnan(numbers))} of the {name} numbers"
    infinite = np.isinf(a) | np.isinf(b)
    wrong = infinite & (a != b)
    assert not wrong.any(), f"{a[wrong][0]} instead of {b[wrong][0]} at {_first(wrong)}"
    if not infinite.all():
        _assert_close(np.where(infinite, 0, a), np.where(infinite, 0, b), relative, floor, what)


def _assert_close(a: np.ndarray, b: np.ndarray, relative: float, floor: float, what: str) -> None:
    __tracebackhide__ = True
    difference, size = np.abs(a - b), np.abs(b).max()
    allowed = relative * size + floor
    if difference.max() > allowed:
        place = np.unravel_index(difference.argmax(), difference.shape)
        raise AssertionError(
            f"{what + ': ' if what else ''}largest difference {difference.max():.3g} at {tuple(map(int, place))}: "
            f"{a[place]:.9g} instead of {b[place]:.9g}; allowed is {allowed:.3g} = {relative:g} of the largest expected "
            f"{size:.3g}, and {floor:g}; {np.count_nonzero(difference > allowed)} of {difference.size} numbers differ by more"
        )


def _in_double(numbers: Any) -> np.ndarray:
    if isinstance(numbers, torch.Tensor):
        return numbers.detach().cpu().double().numpy()
    return np.asarray(numbers, dtype=np.float64)


def _first(places: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(places)[0])


def assert_unchanged(got: Any, expected: Any) -> None:
    """Equal to the last bit, through all fields and entries, and of the same types."""
    assert type(got) is type(expected)
    if isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(got, expected)
        assert got.flags.writeable == expected.flags.writeable
    elif hasattr(expected, "__dataclass_fields__"):
        for name in expected.__dataclass_fields__:
            assert_unchanged(getattr(got, name), getattr(expected, name))
    elif hasattr(expected, "items"):
        assert list(got) == list(expected)
        for name in expected:
            assert_unchanged(got[name], expected[name])
    elif isinstance(expected, tuple):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert_unchanged(one, other)
    else:
        assert got == expected
