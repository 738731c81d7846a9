"""The attention of one layer, from operands or from the matrix itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.comparing import assert_same
from vit_viz.capture import layers
from vit_viz.capture.layers import LayerAttention

HEADS, TOKENS, HEAD_DIM = 5, 9, 8


def test_rows_of_a_written_out_attention_are_normalised_already() -> None:
    layer = LayerAttention(weights=torch.rand(HEADS, TOKENS, TOKENS).softmax(-1))
    assert torch.equal(layer.normaliser(), torch.zeros(HEADS, TOKENS))


def test_the_normaliser_is_log_sum_exp_of_the_scores() -> None:
    q, k = torch.randn(2, HEADS, TOKENS, HEAD_DIM)
    expected = (q.double() @ k.double().transpose(1, 2) * 0.3).exp().sum(-1).log()
    assert_same(LayerAttention(q, k, 0.3).normaliser().double(), expected, relative=1e-5)


@pytest.mark.parametrize("queries", [1, 2, 4])
def test_what_is_computed_in_tiles_is_what_one_gives(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = operands()
    whole, chosen = layer.normaliser(), layer.exact_rows([3, 1], [7, 2, 4, 0, 5])
    monkeypatch.setitem(layers.TILE_BYTES, "cpu", 4 * queries * HEADS * TOKENS)
    assert len(list(layer.blocks(None))) > 2
    assert_same(layer.normaliser(), whole, relative=1e-6)
    assert_same(layer.exact_rows([3, 1], [7, 2, 4, 0, 5]), chosen, relative=1e-6)


def operands(**more: Any) -> LayerAttention:
    q, k, v = torch.randn(3, HEADS, TOKENS, HEAD_DIM)
    return LayerAttention(q, k, 0.3, v=v, **more)


@pytest.mark.parametrize("heads", [None, [3], [4, 1]])
@pytest.mark.parametrize("queries", [None, [2], [7, 3], slice(2, 8)])
@pytest.mark.parametrize("shape", [None, (1, 1), (1, TOKENS), (HEADS, 1), (HEADS, TOKENS)])
def test_rows_are_softmax_of_the_scores_and_the_bias(
    heads: list[int] | None, queries: list[int] | slice | None, shape: tuple[int, int] | None
) -> None:
    layer = operands(bias=None if shape is None else torch.randn(*shape, TOKENS))
    scores = layer.q @ layer.k.transpose(1, 2) * 0.3 + (0 if layer.bias is None else layer.bias)
    expected = scores.softmax(-1)
    expected = expected if heads is None else expected[heads]
    expected = expected if queries is None else expected[:, queries]
    assert_same(layer.rows(heads, queries), expected)
    if not isinstance(queries, slice):
        assert_same(layer.exact_rows(heads, queries), expected)
    columns = layer.columns(heads, [5, 2], layer.normaliser())
    assert_same(columns, (scores if heads is None else scores[heads]).softmax(-1)[..., [5, 2]])


def test_the_gradient_by_the_attention_is_that_by_the_output_times_the_values() -> None:
    layer = operands(output_grad=torch.randn(HEADS, TOKENS, HEAD_DIM))
    expected = layer.output_grad @ layer.v.transpose(1, 2)
    found = layer.gradient([3, 1], [7, 2])
    assert_same(found, expected[[3, 1]][:, [7, 2]])
    assert operands().gradient(None, None) is None
    without_values = replace(layer, v=None)
    assert without_values.gradient(None, None) is None


def test_the_gradient_by_a_written_out_attention_is_its_own() -> None:
    gradient = torch.randn(HEADS, TOKENS, TOKENS)
    layer = LayerAttention(weights=torch.rand(HEADS, TOKENS, TOKENS), weights_grad=gradient)
    found = layer.gradient([3, 1], [7, 2])
    assert torch.equal(found, gradient[[3, 1]][:, [7, 2]])
    found.zero_()
    assert bool(gradient[3, 7].any())


@pytest.mark.parametrize(("heads", "rows"), [(None, 349), (2, 873), (1, 1747)])
def test_a_tile_is_as_large_as_a_cache(heads: int | None, rows: int) -> None:
    """4 MiB are 1,048,576 numbers: 600 keys of 5 heads have room for 349 queries."""
    layer = LayerAttention(torch.empty(HEADS, 2000, 1), torch.empty(HEADS, 600, 1), 1.0)
    blocks = list(layer.blocks(None, heads))
    assert blocks[0] == slice(0, rows)
    assert [block.start for block in blocks[1:]] == [block.stop for block in blocks[:-1]]
    assert blocks[-1].stop == 2000


@pytest.mark.parametrize(("block", "starts"), [(4, [0, 4, 8]), (9, [0]), (8, [0, 8]), (1, [*range(9)])])
def test_tiles_of_so_many_queries_cover_them_in_order(block: int, starts: list[int]) -> None:
    blocks = list(operands().blocks(block))
    assert [one.start for one in blocks] == starts
    assert [query for one in blocks for query in range(one.start, one.stop)] == [*range(TOKENS)]


def test_a_query_that_sees_no_key_has_no_attention() -> None:
    bias = torch.zeros(1, TOKENS, TOKENS)
    bias[0, 4] = -torch.inf
    layer = operands(bias=bias)
    for rows in (layer.rows(None, [4, 5]), layer.exact_rows(None, [4, 5])):
        assert not rows[:, 0].any()
        assert_same(rows[:, 1].sum(-1), torch.ones(HEADS))
    columns = layer.columns(None, [0], layer.normaliser())
    assert not columns[:, 4].any()
    assert bool(columns[:, 5].all())


@pytest.mark.parametrize("chosen", [[], [3], [3, 1]])
def test_as_many_heads_and_queries_come_as_are_asked_for(chosen: list[int]) -> None:
    layer, written = operands(), LayerAttention(weights=torch.rand(HEADS, TOKENS, TOKENS))
    for one in (layer, written):
        assert one.rows(chosen, None).shape == (len(chosen), TOKENS, TOKENS)
        assert one.exact_rows(chosen, chosen).shape == (len(chosen), len(chosen), TOKENS)
        assert one.columns(None, chosen, layer.normaliser()).shape == (HEADS, TOKENS, len(chosen))
