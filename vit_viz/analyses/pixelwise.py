"""What methods over pixels share: the target as a function of pixels, gradients one batch at a time, and the map made of them."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.stability import stability_words
from vit_viz.analyses.targets import Target
from vit_viz.progress import Watch
from vit_viz.results import PatchMap

INFINITE = (-math.inf, math.inf)


class WatchedTarget:
    """The target as captum wants it: pixels [batch, ...] -> [batch], counted and cancellable."""

    def __init__(self, subject: PreparedImage, target: Target, watch: Watch) -> None:
        self._subject, self._target, self._watch = subject, target, watch

    def __call__(self, pixels: Tensor) -> Tensor:
        """The target of each image of a batch."""
        self._watch.check()
        scores = self._target(self._subject.outputs(pixels))
        self._watch.advance(len(pixels))
        return scores


def in_turn(method: Any, subject: PreparedImage) -> Any:
    """A gradient method of captum whose forward and backward of each batch are one turn at the device."""
    gradient_of = method.gradient_func

    def within_turn(*args: Any, **kwargs: Any) -> Any:
        with subject.turn():
            return gradient_of(*args, **kwargs)

    method.gradient_func = within_turn
    return method


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
        value_range=INFINITE if signed else (0.0, math.inf),
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
    return subject.pixels.detach().clone().requires_grad_()
