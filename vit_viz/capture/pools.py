"""Pooling without removed tokens: however a model implements its pool, removed tokens are left out of it.

Removed tokens become what a reduction over tokens ignores: 0 in a sum, minus infinity in a maximum or a softmax. A mean is then
divided by the mean of the mask, and a sum that is divided by the number of tokens by how many are kept.

Where the tokens of a tensor are is inferred from sizes, strides of views and the slices that the model took; a mode that sees
torch's calls has nothing else to go by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from torch.utils.weak import WeakIdKeyDictionary

from vit_viz.capture.explicit_softmax import Function, named_functions
from vit_viz.errors import CaptureError
from vit_viz.lazy import F, Tensor, torch

Kind = Literal["mean", "sum", "max", "min", "unknown"]
_IGNORED: dict[Kind, float] = {"mean": 0.0, "sum": 0.0, "max": -math.inf, "min": math.inf}


_REDUCTIONS: dict[Function, tuple[Kind, int, int | None]] = {
    **dict.fromkeys(named_functions("mean"), ("mean", 1, None)),
    **dict.fromkeys(named_functions("sum"), ("sum", 1, None)),
    **dict.fromkeys(named_functions("max", "amax", "logsumexp"), ("max", 1, None)),
    **dict.fromkeys(named_functions("min", "amin"), ("min", 1, None)),
    **dict.fromkeys(named_functions("median", "prod", "std", "var", "std_mean", "var_mean"), ("unknown", 1, None)),
    **dict.fromkeys(named_functions("nanmean", "nansum", "nanmedian", "logcumsumexp"), ("unknown", 1, None)),
    **dict.fromkeys(named_functions("norm", "vector_norm", "quantile"), ("unknown", 2, None)),
    **dict.fromkeys(named_functions("mode", "sort", "cumsum"), ("unknown", 1, -1)),
    **dict.fromkeys(named_functions("topk", "kthvalue"), ("unknown", 2, -1)),
}  # fmt: skip
"""Reductions: their kind, the position of the axis among their arguments, and its default (None: all axes)."""

_POOLS: dict[Function, tuple[Kind, int]] = {
    F.adaptive_avg_pool1d: ("mean", 1),
    F.adaptive_avg_pool2d: ("mean", 2),
    F.avg_pool1d: ("mean", 1),
    F.avg_pool2d: ("mean", 2),
    F.adaptive_max_pool1d: ("max", 1),
    F.adaptive_max_pool2d: ("max", 2),
    F.max_pool1d: ("max", 1),
    F.max_pool2d: ("max", 2),
    F.lp_pool1d: ("unknown", 1),
    F.lp_pool2d: ("unknown", 2),
}
"""Pooling layers, and over how many of the last axes they run."""

_QUOTIENTS: frozenset[Function] = frozenset(named_functions("div", "div_", "true_divide", "divide"))
_PRODUCTS: frozenset[Function] = frozenset(named_functions("mul", "mul_", "multiply"))
_SLICES: frozenset[Function] = frozenset(
    (torch.Tensor.__getitem__, torch.functional.split, *named_functions("narrow", "split", "chunk"))
)
_SHAPES: frozenset[Function] = frozenset(
    named_functions("squeeze", "unsqueeze", "reshape", "view", "flatten", "to", "float")
)

HANDLED: frozenset[Function] = (
    frozenset(_REDUCTIONS) | set(_POOLS) | _QUOTIENTS | _PRODUCTS | _SLICES | _SHAPES
)
"""Functions that go through `Pools.run` while tokens are removed."""


class Pools:
    """Leaves removed tokens out of whatever reduces over tokens.

    Args:
        removed: (tokens, batch) -> which tokens are removed, Boolean [batch | 1, tokens]; None for none of them.
    """

    def __init__(self, removed: Callable[[int, int], Tensor | None]) -> None:
        self._removed = removed
        self._sequence: TokenSequence | None = None
        self._sums = WeakIdKeyDictionary()  # sum over tokens -> (how many tokens, how many are kept)

    def follow(self, tokens: int, batch: int) -> None:
        """Note an attention over this many tokens of this many images: later reductions are over those tokens."""
        self._sequence = TokenSequence(tokens, batch)

    def first_of(self, count: int) -> int:
        """Index of the first of `count` tokens that a pooling attention looks at."""
        return 0 if self._sequence is None else self._sequence.first_of(count)

    def run(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`func(*args, **kwargs)`, with removed tokens left out where it reduces over tokens."""
        if "input" in kwargs:
            args, kwargs = (kwargs["input"], *args), {k: v for k, v in kwargs.items() if k != "input"}
        if self._sequence is None or not args or not isinstance(args[0], Tensor):
            return func(*args, **kwargs)
        if func in _SLICES:
            result = func(*args, **kwargs)
            for part in result if isinstance(result, tuple | list) else (result,):
                self._sequence.note(part)
            return result
        if func in _SHAPES:  # a sum in another shape or precision is still a sum
            result = func(*args, **kwargs)
            if args[0] in self._sums and isinstance(result, Tensor):
                count, kept = self._sums[args[0]]
                self._sums[result] = (count, func(kept, *args[1:], **kwargs))
            return result
        if func in _QUOTIENTS or func in _PRODUCTS:
            return self._divided(func, args, kwargs)
        return self._reduced(self._sequence, func, args, kwargs)

    def softmax(self, scores: Tensor, axis: int) -> Tensor:
        """The scores of a softmax over tokens, by which a model weighs them: minus infinity for those that are removed."""
        mask = None if self._sequence is None else self._mask(self._sequence, scores, (axis % scores.ndim,))
        return scores if mask is None else scores.masked_fill(mask[0], -math.inf)

    def _reduced(
        self, sequence: TokenSequence, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        source, *rest = args
        kind = (_POOLS.get(func) or _REDUCTIONS[func])[0]
        masked = self._mask(sequence, source, _axes(func, args, kwargs))
        if masked is None:
            return func(*args, **kwargs)
        mask, count = masked
        if not source.is_floating_point() and kind in ("max", "min"):
            return func(*args, **kwargs)  # a mask or an index: nothing that an output is computed from
        if kind == "unknown" or kwargs.get("out") is not None:
            raise _not_understood(func, source)
        result = func(source.masked_fill(mask, _IGNORED[kind]), *rest, **kwargs)
        pooled = result[0] if isinstance(result, tuple) else result
        if func in _POOLS and math.prod(pooled.shape[-_POOLS[func][1] :]) != 1:
            raise _not_understood(func, source)
        kept = (~mask).to(pooled.dtype)
        if kind == "mean":
            return result / func(kept, *rest, **kwargs)
        if kind == "sum":
            self._sums[result] = (count, func(kept, *rest, **kwargs).expand(result.shape))
        return result

    def _divided(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A sum over tokens that is divided by their number is divided by how many are kept."""
        total, divisor = args[0], args[1] if len(args) > 1 else kwargs.get("other")
        if total not in self._sums or "rounding_mode" in kwargs:
            return func(*args, **kwargs)
        count, kept = self._sums[total]
        if func in _QUOTIENTS and _is_always(divisor, count):
            result = func(total, kept)
        elif func in _PRODUCTS and _is_always(divisor, 1 / count):
            result = func(total, 1 / kept)
        else:
            return func(*args, **kwargs)
        if result in self._sums:
            del self._sums[result]  # divided in place
        return result

    def _mask(
        self, sequence: TokenSequence, source: Tensor, axes: tuple[int, ...]
    ) -> tuple[Tensor, int] | None:
        """Which entries belong to removed tokens, and how many tokens are reduced; None where none of them is removed."""
        place = sequence.reduced(source, axes) if axes else None
        removed = None if place is None else self._removed(sequence.tokens, sequence.batch)
        if place is None or removed is None:
            return None
        return place.mask(removed, source), place.count


def _axes(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, ...]:
    """Over which axes of its first argument a function runs; none where it compares two tensors."""
    ndim = args[0].ndim
    if func in _POOLS:
        return tuple(range(ndim - _POOLS[func][1], ndim))
    _, place, default = _REDUCTIONS[func]
    argument = kwargs.get("dim", kwargs.get("axis", args[place] if len(args) > place else default))
    if isinstance(argument, Tensor) or "other" in kwargs:
        return ()
    chosen = (argument,) if isinstance(argument, int) else tuple(argument or range(ndim))
    return tuple(axis % ndim for axis in chosen)


def picks_among(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], counts: Sequence[int]) -> bool:
    """Whether a function takes the largest or smallest of so many tokens [images, tokens, dim], in whichever order of axes."""
    kind = (_POOLS.get(func) or _REDUCTIONS.get(func) or ("",))[0]
    if kind not in ("max", "min") or not args or not isinstance(args[0], Tensor) or args[0].ndim < 3:
        return False
    return math.prod(args[0].shape[axis] for axis in _axes(func, args, kwargs)) in counts


def _is_always(value: Any, number: float) -> bool:
    """Whether a number, or each entry of a tensor, is this number up to rounding."""
    if isinstance(value, Tensor):
        return value.numel() > 0 and bool(((value - number).abs() <= 1e-6 * number).all())
    return isinstance(value, int | float) and abs(value - number) <= 1e-6 * number


def _not_understood(func: Function, source: Tensor) -> CaptureError:
    return CaptureError(
        f"Removed tokens cannot be left out of the pool of this model: {getattr(func, '__name__', func)} over tokens, in a tensor "
        f"of shape {list(source.shape)}, is not understood; a mean, a sum or a maximum is."
    )


@dataclass(frozen=True)
class TokenAxes:
    """Where the tokens of a tensor are."""

    axes: tuple[int, ...]  # one axis, or rows and columns of a map
    count: int  # how many tokens there are
    first: int | None  # index in the sequence of the first of them; None where that is not known
    batch_axis: int  # of the images

    def mask(self, removed: Tensor, like: Tensor) -> Tensor:
        """Which entries belong to removed tokens, [batch | 1, all tokens], with as many axes as `like`; size 1 along all others."""
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


class TokenSequence:
    """The tokens that the last attention saw, so many of each image of a batch, and what is known of slices of them."""

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
        """The tokens of a tensor, where a reduction over `axes` is one over tokens."""
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
