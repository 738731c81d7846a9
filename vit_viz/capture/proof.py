"""The self-check: attention @ v, recomputed from what the trace holds, against what the model's own kernel computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from vit_viz.capture.layers import LayerAttention, exact

PROOF_ROWS = 16
"""Queries per head that are compared by default."""

TOLERANCES = {torch.float32: 1e-4, torch.float64: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
"""Largest relative difference that a kernel's own rounding explains, by the precision that it computes in."""
_NOTHING = 1e-30  # the size of an output that is all zeros


def proof_queries(tokens: int, rows: int) -> slice:
    """Which queries are compared: at least `rows`, evenly spaced from the first; a slice, so that nothing has to be gathered."""
    return slice(0, tokens, max(1, (tokens - 1) // max(1, rows - 1)))


def differences(layer: LayerAttention, value: Tensor, output: Tensor, queries: slice) -> Tensor:
    """(attention @ v - output) / max |output| for some queries of all heads, [heads, rows, head_dim].

    Rounding grows with the numbers that are summed: a block whose values are a thousand times as large is not a thousand times as
    wrong, and one whose values are tiny is not right because its errors are.

    Args:
        layer: the captured attention.
        value: [heads, tokens, head_dim], as the kernel saw it.
        output: [heads, tokens, head_dim], as the kernel returned it.
        queries: tokens whose rows are compared.
    """
    with exact():
        given = output[:, queries].float()
        difference = torch.baddbmm(given, layer.rows(None, queries), value.float(), beta=-1)
        size: Tensor = torch.linalg.vector_norm(given, math.inf)
        return difference / size.clamp_min(_NOTHING)


def largest(differences: list[Tensor]) -> list[float]:
    """The largest absolute number of each tensor; all at once, so that a GPU is synchronised only once."""
    norms = [torch.linalg.vector_norm(each, math.inf) for each in differences]
    return torch.stack(norms).tolist() if norms else []
