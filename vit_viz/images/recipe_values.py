"""Values of a preprocessing recipe: checked when they come in, and in words.

Raises, all of them that check:
    ParameterError: the value is out of bounds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from vit_viz.errors import ParameterError
from vit_viz.lazy import Tensor, torch

MAX_INPUT_SIDE = 2048


def pair(name: str, value: Any) -> tuple[int, int]:
    """(height, width), checked."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ParameterError(f"{name} is (height, width), not {value!r}.")
    return bounded(name, value[0]), bounded(name, value[1])


def bounded(name: str, value: Any) -> int:
    """A side of the input in pixels, checked."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_INPUT_SIDE:
        raise ParameterError(f"{name} is a number of pixels from 1 to {MAX_INPUT_SIDE}, not {value!r}.")
    return value


def per_channel(name: str, value: Any, channels: int) -> tuple[float, ...]:
    """A number for each channel, checked; one number stands for all."""
    values = tuple(float(v) for v in (value if isinstance(value, tuple | list) else (value,)))
    if len(values) in (1, 3) and len(set(values)) == 1:  # one number for all, or the default, which has three
        values = values[:1] * channels
    if len(values) != channels or not all(map(math.isfinite, values)):
        raise ParameterError(f"{name} has one finite number per channel ({channels}), not {value!r}.")
    return values


def times(size: tuple[int, int]) -> str:
    """A size in words."""
    return f"{size[0]} x {size[1]}"


def numbers(values: tuple[float, ...]) -> str:
    """Numbers per channel in words."""
    return f"{values[0]:g}" if len(set(values)) == 1 else "(" + ", ".join(f"{v:g}" for v in values) + ")"


def largest_grid(aspect: float, max_patches: int) -> tuple[int, int]:
    """(rows, cols) of at most `max_patches` patches, rows / cols near `aspect`; of equally near ones the larger."""
    ideal = math.sqrt(max_patches * aspect)
    candidates = []
    for rows in {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}:
        for cols in {
            max(1, math.floor(rows / aspect)),
            max(1, math.ceil(rows / aspect)),
            max(1, max_patches // rows),
        }:
            if rows * cols <= max_patches:
                candidates.append((abs(math.log(rows / cols / aspect)), -rows * cols, rows, cols))
    return min(candidates)[2:] if candidates else (1, 1)


def centre(size: int, crop: int) -> int:
    """Where a centre crop starts; negative where the picture is padded. Python's round to even is torchvision's."""
    return -((crop - size) // 2) if crop > size else round((size - crop) / 2.0)


@lru_cache(maxsize=8)
def statistics_on(
    device: torch.device, mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[Tensor, Tensor]:
    """Mean and std, each [channels, 1, 1], on a device, which is waited for only once."""
    values = (torch.tensor(one, dtype=torch.float32)[:, None, None].to(device) for one in (mean, std))
    return next(values), next(values)
