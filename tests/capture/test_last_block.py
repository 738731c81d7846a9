"""The blocks of a module, apart from the rest of it: what they returned, and what stands in the place of the last."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import pixels, timm_vit
from vit_viz.capture.last_block import Blocks
from vit_viz.errors import CaptureError

DIM = 4


class Beside(nn.Linear):
    """Returns its tokens and something beside them."""

    def forward(self, x: Any) -> Any:
        return super().forward(x[0] if isinstance(x, tuple) else x), 3.5


class Chain(nn.Module):
    """Nothing but blocks."""

    def __init__(self, kind: type[nn.Linear] = nn.Linear) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(kind(DIM, DIM) for _ in range(3))

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return x


def apart(module: nn.Module, x: Tensor) -> Blocks:
    blocks = Blocks(module)
    with blocks.apart():
        module(x)
    return blocks


@pytest.mark.parametrize("cut", [False, True])
def test_a_pass_of_another_thread_is_neither_noted_nor_cut(cut: bool) -> None:
    module, elsewhere = timm_vit(), pixels().requires_grad_()
    blocks = Blocks(module)
    with blocks.apart(cut=cut):
        thread = threading.Thread(target=lambda: module(elsewhere).sum().backward())
        thread.start()
        thread.join()
        module(pixels() * 2)
    assert elsewhere.grad.any()
    expected = apart(module, pixels() * 2)
    assert all(torch.equal(*pair) for pair in zip(blocks.states, expected.states, strict=True))


@pytest.mark.parametrize("axis", [0, 1])
def test_each_token_becomes_an_image_of_its_own_in_the_arrangement_of_the_module(axis: int) -> None:
    blocks = apart(Chain(), torch.randn(*((1, 5) if axis == 0 else (5, 1)), DIM))
    tokens = torch.arange(3.0 * DIM).reshape(3, DIM)
    for image, token in zip(blocks.sequences(tokens).unbind(axis), tokens, strict=True):
        assert torch.equal(image, token.expand(5, DIM))


def test_without_an_axis_of_images_no_token_becomes_one() -> None:
    with pytest.raises(CaptureError, match=r"\[5, 2, 4\], which has no axis for the images"):
        apart(Chain(), torch.randn(5, 2, DIM)).sequences(torch.zeros(3, DIM))


def test_what_a_block_returns_beside_its_tokens_is_as_it_was() -> None:
    module = Chain(Beside)
    blocks, state = apart(module, torch.randn(1, 5, DIM)), torch.randn(1, 7, DIM)
    with blocks.answering_from(state):
        tokens, beside = module(torch.randn(1, 5, DIM))
    assert tokens is state
    assert beside == 3.5
