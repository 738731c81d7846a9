"""The self-check: attention @ v, recomputed from what the trace holds, against what the model's own kernel computed."""

from __future__ import annotations

from vit_viz.capture.layers import LayerAttention, exact
from vit_viz.lazy import Tensor, torch

PROOF_ROWS = 16
"""Queries per head that are compared by default."""

TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""Largest relative difference that a kernel's own rounding explains, by the precision that it computes in."""
_NOTHING = 1e-30  # the size of an output that is all zeros


def proof_queries(tokens: int, rows: int) -> slice:
    """Which queries are compared: at least `rows`, evenly spaced from the first; a slice, so that nothing has to be gathered."""
    return slice(0, tokens, max(1, (tokens - 1) // max(1, rows - 1)))


def largest_differences(
    layer: LayerAttention, value: Tensor, output: Tensor, queries: slice, *, count: int = 1
) -> Tensor:
    """The largest |attention @ v - output| / max |output| over some queries of all heads of each layer, [layers], where they are.

    Rounding grows with the numbers that are summed: a block whose values are a thousand times as large is not a thousand times as
    wrong, and one whose values are tiny is not right because its errors are.

    Args:
        layer: the captured attention, of several layers side by side.
        value: [layers * heads, tokens, head_dim], as the kernel saw it.
        output: [layers * heads, queries, head_dim], what the kernel returned for these tokens.
        queries: which they are.
        count: how many layers these are.
    """
    with exact():
        expected = output.float()
        difference = torch.baddbmm(expected, layer.rows(None, queries), value.float(), beta=-1)
        largest, size = (numbers.reshape(count, -1).abs().amax(1) for numbers in (difference, expected))
        return largest / size.clamp_min(_NOTHING)
