"""Whether what the projection reads of a head is attention @ v of that head, as it is: measured, however a model is written.

In a pass over the photo, and one over a photo changed everywhere, every attention call returns an output of chance. What the model
makes of it is followed function by function until it is projected, and each tensor on the way is asked how it depends on the heads:
a projection reads many features of all heads, of each for itself, the same at every token. A mixture of heads reads one feature of
several; a norm or a gate is not linear, or differs from token to token. A permutation is none of these.

It is measured by giving it other outputs. With r and s outputs of chance, all heads at once: what is linear in them obeys
f(r + s) - f(r) - f(s) + f(0) = 0. Where only some heads (tokens, features) are not zero, the numbers that differ from f(0) are
those that depend on them. Heads are told apart by the bits of their numbers: what answers to heads on both sides of one bit depends
on more than one. The outputs are small multiples of a power of two, so that sums of them are exact in every precision, and what is
zero stays exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.explicit_softmax import Function, Product
from vit_viz.capture.layers import exact
from vit_viz.capture.noise import noise_like, random_numbers
from vit_viz.capture.probing import HALF, AttentionProbe, rounding, undisturbed_pass
from vit_viz.capture.replay import Replay, is_allocation, tensors_of, written_by
from vit_viz.capture.report import HOLDS, Check
from vit_viz.lazy import Tensor, nn, torch

_DENSE = 0.6
"""Share of the splits of a head's features of which a projection reads both sides; one feature stands on one side of each."""

_AS_IT_IS = "What layer {} passes on is not attention @ v as it is, but {}"
_MIXED = "a mixture of several heads, so its maps show the heads before that."
_CALLS = "a mixture of several attention calls, so its maps show each of them before that."
_NORMED = "normalised or gated by what its heads hold: its maps are right, but how much of a head is passed on is not in them."
_GATED = "gated, by other factors from token to token: its maps are right, but how much of a token is passed on is not in them."
_SCALED = "multiplied by constants: its maps are right, but scaled before they are passed on."
_SHIFTED = "has something else added to it before its projection: its maps show the attention before that."
_OVER_TOKENS = "mixed afterwards over tokens: its maps show the attention before that."
_AGAIN = "weighted by attention once more: its maps show the first time alone."
_NOT_FOLLOWED = (
    "What layer {} passes on could not be checked: what reads it could not be run again with other numbers."
)

NORMED = Check("fails", _AS_IT_IS.format(0, _NORMED))
"""Of a model with a norm between each attention and its projection."""
_WEIGHTS = "gathered with other weights than the softmax gave: its maps show the attention before they are mixed or changed."


def check_heads(module: nn.Module, pixels: Tensor) -> Check:
    """Whether each layer's output projection reads attention @ v of each head as it is, see `report.Structure.effective`.

    Args:
        pixels: [1, channels, height, width].
    """
    findings = (_check(module, image) for image in (pixels, noise_like(pixels, 1)))
    return next((finding for finding in findings if finding.status != "holds"), HOLDS)


def _check(module: nn.Module, pixels: Tensor) -> Check:
    probe = _RandomOutputs()
    try:
        with undisturbed_pass(module), probe:
            output = module(pixels)
    except Exception as error:  # a model may raise anything where its attention returns what it never does
        return Check(
            "unknown",
            f"What its layers pass on could not be checked: with other attention the model raises {type(error).__name__}.",
        )
    return probe.finding(output)


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

    def random(self, seed: int) -> Tensor:
        """Multiples of a power of two, up to sixteen times the output's size, so that a norm shows beside what is added."""
        random = random_numbers(seed)
        numbers = torch.randint(1, 33, self.like.shape, generator=random)
        signs = 2 * torch.randint(0, 2, self.like.shape, generator=random) - 1
        return (numbers * signs * self.size / 2).to(self.like)


Rerun = Callable[[Tensor], Tensor]
Kind = Literal["apart", "mixture", "projection", "not linear", "over tokens", "nothing"]
Gain = Literal["one", "constant", "by token"]


