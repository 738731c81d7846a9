"""The last block finishes only the tokens that the output is read from, unless somebody looks at the others."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tests.model.inside import TINY, randomise
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.vit import Mlp


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
    ({"pooling": "mean"}, 25), ({"pool_concat": True}, 25), ({"pooling": "attention"}, 25),
])  # fmt: skip
def test_the_last_block_finishes_the_tokens_that_the_output_is_read_from(
    choices: dict[str, Any], last: int
) -> None:
    model = ours(**choices)
    assert finished(model)[:3] == [model.layout(24, 42).num_tokens] * 2 + [last]


class OwnMlp(Mlp):
    """A user's own MLP, which may let tokens talk to each other."""


@pytest.mark.parametrize("where", ["block", "mlp", "norm", "everywhere", "own class"])
def test_whoever_looks_at_the_last_block_sees_all_tokens(where: str) -> None:
    model, seen = ours(), []
    hook: Any = lambda _module, _args, out: seen.append(out.shape)  # noqa: E731
    last: Any = model.blocks[-1]
    if where == "own class":
        last.mlp = OwnMlp(model.config)
    elif where == "everywhere":
        handle = nn.modules.module.register_module_forward_hook(hook)
    else:
        handle = {"block": last, "mlp": last.mlp, "norm": model.norm}[where].register_forward_hook(hook)
    try:
        assert finished(model) == [25, 25, 25]
    finally:
        if where != "own class":
            handle.remove()
    assert all(shape[1] == 25 for shape in seen if where != "everywhere")


def test_the_gradient_is_that_of_all_tokens() -> None:
    model, pixels = randomise(ours(reg_tokens=2)), torch.randn(1, 3, 24, 42, requires_grad=True)
    (short,) = torch.autograd.grad(model(pixels)[0, 3], pixels)
    stream = model.run_blocks(model.tokens(pixels), (4, 6))
    assert stream.shape == (1, 27, 40)
    (whole,) = torch.autograd.grad(model.classify(stream)[0, 3], pixels)
    torch.testing.assert_close(short, whole, rtol=1e-5, atol=1e-7)
