"""Where the gradient of a target stops on its way to where it is read.

Autograd says that a tensor was not reached; not whether the target does not depend on it, so that 0 is its gradient, or the model
computes with it where autograd does not look (`detach`, `torch.no_grad`, an operation without a gradient), so that 0 is false. And
where one way is cut, what comes by on the others passes for the whole. So the pass is followed: what depends on what, and where a
gradient ends. Nothing of the pass is changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from vit_viz.capture import recomputation
from vit_viz.capture.explicit_softmax import FUSED, SOFTMAXES, Function
from vit_viz.capture.replay import is_allocation, tensors_of, written_by
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of

_DETACHES = ("detach", "detach_", "data")
_ATTENTION = frozenset({*SOFTMAXES, *FUSED})
_WRAPPERS = (["module"], ["_orig_mod"])
"""The one part of a module around a model: of torch's and of ours."""


@dataclass(frozen=True, eq=False)
class Stop:
    """A place where a gradient ends, though the pass goes on.

    Args:
        words: which part of the model does what.
        is_certain: what comes by on other ways is not the whole. Otherwise it may be meant so, as in a softmax whose maximum is
            detached, or in rounding with a straight-through gradient: then only what nothing else reaches is lost.
        number: in the order of the pass.
    """

    words: str
    is_certain: bool
    number: int


@dataclass(frozen=True, eq=False)
class _Origin:
    """On which sources a tensor depends, as bits: at all, and past which stops."""

    sources: int
    past: dict[Stop, int]


