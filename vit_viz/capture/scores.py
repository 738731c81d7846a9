"""The part of a written-out attention's scores that is q k^T * scale: followed from the matrix product to the softmax.

softmax(q k^T * scale / T + bias) divides one part of the scores and leaves the other: the sum alone does not tell which is which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vit_viz.capture.explicit_softmax import CASTS, PRODUCTS, Function, is_square, named_functions
from vit_viz.lazy import Tensor, torch

_SUMS: frozenset[Function] = frozenset(named_functions("add", "sub", "subtract", "masked_fill", "where"))
"""Functions that add to scores, or mask them, and leave q k^T as it was."""
_ADDITIONS: frozenset[Function] = frozenset(named_functions("add", "sub", "subtract"))
_PLAIN_SUMS: frozenset[Function] = frozenset(named_functions("add"))
_NOT_COMMUTATIVE: frozenset[Function] = frozenset(named_functions("div", "divide", "true_divide", "baddbmm"))
_FACTORS: frozenset[Function] = frozenset(named_functions("mul", "multiply", "div", "divide", "true_divide"))
_SHAPES: frozenset[Function] = frozenset((
    *CASTS, *named_functions("reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze", "permute", "transpose", "swapaxes"),
    *named_functions("expand", "double", "detach", "narrow", "clone"), torch.Tensor.__getitem__,
))  # fmt: skip
_IN_PLACE: dict[Function, Function] = {
    torch.Tensor.add_: torch.add, torch.Tensor.sub_: torch.sub, torch.Tensor.masked_fill_: torch.masked_fill,
    torch.Tensor.mul_: torch.mul, torch.Tensor.div_: torch.div,
}  # fmt: skip
_BIASED: frozenset[Function] = frozenset(named_functions("baddbmm"))

FOLLOWED: frozenset[Function] = (
    _SUMS | _FACTORS | _SHAPES | frozenset(_IN_PLACE) | _BIASED | frozenset(PRODUCTS)
)
"""Functions that go through `Scores.before` and `Scores.after` while a temperature is set."""


@dataclass(frozen=True, eq=False)
class _FollowedScores:
    """A tensor that may become scores."""

    tensor: Tensor  # the scores so far
    product: Tensor  # the matrix product that they come from
    part: Tensor | None  # their part that is q k^T * scale; None where it can no longer be told apart


class Scores:
    """Follows the products that may become scores, each with its part that is q k^T * scale."""

    def __init__(self) -> None:
        self._followed: list[_FollowedScores] = []

    def before(self, func: Function, args: tuple[Any, ...]) -> None:
        """Call before `func` runs: what it is about to overwrite is copied."""
        if func not in _IN_PLACE:
            return
        for i, each in enumerate(self._followed):
            part = each.part
            if each.tensor is not args[0] and _share_memory(each.tensor, args[0]):
                part = None
            elif part is not None and _share_memory(part, args[0]):
                part = part.clone()
            self._followed[i] = _FollowedScores(each.tensor, each.product, part)

    def after(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Call with what `func(*args, **kwargs)` returned."""
        if not isinstance(result, Tensor):
            return
        used = [(i, each) for i, arg in enumerate(args) for each in self._followed if each.tensor is arg]
        if not used:
            if func in _BIASED:
                self._follow(result, result, torch.bmm(*args[1:3]) * kwargs.get("alpha", 1))
            elif func in PRODUCTS and is_square(result):
                self._follow(result, result, result)
            return
        product = used[0][1].product
        parts = {
            place: each.part for place, each in used if each.part is not None and each.product is product
        }
        is_followed = len(parts) == len(used)
        part = (
            _part_after(_IN_PLACE.get(func, func), args, kwargs, parts, result.shape) if is_followed else None
        )
        self._follow(result, product, part)

    def take(self, scores: Tensor) -> Tensor | None:
        """q k^T * scale of these scores, in their shape; None where it is not known. Everything else is forgotten."""
        part = next((each.part for each in self._followed if each.tensor is scores), None)
        self._followed = []
        return part

    def _follow(self, tensor: Tensor, product: Tensor, part: Tensor | None) -> None:
        self._followed = [each for each in self._followed if each.tensor is not tensor]
        self._followed.append(_FollowedScores(tensor, product, part))


def _part_after(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], parts: dict[int, Tensor], shape: torch.Size
) -> Tensor | None:
    """q k^T * scale after a function of scores, by the part of each argument that has one; None where it is not known.

    As it was after a sum, in the shape of the result; else the same function of it.
    """
    if len(parts) > 1 and func not in _ADDITIONS:
        return None
    if func in _SUMS and len(parts) == 1:
        ((place, part),) = parts.items()
        if place and func in _ADDITIONS and (func not in _PLAIN_SUMS or "alpha" in kwargs):
            return None  # bias - scores, or bias + alpha * scores
        return part.expand(shape)
    if 0 not in parts and func in _NOT_COMMUTATIVE:
        return None
    part = func(*(parts.get(i, arg) for i, arg in enumerate(args)), **kwargs)
    return part if isinstance(part, Tensor) else None


def _share_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
