"""A model over many variants of one image, in batches for which the device has room."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor

BATCH = 8
"""Images per forward; more is no faster on a CPU and needs more memory."""

_logger = logging.getLogger(__name__)


def in_batches(run: Callable[[slice], Tensor], count: int, *, size: int = BATCH) -> Tensor:
    """The results of `run` for consecutive slices of `count` variants, side by side.

    A batch for which a GPU has no room is halved, and so are all after it; each variant still runs exactly once to its end.

    Args:
        run: one number or row per variant of a slice, [variants, ...].
        size: variants per batch.

    Raises:
        torch.OutOfMemoryError: there is no room for a single variant.
    """
    parts: list[Tensor] = []
    start = 0
    while start < count:
        part = slice(start, min(start + size, count))
        values = _tried(run, part)
        if values is None:  # tried again here, where the exception no longer holds on to the batch's memory
            size = (part.stop - part.start) // 2
            _logger.warning("the GPU has no room for %d images at once: %d from now on", 2 * size, size)
            continue
        parts.append(values)
        start = part.stop
    return torch.cat(parts)


def _tried(run: Callable[[slice], Tensor], part: slice) -> Tensor | None:
    """What `run` says of a slice; None where there is no room for it but may be for half of it."""
    try:
        return run(part)
    except torch.OutOfMemoryError:
        if part.stop - part.start == 1:
            raise
        return None