class GradientStops(TorchFunctionMode):
    """Follows one pass from its sources, and notes where their gradient ends.

    Args:
        module: the model that runs.
        count: how many sources there are by now: what a call returns that adds one depends on it.
    """

    def __init__(self, module: nn.Module, count: Callable[[], int]) -> None:
        super().__init__()
        while list(module._modules) in _WRAPPERS:  # names are said as the model itself has them
            module = next(module.children())
        self._module, self._count, self._known = module, count, 0
        self._origins: Any = WeakTensorKeyDictionary()
        self._makers: Any = WeakTensorKeyDictionary()  # the name of the module that returned a tensor
        # modules, and whether autograd was at work when each began
        self._running: list[tuple[str, bool]] = []
        self._attention: Any = WeakTensorKeyDictionary()  # what attention returned
        self._behind: set[Stop] = set()  # stops behind which attention ran
        self._last = ""
        self._is_over = False  # the pass: what comes then is the target
        self._stops: list[tuple[Stop, int]] = []

    @contextmanager
    def around(self) -> Iterator[None]:
        """The context of the pass, in this thread."""
        thread, handles = threading.get_ident(), []

        def hooks(name: str) -> tuple[Callable[..., None], Callable[..., None]]:
            def begins(*_: Any) -> None:
                if threading.get_ident() == thread:
                    self._running.append((name, torch.is_grad_enabled()))

            def ends(_: nn.Module, inputs: Any, output: Any) -> None:
                if threading.get_ident() == thread:
                    self._running.pop()
                    with torch._C.DisableTorchFunction():  # what we ask a tensor is no part of the pass
                        self._returned(name, inputs, output)

            return begins, ends

        ours = [part for part in self._module.modules() if isinstance(part, VisionTransformer)]
        left_alone = {id(part) for model in ours for part in (model.norm, *submodules_of(model.blocks[-1]))}
        try:
            for name, part in self._module.named_modules():
                if id(part) in left_alone:  # watched, our last block computes all tokens
                    continue
                begins, ends = hooks(name)
                handles += [part.register_forward_pre_hook(begins), part.register_forward_hook(ends)]
            with self:
                yield
        finally:
            self._is_over = True
            for handle in handles:
                handle.remove()

    def follow(self, source: Tensor) -> None:
        """Take a tensor for the first source."""
        self._origins[source] = _Origin(1, {})
        self._known = 1

    def before(self, value: Tensor, source: int, *, is_reached: bool) -> str | None:
        """Which part of the model keeps the gradient of a value, or a share of it, from a source; None where none is seen to."""
        past = self._origins[value].past if value in self._origins else {}
        between = [stop for stop, sources in past.items() if sources >> source & 1]
        if is_reached:
            between = [stop for stop in between if stop.is_certain or stop in self._behind]
        return max(between, key=lambda stop: stop.number).words if between else None

    def last_of(self, source: int) -> str | None:
        """Where the gradient of a source ended last, whether or not the model is seen to go on from there."""
        return next((stop.words for stop, sources in reversed(self._stops) if sources >> source & 1), None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        output = func(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunction():  # what we ask a tensor is no part of the pass
            self._note(func, args, kwargs or {}, output)
        return output

    def _note(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        before, self._known = self._known, max(self._known, self._count())
        new = (1 << self._known) - (1 << before)
        returned, written = list(tensors_of(output)), written_by(func, args, kwargs)
        if not (returned or written) or is_allocation(func):
            return
        inputs = list(tensors_of((args, kwargs)))
        origins = self._origins_of(inputs)
        if not (origins or new):
            return
        sources = reached = new
        past: dict[Stop, int] = {}
        for tensor, origin in origins:
            sources |= origin.sources
            reached |= origin.sources if tensor.requires_grad else 0
            for stop, stopped in origin.past.items():
                past[stop] = past.get(stop, 0) | stopped
        handed_on = {id(tensor) for tensor in inputs}.difference(map(id, written))
        made = [one for one in (*returned, *written) if id(one) not in handed_on]
        made = [one for one in made if _carries(one, origins)]
        if reached and not all(_is_connected(one) for one in made):
            stop = self._stop(func, [tensor for tensor, _ in origins], made)
            if not self._is_over:
                self._stops.append((stop, reached))
            past = {**past, stop: reached}
        for one in made:
            self._origins[one] = _Origin(sources, past)
            if func in _ATTENTION:
                self._attention[one] = True
        if func in _ATTENTION and not any(tensor.requires_grad for tensor, _ in origins):
            self._behind |= past.keys()

    def _stop(self, func: Function, inputs: Sequence[Tensor], made: Sequence[Tensor]) -> Stop:
        """What ended a gradient just now, in words."""
        name, number = _name(func), len(self._stops)
        here = self._running[-1][0] if self._running else ""
        where = "the target" if self._is_over else f"`{here}`" if here else type(self._module).__name__
        if name in _DETACHES:
            maker = next((self._makers[tensor] for tensor in inputs if tensor in self._makers), None)
            what = (
                f"the output of `{maker}`"
                if maker
                else f"a tensor after `{self._last}`"
                if self._last
                else "a tensor"
            )
            is_certain = maker is not None or any(tensor in self._attention for tensor in inputs)
            return Stop(f"{where} detaches {what}", is_certain, number)
        if not torch.is_grad_enabled():
            part = next((name for name, was_enabled in self._running if not was_enabled), None)
            if recomputation.is_reentrant():
                return Stop(f"`{part}` is checkpointed with use_reentrant=True, which ends it", True, number)
            mode = "inference_mode" if torch.is_inference_mode_enabled() else "no_grad"
            return Stop(
                f"{where if part is None else f'`{part}`'} runs under torch.{mode}()",
                part is not None,
                number,
            )
        rounds = next((one.dtype for one in made if not one.is_floating_point()), None)
        what = f"computes with {name}" if rounds is None else f"rounds to {rounds}"
        return Stop(f"{where} {what}, which has no gradient", True, number)

    def _returned(self, name: str, inputs: Any, output: Any) -> None:
        """Note who made a tensor; and on what it depends, where it comes of a call that is not seen (a torch.autograd.Function)."""
        self._last = name or self._last
        received = list(tensors_of(inputs))
        origins = self._origins_of(received)
        for tensor in tensors_of(output):
            if all(tensor is not one for one in received):
                self._makers[tensor] = name
            if origins and tensor.requires_grad and tensor not in self._origins:
                sources = 0
                past: dict[Stop, int] = {}
                for _, origin in origins:
                    sources |= origin.sources
                    past |= origin.past
                self._origins[tensor] = _Origin(sources, past)

    def _origins_of(self, tensors: Sequence[Tensor]) -> list[tuple[Tensor, _Origin]]:
        """Those of the tensors that depend on a source, each with what is known of it."""
        pairs = [(tensor, self._origins.get(tensor)) for tensor in tensors]
        return [(tensor, origin) for tensor, origin in pairs if origin is not None]


def _carries(tensor: Tensor, origins: Sequence[tuple[Tensor, _Origin]]) -> bool:
    """Whether a result stands for the numbers that it was computed from: not where it is an index or a mask, which has no gradient.

    Numbers in eight bits do, and integers that are computed from them.
    """
    if tensor.is_floating_point() or tensor.is_complex() or tensor.is_quantized or tensor.dtype == torch.int8:
        return True
    return tensor.dtype != torch.bool and any(not one.is_floating_point() for one, _ in origins)


def _is_connected(tensor: Tensor) -> bool:
    """Whether autograd leads from a result to what it was computed from just now."""
    if not torch.is_grad_enabled() or not tensor.requires_grad:
        return False
    return tensor.grad_fn is None or "NotImplemented" not in tensor.grad_fn.name()


def _name(func: Function) -> str:
    """What people call a function of torch; of the getter of an attribute that is the attribute."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return str(func) if type(func).__module__ == "torch._ops" else str(name)
