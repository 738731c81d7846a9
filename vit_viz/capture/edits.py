"""Interventions: change what heads see and say, in any model, for the forward passes inside a `with edit(...)`.

An edit changes the operands of an attention call (mask, temperature, uniform attention) before the kernel runs, or its output
(a head scaled, or replaced by its mean) after; a trace made inside records the edited attention.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.counting import LayerCounter, PassCounter
from vit_viz.capture.interception import Interception
from vit_viz.capture.interventions import (
    check_batch,
    edge_mask,
    head_table,
    items_of,
    masked,
    token_mask,
    without_scores,
)
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

    Every value may be a sequence of values, one per image of the batch.

    Args:
        heads: (layer, head) -> factor of the head's output, "mean" (its output becomes its mean over tokens), or "uniform" (it
            looks at all tokens alike).
        knockout: layer -> edges (i, j): token i no longer sees token j there.
        mask_keys: tokens that no token sees, in every layer and in the pooling (mean or attention); or layer -> tokens. Also a
            Boolean tensor [tokens] or [batch, tokens].
        temperature: layer -> T; the scores are divided by T, so T < 1 sharpens and T > 1 evens out.
        first_layer: index of the first layer that runs inside, for a pass that is restarted within the model.

    Raises:
        ParameterError: a layer, head or token does not exist, or no key would be left; raised when the pass reaches it.
        CaptureError: no attention ran inside, or one of a form that cannot be edited in this way.
    """
    spec = Edits(dict(heads or {}), dict(knockout or {}), mask_keys, dict(temperature or {}))
    active = ActiveEdits([spec], LayerCounter(first_layer, sys._getframe(2)))
    stack = _stack()
    stack.append(active)
    try:
        with Interception(None, active):
            yield
    finally:
        stack.remove(active)
        active.counter.forget()
    active.check_used()


@dataclass(frozen=True, eq=False)
class Edits:
    """What one `edit` asks for."""

    heads: dict[tuple[int, int], Any]
    knockout: dict[int, Any]
    mask_keys: Any
    temperature: dict[int, Any]
    tables: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for (layer, head), values in self.heads.items():
            for value in items_of(values):
                if isinstance(value, str) and value not in ("mean", "uniform"):
                    raise ParameterError(
                        f'Head {head} of layer {layer} can get a factor, "mean" or "uniform", not {value!r}.'
                    )
        for layer, values in self.temperature.items():
            if any(not value > 0 for value in items_of(values)):
                raise ParameterError(f"The temperature of layer {layer} must be positive, not {values}.")

    @property
    def layers(self) -> set[int]:
        """Layers that are named."""
        masked = set(self.mask_keys) if isinstance(self.mask_keys, Mapping) else set()
        return {layer for layer, _ in self.heads} | set(self.knockout) | set(self.temperature) | masked

    @property
    def masks_everywhere(self) -> bool:
        """Whether tokens are removed from every layer and the pooling."""
        return self.mask_keys is not None and not isinstance(self.mask_keys, Mapping)

    def head_table(self, layer: int | None, what: str, shape: tuple[int, int], like: Tensor) -> Tensor | None:
        """Per item and head of a layer [batch | 1, heads, 1, 1]: the factor, or whether "mean" or "uniform" is asked for."""
        key = (layer, what, shape, like.device, like.dtype)
        if key not in self.tables:
            chosen = {head: values for (number, head), values in self.heads.items() if number == layer}
            self.tables[key] = head_table(chosen, what, shape, like)
        table: Tensor | None = self.tables[key]
        return table

    def allowed(
        self, layer: int | None, batch: int, queries: int, keys: int, tokens: int, device: torch.device
    ) -> Tensor | None:
        """Which keys each query may see, Boolean [batch | 1, 1, queries | 1, keys]; None for all.

        Raises:
            ParameterError: a token does not exist, or a query would see no key.
        """
        key = (layer, batch, queries, keys, tokens, device)
        if key not in self.tables:
            allowed = self._allowed(layer, batch, queries, keys, tokens)
            if allowed is not None and not allowed.any(-1).all():
                raise ParameterError(
                    "Masking every key leaves nothing to look at: keep at least one token for each query."
                )
            self.tables[key] = None if allowed is None else allowed.to(device)
        mask: Tensor | None = self.tables[key]
        return mask

    def temperatures(self, layer: int | None, batch: int, like: Tensor) -> Tensor | None:
        """T of a layer, [batch | 1, 1, 1, 1]."""
        if layer not in self.temperature:
            return None
        values = torch.tensor(items_of(self.temperature[layer]), dtype=like.dtype, device=like.device)
        check_batch(len(values), batch)
        return values.view(-1, 1, 1, 1)

    def _allowed(self, layer: int | None, batch: int, queries: int, keys: int, tokens: int) -> Tensor | None:
        chosen = self.mask_keys.get(layer) if isinstance(self.mask_keys, Mapping) else self.mask_keys
        allowed = None
        if chosen is not None:
            allowed = ~token_mask(chosen, tokens, batch)[:, None, None, tokens - keys :]
        if layer in self.knockout:
            edges = edge_mask(self.knockout[layer], queries, keys, batch)[:, None]
            allowed = ~edges if allowed is None else allowed & ~edges
        return allowed


