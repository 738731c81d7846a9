"""The edits that are active in a thread: what they change of each attention call, and of the pooling around it.

`Interception` shows them the calls and `edit` starts them; they know of neither.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from vit_viz.capture.calls import AttentionCall
from vit_viz.capture.counting import LayerCounter, ListedLayers
from vit_viz.capture.explicit_softmax import Function
from vit_viz.capture.interventions import Edits, masked, without_scores
from vit_viz.capture.pools import HANDLED, Pools
from vit_viz.capture.scores import FOLLOWED, Scores
from vit_viz.errors import CaptureError
from vit_viz.indices import checked_index
from vit_viz.lazy import Tensor, torch


class ActiveEdits:
    """Edits that are active: applied to each call as it is made.

    Args:
        edits: from the outermost to the innermost.
        counter: tells the layer of each call.
        one_image: the batch is known to be one image, so every leading axis counts heads.
        is_substitute: these stand in for edits that are suspended meanwhile: in a trace, or when a block is run again.
        disturbs: change what removed tokens say, too; nothing that is exact notices.
        is_of_model: they belong to the model that is looked at, see `with_edits`; questions about the module itself set them aside.
    """

    def __init__(
        self,
        edits: list[Edits],
        counter: LayerCounter,
        *,
        one_image: bool = False,
        is_substitute: bool = False,
        disturbs: bool = False,
        is_of_model: bool = False,
    ) -> None:
        self.edits, self.counter, self._one_image = edits, counter, one_image
        self.was_used = False
        self.removes_tokens = any(spec.masks_everywhere for spec in edits)
        self.changes_temperature = any(spec.temperature for spec in edits)
        self.is_of_model = is_of_model
        self.kept: dict[Hashable, Any] = {}  # what others found out inside, which is true no longer than that
        self._is_substitute, self._disturbs = is_substitute, disturbs
        self._tokens = 0
        self._pools, self._scores = Pools(self.removed), Scores()

    @property
    def is_suspended(self) -> bool:
        """Whether others are at work in this thread that apply these edits: a trace, or a block's second run."""
        return self.is_set_aside or (not self._is_substitute and getattr(_STATE, "suspended", False))

    @property
    def is_set_aside(self) -> bool:
        """Whether what runs now asks about the module as it is without the edits that belong to it."""
        return self.is_of_model and getattr(_STATE, "unedited", False)

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
        return self.counter.next()

    def for_layers(self, layers: list[int]) -> ActiveEdits:
        """The same edits for a block of these layers that runs a second time."""
        return ActiveEdits(self.edits, ListedLayers(layers), one_image=self._one_image, is_substitute=True)

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

    def hands_on(self, layer: int, output: Tensor) -> tuple[Tensor, Tensor] | None:
        """What the edits leave of what each head hands on: a factor, and whether it is at its mean, [heads, 1] each; None: all."""
        shape = self._shape(output)
        tables = [
            [edits.head_table(layer, what, shape, output) for what in ("factor", "mean")]
            for edits in self.edits
            if any(number == layer for number, _ in edits.heads)
        ]
        if all(table is None for both in tables for table in both):
            return None
        share = torch.ones(shape[1], 1, dtype=output.dtype, device=output.device)
        is_mean = torch.zeros_like(share, dtype=torch.bool)
        for factor, mean in tables:
            share = share if factor is None else share * factor[0, :, 0].abs()
            is_mean = is_mean if mean is None else is_mean | mean[0, :, 0]
        return share, is_mean

    def before_softmax(self, layer: int, scores: Tensor) -> Tensor:
        """The scores of a written-out attention, changed."""
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

    def removed(self, tokens: int, batch: int) -> Tensor | None:
        """Which tokens are removed by any of the edits, Boolean [batch | 1, tokens]; None for none."""
        removed = None
        for edits in self.edits:
            if edits.masks_everywhere:
                allowed = edits.allowed(None, batch, 1, tokens, tokens, torch.device("cpu"))
                if allowed is not None:
                    gone = ~allowed[:, 0, 0]
                    removed = gone if removed is None else removed | gone
        return removed if removed is not None and removed.any() else None

    def check_used(self) -> None:
        """After the last pass: everything that was named must have been met."""
        if not self.was_used:
            raise CaptureError("No attention ran inside edit(), so nothing was edited.")
        if self.counter.seen:
            self.check_layers(max(self.counter.seen) + 1)

    def check_layers(self, count: int) -> None:
        """Every layer that is named must exist."""
        for layer in sorted({layer for edits in self.edits for layer in edits.layers}):
            checked_index("Layer", layer, count)

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

    def _disturbed(self, output: Tensor) -> Tensor:
        removed = self.removed(output.shape[-2], self._shape(output)[0])
        if removed is None:
            return output
        four = output.reshape(*self._shape(output), *output.shape[-2:])
        return torch.where(removed[:, None, :, None].to(output.device), -3 * four, four).reshape(output.shape)

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


def suspended() -> AbstractContextManager[None]:
    """The modes of surrounding edits stand aside, because a trace applies their edits."""
    return _setting("suspended")


def unedited() -> AbstractContextManager[None]:
    """What runs inside asks about the module itself: edits that belong to the model that is looked at stand aside."""
    return _setting("unedited")


@contextmanager
def _setting(flag: str) -> Iterator[None]:
    before = getattr(_STATE, flag, False)
    setattr(_STATE, flag, True)
    try:
        yield
    finally:
        setattr(_STATE, flag, before)


_STATE = threading.local()  # edits belong to a thread, as torch's modes do
