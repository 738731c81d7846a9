"""What torch computes of a model of ours, recorded from outside: each block's output, and each attention's parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vit_viz.model import VisionTransformer
from vit_viz.model.kernel import attending_through

PARITY = 1e-4
"""Largest difference, relative to the largest number of what is compared."""


@dataclass
class Oracle:
    """One forward pass of torch."""

    logits: Tensor
    residual: list[Tensor] = field(default_factory=list)
    q: list[Tensor] = field(default_factory=list)
    k: list[Tensor] = field(default_factory=list)
    lse: list[Tensor] = field(default_factory=list)
    attention: list[Tensor] = field(default_factory=list)
    norms: list[Tensor] = field(default_factory=list)
    pool: Tensor | None = None


@torch.no_grad()
def oracle(model: VisionTransformer, pixels: Tensor) -> Oracle:
    """Record a pass of one picture, [1, channels, height, width]; the heads' outputs are proven to be those of torch's kernel."""
    result = Oracle(model(pixels)[0])

    def kernel(
        q: Tensor, k: Tensor, v: Tensor, *, attn_mask: Tensor | None = None, scale: float | None = None
    ) -> Tensor:
        q = q * (q.shape[-1] ** -0.5 if scale is None else scale)
        scores = q @ k.transpose(-1, -2)
        scores = scores if attn_mask is None else scores + attn_mask
        attention = scores.softmax(-1)
        if q.shape[2] != k.shape[2]:
            prefix = 0 if model.config.pool_prefix else len(model.config.prefix)
            result.pool = torch.cat((torch.zeros(prefix), attention[0, :, 0].mean(0)))
            return attention @ v
        projection: Any = model.blocks[len(result.q)].attn.proj.weight
        slices = projection.reshape(len(projection), v.shape[1], -1)  # [dim, heads, head_dim]
        result.norms.append(torch.einsum("hnd,ohd->hno", v[0], slices).norm(dim=-1))
        result.q.append(q[0])
        result.k.append(k[0])
        result.lse.append(scores.logsumexp(-1)[0])
        result.attention.append(attention[0])
        return attention @ v

    x = model.tokens(pixels)
    result.residual.append(x[0])
    with attending_through(kernel):
        places = model.places(model.grid_of(*pixels.shape[-2:]))
        for block in model.blocks:
            x = block(x, places)
            result.residual.append(x[0])
        torch.testing.assert_close(model.classify(x)[0], result.logits, rtol=1e-4, atol=1e-5)
    return result


def difference(got: Any, wanted: Tensor) -> float:
    """The largest difference, relative to the largest number."""
    expected = wanted.numpy().astype(np.float64)
    assert got.size == expected.size
    return float(np.abs(got.reshape(expected.shape) - expected).max() / np.abs(expected).max())


def differences(result: dict[str, Any], expected: Oracle) -> dict[str, float]:
    """By how much a pass of the engine differs from torch's, by the name of what is compared: the largest of all layers."""
    assert "error" not in result, result["error"]
    assert len(result["layers"]) == len(expected.q)
    assert len(result["residual"]) == len(expected.residual)
    values = {"logits": difference(result["logits"], expected.logits)}
    pairs = zip(result["residual"], expected.residual, strict=True)
    values["residual"] = max(difference(*pair) for pair in pairs)
    for name in ("q", "k", "lse", "norms"):
        pairs = zip((layer[name] for layer in result["layers"]), getattr(expected, name), strict=True)
        known = [difference(*pair) for pair in pairs if pair[0] is not None]
        values[name] = max(known, default=0.0)
    if expected.pool is not None:
        values["pool"] = difference(result["pool"], expected.pool)
    return values
