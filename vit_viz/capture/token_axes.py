"""Where the tokens of a tensor are: along which axes, and with which token they begin.

Inferred from sizes, strides of views and the slices that the model took; a mode that sees torch's calls has nothing else to go by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from vit_viz.errors import CaptureError


@dataclass(frozen=True)
class TokenAxes:
    """Where the tokens of a tensor are.

    Args:
        axes: one axis, or rows and columns of a map.
        count: how many tokens there are.
        first: index in the sequence of the first of them; None where that is not known.
        batch_axis: the axis of the images.
    """

    axes: tuple[int, ...]
    count: int
    first: int | None
    batch_axis: int

    def mask(self, removed: Tensor, like: Tensor) -> Tensor:
        """Which entries belong to removed tokens, with as many axes as `like`; size 1 along all others.

        Args:
            removed: Boolean [batch | 1, all tokens].

        Raises:
            CaptureError: the tensor holds only some of the tokens, and which ones is not known.
        """
        if self.first is None:
            raise CaptureError(
                f"Removed tokens cannot be left out of the pool of this model: it reads {self.count} of {removed.shape[1]} "
                "tokens, and which ones is not known."
            )
        shape = [1] * like.ndim
        shape[self.batch_axis] = len(removed)
        for axis in self.axes:
            shape[axis] = like.shape[axis]
        part = removed[:, self.first : self.first + self.count]
        return (part if self.batch_axis < self.axes[0] else part.T).reshape(shape).to(like.device)


class Sequence:
    """The tokens that the last attention saw, and what is known of slices of them.

    Args:
        tokens, batch: how many tokens, of how many images.
    """

    def __init__(self, tokens: int, batch: int) -> None:
        self.tokens, self.batch = tokens, batch
        self._slices: dict[int, int | None] = {}

    def note(self, part: Tensor) -> None:
        """Remember which tokens a slice [batch, n, dim] begins with, for tensors that are computed from it."""
        for axis in range(part.ndim if part.ndim == 3 else 0):
            count, first = part.shape[axis], self._first_in_memory(part, (axis,))
            if first is not None and count < self.tokens:
                self._slices[count] = first if self._slices.get(count, first) == first else None

    def first_of(self, count: int) -> int:
        """Index of the first of `count` tokens that were cut out; prefix tokens are what is left out where nothing is known."""
        first = self._slices.get(count)
        return self.tokens - count if first is None else first

    def reduced(self, source: Tensor, axes: tuple[int, ...]) -> TokenAxes | None:
        """The tokens of a tensor, where a reduction over `axes` is one over tokens.

        Raises:
            CaptureError: it reduces rows or columns of a map alone.
        """
        likeliest = min(self._candidates(source), key=lambda each: self._doubt(source, each), default=None)
        if likeliest is None or not set(likeliest.axes) & set(axes):
            return None
        if not set(likeliest.axes) <= set(axes):
            raise CaptureError(
                f"Removed tokens cannot be left out of the pool of this model: it reduces a map of shape {list(source.shape)} "
                "along rows or columns alone."
            )
        return likeliest

    def _candidates(self, source: Tensor) -> list[TokenAxes]:
        """Every way in which a tensor can hold tokens."""
        if source.ndim < 2 or (source.ndim == 2 and source.is_floating_point()):
            return []  # numbers [batch, tokens] look like [batch, classes]
        single = [(axis,) for axis in range(1, source.ndim)]
        groups = [*single, (2, 3), (1, 2)] if source.ndim == 4 else single
        ways = [self._at(source, axes, 0) for axes in groups] if len(source) == self.batch else []
        if source.ndim == 3 and source.shape[1] == self.batch:
            ways.append(self._at(source, (0,), 1))
        return [each for each in ways if each is not None]

    def _at(self, source: Tensor, axes: tuple[int, ...], batch_axis: int) -> TokenAxes | None:
        """The tokens at these axes; None where there cannot be tokens."""
        count = math.prod(source.shape[axis] for axis in axes)
        if count == self.tokens:
            return TokenAxes(axes, count, 0, batch_axis)
        if source.ndim == 4 and len(axes) == 1:
            return None  # heads, features, rows or columns: too many small axes to guess
        first = self._first_in_memory(source, axes)
        first = self._slices.get(count) if first is None else first
        most = source.ndim == 3 and axes == (1,) and self.tokens // 2 < count < self.tokens
        if first is None and count not in self._slices and not most:
            return None
        return TokenAxes(axes, count, first, batch_axis)

    def _doubt(self, source: Tensor, axes: TokenAxes) -> tuple[bool, bool, bool]:
        """Smallest for the likeliest: with a known beginning, not next to each other in memory as features are, and complete."""
        last = axes.axes[-1]
        is_inner = source.stride(last) == 1 and source.shape[last] > 1
        return axes.first is None, is_inner, axes.count != self.tokens

    def _first_in_memory(self, source: Tensor, axes: tuple[int, ...]) -> int | None:
        """Where a view of [batch, tokens, dim] begins among the tokens, by its strides; None where it is no such view."""
        stride, count = source.stride(axes[-1]), math.prod(source.shape[axis] for axis in axes)
        if stride <= 1 or not 1 < count <= self.tokens:
            return None
        if len(axes) == 2 and source.stride(axes[0]) != stride * source.shape[axes[1]]:
            return None
        total = source.untyped_storage().nbytes() // source.element_size()
        if total == 0 or total % (self.tokens * stride):
            return None
        first = source.storage_offset() // stride % self.tokens
        return first if first + count <= self.tokens else None
