"""Attribution by captum, brought to patches: the only module that knows captum.

Pixel attributions are summed over the pixels of each patch, so completeness holds on patches too. Methods that remove whole patches
replace them by the preprocessing mean, which is 0 in the model's input. Methods that draw random numbers run in two halves, whose
agreement is the map's stability; the map is that of both together. They draw from generators of their own on the CPU and not as
captum does, from those of the process: other threads draw from these, too, and on a GPU the same seed gives other numbers.

captum is imported by the functions that use it, because that takes a second.

Source: Kokhlikyan et al. 2020, arXiv:2009.07896. captum's LRP raises on ViTs, its LayerGradCam averages the wrong axis of tokens,
and its Insights UI is gone: none of them is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.correlation import spearman
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import BATCH, PreparedImage, patch_mean, patch_sum
from vit_viz.analyses.spec import Passes, explains
from vit_viz.capture import check_pixels_reached
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.gradients import differentiable, gradients
from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch
from vit_viz.results import PatchMap
from vit_viz.sentences import formatted


def saliency(inputs: MethodInput) -> PatchMap:
    """How strongly the target reacts to a small change of each patch's pixels.

    |d target / d pixel|, its maximum over channels, averaged over the pixels of the patch.

    Source: Simonyan et al. 2014, arXiv:1312.6034.
    """
    from captum.attr import Saliency

    subject = inputs.subject
    forward = watched_target(inputs, 1)
    gradient = holding_device(Saliency(forward), inputs).attribute(leaf(subject))
    return attribution_map(
        subject,
        patch_mean(subject, gradient.amax(1)),
        "saliency",
        unit="target per unit of input",
        signed=False,
    )


SALIENCY = explains(
    saliency,
    label="Saliency",
    also_called="saliency map, vanilla gradient, backpropagation, sensitivity map",
    shows="how strongly the target reacts to a small change of each patch's pixels.",
    hides="whether the pixels, as they are, speak for or against the target; and neighbouring pixels can differ a lot by "
    "chance.",
    formula=r"$\max_c \lvert \partial y / \partial x_c \rvert$ over the channels $c$ of a pixel, mean over each patch",
    source="Simonyan et al. 2014, arXiv:1312.6034, by captum",
    runs="one run forwards and backwards",
    cost="many passes",
    is_card=False,
    passes=Passes(lambda _: 3),
)


def input_x_gradient(inputs: MethodInput) -> PatchMap:
    """What each patch adds to the target if the model were linear around this image: sum of pixel * d target / d pixel.

    Source: Shrikumar et al. 2016, arXiv:1605.01713.
    """
    from captum.attr import InputXGradient

    subject = inputs.subject
    forward = watched_target(inputs, 1)
    attributions = holding_device(InputXGradient(forward), inputs).attribute(leaf(subject))
    return attribution_map(subject, patch_sum(subject, attributions), "input x gradient")


INPUT_X_GRADIENT = explains(
    input_x_gradient,
    label="Input x gradient",
    also_called="gradient times input, ixg, grad * input",
    shows="what each patch would add to the target if the model were linear around this image; blue patches move it down.",
    hides="everything about the model that is not linear, such as evidence of which it has enough already.",
    formula=r"$x \circ \frac{\partial y}{\partial x}$, summed over each patch",
    source="Shrikumar et al. 2016, arXiv:1605.01713, by captum",
    runs="one run forwards and backwards",
    cost="many passes",
    is_card=False,
    passes=Passes(lambda _: 3),
)


def integrated_gradients(
    inputs: MethodInput, *, steps: int = 50, max_steps: int = 1600, tolerance: float = 0.02
) -> PatchMap:
    """What each patch adds to the target on the way from the mean image to this one; the parts sum to the change of the target.

    (x - x') * integral of d target / d x along the straight line from the baseline x' = 0, the preprocessing mean.

    Args:
        steps: points of the integral to begin with; doubled until the convergence delta is small enough.
        max_steps: where doubling ends, even without convergence.
        tolerance: largest delta, as a share of the target's change, that counts as converged.

    Returns:
        A signed map; the note and provenance show the convergence delta, sum of the map minus the target's change.

    Source: Sundararajan et al. 2017, arXiv:1703.01365.
    """
    from captum.attr import IntegratedGradients

    subject = inputs.subject
    if not 0 < steps <= max_steps or not tolerance > 0:
        raise ParameterError("Integrated gradients need 0 < steps <= max_steps and a positive tolerance.")
    baseline = torch.zeros_like(subject.pixels)
    ends = subject.scores(torch.cat([subject.pixels, baseline]), inputs.target)
    change = float(ends[0] - ends[1])
    while True:
        forward = watched_target(inputs, steps + 2)
        attributions, delta = holding_device(IntegratedGradients(forward), inputs).attribute(
            subject.pixels,
            baselines=baseline,
            n_steps=steps,
            internal_batch_size=BATCH,
            return_convergence_delta=True,
        )
        error = abs(float(delta)) / max(abs(change), 1e-12)
        if error < tolerance or 2 * steps > max_steps:
            break
        steps *= 2
    delta_text, change_text = (formatted(float(one), "+.3g") for one in (delta, change))
    words = (
        f"Convergence delta {delta_text}, {100 * error:.1f}% of the change {change_text}, at {steps} steps."
    )
    note = words if error < tolerance else f"Not converged: {words[0].lower()}{words[1:]}"
    result = patch_sum(subject, attributions)
    return attribution_map(
        subject, result, "integrated gradients", note=note, steps=steps, convergence_delta=float(delta)
    )


INTEGRATED_GRADIENTS = explains(
    integrated_gradients,
    label="Integrated gradients",
    also_called="ig, path integral, axiomatic attribution",
    shows="how much each patch raises the target as a gray image turns into this one; blue patches lower it.",
    hides="patches that are as gray as the start: they count little, whatever they mean.",
    formula=r"$(x - x_0) \circ \int_0^1 \frac{\partial y}{\partial x} (x_0 + t (x - x_0))\, dt$, summed over each patch; "
    r"$x_0$: a gray image",
    source="Sundararajan, Taly & Yan 2017, arXiv:1703.01365, by captum",
    runs="50 runs forwards and backwards or more, until it adds up",
    cost="many passes",
    passes=Passes(lambda _: 100, bound="at least"),
)


def smoothgrad(inputs: MethodInput, *, samples: int = 16, noise: float = 0.15, seed: int = 0) -> PatchMap:
    """Saliency averaged over noisy copies of the image, which removes what changes from pixel to pixel by chance.

    The gradients are averaged with their sign, then treated as in saliency.

    Args:
        noise: standard deviation of the noise, as a share of the range of the input.

    Source: Smilkov et al. 2017, arXiv:1706.03825.
    """
    from captum.attr import Saliency

    subject = inputs.subject
    check_samples(samples)
    forward, random = watched_target(inputs, samples), torch.Generator().manual_seed(seed)
    spread = float(subject.pixels.max() - subject.pixels.min())
    method = holding_device(Saliency(forward), inputs)

    def summed(count: int) -> Tensor:
        copies = noisy_copies(subject, count, noise * spread, random)
        gradients: Tensor = method.attribute(copies.requires_grad_(), abs=False)
        return gradients.sum(0, keepdim=True)

    def drawn(gradient: Tensor) -> Tensor:
        return patch_mean(subject, gradient.abs().amax(1))

    values, stability = in_halves(summed, drawn, samples)
    return attribution_map(
        subject,
        values,
        "SmoothGrad",
        unit="target per unit of input",
        signed=False,
        stability=stability,
        samples=samples,
        noise=noise,
        seed=seed,
    )


SMOOTHGRAD = explains(
    smoothgrad,
    label="SmoothGrad",
    also_called="smooth gradient, noisy gradients, sg",
    shows="where small changes to pixels change the target most, averaged over noisy copies of the photo.",
    hides="whether the pixels, as they are, speak for or against the target.",
    formula=r"$\max_c \lvert \mathrm{mean}_\varepsilon\, \frac{\partial y}{\partial x_c} (x + \varepsilon) \rvert$ over "
    r"the channels $c$ of a pixel, mean over each patch; $\varepsilon$: random noise",
    source="Smilkov et al. 2017, arXiv:1706.03825, gradients by captum",
    runs="16 runs forwards and backwards",
    cost="many passes",
    passes=Passes(lambda _: 48),
)


def gradient_shap(inputs: MethodInput, *, samples: int = 32, seed: int = 0) -> PatchMap:
    """Integrated gradients with random points on the way from the mean image, a little noise added.

    Source: Lundberg & Lee 2017, arXiv:1705.07874, as captum has it.
    """
    from captum.attr import Saliency

    subject = inputs.subject
    check_samples(samples)
    forward, random = watched_target(inputs, samples), torch.Generator().manual_seed(seed)
    ways = np.random.RandomState(seed)  # as captum draws them
    method = holding_device(Saliency(forward), inputs)

    def summed(count: int) -> Tensor:
        copies = noisy_copies(subject, count, 0.09, random)
        way = torch.from_numpy(ways.uniform(size=(count, 1, 1, 1))).to(copies)
        slopes: Tensor = method.attribute((way * copies).requires_grad_(), abs=False)
        return (copies * slopes).sum(0, keepdim=True)

    values, stability = in_halves(summed, lambda values: patch_sum(subject, values), samples)
    return attribution_map(subject, values, "GradientShap", stability=stability, samples=samples, seed=seed)


GRADIENT_SHAP = explains(
    gradient_shap,
    label="GradientShap",
    also_called="gradient shap, expected gradients",
    shows="how much each patch raises the target, measured at random points between a gray image and this one; blue "
    "patches lower it.",
    hides="its own error: the points are few and random, and the parts do not add up as those of integrated gradients do.",
    formula=r"$\mathrm{mean}_{t, \varepsilon}\, (x + \varepsilon) \circ \frac{\partial y}{\partial x} (t (x + "
    r"\varepsilon))$, summed over each patch; $t$: random in $[0, 1]$; $\varepsilon$: random noise",
    source="Lundberg & Lee 2017, arXiv:1705.07874, as captum has it",
    runs="32 runs forwards and backwards",
    cost="many passes",
    passes=Passes(lambda _: 96),
    is_card=False,
)


def occlusion(inputs: MethodInput) -> PatchMap:
    """By how much the target falls when one patch is painted with the preprocessing mean.

    Source: Zeiler & Fergus 2014, arXiv:1311.2901; one window per patch.
    """
    from captum.attr import Occlusion

    subject = inputs.subject
    patches = subject.layout.num_patches
    forward = watched_target(inputs, patches + 1)
    window = (subject.pixels.shape[1], *subject.patch_size)
    with torch.no_grad():
        attributions = Occlusion(forward).attribute(
            subject.pixels,
            sliding_window_shapes=window,
            strides=window,
            baselines=0,
            perturbations_per_eval=BATCH,
        )
    values = patch_mean(subject, attributions[:, 0])  # all pixels of a patch have the same
    return attribution_map(subject, values, "occlusion")


OCCLUSION = explains(
    occlusion,
    label="Occlusion",
    also_called="perturbation, sliding window, patch masking",
    shows="by how much the target falls when this patch alone is painted gray; where it rises, the patch is blue.",
    hides="patches that can stand in for each other: with one of them gone, the others still carry the answer.",
    formula=r"$y(x) - y(x_{-i})$; $x_{-i}$: the photo with patch $i$ painted gray",
    source="Zeiler & Fergus 2014, arXiv:1311.2901, by captum",
    runs="one run per patch",
    cost="many passes",
    passes=Passes(lambda trace: trace.layout.num_patches),
)


# --- parts


STABLE = 0.8
"""Rank correlation of two halves from which on a map is called stable."""


def watched_target(inputs: MethodInput, images: int) -> Callable[[Tensor], Tensor]:
    """The target as captum wants it: pixels [batch, ...] -> [batch], counted up to so many images and cancellable."""
    subject, target, watch = inputs.subject, inputs.target, inputs.watch(images)

    def scores_of(pixels: Tensor) -> Tensor:
        watch.check()
        scores = target(subject.outputs(pixels))
        watch.advance(len(pixels))
        return scores

    return scores_of


def holding_device(method: Any, method_input: MethodInput) -> Any:
    """A gradient method of captum whose forward and backward of each batch are one turn at the device."""
    method_input.once(_check_reached)

    def gradient_of(
        forward_fn: Callable[..., Tensor], inputs: tuple[Tensor, ...], *_: Any, **__: Any
    ) -> tuple[Tensor, ...]:
        # undisturbed to the end: a checkpointed block runs again for its gradient
        with method_input.subject.turn(), differentiable(), undisturbed(method_input.subject.model):
            leaves = [
                one if one.requires_grad and not one.is_inference() else one.detach().clone().requires_grad_()
                for one in inputs
            ]
            slopes = gradients(forward_fn(*leaves), leaves)
            pairs = zip(slopes, leaves, strict=True)
            return tuple(torch.zeros_like(leaf) if one is None else one for one, leaf in pairs)

    method.gradient_func = gradient_of
    return method


def _check_reached(inputs: MethodInput) -> None:
    """One pass forwards and backwards beside the method's own: does the target's gradient reach the pixels?"""
    subject = inputs.subject
    with subject.turn():
        check_pixels_reached(subject.model, leaf(subject), subject.outputs, inputs.target)


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
    """A sentence for people: how well two independent halves of what was drawn, such as "16 samples", agree."""
    words = f"the two halves of its {drawn} agree to {formatted(stability, '.2f')} (rank correlation)"
    if stability >= STABLE:
        return f"{words[0].upper()}{words[1:]}; the map is their mean."
    return f"Not stable: {words}, so other random numbers would give another map."
