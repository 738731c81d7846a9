"""What a head is for: the change of the answer when it is switched off."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_viz.analyses.batches import in_batches
from vit_viz.analyses.subject import ModelLike, Picture, Subject
from vit_viz.analyses.targets import Target, TargetLike
from vit_viz.analyses.watch import Progress, StopCheck, Watch
from vit_viz.capture import Trace, edit
from vit_viz.capture.forward import undisturbed
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.images import Mode
from vit_viz.model import VisionTransformer
from vit_viz.results import HeadTable

Ablation = Literal["zero", "mean", "uniform"]

_EDITS: dict[Ablation, float | Literal["mean", "uniform"]] = {
    "zero": 0.0,
    "mean": "mean",
    "uniform": "uniform",
}


@dataclass(frozen=True, eq=False)
class AblationResult:
    """The answer without some heads.

    Args:
        before, after: the outputs, [outputs].
        change: of the target.
        probability_change: of the probability of the target's class; NaN where the target is no class.
        top: the five best classes afterwards, as (index, probability); empty where the model has no classes.
    """

    before: Tensor
    after: Tensor
    change: float
    probability_change: float
    top: tuple[tuple[int, float], ...]


def ablate_heads(
    loaded: ModelLike,
    image: Picture | Tensor | None = None,
    *,
    target: TargetLike = None,
    mode: Mode = "fit",
    layout: TokenLayout | None = None,
    has_classes: bool | None = None,
    how: Ablation = "zero",
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> HeadTable:
    """The causal head map: by how much the target changes when one head is switched off, for every head.

    o_lh <- 0, its mean over tokens, or uniform attention. Each run starts from the cached input of its layer instead of from the
    pixels, with the heads of a layer as a batch; the numbers are those of the plain loop.

    Args:
        target: what is followed; None means the logit of the first class, or the own embedding.
        layout: which token is what; None asks the module.
        has_classes: whether a module's outputs are scores of classes; None takes what it says of itself.
        how: what replaces the head's output.
        progress: told the share that is done.
        cancelled: asked between batches; True ends with `Cancelled`.

    Returns:
        Target without the head minus target with it, [layers, heads], signed: below 0 where the head helps.

    Raises:
        ParameterError: the target or the way of ablation does not exist.
        Cancelled: `cancelled` said so.

    Source: Michel et al. 2019, arXiv:1905.10650.
    """
    subject = Subject.of(loaded, image, mode=mode, layout=layout, has_classes=has_classes)
    return head_map(subject, target=target, how=how, progress=progress, cancelled=cancelled)


def head_map(
    subject: Subject,
    *,
    target: TargetLike = None,
    how: Ablation = "zero",
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> HeadTable:
    """As `ablate_heads`, for an image that is prepared already."""
    _check(how)
    trace = subject.trace(keep_residual=isinstance(subject.model, VisionTransformer))
    logits = subject.logits(trace)
    fixed = subject.target(target).resolved(logits)
    watch = Watch(trace.num_layers * trace.num_heads, progress=progress, cancelled=cancelled)
    before = float(fixed(logits))
    values = np.empty((trace.num_layers, trace.num_heads))
    for layer in range(trace.num_layers):
        start = _start(subject, trace, layer)
        values[layer] = _layer_scores(start, fixed, layer, trace.num_heads, how, watch)
    words = fixed.describe()
    return HeadTable(
        (values - before).astype(np.float32),
        unit=f"change of the {words}",
        value_range=(-math.inf, math.inf),
        signed=True,
        method=f"head ablation ({how})",
        provenance=subject.provenance.with_parameters(method="ablate_heads", how=how, target=words),
        note="Target without the head minus target with it: below 0 where the head helps.",
    )


def without_heads(
    subject: Subject, heads: Collection[tuple[int, int]], *, target: TargetLike = None, how: Ablation = "zero"
) -> AblationResult:
    """What the model says when these heads (layer, head) are switched off together.

    Raises:
        ParameterError: a head does not exist.
    """
    _check(how)
    with torch.no_grad():
        before = subject.outputs(subject.pixels)[0]
        with edit(heads=dict.fromkeys(heads, _EDITS[how])):
            after = subject.outputs(subject.pixels)[0]
    fixed = subject.target(target).resolved(before)
    change = float(fixed(after) - fixed(before))
    if not subject.has_classes:
        return AblationResult(before, after, change, math.nan, ())
    probability = Target("probability", fixed.index)
    best = after.softmax(-1).topk(min(5, after.numel()))
    top = tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
    moved = math.nan if fixed.index is None else float(probability(after) - probability(before))
    return AblationResult(before, after, change, moved, top)


def estimated_head_map(trace: Trace) -> NDArray[np.float32]:
    """A first guess of the causal map (zero) from one backward: -sum_i (dL/do_i) . o_i per head, [layers, heads].

    Raises:
        CaptureError: the trace was taken without a target.

    Source: Michel et al. 2019, arXiv:1905.10650, section 4.1, with its sign.
    """
    if trace.v is None or trace.output_grad is None:
        raise CaptureError("An estimate needs gradients: pass target= to trace().")
    values = np.zeros((trace.num_layers, trace.num_heads), dtype=np.float32)
    for layer in range(trace.num_layers):
        for rows, attention in trace.tiles(layer):
            output = attention @ trace.v[layer]  # [heads, block, head_dim]
            values[layer] -= (output * trace.output_grad[layer][:, rows]).sum((1, 2)).cpu().numpy()
    return values


# --- parts


@dataclass(frozen=True)
class _Start:
    """Where a run begins: before a layer, or at the pixels (layer 0).

    Args:
        run: images of the batch -> outputs [batch, outputs].
    """

    first_layer: int
    run: Callable[[int], Tensor]


def _start(subject: Subject, trace: Trace, layer: int) -> _Start:
    """At the cached input of a layer where the model is ours, else at the pixels."""
    model, stream = subject.model, trace.residual
    if not isinstance(model, VisionTransformer) or stream is None:
        return _Start(0, lambda batch: subject.outputs(subject.pixels.expand(batch, -1, -1, -1)))
    entering = stream[layer].to(subject.dtype)  # [tokens, dim]

    def run(batch: int) -> Tensor:
        with subject.turn(), undisturbed(model):
            stream, grid = entering.expand(batch, -1, -1), subject.layout.grid
            return model.classify(model.run_blocks(stream, grid, start=layer, read=model.tokens_read()))

    return _Start(layer, run)


def _layer_scores(
    start: _Start, target: Target, layer: int, heads: int, how: Ablation, watch: Watch
) -> NDArray[np.float64]:
    """The target with each head of a layer switched off alone, [heads]; as many heads at once as a batch holds."""

    def run(part: slice) -> Tensor:
        watch.check()
        chosen = range(heads)[part]
        off = {(layer, head): [_EDITS[how] if item == head else 1.0 for item in chosen] for head in chosen}
        with torch.no_grad(), edit(heads=off, first_layer=start.first_layer):
            scores = target(start.run(len(chosen)))
        watch.advance(len(chosen))
        return scores

    return in_batches(run, heads).cpu().double().numpy()


def _check(how: str) -> None:
    if how not in get_args(Ablation):
        raise ParameterError(f"A head is replaced by {', '.join(get_args(Ablation))}, not by {how!r}.")