class ActiveEdits:
    """Edits at work: applied to each call as it is made.

    Args:
        edits: from the outermost to the innermost.
        counter: tells the layer of each call.
        one_image: the batch is known to be one image, so every leading axis counts heads.
    """

    def __init__(self, edits: list[Edits], counter: LayerCounter, *, one_image: bool = False) -> None:
        self.edits, self.counter, self._one_image = edits, counter, one_image
        self.was_used = False
        self._tokens = 0

    @property
    def is_suspended(self) -> bool:
        """Whether a trace is at work in this thread, which applies these edits itself."""
        return not self._one_image and getattr(_STATE, "suspended", False)

    @property
    def masks_everywhere(self) -> bool:
        """Whether some edit removes tokens, so that means over tokens leave them out."""
        return any(spec.masks_everywhere for spec in self.edits)

    def next_layer(self) -> int:
        """The layer of the call that is being made."""
        self.was_used = True
        return self.counter.next()

    def before(self, layer: int | None, call: AttentionCall) -> AttentionCall:
        """The call with its operands changed."""
        if layer is not None:
            self._tokens = call.key.shape[-2]
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
        return output

    def before_softmax(self, layer: int, scores: Tensor) -> Tensor:
        """The scores of a written-out attention, changed; the temperature divides all that was added to them, too."""
        self._tokens = scores.shape[-1]
        for edits in self.edits:
            if layer not in edits.layers and not edits.masks_everywhere:
                continue
            shape = self._shape(scores)
            four = scores.reshape(*shape, *scores.shape[-2:])
            temperature = edits.temperatures(layer, shape[0], scores)
            if temperature is not None:
                four = four / temperature
            uniform = edits.head_table(layer, "uniform", shape, scores)
            if uniform is not None:
                four = torch.where(uniform & ~four.isneginf(), 0, four)
            tokens = scores.shape[-1]
            allowed = edits.allowed(layer, shape[0], tokens, tokens, tokens, scores.device)
            scores = (four if allowed is None else four.masked_fill(~allowed, -torch.inf)).reshape(
                scores.shape
            )
        return scores

    def mean(self, tokens: Tensor) -> Tensor | None:
        """Mean over the tokens [batch, n, dim] that are not removed; None where this is no mean over tokens."""
        batch, count, _ = tokens.shape
        if not self._tokens // 2 < count <= self._tokens:
            return None
        weights = torch.ones(1, count, 1, device=tokens.device)
        for edits in self.edits:
            if edits.masks_everywhere:
                allowed = edits.allowed(None, batch, 1, count, self._tokens, tokens.device)
                weights = weights if allowed is None else weights * allowed[:, 0, 0, :, None]
        weights = (weights / weights.sum(1, keepdim=True)).to(tokens.dtype)
        return (tokens * weights).sum(1)

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
        allowed = edits.allowed(layer, batch, queries, keys, max(self._tokens, keys), call.query.device)
        return call if allowed is None else masked(call, allowed)

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
    return ActiveEdits([spec for active in stack for spec in active.edits], PassCounter(), one_image=True)


@contextmanager
def suspended() -> Iterator[None]:
    """The modes of surrounding edits stand aside, because a trace applies their edits."""
    before = getattr(_STATE, "suspended", False)
    _STATE.suspended = True
    try:
        yield
    finally:
        _STATE.suspended = before


_STATE = threading.local()  # edits belong to a thread, as torch's modes do


def _stack() -> list[ActiveEdits]:
    if not hasattr(_STATE, "stack"):
        _STATE.stack = []
    stack: list[ActiveEdits] = _STATE.stack
    return stack
