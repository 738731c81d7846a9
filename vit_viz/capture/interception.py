"""The one place where a model's attention is seen and changed: a thread-local mode around torch's own functions.

Nothing is patched and no module is touched: while the mode is active in a thread, torch hands that thread's calls over before it
runs them. The fused kernels still run. Our own model hands over nothing but its attention calls (`Interception.around`): cheaper.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any

from torch.overrides import TorchFunctionMode

from vit_viz.capture import recomputation
from vit_viz.capture.active_edits import ActiveEdits, suspended
from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.explicit_softmax import (
    CASTS,
    FUSED,
    PRODUCTS,
    SOFTMAXES,
    Function,
    is_square,
    operators,
)
from vit_viz.capture.flex import flex_operator, written_out
from vit_viz.capture.pools import HANDLED
from vit_viz.capture.recorder import Recorder
from vit_viz.capture.scores import FOLLOWED
from vit_viz.errors import CaptureError
from vit_viz.lazy import F, Tensor, nn, torch
from vit_viz.model.kernel import attending_through
from vit_viz.model.submodules import are_all_of, are_watched
from vit_viz.model.vit import OWN_PARTS, VisionTransformer

Handler = Callable[["Interception", Function, tuple[Any, ...], dict[str, Any]], Any]
_MULTI_HEAD = inspect.signature(F.multi_head_attention_forward)


class Interception(TorchFunctionMode):
    """Shows every attention call to a recorder and lets edits change it.

    Args:
        recorder: is told of every call; None only edits.
        edits: change calls before they run, and outputs after; None changes nothing.
    """

    def __init__(self, recorder: Recorder | None, edits: ActiveEdits | None) -> None:
        super().__init__()
        self._recorder, self._edits = recorder, edits
        self._weighs_values = recorder is not None and recorder.weighs_values
        self._removes_tokens = edits is not None and edits.removes_tokens
        changes_temperature = edits is not None and edits.changes_temperature
        self._handlers = _handlers(
            recorder is not None,
            self._weighs_values,
            self._removes_tokens,
            changes_temperature,
            flex_operator(),
        )

    def around(self, module: nn.Module, parts: list[nn.Module]) -> AbstractContextManager[object]:
        """The context in which a pass of `module` is recorded: this mode, or our own model's kernel where only its calls matter.

        Args:
            parts: the module and all modules within it.
        """
        ours = are_ours(parts)
        if self._recorder is not None:
            self._recorder.is_ours = ours
        if self._removes_tokens or not ours:  # pooling is seen by the mode alone
            return self
        keeps_graph = self._recorder is not None and self._recorder.options.is_differentiated
        keeps_tensors = self._edits is not None or are_watched(parts)
        projections = _projections(module) if self._weighs_values else []
        return self._in_the_kernel(projections, inference=not keeps_graph and not keeps_tensors)

    @contextmanager
    def _in_the_kernel(
        self, projections: list[tuple[Tensor, Tensor | None]], *, inference: bool
    ) -> Iterator[None]:
        """A pass of which nobody keeps a tensor can do without autograd's bookkeeping."""

        def attention(*args: Any, **kwargs: Any) -> Tensor:
            output = self._attention(F.scaled_dot_product_attention, args, kwargs)
            if self._recorder is not None and projections:
                self._recorder.projected_by(*projections[len(self._recorder.captures) - 1])
            return output

        with torch.inference_mode() if inference else nullcontext(), attending_through(attention):
            yield

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch in place of `func`."""
        handler = self._handlers.get(func)
        if handler is None or (self._edits is not None and self._edits.is_suspended):
            return func(*args, **kwargs) if kwargs else func(*args)
        return handler(self, func, args, kwargs or {})

    def _attention(self, _: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        call = AttentionCall(*args, **kwargs)
        layer = None
        if self._edits is not None:
            layer = _next_layer(self._edits) if call.is_square else None
            call = self._edits.before(layer, call)
        recorder = self._recorder
        output = call.run() if recorder is None else recorder.attention(call, *call.run_with_normaliser())
        if self._edits is not None:
            output = self._edits.after(layer, output)
        if recorder is not None and self._edits is not None and layer is not None and self._weighs_values:
            recorder.hands_on(self._edits.hands_on(layer, output))
        return output

    def _followed(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """An attention whose projection is the linear layer that reads its output."""
        output = self._attention(func, args, kwargs)
        if self._recorder is not None and self._weighs_values:
            self._recorder.output_is(output)
        return output

    def _flex(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ARG002
        return written_out(self, func, args)

    def _multi_head(
        self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tensor, Tensor | None]:
        """torch's own nn.MultiheadAttention, with its call of scaled_dot_product_attention led here."""
        output, weights, call, projection = multi_head(
            func, args, kwargs, lambda *args, **kwargs: self._attention(func, args, kwargs)
        )
        if self._recorder is not None and call.is_square:
            self._recorder.projected_by(projection, None, output)
        return output, weights

    def _softmax(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        scores = args[0] if args else kwargs["input"]
        axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
        layer, square = None, is_square(scores)
        if not square and self._recorder is not None:
            self._recorder.note("softmax", scores)
        if self._edits is not None:
            if square and axis not in (-1, scores.ndim - 1):
                raise CaptureError(
                    "Attention whose softmax does not run over the last axis cannot be edited."
                )
            layer = _next_layer(self._edits) if square else None
            scores = (
                self._edits.softmax(scores, axis)
                if layer is None
                else self._edits.before_softmax(layer, scores)
            )
            args, kwargs = (
                (scores, *args[1:]),
                {name: value for name, value in kwargs.items() if name != "input"},
            )
        if not square:
            return func(*args, **kwargs)  # type: ignore[no-any-return]  # torch's function
        attention: Tensor = func(*args, **kwargs)
        if self._recorder is not None:
            self._recorder.softmax(attention)
        if self._edits is None or layer is None:
            return attention
        edited = self._edits.after(layer, attention)
        if self._recorder is not None and (left := self._edits.hands_on(layer, edited)) is not None:
            self._recorder.softmax_becomes(edited)
            self._recorder.hands_on(left)
        return edited

    def _edited(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A function that is no attention, as the edits want it."""
        return func(*args, **kwargs) if self._edits is None else self._edits.run(func, args, kwargs)

    def _product(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        output = self._edited(func, args, kwargs)
        if self._recorder is not None and (func in CASTS or not kwargs):
            self._recorder.product(func, args, output)
        return output

    def _linear(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if self._recorder is not None and len(args) >= 2:
            self._recorder.linear(args[0], args[1], result)
        return result

    def _scaled(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._recorder is not None and len(args) == 2:
            self._recorder.scaled(*args)
            self._recorder.scaled(*reversed(args))
        return self._edited(func, args, kwargs)


def _next_layer(edits: ActiveEdits) -> int:
    """The layer of the call that is being made; checkpoints around it will run it again under the same edits."""
    layer = edits.next_layer()
    recomputation.note(layer, partial(_again, edits), edits, edits.counter.outside)
    return layer


@contextmanager
def _again(edits: ActiveEdits, layers: list[int]) -> Iterator[None]:
    """A checkpointed block of these layers runs a second time inside, under these edits and no others around it."""
    with suspended(), Interception(None, edits.for_layers(layers)):
        yield


def are_ours(parts: list[nn.Module]) -> bool:
    """Whether a model is made of our own classes alone: all attention goes through our kernel, and no tensor of a pass is kept."""
    return type(parts[0]) is VisionTransformer and are_all_of(parts, OWN_PARTS)


def _projections(module: Any) -> list[tuple[Tensor, Tensor | None]]:
    """Of each layer of our model the output projection [dim, heads * head_dim] and the LayerScale behind it [dim], if any.

    None where a norm stands before it.
    """
    return [
        (block.attn.proj.weight, getattr(block.ls1, "gamma", None))
        for block in module.blocks
        if isinstance(block.attn.norm, nn.Identity)
    ]


def multi_head(
    func: Function, args: tuple[Any, ...], kwargs: dict[str, Any], attention: Callable[..., Tensor]
) -> tuple[Tensor, Tensor | None, AttentionCall, Tensor]:
    """torch's `multi_head_attention_forward` with its attention computed by `attention`.

    Returns:
        Its output; the weights of the call where the caller asked for them, else None; the call; the output projection.
    """
    bound = _MULTI_HEAD.bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    wants_weights, arguments["need_weights"] = arguments["need_weights"], False
    calls: list[AttentionCall] = []

    def noted(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(AttentionCall(*args, **kwargs))
        return attention(*args, **kwargs)

    # a second function over the same code: the first one asks every active mode again and would never reach its own body
    own = {"has_torch_function": lambda _: False, "scaled_dot_product_attention": noted}
    names = {**func.__globals__, **own}
    twin = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    output, _ = twin(*bound.args, **bound.kwargs)
    projection = arguments["out_proj_weight"]
    if not wants_weights:
        return output, None, calls[0], projection
    weights = calls[0].weights()  # [batch, heads, queries, keys]
    weights = weights.mean(1) if arguments["average_attn_weights"] else weights
    return output, weights if arguments["query"].ndim == 3 else weights[0], calls[0], projection


@lru_cache
def _handlers(
    records: bool,
    follows_values: bool,
    removes_tokens: bool,
    changes_temperature: bool,
    flex: Function | None,
) -> dict[Any, Handler]:
    """Which functions are led where; functions of the class, since bound methods would keep a dropped trace's memory in a cycle."""
    edited = (HANDLED if removes_tokens else frozenset()) | (FOLLOWED if changes_temperature else frozenset())
    table: dict[Any, Handler] = {
        **dict.fromkeys(edited, Interception._edited),
        **dict.fromkeys(FUSED, Interception._followed),
        F.multi_head_attention_forward: Interception._multi_head,
        **dict.fromkeys(SOFTMAXES, Interception._softmax),
    }
    if flex is not None:
        table[flex] = Interception._flex
    if records:
        table |= dict.fromkeys((*PRODUCTS, *CASTS), Interception._product)
    if follows_values:
        onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
        linear = [F.linear, *operators("linear", "default"), *([] if onednn is None else [onednn])]
        table |= dict.fromkeys(linear, Interception._linear)
        table |= dict.fromkeys([torch.mul, torch.Tensor.mul, torch.Tensor.mul_], Interception._scaled)
    return table
