"""Attention that a model writes out by hand: from its softmax to the matrix product that consumes it.

The product shows which axis of the softmax's output holds the keys (the one it sums over) and lets the capture be proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vit_viz.lazy import F, Tensor, torch

Function = Callable[..., Any]


def named_functions(*names: str) -> Iterator[Function]:
    """The torch functions and the tensor methods of these names."""
    return (
        getattr(owner, name)
        for name in names
        for owner in (torch, torch.Tensor, torch.linalg)
        if hasattr(owner, name)
    )


def operators(name: str, *overloads: str) -> tuple[Function, ...]:
    """An operator of torch as graphs of torch.export call it, and its overloads."""
    operator = getattr(torch.ops.aten, name)
    return (operator, *(getattr(operator, overload) for overload in overloads))


FUSED: tuple[Function, ...] = (
    F.scaled_dot_product_attention,
    *operators("scaled_dot_product_attention", "default"),
)
SOFTMAXES: tuple[Function, ...] = (
    *(torch.softmax, torch.Tensor.softmax, F.softmax, torch.special.softmax, torch._safe_softmax),
    *operators("softmax", "int"),
    *operators("_softmax", "default"),
    *operators("_safe_softmax", "default"),
)
PRODUCTS: tuple[Function, ...] = (
    torch.matmul,
    torch.Tensor.matmul,
    torch.bmm,
    torch.Tensor.bmm,
    torch.einsum,
    *operators("matmul", "default"),
    *operators("bmm", "default"),
)
SCORE_PRODUCTS: tuple[Function, ...] = (*PRODUCTS, torch.baddbmm)
"""What makes the scores of queries and keys."""
CASTS: tuple[Function, ...] = (
    torch.Tensor.to,
    torch.Tensor.type_as,
    torch.Tensor.half,
    torch.Tensor.float,
    torch.Tensor.bfloat16,
    torch.Tensor.contiguous,
    torch.Tensor.clone,
    *operators("clone", "default"),
    *operators("_to_copy", "default"),
    *operators("to", "dtype"),
)


@dataclass(frozen=True, eq=False)
class Product:
    """How a matrix product used an attention matrix."""

    keys_last: bool  # it summed over the last axis of the softmax's output (else over the last but one)
    value: Tensor  # what was weighted, [..., tokens, head_dim]
    output: Tensor  # what came out, [..., tokens, head_dim]
    tokens: int = -2  # the axis of the product's own output that holds the tokens, counted from the end


class WrittenOut:
    """A written-out attention on its way to the product that consumes it: the softmax's output and casts of it."""

    def __init__(self, attention: Tensor) -> None:
        self._copies = [attention]

    def product(self, func: Function, args: tuple[Any, ...], output: Any) -> Product | None:
        """How a function that has run consumed it, see `product_of`; None where it did not. Casts are noted."""
        if func in CASTS and any(args[0] is copy for copy in self._copies):
            self._copies.append(output)
        return product_of(func, args, output, self._copies) if func in PRODUCTS and len(args) > 1 else None


def is_square(tensor: Any) -> bool:
    """Whether a softmax over this tensor could be attention: square in its last two axes."""
    return isinstance(tensor, Tensor) and tensor.ndim >= 2 and tensor.shape[-1] == tensor.shape[-2] > 1


def queries_and_keys(func: Function, args: tuple[Any, ...]) -> tuple[Tensor, Tensor] | tuple[()] | None:
    """The operands of a product that makes scores, each [..., tokens, features]; None where it is not understood.

    None of them where scores that are there already are mixed over heads, as those of CaiT are.
    """
    if func is torch.einsum:
        operands = _einsum_operands(args)
        return None if operands is None else _of_einsum(args[0], operands)
    left, right = args[1:3] if func is torch.baddbmm else args[:2]
    return left, right.transpose(-2, -1)


def _einsum_operands(args: tuple[Any, ...]) -> Any:
    """The two operands of an einsum; None where it has more, fewer, or no equation in letters."""
    operands = args[1] if isinstance(args[1], list | tuple) else args[1:]
    return operands if isinstance(args[0], str) and len(operands) == 2 else None


def _of_einsum(equation: str, operands: Any) -> tuple[Tensor, Tensor] | tuple[()] | None:
    inputs, _, result = equation.replace(" ", "").partition("->")
    names = inputs.split(",")
    if "." in equation or len(result) < 2:
        return None
    if any(set(result[-2:]) <= set(name) for name in names):
        return ()
    parts = []
    for token in result[-2:]:
        mine = [token in name for name in names]
        if mine.count(True) != 1:
            return None
        name, operand = names[mine.index(True)], operands[mine.index(True)]
        features = "".join(letter for letter in name if letter not in result)
        lead = "".join(letter for letter in name if letter not in token + features)
        parts.append(torch.einsum(f"{name}->{lead}{token}{features}", operand).flatten(len(lead) + 1))
    return parts[0], parts[1]


def product_of(
    func: Function, args: tuple[Any, ...], output: Tensor, attention: list[Tensor]
) -> Product | None:
    """How `func(*args) = output` consumed an attention; None where it did not, or not in a way that is understood.

    Args:
        attention: the softmax's output and casts of it; an operand is recognised by its memory, so a changed copy is not.
    """
    if func is torch.einsum:
        operands = _einsum_operands(args)
        return None if operands is None else _einsum(args[0], operands, output, attention)
    left, right = args[0], args[1]
    if (base := _same_memory(left, attention)) is not None:
        return Product(not _is_transposed(left, base), right, output)
    if (base := _same_memory(right, attention)) is not None:  # (A v)^T = v^T A^T
        return Product(_is_transposed(right, base), left.transpose(-2, -1), output.transpose(-2, -1), -1)
    return None


def _einsum(equation: str, operands: Any, output: Tensor, attention: list[Tensor]) -> Product | None:
    inputs, arrow, result = equation.replace(" ", "").partition("->")
    names = inputs.split(",")
    which = [_same_memory(operand, attention) is not None for operand in operands]
    if "." in equation or not arrow or which.count(True) != 1:
        return None
    mine, others = names[which.index(True)], names[which.index(False)]
    base = _same_memory(operands[which.index(True)], attention)
    summed = [name for name in mine if name in others and name not in result]
    if base is None or len(summed) != 1 or summed[0] not in mine[-2:]:
        return None
    lead, query = mine[:-2], mine[-2:].replace(summed[0], "")
    features = "".join(name for name in others if name not in mine)
    if sorted(lead + summed[0] + features) != sorted(others) or sorted(lead + query + features) != sorted(
        result
    ):
        return None
    keys_last = (summed[0] == mine[-1]) != _is_transposed(operands[which.index(True)], base)
    value = torch.einsum(f"{others}->{lead}{summed[0]}{features}", operands[which.index(False)])
    weighted = torch.einsum(f"{result}->{lead}{query}{features}", output)
    rows = len(lead) + 1
    tokens = result.index(query) - len(result)
    return Product(keys_last, value.flatten(rows), weighted.flatten(rows), tokens)


def _same_memory(operand: Any, attention: list[Tensor]) -> Tensor | None:
    """The tensor of `attention` whose numbers `operand` reads, as it is or transposed."""
    if not isinstance(operand, Tensor) or operand.ndim < 2:
        return None
    same = (operand.data_ptr(), operand.numel(), operand.dtype)
    return next((one for one in attention if (one.data_ptr(), one.numel(), one.dtype) == same), None)


def _is_transposed(operand: Tensor, base: Tensor) -> bool:
    return operand.stride()[-2:] != base.stride()[-2:]
