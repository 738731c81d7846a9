"""The attention kernel of our own model, which a trace can replace for one forward pass.

A foreign model has to be watched through every torch function that it calls (capture/interception.py). In ours the one call that
matters goes through here, so that recording costs nothing for the others: 12 calls of a ViT-Tiny instead of 214, which is 6 to 8%
of its forward pass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vit_viz.lazy import F, Tensor

Kernel = Callable[..., Tensor]


class _KernelOverride(threading.local):
    """What computes attention in this thread; None for torch's function."""

    kernel: Kernel | None = None


_OVERRIDE = _KernelOverride()


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor | None = None, scale: float | None = None
) -> Tensor:
    """softmax(q k^T * scale + bias) v: torch's function of that name, unless `attending_through` put another in its place.

    Args:
        q: queries [B, H, N, d].
        k, v: keys and values [B, H, M, d].
        bias: added to the scores, [1, H, N, M]; None adds nothing.
        scale: factor of the dot products; None is d ** -0.5.

    Returns:
        [B, H, N, d].
    """
    kernel = _OVERRIDE.kernel or F.scaled_dot_product_attention
    return kernel(q, k, v, attn_mask=bias, scale=scale)


@contextmanager
def attending_through(kernel: Kernel) -> Iterator[None]:
    """Let `kernel` compute the attention of our models, in this thread and within the `with` statement only."""
    before = _OVERRIDE.kernel
    _OVERRIDE.kernel = kernel
    try:
        yield
    finally:
        _OVERRIDE.kernel = before
