"""Indices as callers pass them: Python's and NumPy's integers, tensors, lists of them, and Boolean masks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor

Index = SupportsIndex
"""One index: an int, a NumPy integer or a tensor of one integer."""

Indices = SupportsIndex | Sequence[SupportsIndex] | Sequence[bool] | NDArray[Any] | Tensor | None
"""Some indices: one, a list, an array or a tensor of them, a Boolean mask with one entry for each, or None for all."""

Tokens = Indices | str
"""Some tokens: the same, or words for a query, such as "class" or "3,4", or the patch (row, col)."""


def as_index(what: str, value: object) -> int:
    """One index as an int; whether it exists is for the caller to say."""
    is_truth = isinstance(value, bool | np.bool_) or str(getattr(value, "dtype", "")) in (
        "bool",
        "torch.bool",
    )
    if not is_truth:
        try:
            return operator.index(value)  # type: ignore[arg-type]  # what is none raises TypeError
        except TypeError:
            pass
    raise ParameterError(f"{what} is named by its index, a whole number, not by {_shown(value)}.")


def checked_index(what: str, index: int, count: int) -> int:
    """An index of which there are `count`; `what` is the name of one thing that is counted, e.g. "Head"."""
    if not 0 <= index < count:
        raise ParameterError(f"{what} {index} does not exist: this model has {what.lower()}s 0-{count - 1}.")
    return index


def layer_index(value: object, count: int) -> int:
    """The index of one of `count` layers; negative ones count from the last, as in Python.

    Example:
        >>> layer_index(3, 12), layer_index(-1, 12)
        (3, 11)
    """
    number = as_index("A layer", value)
    return checked_index("Layer", number + count if -count <= number < 0 else number, count)


def as_indices(
    what: str, values: Tokens, count: int, *, words: Callable[[Any], Sequence[int]] | None = None
) -> list[int] | None:
    """Indices below `count` as a list of ints, in the order given; None for all.

    A Boolean mask chooses where it is True.

    Args:
        what: name of one thing that is counted, e.g. "Head".
        words: the indices that a text, or a tuple (row, col), stands for; None where there are none.
    """
    if values is None:
        return None
    if words is not None and isinstance(values, str | tuple):
        values = words(values)
    array = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    name = what.lower()
    if array.dtype == bool:
        if array.shape != (count,):
            raise ParameterError(
                f"A Boolean mask of {name}s has one entry for each of the {count} {name}s, not the shape {list(array.shape)}."
            )
        return [int(i) for i in np.flatnonzero(array)]
    if array.size == 0 and array.ndim == 1:
        return []
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ParameterError(
            f"{what}s are chosen by indices, by a list of indices or by a Boolean mask, not by {_shown(values)}."
        )
    chosen = [int(i) for i in array.reshape(-1)]
    return [checked_index(what, index, count) for index in chosen]


def _shown(value: object) -> str:
    """A value, short enough for an error message."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"{type(value).__name__} of shape {list(shape)}"
    return f"{value!r:.60}"
