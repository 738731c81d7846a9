"""Tiny models of ours and of timm with the same random weights, and a recorder of what happens inside either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tests.comparing import assert_same

TINY = {
    "img_size": (24, 42),
    "patch_size": (6, 7),
    "embed_dim": 40,
    "depth": 3,
    "num_heads": 5,
    "num_classes": 7,
    "mlp_ratio": 3,
}  # grid 4 x 6, head_dim 8


@dataclass
class Inside(TorchFunctionMode):
    """Blocks' outputs and attention matrices of one forward call, seen from outside the model."""

    attention: list[Tensor] = field(default_factory=list)
    blocks: list[Tensor] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            q, k = args[0], args[1]
            scale = (kwargs or {}).get("scale") or q.shape[-1] ** -0.5
            bias = (kwargs or {}).get("attn_mask")
            scores = q @ k.transpose(-2, -1) * scale
            self.attention.append((scores if bias is None else scores + bias).softmax(dim=-1))
        return func(*args, **(kwargs or {}))


@torch.no_grad()
def look_inside(model: nn.Module, blocks: Any, call: Callable[[], Tensor]) -> tuple[Tensor, Inside]:
    inside = Inside()
    hooks = [
        block.register_forward_hook(
            lambda _module, _args, out: inside.blocks.append(out[0] if isinstance(out, tuple) else out)
        )
        for block in blocks
    ]
    try:
        with inside:
            return call(), inside
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def randomise(model: nn.Module) -> nn.Module:
    """Every parameter random and of a size that matters: zeros and ones would hide a swapped or forgotten one."""
    for name, parameter in model.named_parameters():
        spread = torch.randn_like(parameter)
        parameter.copy_(1 + 0.3 * spread if "norm" in name and name.endswith("weight") else 0.2 * spread)
    return model.eval()


def assert_same_inside(ours: tuple[Tensor, Inside], theirs: tuple[Tensor, Inside]) -> None:
    assert len(ours[1].blocks) == len(theirs[1].blocks) > 0
    assert len(ours[1].attention) == len(theirs[1].attention) > 0
    assert_same(ours[0], theirs[0])
    for a, b in zip(ours[1].blocks, theirs[1].blocks, strict=True):
        assert_same(a, b)
    for a, b in zip(ours[1].attention, theirs[1].attention, strict=True):
        assert_same(a, b)