@dataclass(frozen=True)
class HeadResponse:
    """How a tensor depends on the output of an attention call.

    Args:
        kind: "apart": each number on one head; "mixture": some on several heads, one feature of each; "projection": on many
            features of all heads; "over tokens": on several tokens; "nothing": on none.
        is_shifted: it is not zero where the output is.
        pools: it has the numbers of one token.
        gain: "one" where its numbers are the output's; "constant" or "by token" where they are multiplied.
        joins_features: numbers that are "apart" depend on several features of their head.
    """

    kind: Kind
    is_shifted: bool = False
    pools: bool = False
    gain: Gain = "one"
    joins_features: bool = False


def response(run: Rerun, output: CallOutput) -> HeadResponse:
    """How what `run` makes of an output depends on it."""
    values, (heads, tokens, features) = output.random(3), output.shape
    head, token, feature = torch.unravel_index(output.places, output.shape)

    def answers(part: Tensor) -> Tensor:
        """Which numbers differ where this part of the output is not zero."""
        return run(torch.where(part, values, 0)) != zero

    def on_both_sides(numbers: Tensor, count: int) -> list[Tensor]:
        """For each bit of a number, what answers both to those that have it and to those that do not."""
        parts = [(numbers >> bit & 1).bool() for bit in range((count - 1).bit_length())]
        return [answers(part) & answers(~part) for part in parts]

    with exact():
        zero, first, second = run(torch.zeros_like(output.like)), run(output.random(1)), run(output.random(2))
        both = run(output.random(1) + output.random(2))
        coarsest = max(output.like.dtype, zero.dtype, key=lambda each: torch.finfo(each).eps)
        wide = [each.double() for each in (zero, first, second, both)]
        rest = (wide[3] - wide[1] - wide[2] + wide[0]).abs().amax()
        if not bool(rest <= rounding(coarsest) * torch.stack([each.abs().amax() for each in wide]).amax()):
            return HeadResponse("not linear")
        is_shifted, pools = bool((zero != 0).any()), zero.numel() * tokens <= output.like.numel()
        half = torch.rand(tokens, generator=random_numbers(4)).argsort() % 2 == 0
        half = half.to(token.device)[token]
        here, there = answers(half), answers(~half)
        if not bool((here | there).any()):
            return HeadResponse("nothing", is_shifted, pools)
        if bool((here & there).any()):
            return HeadResponse("over tokens", is_shifted, pools)
        mixed = torch.zeros_like(here)
        for of_several in on_both_sides(head, heads):
            mixed |= of_several
        is_mixed = is_dense = bool(mixed.any())
        if features > 1 and (is_mixed or heads == 1):
            counted = mixed if is_mixed else here | there
            share = torch.stack([each[counted] for each in on_both_sides(feature, features)]).float().mean()
            is_dense = float(share) >= _DENSE
        if is_dense or is_mixed:
            return HeadResponse("projection" if is_dense else "mixture", is_shifted, pools)
        joins = any(bool(each.any()) for each in on_both_sides(feature, features))
        gain: Gain = "one" if joins else _gain(run, zero, output, coarsest)
        return HeadResponse("apart", is_shifted, pools, gain, joins)


def _gain(run: Rerun, zero: Tensor, output: CallOutput, coarsest: torch.dtype) -> Gain:
    """What each number is multiplied by, where each depends on one number of the output."""
    values, (heads, _, features) = output.random(5), output.shape
    size = values.abs().amax()
    gains = (run(torch.full_like(values, float(size))).double() - zero.double()) / size.double()
    if bool(((gains - 1).abs() <= rounding(coarsest)).all()):
        return "one"
    places = output.places.flatten()
    by_place = torch.zeros(places.numel(), dtype=values.dtype, device=values.device)
    by_place[places] = values.flatten()
    # the first token's values, at every token
    of_first = by_place.view(output.shape)[:, :1].expand(output.shape).flatten()
    same = (run(of_first[places].view(values.shape)).double() - zero.double()).flatten().sort().values
    tokens = same.numel() // (heads * features)
    if tokens == 0 or same.numel() % tokens:
        return "by token"
    groups = same.view(-1, tokens)
    is_alike = (groups[:, -1] - groups[:, 0]).amax() <= rounding(coarsest) * same.abs().amax()
    return "constant" if bool(is_alike) else "by token"


