"""Attribution by captum, brought to patches: the only module that knows captum.

Pixel attributions are summed over the pixels of each patch, so completeness holds on patches too. Methods that remove whole patches
replace them by the preprocessing mean, which is 0 in the model's input. Methods that draw random numbers run in two halves, whose
agreement is the map's stability; the map is that of both together.

Source: Kokhlikyan et al. 2020, arXiv:2009.07896. captum's LRP raises on ViTs, its LayerGradCam averages the wrong axis of tokens,
and its Insights UI is gone: none of them is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from captum.attr import (
    FeatureAblation,
    GradientShap,
    InputXGradient,
    IntegratedGradients,
    NoiseTunnel,
    Occlusion,
    Saliency,
)
from torch import Tensor

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.batches import BATCH
from vit_viz.analyses.patchwise import patch_mask, patch_mean, patch_sum, patch_value
from vit_viz.analyses.sanity import spearman
from vit_viz.analyses.shapley import kernel_shap as kernel_shap  # not captum's, but called like the others
from vit_viz.analyses.stability import stability_words
from vit_viz.analyses.subject import Subject
from vit_viz.analyses.targets import Target
from vit_viz.analyses.watch import Progress, StopCheck, Watch
from vit_viz.errors import ParameterError
from vit_viz.results import PatchMap

INFINITE = (-math.inf, math.inf)


def saliency(
    subject: Subject,
    *,
    target: Target,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """How strongly the target reacts to a small change of each patch's pixels.

    |d target / d pixel|, its maximum over channels, averaged over the pixels of the patch.

    Source: Simonyan et al. 2014, arXiv:1312.6034.
    """
    forward = _Watched(subject, target, Watch(1, progress=progress, cancelled=cancelled))
    gradient = _in_turn(Saliency(forward), subject).attribute(_leaf(subject))
    return _map(
        subject,
        patch_mean(subject, gradient.amax(1)),
        "saliency",
        unit="target per unit of input",
        signed=False,
    )


def input_x_gradient(
    subject: Subject,
    *,
    target: Target,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """What each patch adds to the target if the model were linear around this image: sum of pixel * d target / d pixel.

    Source: Shrikumar et al. 2016, arXiv:1605.01713.
    """
    forward = _Watched(subject, target, Watch(1, progress=progress, cancelled=cancelled))
    attributions = _in_turn(InputXGradient(forward), subject).attribute(_leaf(subject))
    return _map(subject, patch_sum(subject, attributions), "input x gradient")


def integrated_gradients(
    subject: Subject,
    *,
    target: Target,
    steps: int = 50,
    max_steps: int = 1600,
    tolerance: float = 0.02,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """What each patch adds to the target on the way from the mean image to this one; the parts sum to the change of the target.

    (x - x') * integral of d target / d x along the straight line from the baseline x' = 0, the preprocessing mean.

    Args:
        steps: points of the integral to begin with; doubled until the convergence delta is small enough.
        max_steps: where doubling ends, even without convergence.
        tolerance: largest delta, as a share of the target's change, that counts as converged.

    Returns:
        A signed map; the note and provenance show the convergence delta, sum of the map minus the target's change.

    Raises:
        ParameterError: steps or tolerance are not positive.
        Cancelled: `cancelled` said so.

    Source: Sundararajan et al. 2017, arXiv:1703.01365.
    """
    if not 0 < steps <= max_steps or not tolerance > 0:
        raise ParameterError("Integrated gradients need 0 < steps <= max_steps and a positive tolerance.")
    baseline = torch.zeros_like(subject.pixels)
    ends = subject.scores(torch.cat([subject.pixels, baseline]), target)
    change = float(ends[0] - ends[1])
    while True:
        forward = _Watched(subject, target, Watch(steps + 2, progress=progress, cancelled=cancelled))
        attributions, delta = _in_turn(IntegratedGradients(forward), subject).attribute(
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
    words = f"Convergence delta {float(delta):+.3g}, {100 * error:.1f}% of the change {change:+.3g}, at {steps} steps."
    note = words if error < tolerance else f"Not converged: {words[0].lower()}{words[1:]}"
    result = patch_sum(subject, attributions)
    return _map(
        subject, result, "integrated gradients", note=note, steps=steps, convergence_delta=float(delta)
    )


def smoothgrad(
    subject: Subject,
    *,
    target: Target,
    samples: int = 16,
    noise: float = 0.15,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """Saliency averaged over noisy copies of the image, which removes what changes from pixel to pixel by chance.

    The gradients are averaged with their sign, then treated as in saliency.

    Args:
        noise: standard deviation of the noise, as a share of the range of the input.

    Source: Smilkov et al. 2017, arXiv:1706.03825.
    """
    _check_samples(samples)
    forward = _Watched(subject, target, Watch(samples, progress=progress, cancelled=cancelled))
    spread = float(subject.pixels.max() - subject.pixels.min())
    method = NoiseTunnel(_in_turn(Saliency(forward), subject))

    def run(count: int) -> Tensor:
        gradient: Tensor = method.attribute(
            _leaf(subject),
            nt_type="smoothgrad",
            nt_samples=count,
            nt_samples_batch_size=min(count, BATCH),
            stdevs=noise * spread,
            abs=False,
        )
        return gradient

    def drawn(gradient: Tensor) -> Tensor:
        return patch_mean(subject, gradient.abs().amax(1))

    values, stability = _in_halves(subject, run, drawn, samples, seed)
    return _map(
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


def gradient_shap(
    subject: Subject,
    *,
    target: Target,
    samples: int = 32,
    seed: int = 0,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """Integrated gradients with random points on the way from the mean image, a little noise added.

    Source: Lundberg & Lee 2017, arXiv:1705.07874, as captum has it.
    """
    _check_samples(samples)
    forward = _Watched(subject, target, Watch(samples, progress=progress, cancelled=cancelled))
    method = _in_turn(GradientShap(forward), subject)

    def run(count: int) -> Tensor:
        total = torch.zeros_like(subject.pixels)
        for part in _batches(count):
            total += part * method.attribute(
                subject.pixels, baselines=torch.zeros_like(subject.pixels), n_samples=part, stdevs=0.09
            )
        return total / count

    values, stability = _in_halves(subject, run, lambda values: patch_sum(subject, values), samples, seed)
    return _map(subject, values, "GradientShap", stability=stability, samples=samples, seed=seed)


def occlusion(
    subject: Subject,
    *,
    target: Target,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """By how much the target falls when one patch is painted with the preprocessing mean.

    Source: Zeiler & Fergus 2014, arXiv:1311.2901; one window per patch.
    """
    patches = subject.layout.num_patches
    forward = _Watched(subject, target, Watch(patches + 1, progress=progress, cancelled=cancelled))
    window = (subject.pixels.shape[1], *subject.patch_size)
    with torch.no_grad():
        attributions = Occlusion(forward).attribute(
            subject.pixels,
            sliding_window_shapes=window,
            strides=window,
            baselines=0,
            perturbations_per_eval=BATCH,
        )
    return _map(subject, patch_value(subject, attributions), "occlusion")


def feature_ablation(
    subject: Subject,
    *,
    target: Target,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> PatchMap:
    """By how much the target falls when one patch is replaced by the preprocessing mean: occlusion, by way of a feature mask."""
    patches = subject.layout.num_patches
    forward = _Watched(subject, target, Watch(patches + 1, progress=progress, cancelled=cancelled))
    with torch.no_grad():
        attributions = FeatureAblation(forward).attribute(
            subject.pixels, baselines=0, feature_mask=patch_mask(subject), perturbations_per_eval=BATCH
        )
    return _map(subject, patch_value(subject, attributions), "feature ablation")


# --- parts


class _Watched:
    """The target as captum wants it: pixels [batch, ...] -> [batch], counted and cancellable."""

    def __init__(self, subject: Subject, target: Target, watch: Watch) -> None:
        self._subject, self._target, self._watch = subject, target, watch

    def __call__(self, pixels: Tensor) -> Tensor:
        self._watch.check()
        scores = self._target(self._subject.outputs(pixels))
        self._watch.advance(len(pixels))
        return scores


def _in_turn(method: Any, subject: Subject) -> Any:
    """A gradient method of captum whose forward and backward of each batch are one turn at the device."""
    gradient_of = method.gradient_func

    def in_turn(*args: Any, **kwargs: Any) -> Any:
        with subject.turn():
            return gradient_of(*args, **kwargs)

    method.gradient_func = in_turn
    return method


def _map(
    subject: Subject,
    values: Tensor,
    method: str,
    *,
    unit: str = "change of the target",
    signed: bool = True,
    note: str = "",
    stability: float | None = None,
    **parameters: object,
) -> PatchMap:
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


def _in_halves(
    subject: Subject,
    run: Callable[[int], Tensor],
    drawn: Callable[[Tensor], Tensor],
    samples: int,
    seed: int,
) -> tuple[Tensor, float | None]:
    """The map of all samples, and the rank correlation of the maps of their two halves; None for a single sample.

    Args:
        run: from a number of samples to their mean.
        drawn: from a mean to a map [rows, cols].
    """
    counts = [count for count in (samples - samples // 2, samples // 2) if count]
    with _seeded(seed, subject):
        means = [run(count) for count in counts]
    whole = torch.stack([count * mean for count, mean in zip(counts, means, strict=True)]).sum(0) / samples
    maps = [to_numpy(drawn(mean).float()) for mean in means]
    return drawn(whole), spearman(*maps) if len(maps) == 2 else None


def _leaf(subject: Subject) -> Tensor:
    """A copy of the input that gradients are taken to; captum warns where it has to make one."""
    return subject.pixels.detach().clone().requires_grad_()


@contextmanager
def _seeded(seed: int, subject: Subject) -> Iterator[None]:
    """Random numbers from this seed; the random state outside stays as it was."""
    devices = [subject.pixels.device] if subject.pixels.device.type == "cuda" else []
    state = np.random.get_state()  # captum draws from NumPy's generator, too
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            np.random.seed(seed)
            yield
    finally:
        np.random.set_state(state)


def _batches(samples: int) -> Iterator[int]:
    for start in range(0, samples, BATCH):
        yield min(BATCH, samples - start)


def _check_samples(samples: int) -> None:
    if samples < 1:
        raise ParameterError(f"At least one sample is needed, not {samples}.")
