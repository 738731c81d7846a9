"""Interventions: change what heads see and say, in any model, for the forward passes inside a `with edit(...)`.

An edit changes the operands of an attention call (mask, temperature, uniform attention) before the kernel runs, or its output
(a head scaled, or replaced by its mean) after; a trace made inside records the edited attention.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from vit_viz.capture import recomputation
from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.counting import GivenLayers, LayerCounter, PassCounter
from vit_viz.capture.interception import Interception
from vit_viz.capture.interventions import Edits, masked, without_scores
from vit_viz.capture.pools import HANDLED, Pools
from vit_viz.capture.scores import FOLLOWED, Scores
from vit_viz.capture.written_out import Function
from vit_viz.errors import CaptureError, ParameterError

HeadEdit = float | Literal["mean", "uniform"]
Edge = tuple[int, int]


@contextmanager
def edit(
    *,
    heads: Mapping[tuple[int, int], HeadEdit | Sequence[HeadEdit]] | None = None,
    knockout: Mapping[int, Sequence[Edge] | Sequence[Sequence[Edge]]] | None = None,
    mask_keys: Sequence[int] | Sequence[Sequence[int]] | Mapping[int, Any] | Tensor | None = None,
    temperature: Mapping[int, float | Sequence[float]] | None = None,
    first_layer: int = 0,
) -> Iterator[None]:
    """Change the attention of every forward pass inside, in this thread; nothing is left behind.

    Layers are the attention calls (as many queries as keys) in the order in which the model makes them, as in a trace of it: in a
    model whose blocks hold two attentions, layer 3 is the second of block 1, and attention that cannot be seen is no layer. Use one
    `with` for each model. Every value may be a sequence of values, one per image of the batch. Blocks that are checkpointed run
    again under the same edits in the backward pass, also after the `with` has ended.

    Args:
        heads: (layer, head) -> factor of the head's output, "mean" (its output becomes its mean over tokens), or "uniform" (it
            looks at all tokens alike).
        knockout: layer -> edges (i, j): token i no longer sees token j there.
        mask_keys: tokens that no token sees, in every layer and in the pooling (mean, sum, maximum or attention); or layer ->
            tokens. Also a Boolean tensor [tokens] or [batch, tokens].
        temperature: layer -> T: softmax(q k^T * scale / T + bias). T < 1 sharpens and T > 1 evens out; position biases and masks
            stay as they are, whether the attention is fused or written out.
        first_layer: index of the first layer that runs inside, for a pass that is restarted within the model.

    Raises:
        ParameterError: a layer, head or token does not exist, or no key would be left; raised when the pass reaches it.
        CaptureError: no attention ran inside, or one of a form that cannot be edited in this way; or tokens are removed and the
            pooling is not understood.
    """
    spec = Edits(dict(heads or {}), dict(knockout or {}), mask_keys, dict(temperature or {}))
    with _at_work(ActiveEdits([spec], LayerCounter(first_layer, sys._getframe(2)))):
        yield


@contextmanager
def removing(tokens: Tensor, *, disturbs: bool = False) -> Iterator[None]:
    """As `edit(mask_keys=tokens)`; `disturbs`: what removed tokens say is changed, too, which nothing must notice."""
    spec = Edits({}, {}, tokens, {})
    with _at_work(ActiveEdits([spec], LayerCounter(0, sys._getframe(2)), disturbs=disturbs)):
        yield


@contextmanager
def _at_work(active: ActiveEdits) -> Iterator[None]:
    stack = _stack()
    stack.append(active)
    try:
        with Interception(None, active):
            yield
    finally:
        stack.remove(active)
        active.counter.forget()
    active.check_used()


class ActiveEdits:
    """Edits at work: applied to each call as it is made.

    Args:
        edits: from the outermost to the innermost.
        counter: tells the layer of each call.
        one_image: the batch is known to be one image, so every leading axis counts heads.
        is_substitute: these stand in for edits that are suspended meanwhile: in a trace, or when a block is run again.
        disturbs: change what removed tokens say, too; nothing that is exact notices.
    """

    def __init__(
        self,
        edits: list[Edits],
        counter: LayerCounter,
        *,
        one_image: bool = False,
        is_substitute: bool = False,
        disturbs: bool = False,
    ) -> None:
        self.edits, self.counter, self._one_image = edits, counter, one_image
        self.was_used = False
        self.removes_tokens = any(spec.masks_everywhere for spec in edits)
        self.changes_temperature = any(spec.temperature for spec in edits)
        self._is_substitute, self._disturbs = is_substitute, disturbs
        self._tokens = 0
        self._pools, self._scores = Pools(self._removed), Scores()

    @property
    def is_suspended(self) -> bool:
        """Whether others are at work in this thread that apply these edits: a trace, or a block's second run."""
        return not self._is_substitute and getattr(_STATE, "suspended", False)

    def run(self, func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`func(*args, **kwargs)`, a function that is no attention: pools leave removed tokens out, scores are followed."""
        follows = self.changes_temperature and func in FOLLOWED
        if follows:
            self._scores.before(func, args)
        pools = self.removes_tokens and func in HANDLED
        result = self._pools.run(func, args, kwargs) if pools else func(*args, **kwargs)
        if follows:
            self._scores.after(func, args, kwargs, result)
        return result

    def next_layer(self) -> int:
        """The layer of the call that is being made."""
        self.was_used = True
        layer = self.counter.next()
        recomputation.note(layer, self._again, self, self.counter.outside)
        return layer

    def before(self, layer: int | None, call: AttentionCall) -> AttentionCall:
        """The call with its operands changed."""
        if layer is not None:
            self._follow(call.key.shape[-2], call.query)
        for edits in self.edits:
            call = self._before(edits, layer, call)
        return call

    def after(self, layer: int | None, output: Tensor) -> Tensor:
        """The output of the call [batch, heads, tokens, head_dim], or written-out attention, with heads changed."""
        for edits in self.edits:
            if layer is not None and any(number == layer for number, _ in edits.heads):
                shape = self._shape(output)
                four = output.reshape(*shape, *output.shape[-2:])
                mean, factor = (edits.head_table(layer, what, shape, output) for what in ("mean", "factor"))
                if mean is not None:
                    four = torch.where(mean, four.mean(-2, keepdim=True), four)
                output = (four if factor is None else four * factor).reshape(output.shape)
        return self._disturbed(output) if self._disturbs and layer is not None else output

    def before_softmax(self, layer: int, scores: Tensor) -> Tensor:
        """The scores of a written-out attention, changed.

        Raises:
            CaptureError: there is a temperature, and which part of the scores is q k^T * scale is not known.
        """
        self._follow(scores.shape[-1], scores)
        part = self._scores.take(scores)
        for edits in self.edits:
            if layer not in edits.layers and not edits.masks_everywhere:
                continue
            shape = self._shape(scores)
            four = scores.reshape(*shape, *scores.shape[-2:])
            temperature = edits.temperatures(layer, shape[0], scores)
            if temperature is not None:
                if part is None:
                    raise CaptureError(
                        f"No temperature can be set in layer {layer}: this model writes its attention out, and which part of its "
                        "scores is q k^T * scale could not be followed."
                    )
                product = part.reshape(four.shape)
                part = product / temperature
                four = four + (part - product)
            uniform = edits.head_table(layer, "uniform", shape, scores)
            if uniform is not None:
                four = torch.where(uniform & ~four.isneginf(), 0, four)
            tokens = scores.shape[-1]
            allowed = edits.allowed(layer, shape[0], tokens, tokens, tokens, scores.device)
            scores = (four if allowed is None else four.masked_fill(~allowed, -torch.inf)).reshape(
                scores.shape
            )
        return scores

    def softmax(self, scores: Tensor, axis: int | None) -> Tensor:
        """The scores of another softmax: one over tokens gives removed ones no weight."""
        return self._pools.softmax(scores, axis) if self.removes_tokens and axis is not None else scores

    def check_used(self) -> None:
        """After the last pass: everything that was named must have been met."""
        if not self.was_used:
            raise CaptureError("No attention ran inside edit(), so nothing was edited.")
        if self.counter.seen:
            self.check_layers(max(self.counter.seen) + 1)

    def check_layers(self, count: int) -> None:
        """Every layer that is named must exist."""
        for layer in sorted({layer for edits in self.edits for layer in edits.layers}):
            if not 0 <= layer < count:
                raise ParameterError(f"Layer {layer} does not exist: this model has layers 0-{count - 1}.")

    def _before(self, edits: Edits, layer: int | None, call: AttentionCall) -> AttentionCall:
        if layer not in edits.layers and not edits.masks_everywhere:
            return call
        batch, heads = self._shape(call.query)
        temperature = edits.temperatures(layer, batch, call.query)
        if temperature is not None and temperature.numel() == 1:
            call = call._replace(scale=call.factor / float(temperature))
        elif temperature is not None:
            call = call._replace(query=call.query / temperature, scale=call.factor)
        uniform = edits.head_table(layer, "uniform", (batch, heads), call.query)
        if uniform is not None:
            call = without_scores(call, uniform)
        queries, keys = call.query.shape[-2], call.key.shape[-2]
        tokens = max(self._tokens, keys)
        first = self._pools.first_of(keys) if layer is None and keys < tokens else 0
        allowed = edits.allowed(layer, batch, queries, keys, tokens, call.query.device, first=first)
        return call if allowed is None else masked(call, allowed)

    def _follow(self, tokens: int, operand: Tensor) -> None:
        """An attention over so many tokens was met."""
        self._tokens = tokens
        if self.removes_tokens:
            self._pools.follow(tokens, self._shape(operand)[0])

    def _removed(self, tokens: int, batch: int) -> Tensor | None:
        """Which tokens are removed by any of the edits, Boolean [batch | 1, tokens]; None for none."""
        removed = None
        for edits in self.edits:
            if edits.masks_everywhere:
                allowed = edits.allowed(None, batch, 1, tokens, tokens, torch.device("cpu"))
                if allowed is not None:
                    gone = ~allowed[:, 0, 0]
                    removed = gone if removed is None else removed | gone
        return removed if removed is not None and removed.any() else None

    def _disturbed(self, output: Tensor) -> Tensor:
        removed = self._removed(output.shape[-2], self._shape(output)[0])
        if removed is None:
            return output
        four = output.reshape(*self._shape(output), *output.shape[-2:])
        return torch.where(removed[:, None, :, None].to(output.device), -3 * four, four).reshape(output.shape)

    def _again(self, layers: list[int]) -> AbstractContextManager[object]:
        """In which a checkpointed block of these layers runs a second time."""
        return _instead(
            ActiveEdits(self.edits, GivenLayers(layers), one_image=self._one_image, is_substitute=True)
        )

    def _shape(self, tensor: Tensor) -> tuple[int, int]:
        """(batch, heads) of what is edited."""
        lead = tensor.shape[:-2]
        if self._one_image:
            return 1, int(np.prod(lead)) if lead else 1
        if len(lead) == 2:
            return lead[0], lead[1]
        raise CaptureError(
            f"Attention over a tensor of shape {list(tensor.shape)} cannot be edited: batch and heads must be axes of their own."
        )


def active_edits() -> ActiveEdits | None:
    """All edits around this point of this thread, for one forward pass that is about to start."""
    stack = _stack()
    if not stack:
        return None
    for active in stack:
        active.was_used = True
    return ActiveEdits(
        [spec for active in stack for spec in active.edits], PassCounter(), one_image=True, is_substitute=True
    )


@contextmanager
def suspended() -> Iterator[None]:
    """The modes of surrounding edits stand aside, because a trace applies their edits."""
    before = getattr(_STATE, "suspended", False)
    _STATE.suspended = True
    try:
        yield
    finally:
        _STATE.suspended = before


@contextmanager
def _instead(edits: ActiveEdits) -> Iterator[None]:
    """These edits are at work, and no others but those that stand in for others, too."""
    with suspended(), Interception(None, edits):
        yield


_STATE = threading.local()  # edits belong to a thread, as torch's modes do


def _stack() -> list[ActiveEdits]:
    if not hasattr(_STATE, "stack"):
        _STATE.stack = []
    stack: list[ActiveEdits] = _STATE.stack
    return stack
