"""Attention written out by hand with infinities in its mask: a key that is forbidden stays forbidden under every edit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import pixels
from vit_viz.capture import edit, trace
from vit_viz.geometry import TokenLayout

HEADS, HEAD_DIM, TOKENS = 5, 8, 24
LAYOUT = TokenLayout(grid=(4, 6), prefix=())


class WrittenOut(nn.Module):
    """One attention layer by hand; every token sees itself and the tokens before it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.embed, self.qkv = nn.Conv2d(3, 24, 16, 16), nn.Linear(24, 3 * HEADS * HEAD_DIM)
        self.mask = torch.full((TOKENS, TOKENS), -torch.inf).triu(1)

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(x).reshape(len(x), -1, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * HEAD_DIM**-0.5 + self.mask).softmax(-1)
        return (attention @ v).mean(2).flatten(1)


def test_infinities_of_the_mask_are_part_of_the_attention() -> None:
    recorded = trace(WrittenOut().eval(), pixels(), layout=LAYOUT)
    attention = recorded.attention(0)
    assert torch.isfinite(attention).all()
    assert (attention.triu(1) == 0).all()
    torch.testing.assert_close(attention.sum(-1), torch.ones(HEADS, TOKENS))


def test_a_uniform_head_is_uniform_over_the_keys_that_are_allowed() -> None:
    with edit(heads={(0, 2): "uniform"}):
        attention = trace(WrittenOut().eval(), pixels(), layout=LAYOUT).attention(0)
    allowed = torch.ones(TOKENS, TOKENS).tril()
    torch.testing.assert_close(attention[2], allowed / allowed.sum(-1, keepdim=True))
    assert not torch.allclose(attention[3], attention[2])


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_temperature_leaves_forbidden_keys_forbidden(temperature: float) -> None:
    with edit(temperature={0: temperature}):
        attention = trace(WrittenOut().eval(), pixels(), layout=LAYOUT).attention(0)
    assert torch.isfinite(attention).all()
    assert (attention.triu(1) == 0).all()
