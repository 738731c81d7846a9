"""Which layers the gradient of a target reaches, whether it reaches the pixels, and which part of the model keeps it from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vit_viz.capture.forward import undisturbed
from vit_viz.capture.gradient_stops import GradientStops
from vit_viz.capture.gradients import OUTSIDE, WITHOUT, differentiable, gradients
from vit_viz.capture.interception import are_ours
from vit_viz.capture.probing import rounding
from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, nn, torch
from vit_viz.model.submodules import submodules_of


def unreached(
    slopes: Mapping[int, Tensor | None],
    stops: GradientStops | None,
    value: Tensor,
    changed: Callable[[Sequence[int]], Tensor],
) -> dict[int, str]:
    """The layers that a gradient does not reach, or not the whole of it: each with the words that say what keeps it from them.

    A layer without a gradient that nothing is seen to keep from it is one that the target does not depend on, so that its gradient
    is 0, or one that the model reads where nothing sees it, as in NumPy: whether the target changes without the layer tells.

    Args:
        slopes: the gradient of each layer that is asked about, the last one among them; None where autograd finds none.
        stops: what was seen of the pass; None where nothing was.
        value: the target, one number.
        changed: the target where no head of some layers says anything.
    """
    why: dict[int, str] = {}
    for layer, gradient in slopes.items():
        stop = None if stops is None else stops.before(value, layer, is_reached=gradient is not None)
        if stop is not None:
            why[layer] = stop
    hidden = [i for i, gradient in slopes.items() if i not in why and is_silent(gradient, stops, i)]
    if hidden and has_moved(value, changed(hidden)):
        for layer in hidden:
            if has_moved(value, changed([layer])):
                why[layer] = (stops and stops.last_of(layer)) or OUTSIDE
    if not why:
        return {}
    last = max(why)  # what is kept from a layer is kept from those that it reads, too
    is_part = any(one is not None for layer, one in slopes.items() if layer <= last)
    share = "Not the whole gradient" if is_part else "No gradient"
    if not is_part and last == max(slopes):
        raise CaptureError(f"The target has no gradient in any layer: {why[last]}; {WITHOUT}.")
    layers = f"layers 0-{last}" if last else "layer 0"
    return dict.fromkeys(range(last + 1), f"{share} of the target reaches {layers}: {why[last]}")


def check_pixels_reached(
    module: nn.Module, pixels: Tensor, outputs: Callable[[Tensor], Tensor], target: Callable[[Tensor], Tensor]
) -> None:
    """Check in one pass forwards and backwards that the gradient of a target reaches the pixels, where another's module runs.

    Args:
        pixels: one image, which wants a gradient.
        outputs: of the module, from pixels to [images, outputs].
        target: from outputs to a number per image.
    """
    parts = submodules_of(module)
    if are_ours(parts):
        return
    stops = GradientStops(module, lambda: 1)
    with differentiable(), undisturbed(module):
        stops.follow(pixels)
        with stops.around():
            output = outputs(pixels)
        with stops:
            value = target(output)
        (slope,) = gradients(value, [pixels])
    why = stops.before(value, 0, is_reached=slope is not None)
    if why is None and is_silent(slope, stops, 0):
        with torch.no_grad():
            other = target(outputs(torch.zeros_like(pixels)))
        why = (stops.last_of(0) or OUTSIDE) if has_moved(value, other) else None
    if why is not None:
        share = "No gradient" if slope is None else "Not the whole gradient"
        raise CaptureError(f"{share} of the target reaches the pixels: {why}; {WITHOUT}.")


def is_silent(gradient: Tensor | None, stops: GradientStops | None, source: int) -> bool:
    """Whether a gradient says nothing of a source that it was seen to end at, or that autograd does not find."""
    if gradient is None:
        return True
    return stops is not None and stops.last_of(source) is not None and not gradient.any()


def has_moved(value: Tensor, other: Tensor) -> bool:
    """Whether two values of a target differ by more than rounding."""
    return bool((other - value).abs() > rounding(value.dtype) * torch.maximum(value.abs(), other.abs()))
