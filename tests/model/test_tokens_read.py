"""The last block finishes only the tokens that the output is read from, unless somebody looks at the others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tests.comparing import assert_same
from tests.model.inside import TINY, randomise
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.vit import Attention, Mlp

pytestmark = pytest.mark.numbers


class Finished(TorchFunctionMode):
    """How many tokens go through each block's MLP, seen without a hook."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[int] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.gelu:
            self.tokens.append(args[0].shape[1])
        return func(*args, **(kwargs or {}))


def finished(model: nn.Module) -> list[int]:
    with Finished() as seen, torch.no_grad():
        model(torch.randn(2, 3, 24, 42))
    return seen.tokens


def ours(**choices: Any) -> VisionTransformer:
    return VisionTransformer(ViTConfig.from_dict({**TINY, **choices})).eval()


@pytest.mark.parametrize(("choices", "last"), [
    ({}, 1), ({"reg_tokens": 2}, 1), ({"dist_token": True, "dist_head": True}, 2), ({"final_norm": False}, 1),
    ({"class_tokens": 4, "class_read": (2, 0), "reg_tokens": 1}, 3),
    ({"pooling": "mean"}, 25), ({"pool_concat": True}, 25), ({"pooling": "attention"}, 25),
])  # fmt: skip
def test_the_last_block_finishes_the_tokens_that_the_output_is_read_from(
    choices: dict[str, Any], last: int
) -> None:
    model = ours(**choices)
    assert finished(model)[:3] == [model.layout(24, 42).num_tokens] * 2 + [last]


class OwnMlp(Mlp):
    """A user's own MLP, which may let tokens talk to each other."""


@pytest.mark.parametrize("where", ["block", "mlp", "norm"])
def test_a_hook_sees_all_tokens(where: str) -> None:
    model, seen = ours(), []
    last: Any = model.blocks[-1]
    watched = {"block": last, "mlp": last.mlp, "norm": model.norm}[where]
    watched.register_forward_hook(lambda _module, _args, out: seen.append(tuple(out.shape)))
    assert finished(model) == [25, 25, 25]
    assert seen == [(2, 25, 40)]


def test_a_hook_on_every_module_sees_all_tokens() -> None:
    model, seen = ours(), []
    handle = nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(module))
    try:
        assert finished(model) == [25, 25, 25]
    finally:
        handle.remove()
    assert model.norm in seen


def test_a_class_of_ones_own_gets_all_tokens() -> None:
    model = ours()
    model.blocks[-1].mlp = OwnMlp(model.config)
    assert finished(model) == [25, 25, 25]


def test_a_forward_of_ones_own_gets_all_tokens() -> None:
    model = ours()
    attention: Any = model.blocks[-1].attn
    attention.forward = lambda x, rotary: Attention.forward(attention, 2 * x, rotary)
    assert finished(model) == [25, 25, 25]


def test_the_gradient_is_that_of_all_tokens() -> None:
    model, pixels = randomise(ours(reg_tokens=2)), torch.randn(1, 3, 24, 42, requires_grad=True)
    (short,) = torch.autograd.grad(model(pixels)[0, 3], pixels)
    stream = model.run_blocks(model.tokens(pixels), (4, 6))
    assert stream.shape == (1, 27, 40)
    (whole,) = torch.autograd.grad(model.classify(stream)[0, 3], pixels)
    assert_same(short, whole)
