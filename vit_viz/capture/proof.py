"""The self-check: attention @ v, recomputed from what the trace holds, against what the model's own kernel computed."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_viz.capture.layers import LayerAttention, exact

PROOF_ROWS = 16
"""Queries per head that are compared by default."""

TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""Largest difference that a kernel's own rounding explains, by the precision that it computes in."""


def proof_queries(tokens: int, rows: int) -> slice:
    """Which queries are compared: at least `rows`, evenly spaced from the first; a slice, so that nothing has to be gathered."""
    return slice(0, tokens, max(1, tokens // rows))


def largest_difference(layer: LayerAttention, value: Tensor, output: Tensor, queries: slice) -> Tensor:
    """Largest |attention @ v - output| over some queries of all heads; a scalar tensor, so that a GPU need not wait.

    Args:
        layer: the captured attention.
        value: [heads, tokens, head_dim], as the kernel saw it.
        output: [heads, tokens, head_dim], as the kernel returned it.
        queries: tokens whose rows are compared.
    """
    with exact():
        expected = torch.bmm(layer.rows(None, queries), value.float())  # [heads, rows, head_dim]
        return expected.sub_(output[:, queries]).abs_().amax()
