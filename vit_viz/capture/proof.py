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
    return slice(0, tokens, max(1, (tokens - 1) // max(1, rows - 1)))


def differences(layer: LayerAttention, value: Tensor, output: Tensor, queries: slice) -> Tensor:
    """attention @ v - output for some queries of all heads, [heads, rows, head_dim].

    Args:
        layer: the captured attention.
        value: [heads, tokens, head_dim], as the kernel saw it.
        output: [heads, tokens, head_dim], as the kernel returned it.
        queries: tokens whose rows are compared.
    """
    with exact():
        return torch.baddbmm(output[:, queries].float(), layer.rows(None, queries), value.float(), beta=-1)


def largest(differences: list[Tensor]) -> list[float]:
    """The largest absolute number of each tensor; all at once, so that a GPU is waited for only once."""
    return torch.stack([each.abs().amax() for each in differences]).tolist() if differences else []
