"""Interventions: change what heads see and say, in any model, for the forward passes inside a `with edit(...)`.

An edit changes the operands of an attention call (mask, temperature, uniform attention) before the kernel runs, or its output
(a head scaled, or replaced by its mean) after; a trace made inside records the edited attention.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from vit_viz.capture.active_edits import ActiveEdits
from vit_viz.capture.counting import LayerCounter, ListedLayers, OwnLayers
from vit_viz.capture.edit_stack import edit_stack
from vit_viz.capture.interception import Interception
from vit_viz.capture.interventions import Edits
from vit_viz.lazy import Tensor, nn
from vit_viz.model import VisionTransformer

HeadEdit = float | Literal["mean", "uniform"]
Edge = tuple[int, int]


@contextmanager
def edit(
    *,
    heads: Mapping[tuple[int, int], HeadEdit | Sequence[HeadEdit]] | None = None,
    knockout: Mapping[int, Sequence[Edge] | Sequence[Sequence[Edge]] | Tensor] | None = None,
    mask_keys: Sequence[int] | Sequence[Sequence[int]] | Mapping[int, Any] | Tensor | None = None,
    temperature: Mapping[int, float | Sequence[float]] | None = None,
    first_layer: int = 0,
) -> Iterator[None]:
    """Change the attention of every forward pass inside, in this thread; nothing is left behind.

    Layers are the attention calls (as many queries as keys) in the order in which the model makes them, as in a trace of it: in a
    model whose blocks hold two attentions, layer 3 is the second of block 1, and attention that cannot be seen is no layer. They
    count from 0: how many there are, and so which is the last, is known after the pass. Use one `with` for each model. Every value
    may be a sequence of values, one per image of the batch. Blocks that are checkpointed run again under the same edits in the
    backward pass, also after the `with` has ended.

    Args:
        heads: (layer, head) -> factor of the head's output, "mean" (its output becomes its mean over tokens), or "uniform" (it
            looks alike at all tokens that it may see: those of no knockout, no mask of the model's own).
        knockout: layer -> edges (i, j): token i no longer sees token j there. Also a Boolean tensor [tokens, tokens].
        mask_keys: tokens that no token sees, in every layer and in the pooling (mean, sum, maximum or attention); or layer ->
            tokens. Also a Boolean tensor [tokens] or [batch, tokens].
        temperature: layer -> T: softmax(q k^T * scale / T + bias). T < 1 sharpens and T > 1 evens out; position biases and masks
            stay as they are, whether the attention is fused or written out.
        first_layer: index of the first layer that runs inside, for a pass that is restarted within the model.

    Raises:
        ParameterError: a layer, head or token does not exist, or no key would be left; raised when the pass reaches it.
        CaptureError: no attention ran inside, or one of a form that cannot be edited in this way; or tokens are removed and the
            pooling is not understood.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> loaded, picture = vv.load("mini"), sample("shapes")
        >>> before = vv.trace(loaded, picture).logits.softmax(-1).max()
        >>> with vv.edit(heads={(5, head): 0.0 for head in range(6)}):  # no head of the last layer says anything
        ...     after = vv.trace(loaded, picture).logits.softmax(-1).max()
        >>> f"{before:.2f} {after:.2f}"
        '0.18 0.16'
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
def with_edits(edits: Edits, module: nn.Module) -> Iterator[None]:
    """Edits around whatever runs of a module inside, in this thread: whole passes, or parts of our own model, or nothing at all.

    Where they stand already, they are not applied again; a pass within a pass is edited once.
    """
    if any(edits is one for active in edit_stack() for one in active.edits):
        yield
        return
    counter = OwnLayers() if isinstance(module, VisionTransformer) else LayerCounter()
    with _on_the_stack(ActiveEdits([edits], counter, is_of_model=True)):
        yield


@contextmanager
def _at_work(active: ActiveEdits) -> Iterator[None]:
    with _on_the_stack(active):
        yield
    active.check_used()


@contextmanager
def _on_the_stack(active: ActiveEdits) -> Iterator[None]:
    stack = edit_stack()
    stack.append(active)
    try:
        with Interception(None, active):
            yield
    finally:
        stack.remove(active)
        active.counter.forget()
        active.kept.clear()


def surrounding_edits(*, images: int) -> ActiveEdits | None:
    """All edits around this point of this thread, for one forward pass over so many images that is about to start."""
    stack = [active for active in edit_stack() if not active.is_set_aside]
    if not stack:
        return None
    for active in stack:
        active.was_used = True
    return ActiveEdits(
        [spec for active in stack for spec in active.edits],
        ListedLayers(itertools.count()),
        one_image=images == 1,
        is_substitute=True,
    )
