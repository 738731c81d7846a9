"""One pass of a model without attention: what its attention calls receive, and where their output goes.

Every call returns its values, as if each token looked at itself only. Three images go through together: the image itself; one
with other pixels in some patches ("changed"); and the image once more, where the output of each call is changed strongly at one
token ("pushed"). `structure` concludes from this how the calls are connected.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.explicit_softmax import CASTS, PRODUCTS, Function, product_of
from vit_viz.capture.probing import AttentionProbe, by_image, moved, signatures, undisturbed_pass
from vit_viz.geometry import TokenLayout

Role = Literal["itself", "changed", "pushed"]
_ROLES: tuple[Role, ...] = ("itself", "changed", "pushed")


@dataclass(eq=False)
class ProbedCall:
    """One attention call of the pass, and what was seen from it to the next.

    Args:
        path: dotted name of the innermost module that made it.
        dtype: precision that it computes in.
        known: of each token, [images, tokens, features]; None where the images or tokens cannot be told apart.
        values: of each token, likewise; where they are not seen, `known`.
        later: whole sequences that were seen after it, likewise, until the next call.
        keys: of each token, likewise, where the call shows them.
        uneven_before, uneven: how many attentions ran before the first call, and after each until the next, whose queries and
            keys differ in number.
    """

    path: str
    dtype: torch.dtype
    known: Tensor | None
    values: Tensor | None = None
    later: list[Tensor] = field(default_factory=list)
    keys: Tensor | None = None
    uneven_before: int = 0
    uneven: int = 0

    def moves(self, states: Tensor | None, role: Role) -> Tensor | None:
        """How far each token of another image is from its value in the image itself, [tokens]."""
        if states is None:
            return None
        return moved(states[_ROLES.index(role)], against=states[0], dtype=self.dtype)


def probed_calls(module: nn.Module, images: Tensor, layout: TokenLayout) -> list[ProbedCall] | None:
    """The calls of the three images: of one pass, or of one pass each where the model takes no batch; None where neither ran."""
    calls = _record(module, images, _ROLES, layout)
    if calls and all(call.known is not None for call in calls):
        return calls
    singly = [
        _record(module, image[None], (role,), layout) for image, role in zip(images, _ROLES, strict=True)
    ]
    passes = [each for each in singly if each]
    if len(passes) < len(images) or len({len(each) for each in passes}) > 1:
        return calls or None
    return [_joined(same) for same in zip(*passes, strict=True)]


def _record(
    module: nn.Module, images: Tensor, roles: tuple[Role, ...], layout: TokenLayout
) -> list[ProbedCall] | None:
    probe = _NoAttention(module, layout, roles)
    try:
        with undisturbed_pass(module), probe:
            module(images)
    except Exception:  # a model may raise anything on a batch that it was not built for: nothing is known
        return None
    return probe.calls


def _joined(calls: Sequence[ProbedCall]) -> ProbedCall:
    """One call of three passes over one image each, as a call of one pass over three."""

    def join(tensors: Sequence[Tensor | None]) -> Tensor | None:
        known = [tensor for tensor in tensors if tensor is not None]
        return torch.cat(known) if len(known) == len(calls) and len({t.shape for t in known}) == 1 else None

    later = [join(same) for same in zip(*(call.later for call in calls), strict=False)]
    return ProbedCall(
        calls[0].path,
        calls[0].dtype,
        join([call.known for call in calls]),
        join([call.values for call in calls]),
        [states for states in later if states is not None],
        keys=join([call.keys for call in calls]),
        uneven_before=calls[0].uneven_before,
        uneven=calls[0].uneven,
    )


class _NoAttention(AttentionProbe):
    """Returns the values from every call and follows where they go.

    Args:
        roles: what each image of the batch is for.
    """

    def __init__(self, module: nn.Module, layout: TokenLayout, roles: tuple[Role, ...]) -> None:
        super().__init__()
        self.calls: list[ProbedCall] = []
        self._layout, self._images = layout, len(roles)
        self._pushed = roles.index("pushed") if "pushed" in roles else None
        self._paths: dict[int, str] = {
            id(part): name for name, part in reversed(list(module.named_modules()))
        }
        self._softmax: tuple[ProbedCall, list[Tensor]] | None = None
        self._uneven_before = 0

    def fused(self, call: AttentionCall, *, is_projected: bool) -> Tensor:  # noqa: ARG002
        """The values; in the pushed image, changed at one token."""
        value = call.value
        if value.shape[-3] != call.query.shape[-3]:  # keys and values that several heads share
            value = value.repeat_interleave(call.query.shape[-3] // value.shape[-3], dim=-3)
        seen = self._arrived(signatures((call.query, call.key, call.value), self._images), call.query.dtype)
        seen.keys, seen.values = (
            self._of_tokens(by_image(each, self._images)) for each in (call.key, call.value)
        )
        return self._push_output(value)

    def explicit(self, scores: Tensor) -> Tensor:
        """Each token looks at itself, but for a pair in the pushed image that looks at each other; the product tells the values."""
        seen = self._arrived(signatures(self.scored(scores), self._images), scores.dtype)
        seen.values = seen.known
        own = torch.eye(scores.shape[-1], dtype=scores.dtype, device=scores.device)
        attention = own.expand(scores.shape).contiguous()
        apart = self._pushed_part(attention)
        if apart is not None:
            token = self._pushed_token()
            other = (token + 1) % self._layout.num_tokens
            apart[:, [token, other]] = 0
            apart[:, token, other] = apart[:, other, token] = _push(scores.dtype)
        self._softmax = (seen, [attention])
        return attention

    def uneven(self) -> None:
        """Count it with the call that it follows."""
        if self.calls:
            self.calls[-1].uneven += 1
        else:
            self._uneven_before += 1

    def other(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it; see which sequences it is given, and whether it consumes written-out attention."""
        for tensor in args:
            self._note_sequence(tensor)
        output = func(*args, **kwargs)
        if self._softmax is not None:
            self._note_product(func, args, output)
        return output

    def _arrived(self, known: Tensor | None, dtype: torch.dtype) -> ProbedCall:
        call = ProbedCall(self._path(), dtype, self._of_tokens(known))
        call.uneven_before = 0 if self.calls else self._uneven_before
        self.calls.append(call)
        return self.calls[-1]

    def _of_tokens(self, states: Tensor | None) -> Tensor | None:
        return states if states is not None and states.shape[1] == self._layout.num_tokens else None

    def _push_output(self, output: Tensor) -> Tensor:
        """The output of a call [..., tokens, features], changed at one token of the pushed image."""
        output = output.clone()
        apart = self._pushed_part(output)
        if apart is not None:
            size = _push(output.dtype) * output.abs().amax().nan_to_num().clamp_min(1e-3)
            noise = torch.randn(apart[:, 0].shape, generator=torch.Generator().manual_seed(len(self.calls)))
            apart[:, self._pushed_token()] += size * noise.to(output.device, output.dtype)
        return output

    def _pushed_part(self, tensor: Tensor) -> Tensor | None:
        """The pushed image's part of [..., tokens, features], as [heads, tokens, features]."""
        is_split = tensor.shape[:-2].numel() % self._images == 0
        if self._pushed is None or not is_split or tensor.shape[-2] != self._layout.num_tokens:
            return None
        return tensor.view(self._images, -1, *tensor.shape[-2:])[self._pushed]

    def _pushed_token(self) -> int:
        return pushed_token(self._layout, len(self.calls) - 1)

    def _note_sequence(self, tensor: Any) -> None:
        """Keep what is known of a whole sequence [images, tokens, dim] or [tokens, images, dim] that a function is given."""
        tokens = self._layout.num_tokens
        if (
            not self.calls
            or not isinstance(tensor, Tensor)
            or tensor.ndim != 3
            or not tensor.is_floating_point()
        ):
            return
        if tensor.shape[:2] == (tokens, self._images):
            tensor = tensor.transpose(0, 1)
        if tensor.shape[:2] == (self._images, tokens) and tensor.shape[2] != tokens:
            states = by_image(tensor, self._images)
            assert states is not None
            self.calls[-1].later.append(states)

    def _note_product(self, func: Function, args: tuple[Any, ...], output: Any) -> None:
        """The product that consumes a written-out attention tells its values."""
        assert self._softmax is not None
        call, attention = self._softmax
        if func in CASTS and any(args[0] is known for known in attention):
            attention.append(output)
        product = product_of(func, args, output, attention) if func in PRODUCTS and len(args) > 1 else None
        if product is None or call.values is not call.known:
            return
        call.values = self._of_tokens(by_image(product.value, self._images))

    def _path(self) -> str:
        """Dotted name of the innermost module on the stack that belongs to the model."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            owner: object = (
                frame.f_locals.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
            )
            if id(owner) in self._paths:
                return self._paths[id(owner)]
            frame = frame.f_back
        return ""


def pushed_token(layout: TokenLayout, number: int) -> int:
    """Which token the output of call `number` is changed at: another patch for each call."""
    return layout.num_prefix + number % layout.num_patches


def _push(dtype: torch.dtype) -> float:
    """How far an output is pushed, relative to its own size: far enough to show behind a small LayerScale."""
    return 100.0 if dtype in (torch.float16, torch.bfloat16) else 1e4
