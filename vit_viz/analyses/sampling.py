"""Random samples of a method, from a seed and in two halves whose agreement is the map's stability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.batches import BATCH
from vit_viz.analyses.correlation import spearman
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.errors import ParameterError


def in_halves(
    subject: PreparedImage,
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


@contextmanager
def _seeded(seed: int, subject: PreparedImage) -> Iterator[None]:
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


def batches(samples: int) -> Iterator[int]:
    """Sizes of the batches that so many samples make."""
    for start in range(0, samples, BATCH):
        yield min(BATCH, samples - start)


def check_samples(samples: int) -> None:
    """Raise ParameterError unless there is a sample at all."""
    if samples < 1:
        raise ParameterError(f"At least one sample is needed, not {samples}.")
