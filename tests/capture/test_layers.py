"""The attention of one layer, from operands or from the matrix itself."""

from __future__ import annotations

import torch

from tests.comparing import assert_same
from vit_viz.capture.layers import LayerAttention

HEADS, TOKENS, HEAD_DIM = 5, 9, 8


def test_rows_of_a_written_out_attention_are_normalised_already() -> None:
    layer = LayerAttention(weights=torch.rand(HEADS, TOKENS, TOKENS).softmax(-1))
    assert torch.equal(layer.normaliser(), torch.zeros(HEADS, TOKENS))


def test_the_normaliser_is_log_sum_exp_of_the_scores() -> None:
    q, k = torch.randn(2, HEADS, TOKENS, HEAD_DIM)
    expected = (q.double() @ k.double().transpose(1, 2) * 0.3).exp().sum(-1).log()
    assert_same(LayerAttention(q, k, 0.3).normaliser().double(), expected, relative=1e-5)
