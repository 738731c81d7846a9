"""How much a token hands on per unit of attention: the length of its value after the head's part of the output projection."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def value_norms(v: Tensor, projection: Tensor) -> Tensor:
    """||v_j W_O,h||, fp32 [heads, tokens]: the root of v_j (W_O,h^T W_O,h) v_j^T, so that no vector of the model's width is formed.

    Args:
        v: fp32 [heads, tokens, head_dim].
        projection: W_O, [dim, heads * head_dim].
    """
    slices = (
        projection.detach().float().reshape(len(projection), len(v), -1).transpose(0, 1)
    )  # [heads, dim, head_dim]
    gram = torch.bmm(slices.transpose(1, 2), slices)
    return torch.bmm(v, gram).mul_(v).sum(-1).clamp_(min=0).sqrt_()


def unknown_norms(v: Tensor) -> Tensor:
    """What stands for the norms of v [heads, tokens, head_dim] where no output projection is known."""
    return torch.full((), math.nan, device=v.device).expand(v.shape[:2])
