"""How a tensor that a model makes of an attention's output answers to its heads: measured by giving it other outputs.

With r and s outputs of chance, all heads at once: what is linear in them obeys f(r + s) - f(r) - f(s) + f(0) = 0. Where only some
heads (tokens, features) are not zero, the numbers that differ from f(0) are those that depend on them. Heads are told apart by the
bits of their numbers: what answers to heads on both sides of one bit depends on more than one. The outputs are small multiples of a
power of two, so that sums of them are exact in every precision, and what is zero stays exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from vit_viz.capture.layers import exact
from vit_viz.capture.noise import random_numbers
from vit_viz.capture.probing import HALF, rounding
from vit_viz.lazy import Tensor, torch

Rerun = Callable[[Tensor], Tensor]
Kind = Literal["apart", "mixture", "projection", "not linear", "over tokens", "nothing"]
_DENSE = 0.6
"""Share of the splits of a head's features of which a projection reads both sides; one feature stands on one side of each."""


@dataclass(frozen=True, eq=False)
class CallOutput:
    """The output of one attention call."""

    like: Tensor  # of its shape, precision and size
    places: Tensor  # of each of its numbers, the place in [heads, tokens, features], flattened
    shape: tuple[int, int, int]  # heads, tokens, features

    @property
    def size(self) -> float:
        """About how large its numbers are, a power of two."""
        size = float(self.like.float().square().mean().sqrt().nan_to_num(1.0)) or 1.0
        bounds = (-6, 4) if self.like.dtype in HALF else (-40, 40)
        return 2.0 ** min(max(round(math.log2(size)), bounds[0]), bounds[1])

    @property
    def coordinates(self) -> tuple[Tensor, Tensor, Tensor]:
        """Head, token and feature of each number."""
        head, token, feature = torch.unravel_index(self.places, self.shape)
        return head, token, feature

    def random(self, seed: int) -> Tensor:
        """Multiples of a power of two, up to sixteen times the output's size, so that a norm shows beside what is added."""
        random = random_numbers(seed)
        numbers = torch.randint(1, 33, self.like.shape, generator=random)
        signs = 2 * torch.randint(0, 2, self.like.shape, generator=random) - 1
        return (numbers * signs * self.size / 2).to(self.like)

    def alike_at_all_tokens(self, values: Tensor) -> Tensor:
        """The first token's values at every token."""
        by_place = torch.zeros(self.places.numel(), dtype=values.dtype, device=values.device)
        by_place[self.places.flatten()] = values.flatten()
        heads, tokens, features = self.shape
        same = by_place.view(heads, tokens, features)[:, :1].expand(self.shape).flatten()
        return same[self.places.flatten()].view(values.shape)


@dataclass(frozen=True)
class HeadResponse:
    """How a tensor depends on the output of an attention call.

    Args:
        kind: "apart": each number on one head; "mixture": some on several heads, one feature of each; "projection": on many
            features of all heads; "over tokens": on several tokens; "nothing": on none.
        is_shifted: it is not zero where the output is.
        gain: "one" where its numbers are the output's; "constant" or "by token" where they are multiplied.
        pools: it has the numbers of one token.
        joins_features: numbers that are "apart" depend on several features of their head.
    """

    kind: Kind
    is_shifted: bool = False
    gain: Literal["one", "constant", "by token"] = "one"
    pools: bool = False
    joins_features: bool = False


def response(run: Rerun, output: CallOutput) -> HeadResponse:
    """How what `run` makes of an output depends on it."""
    with exact():
        zero, first, second = run(torch.zeros_like(output.like)), run(output.random(1)), run(output.random(2))
        both = run(output.random(1) + output.random(2))
        if not is_superposition(zero, first, second, both, output.like.dtype):
            return HeadResponse("not linear")
        pools = zero.numel() * output.shape[1] <= output.like.numel()
        shifted = bool((zero != 0).any())
        splits = _Splits(run, zero, output)
        kind = _kind(splits)
        joins = kind == "apart" and _joins_features(splits)
        gain = _gain(run, zero, output) if kind == "apart" and not joins else "one"
        return HeadResponse(kind, shifted, gain, pools, joins)


def is_superposition(zero: Tensor, first: Tensor, second: Tensor, both: Tensor, dtype: torch.dtype) -> bool:
    """Whether f(r + s) - f(r) - f(s) + f(0) is nothing but rounding."""
    coarsest = max(dtype, zero.dtype, key=lambda each: torch.finfo(each).eps)
    values = [each.double() for each in (zero, first, second, both)]
    size = torch.stack([value.abs().amax() for value in values]).amax()
    rest = (values[3] - values[1] - values[2] + values[0]).abs().amax()
    return bool(rest <= rounding(coarsest) * size)


class _Splits:
    """Which numbers answer to which part of the output."""

    def __init__(self, run: Rerun, zero: Tensor, output: CallOutput) -> None:
        self._run, self._zero, self.output = run, zero, output
        self._values = output.random(3)

    def answers(self, part: Tensor) -> Tensor:
        """Which numbers differ where this part of the output is not zero, Boolean."""
        return self._run(torch.where(part, self._values, 0)) != self._zero

    def by_bits(self, numbers: Tensor, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """For each bit of a number, what answers to those that have it and to those that do not."""
        for bit in range((count - 1).bit_length()):
            has_bit = (numbers >> bit & 1).bool()
            yield self.answers(has_bit), self.answers(~has_bit)


def _kind(splits: _Splits) -> Kind:
    output = splits.output
    heads, tokens, features = output.shape
    half = torch.rand(tokens, generator=random_numbers(4)).argsort() % 2 == 0
    head, token, feature = output.coordinates
    half = half.to(token.device)[token]
    here, there = splits.answers(half), splits.answers(~half)
    if not bool((here | there).any()):
        return "nothing"
    if bool((here & there).any()):
        return "over tokens"
    mixed = torch.zeros_like(here)
    for one, other in splits.by_bits(head, heads):
        mixed |= one & other
    is_mixed = bool(mixed.any())
    if heads > 1 and not is_mixed:
        return "apart"
    counted = mixed if is_mixed else here | there
    if features > 1:
        both = [(one & other)[counted] for one, other in splits.by_bits(feature, features)]
        is_dense = float(torch.stack(both).float().mean()) >= _DENSE
    else:
        is_dense = is_mixed
    return "projection" if is_dense else "mixture" if is_mixed else "apart"


def _gain(run: Rerun, zero: Tensor, output: CallOutput) -> Literal["one", "constant", "by token"]:
    """What each number is multiplied by, where each depends on one number of the output."""
    values = output.random(5)
    size = values.abs().amax()
    coarsest = max(output.like.dtype, zero.dtype, key=lambda each: torch.finfo(each).eps)
    gains = (run(torch.full_like(values, float(size))).double() - zero.double()) / size.double()
    if bool(((gains - 1).abs() <= rounding(coarsest)).all()):
        return "one"
    same = (run(output.alike_at_all_tokens(values)).double() - zero.double()).flatten().sort().values
    tokens = same.numel() // (output.shape[0] * output.shape[2])
    if tokens == 0 or same.numel() % tokens:
        return "by token"
    groups = same.view(-1, tokens)
    is_alike = (groups[:, -1] - groups[:, 0]).amax() <= rounding(coarsest) * same.abs().amax()
    return "constant" if bool(is_alike) else "by token"


def _joins_features(splits: _Splits) -> bool:
    """Whether a number depends on several features."""
    output = splits.output
    both = [one & other for one, other in splits.by_bits(output.coordinates[2], output.shape[2])]
    return bool(torch.stack(both).any()) if both else False
