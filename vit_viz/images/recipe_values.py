"""Values of a preprocessing recipe: checked when they come in, and in words.

Raises, all of them that check:
    ParameterError: the value is out of bounds.
"""

from __future__ import annotations

import math
from typing import Any

from vit_viz.errors import ParameterError

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
