"""Attention written out by hand with infinities in its mask: a key that is forbidden stays forbidden under every edit."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.capture.misleading import HEADS, Model, attending, blocks, scores
from tests.capture.models import pixels
from vit_viz.capture import edit, trace
from vit_viz.geometry import TokenLayout

TOKENS, LAYOUT = 25, TokenLayout(grid=(4, 6))


def model() -> nn.Module:
    """One attention by hand; every token sees itself and the tokens before it."""
    mask = torch.full((TOKENS, TOKENS), -torch.inf).triu(1)
    torch.manual_seed(3)
    return Model(blocks(attending(lambda q, k, v: (scores(q, k) + mask).softmax(-1) @ v))).eval()


def test_infinities_of_the_mask_are_part_of_the_attention() -> None:
    recorded = trace(model(), pixels(), layout=LAYOUT)
    attention = recorded.attention(0)
    assert torch.isfinite(attention).all()
    assert (attention.triu(1) == 0).all()
    torch.testing.assert_close(attention.sum(-1), torch.ones(HEADS, TOKENS))


def test_a_uniform_head_is_uniform_over_the_keys_that_are_allowed() -> None:
    with edit(heads={(0, 2): "uniform"}):
        attention = trace(model(), pixels(), layout=LAYOUT).attention(0)
    allowed = torch.ones(TOKENS, TOKENS).tril()
    torch.testing.assert_close(attention[2], allowed / allowed.sum(-1, keepdim=True))
    assert not torch.allclose(attention[3], attention[2])


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_a_temperature_leaves_forbidden_keys_forbidden(temperature: float) -> None:
    with edit(temperature={0: temperature}):
        attention = trace(model(), pixels(), layout=LAYOUT).attention(0)
    assert torch.isfinite(attention).all()
    assert (attention.triu(1) == 0).all()