class _FollowedHeads:
    """What becomes of one call's output."""

    def __init__(self) -> None:
        self.output: CallOutput | None = None  # None until written-out attention met its values
        self.problem = ""
        self.is_read = self.is_pooled = False
        self._replay: Replay | None = None
        self._states: dict[int, HeadResponse] = {}  # of tensors that are not the output in some arrangement
        self._pending: dict[int, Tensor] = {}  # tensors that were written to
        self._sums = torch.zeros(0)

    def begin(self, like: Tensor, places: Tensor, shape: tuple[int, int, int]) -> Tensor:
        """An output of chance for the call to return: like its own in shape, precision and size."""
        self.output = CallOutput(like, places, shape)
        noise = torch.randn(like.shape, generator=random_numbers(6))
        returned = (self.output.size * noise).to(like)
        self._replay, self._sums = Replay(returned), self._sums_of(returned)
        return returned

    def takes(self, value: Any) -> bool:
        """Whether among these tensors is the output, in any arrangement, before its projection."""
        return self._replay is not None and any(tensor in self._replay for tensor in tensors_of(value))

    def is_shifted(self, value: Any) -> bool:
        """Whether something else was added to it there."""
        return any(state.is_shifted for state in self._of(value))

    def note(
        self,
        func: Function,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        before: dict[int, Tensor],
    ) -> None:
        assert self._replay is not None
        written = written_by(func, args, kwargs)
        sources = [t for t in tensors_of((args, kwargs)) if all(t is not target for target in written)]
        for source in sources:
            if self._pending.pop(id(source), None) is not None:
                self._judge(self._replay, source, [])
        states = self._of((args, kwargs))
        for tensor in self._replay.note(func, args, kwargs, output, before):
            if any(tensor is target for target in written):
                self._pending[id(tensor)] = tensor  # perhaps in part: judged once it is read
            elif any(state.is_shifted for state in states) or not self._is_rearranged(tensor):
                self._judge(self._replay, tensor, states)

    def _of(self, value: Any) -> list[HeadResponse]:
        """What is known of those tensors that are not the output in some arrangement."""
        return [self._states[id(t)] for t in tensors_of(value) if id(t) in self._states]

    def release(self) -> None:
        """What reads it is known, and the next call begins: what was made of it can go."""
        if self.is_read:
            self._replay = None

    def _sums_of(self, tensor: Tensor) -> Tensor:
        """Sums over a tensor's numbers that differ where it does not hold the same numbers in some order."""
        assert self.output is not None
        values = tensor.double() / self.output.size
        waves = [(7.3 * values).cos().sum(), (3.1 * values).sin().sum()]
        return torch.stack([values.sum(), values.abs().sum(), values.square().sum(), *waves])

    def _is_rearranged(self, tensor: Tensor) -> bool:
        assert self.output is not None
        count = self.output.like.numel()
        if tensor.numel() != count:
            return False
        return bool(((self._sums_of(tensor) - self._sums).abs() <= 1e-9 * count).all())

    def _judge(self, replay: Replay, tensor: Tensor, sources: list[HeadResponse]) -> None:
        assert self.output is not None

        def other_weights(like: Tensor) -> Tensor:
            return torch.randn(like.shape, generator=random_numbers(8)).to(like)

        try:
            seen = response(lambda output: replay.run(output, tensor), self.output)
            # weights of zero, as where training begins: other weights tell what they would read
            if seen.kind == "nothing":
                seen = response(lambda output: replay.run(output, tensor, other_weights), self.output)
                seen = seen if seen.kind == "projection" else HeadResponse("nothing")
        except Exception:  # functions of others may raise anything on other numbers
            self.problem = self.problem or _NOT_FOLLOWED
            return
        if seen.kind == "apart":
            self._states[id(tensor)] = seen
            return
        self._states.pop(id(tensor), None)
        replay.forget(id(tensor))
        if seen.kind != "nothing":
            self._conclude(seen, replay, sources)

    def _conclude(self, seen: HeadResponse, replay: Replay, sources: list[HeadResponse]) -> None:
        """What a tensor says of the layer that is no longer its output alone, given what it was made of."""
        is_added = any(source.is_shifted for source in sources)
        gain = next((_GAINS[source.gain] for source in sources if source.gain != "one"), "")
        if is_added and seen.kind in ("not linear", "over tokens"):
            # no projection: the heads are added to the stream, and a norm or a pool reads that
            self._end(gain)
            for number in [number for number, state in self._states.items() if state.is_shifted]:
                replay.forget(number)
                del self._states[number]
        elif seen.kind == "projection":
            is_altered = any(source.is_shifted and not source.joins_features for source in sources)
            self._end(_SHIFTED if is_altered else gain)
        elif seen.kind == "over tokens" and seen.pools:
            self.is_pooled = True
        else:
            self._end(_PROBLEMS[seen.kind])

    def _end(self, problem: str) -> None:
        self.is_read = True
        self.problem = self.problem or problem


