"""Pooling without removed tokens: however a model implements its pool, removed tokens are left out of it.

Removed tokens become what a reduction over tokens ignores: 0 in a sum, minus infinity in a maximum or a softmax. A mean is then
divided by the mean of the mask, and a sum that is divided by the number of tokens by how many are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from vit_viz.capture.explicit_softmax import Function
from vit_viz.capture.token_axes import Sequence
from vit_viz.errors import CaptureError

Kind = Literal["mean", "sum", "max", "min", "unknown"]
_IGNORED: dict[Kind, float] = {"mean": 0.0, "sum": 0.0, "max": -math.inf, "min": math.inf}


def _named(*names: str) -> Iterator[Function]:
    """The torch functions and the tensor methods of these names."""
    return (
        getattr(owner, name)
        for name in names
        for owner in (torch, torch.Tensor, torch.linalg)
        if hasattr(owner, name)
    )


_REDUCTIONS: dict[Function, tuple[Kind, int, int | None]] = {
    **dict.fromkeys(_named("mean"), ("mean", 1, None)),
    **dict.fromkeys(_named("sum"), ("sum", 1, None)),
    **dict.fromkeys(_named("max", "amax", "logsumexp"), ("max", 1, None)),
    **dict.fromkeys(_named("min", "amin"), ("min", 1, None)),
    **dict.fromkeys(_named("median", "prod", "std", "var", "std_mean", "var_mean"), ("unknown", 1, None)),
    **dict.fromkeys(_named("nanmean", "nansum", "nanmedian", "logcumsumexp"), ("unknown", 1, None)),
    **dict.fromkeys(_named("norm", "vector_norm", "quantile"), ("unknown", 2, None)),
    **dict.fromkeys(_named("mode", "sort", "cumsum"), ("unknown", 1, -1)),
    **dict.fromkeys(_named("topk", "kthvalue"), ("unknown", 2, -1)),
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

_QUOTIENTS: frozenset[Function] = frozenset(_named("div", "div_", "true_divide", "divide"))
_PRODUCTS: frozenset[Function] = frozenset(_named("mul", "mul_", "multiply"))
_SLICES: frozenset[Function] = frozenset(
    (torch.Tensor.__getitem__, torch.functional.split, *_named("narrow", "split", "chunk"))
)
_SHAPES: frozenset[Function] = frozenset(
    _named("squeeze", "unsqueeze", "reshape", "view", "flatten", "to", "float")
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
        self._sequence: Sequence | None = None
        self._sums = WeakIdKeyDictionary()  # sum over tokens -> (how many tokens, how many are kept)

    def follow(self, tokens: int, batch: int) -> None:
        """Note an attention over this many tokens of this many images: later reductions are over those tokens."""
        self._sequence = Sequence(tokens, batch)

    def first_of(self, count: int) -> int:
        """Index of the first of `count` tokens that a pooling attention looks at."""
        return 0 if self._sequence is None else self._sequence.first_of(count)

    def run(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`func(*args, **kwargs)`, with removed tokens left out where it reduces over tokens.

        Raises:
            CaptureError: it reduces over tokens in a way that is not understood.
        """
        if "input" in kwargs:
            args, kwargs = (kwargs["input"], *args), {k: v for k, v in kwargs.items() if k != "input"}
        if self._sequence is None or not args or not isinstance(args[0], Tensor):
            return func(*args, **kwargs)
        if func in _SLICES:
            return self._sliced(self._sequence, func(*args, **kwargs))
        if func in _SHAPES:
            return self._reshaped(func, args, kwargs)
        if func in _QUOTIENTS or func in _PRODUCTS:
            return self._divided(func, args, kwargs)
        return self._reduced(self._sequence, func, args, kwargs)

    def softmax(self, scores: Tensor, axis: int) -> Tensor:
        """The scores of a softmax over tokens, by which a model weighs them: minus infinity for those that are removed."""
        mask = None if self._sequence is None else self._mask(self._sequence, scores, (axis % scores.ndim,))
        return scores if mask is None else scores.masked_fill(mask[0], -math.inf)

    def _reduced(
        self, sequence: Sequence, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
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

    def _reshaped(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A sum in another shape or precision is still a sum."""
        result = func(*args, **kwargs)
        if args[0] in self._sums and isinstance(result, Tensor):
            count, kept = self._sums[args[0]]
            self._sums[result] = (count, func(kept, *args[1:], **kwargs))
        return result

    def _sliced(self, sequence: Sequence, result: Any) -> Any:
        for part in result if isinstance(result, tuple | list) else (result,):
            sequence.note(part)
        return result

    def _mask(self, sequence: Sequence, source: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, int] | None:
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
    given = kwargs.get("dim", kwargs.get("axis", args[place] if len(args) > place else default))
    if isinstance(given, Tensor) or "other" in kwargs:
        return ()
    chosen = (given,) if isinstance(given, int) else tuple(given or range(ndim))
    return tuple(axis % ndim for axis in chosen)


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
