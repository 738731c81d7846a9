"""What methods over pixels share: the target as a function of pixels, gradients one batch at a time, random samples in two halves
whose agreement is the map's stability, and the map made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.correlation import spearman
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import BATCH, PreparedImage
from vit_viz.capture import check_pixels_reached
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch
from vit_viz.results import PatchMap

STABLE = 0.8
"""Rank correlation of two halves from which on a map is called stable."""


def watched_target(given: MethodInput, images: int) -> Callable[[Tensor], Tensor]:
    """The target as captum wants it: pixels [batch, ...] -> [batch], counted up to so many images and cancellable."""
    subject, target, watch = given.subject, given.target, given.watch(images)

    def scores_of(pixels: Tensor) -> Tensor:
        watch.check()
        scores = target(subject.outputs(pixels))
        watch.advance(len(pixels))
        return scores

    return scores_of


def in_turn(method: Any, given: MethodInput) -> Any:
    """A gradient method of captum whose forward and backward of each batch are one turn at the device.

    Raises:
        CaptureError: the target's gradient does not reach the pixels, or not all of it; the message says what keeps it from them.
    """
    given.once(_check_reached)

    def gradient_of(
        forward_fn: Callable[..., Tensor], inputs: tuple[Tensor, ...], *_: Any, **__: Any
    ) -> tuple[Tensor, ...]:
        # undisturbed to the end: a checkpointed block runs again for its gradient
        with given.subject.turn(), differentiable(), undisturbed(given.subject.model):
            leaves = [
                one if one.requires_grad and not one.is_inference() else one.detach().clone().requires_grad_()
                for one in inputs
            ]
            slopes = gradients(forward_fn(*leaves), leaves)
            pairs = zip(slopes, leaves, strict=True)
            return tuple(torch.zeros_like(leaf) if one is None else one for one, leaf in pairs)

    method.gradient_func = gradient_of
    return method


def _check_reached(given: MethodInput) -> None:
    """One pass forwards and backwards beside the method's own: does the target's gradient reach the pixels?"""
    subject = given.subject
    with subject.turn():
        check_pixels_reached(subject.model, leaf(subject), subject.outputs, given.target)


def attribution_map(
    subject: PreparedImage,
    values: Tensor,
    method: str,
    *,
    unit: str = "change of the target",
    signed: bool = True,
    note: str = "",
    stability: float | None = None,
    **parameters: object,
) -> PatchMap:
    """Attributions of patches, [rows, cols], as the map of a method.

    Args:
        parameters: how it was computed, for its provenance; with a stability, `samples` is one of them.
    """
    name = method.lower().replace(" ", "_")
    if stability is not None:
        note = stability_words(stability, f"{parameters['samples']} samples")
        parameters |= {"stability": f"{stability:.3f}"}
    return PatchMap(
        to_numpy(values.float()),
        unit=unit,
        value_range=(-math.inf if signed else 0.0, math.inf),
        signed=signed,
        method=method,
        class_blind=False,
        provenance=subject.provenance.with_parameters(method=name, **parameters),
        crop_box=subject.crop_box,
        caption=method,
        note=note,
        stability=stability,
    )


def leaf(subject: PreparedImage) -> Tensor:
    """A copy of the input that gradients are taken to; captum warns where it has to make one."""
    with torch.inference_mode(False):
        return subject.pixels.detach().clone().requires_grad_()


def noisy_copies(subject: PreparedImage, count: int, spread: float, random: torch.Generator) -> Tensor:
    """The input that many times, each with normal noise of this standard deviation, the same on every device."""
    noise = torch.normal(0.0, torch.full((count, *subject.pixels.shape[1:]), spread), generator=random)
    with torch.inference_mode(False):
        return subject.pixels + noise.to(subject.pixels)


def in_halves(
    summed: Callable[[int], Tensor], drawn: Callable[[Tensor], Tensor], samples: int
) -> tuple[Tensor, float | None]:
    """The map of all samples, and the rank correlation of the maps of their two halves; None for a single sample.

    Args:
        summed: from a number of samples, at most a batch and others each time, to their sum.
        drawn: from a mean to a map [rows, cols].
    """
    counts = [count for count in (samples - samples // 2, samples // 2) if count]
    sums = [
        torch.stack([summed(min(BATCH, count - start)) for start in range(0, count, BATCH)]).sum(0)
        for count in counts
    ]
    maps = [to_numpy(drawn(one / count).float()) for one, count in zip(sums, counts, strict=True)]
    return drawn(torch.stack(sums).sum(0) / samples), spearman(*maps) if len(maps) == 2 else None


def check_samples(samples: int) -> None:
    """Raise ParameterError unless there is a sample at all."""
    if samples < 1:
        raise ParameterError(f"At least one sample is needed, not {samples}.")


def stability_words(stability: float, drawn: str) -> str:
    """A sentence for people: how well two independent halves of what was drawn agree.

    Args:
        drawn: what was drawn, in words, e.g. "16 samples".
    """
    words = f"the two halves of its {drawn} agree to {stability:.2f} (rank correlation)"
    if stability >= STABLE:
        return f"{words[0].upper()}{words[1:]}; the map is their mean."
    return f"Not stable: {words}, so other random numbers would give another map."
