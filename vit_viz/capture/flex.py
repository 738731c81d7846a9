"""torch's flex_attention, run as written-out attention, so that whatever sees and edits softmaxes sees and edits it, too.

Its scores are score_mod(q_i k_j * scale, image, head, i, j), and -inf where mask_mod(image, head, i, j) says no; its weights are
their softmax, and 0 where a query sees no key at all. That this is what the operator computes is compared with its own output at
every call.

Source: torch/nn/attention/flex_attention.py of PyTorch 2.13.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, torch

MODULE = "torch._higher_order_ops.flex_attention"
_AXES = 4  # image, head, query, key
_CLOSE = 2e-2
"""Largest difference from the operator's own output, as a share of its largest number: half precision is coarse."""


def flex_operator() -> Callable[..., Any] | None:
    """The operator; None where nothing has imported it yet."""
    return getattr(sys.modules.get(MODULE), "flex_attention", None)


def written_out(seen: AbstractContextManager[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What the operator returns, with its products and its softmax computed one by one while `seen` is active."""
    query, key, value, score_mod, block_mask, scale = args[:6]
    with torch.no_grad():
        expected, *statistics = func(*args)
    groups = query.shape[1] // key.shape[1]
    key, value = (part.expand(len(query), -1, -1, -1).repeat_interleave(groups, 1) for part in (key, value))
    with seen:
        scores = torch.matmul(query, key.transpose(-2, -1))
    places = [torch.arange(size, device=scores.device) for size in scores.shape]
    scores = _at_each_place(score_mod, scores * scale, *places)
    allowed = _at_each_place(block_mask[-1], *places)
    scores = scores.to(query.dtype).masked_fill(~allowed, -torch.inf)
    plain = torch._safe_softmax(scores, -1) @ value  # a row without keys has weight 0 everywhere
    if not (plain - expected).abs().max() <= _CLOSE * expected.abs().max():
        raise CaptureError(
            "flex_attention returns an output that does not follow from its scores, score_mod and block_mask; replace it with "
            "scaled_dot_product_attention with attn_mask, which is recorded."
        )
    with seen:
        output = torch.matmul(torch._safe_softmax(scores, -1), value)
    return output, *statistics


def _at_each_place(function: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A function of one score (or none) and its place, at all of them: [images, heads, queries, keys]."""
    scores = [0] * (len(operands) - _AXES)
    for axis in reversed(range(_AXES)):
        place: list[int | None] = [None] * _AXES
        place[axis] = 0
        function = torch.vmap(function, in_dims=(*scores, *place))
    return function(*operands)