_GAINS = {"constant": _SCALED, "by token": _GATED}
_PROBLEMS = {"mixture": _MIXED, "not linear": _NORMED, "over tokens": _OVER_TOKENS}


class _RandomOutputs(AttentionProbe):
    """Returns outputs of chance from every call, and follows what is made of them."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[_FollowedHeads] = []
        self._last_written: _FollowedHeads | None = None

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:
        for earlier in self._calls:
            if earlier.takes(call) and not earlier.is_shifted(call):
                earlier.problem = earlier.problem or _AGAIN
            earlier.release()
        output, followed = call.run(), _FollowedHeads()
        self._calls.append(followed)
        followed.is_read = is_projected
        heads = output.shape[:-2].numel()
        places = torch.arange(output.numel(), device=output.device).view(output.shape)
        return followed.begin(output, places, (heads, *output.shape[-2:]))

    def explicit(self, scores: Tensor, softmax: Callable[[], Tensor]) -> Tensor:  # noqa: ARG002
        """The softmax itself; the product that consumes it returns an output of chance."""
        for earlier in self._calls:
            earlier.release()
        self._last_written = _FollowedHeads()
        self._calls.append(self._last_written)
        return torch.softmax(scores, dim=-1)

    def other(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it; where it is given the output of a call, see what it makes of it."""
        takers = [] if is_allocation(func) else [c for c in self._calls if c.takes((args, kwargs))]
        before = {id(t): t.clone() for t in written_by(func, args, kwargs)} if takers else {}
        output = func(*args, **kwargs)
        if len([call for call in takers if not call.is_shifted((args, kwargs))]) > 1:
            for call in takers:
                call.problem = call.problem or _CALLS
        for call in takers:
            call.note(func, args, kwargs, output, before)
        return self.consumed(func, args, output)

    def weighted(self, product: Product, func: Function, args: tuple[Any, ...], output: Any) -> Any:  # noqa: ARG002
        """An output of chance in the place of attention @ v."""
        call, attention = self._last_written, self._written_out
        assert call is not None
        assert attention is not None
        if call.output is not None:
            call.problem = call.problem or _AGAIN
            return output
        numbers = torch.arange(output.numel(), device=output.device).view(output.shape)
        arranged = attention.product(func, args, numbers)
        assert arranged is not None
        order = arranged.output
        places = torch.empty_like(numbers).flatten()
        places[order.flatten()] = numbers.flatten()
        return call.begin(output, places.view(output.shape), (order.shape[:-2].numel(), *order.shape[-2:]))

    def finding(self, returned: Any) -> Check:
        """What the pass has shown, once it is over and the model has returned this."""
        for number, call in enumerate(self._calls):
            is_last = call is self._calls[-1]
            if call.output is None:
                return Check("fails", _AS_IT_IS.format(number, _WEIGHTS))
            if call.problem == _NOT_FOLLOWED:
                return Check("unknown", _NOT_FOLLOWED.format(number))
            if call.problem:
                return Check("fails", _AS_IT_IS.format(number, call.problem))
            if not call.is_read and not (is_last and (call.is_pooled or call.takes(returned))):
                return Check("unknown", f"What reads the output of layer {number} could not be seen.")
        return HOLDS
