"""Trace: rows, columns, tiles, gradients and lengths of values, from operands given by hand."""

from __future__ import annotations

import math

import pytest
import torch

from tests.comparing import assert_same
from tests.traces import trace_from
from vit_viz.capture import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

LAYERS, HEADS, DIM = 3, 5, 8


def random_trace(prefix: tuple[str, ...] = ("class",), **choices: object) -> Trace:
    layout = TokenLayout(grid=(4, 6), prefix=prefix)
    q, k, v, g = (2 * torch.randn(LAYERS, HEADS, layout.num_tokens, DIM) for _ in range(4))
    return trace_from(q=q, k=k, v=v, output_grad=g, layout=layout, **choices)


def in_double(trace: Trace, layer: int) -> torch.Tensor:
    """softmax(q k^T scale + bias) in fp64: the formula, nothing else."""
    part = trace.layers[layer]
    scores = part.q.double() @ part.k.double().transpose(1, 2) * part.scale
    if part.bias is not None:
        scores = scores + part.bias.double()
    return scores.softmax(-1)


def test_rows_agree_with_double_precision_to_a_millionth() -> None:
    trace = random_trace()
    assert_same(trace.attention(1).double(), in_double(trace, 1), relative=0, floor=1e-6)


def test_two_tokens_by_hand() -> None:
    q = torch.tensor([[[[1.0], [0.0]]]])
    k = torch.tensor([[[[math.log(3.0)], [0.0]]]])
    trace = trace_from(q=q, k=k, layout=TokenLayout(grid=(1, 1)), scale=1.0)
    assert_same(trace.attention(0)[0], torch.tensor([[0.75, 0.25], [0.5, 0.5]]))


def test_chosen_rows_and_columns_are_those_of_the_whole() -> None:
    trace = random_trace()
    some = trace.attention(1, heads=[4, 0], queries=[3, 20, 7])
    assert_same(some, trace.attention(1)[[4, 0]][:, [3, 20, 7]])
    assert_same(trace.attention(0, heads=2, queries=9), trace.attention(0)[2:3, 9:10])
    columns = trace.received(2, [0, 11])
    torch.testing.assert_close(columns, trace.attention(2)[:, :, [0, 11]], atol=1e-6, rtol=1e-5)
    assert_same(trace.received(2, 11, heads=3), trace.attention(2)[[3]][:, :, [11]])


@pytest.mark.parametrize("block", [None, 1, 7, 100])
def test_tiles_put_together_are_the_attention(block: int | None) -> None:
    trace = random_trace()
    parts = list(trace.tiles(1, block=block))
    assert_same(torch.cat([tile for _, tile in parts], dim=1), trace.attention(1))
    assert [i for rows, _ in parts for i in range(rows.start, rows.stop)] == list(range(25))


def test_tiles_of_some_heads() -> None:
    trace = random_trace()
    (_, tile), *_ = trace.tiles(1, block=25, heads=[1, 4])
    assert_same(tile, trace.attention(1, heads=[1, 4]))


def test_a_bias_of_the_positions_is_part_of_the_attention() -> None:
    trace = random_trace(bias=torch.randn(HEADS, 25, 25))
    assert_same(trace.attention(1, queries=[4]).double(), in_double(trace, 1)[:, [4]], relative=1e-6)
    assert_same(
        trace.received(1, [4, 5], heads=[2]), trace.attention(1)[[2]][:, :, [4, 5]], relative=0, floor=1e-6
    )
    assert not trace.determined_by_qk(1)
    assert trace.source(1) == "rows"


def test_attention_given_as_a_matrix_is_returned_as_it_is() -> None:
    matrix = torch.rand(LAYERS, HEADS, 25, 25).softmax(-1)
    trace = trace_from(attention=matrix, layout=TokenLayout(grid=(4, 6)))
    assert_same(trace.attention(1, heads=[1], queries=[2]), matrix[1][[1]][:, [2]])
    assert_same(trace.received(1, [2]), matrix[1][:, :, [2]])
    assert trace.source(1) == "attention"


def test_changing_a_result_leaves_the_trace_alone() -> None:
    matrix = torch.rand(LAYERS, HEADS, 25, 25).softmax(-1)
    for trace in (random_trace(), trace_from(attention=matrix, layout=TokenLayout(grid=(4, 6)))):
        before = trace.attention(0)
        trace.attention(0).zero_()
        trace.received(0, [1]).zero_()
        next(iter(trace.tiles(0)))[1].zero_()
        assert_same(trace.attention(0), before)


def test_class_query_is_one_token() -> None:
    weights = random_trace(("class", "distillation")).query_weights("class")
    assert weights.tolist() == [1.0] + 25 * [0.0]


def test_pool_of_a_learned_attention_is_its_mean_over_heads() -> None:
    layout = TokenLayout(grid=(4, 6), prefix=(), pooling="attention")
    q, k = (torch.randn(LAYERS, HEADS, 24, DIM) for _ in range(2))
    pooling = torch.rand(2, 24).softmax(-1)
    trace = trace_from(q=q, k=k, layout=layout, pooling_attention=pooling)
    assert_same(trace.query_weights("pool"), pooling.mean(0))


@pytest.mark.parametrize("with_gradients", [True, False])
def test_statistics_ignore_autocast_and_gradients(with_gradients: bool) -> None:
    trace = random_trace()
    layer = trace.layers[0]
    with torch.no_grad():
        expected = layer.exact_rows(None, None), layer.rows(None, None)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(with_gradients):
        found = layer.exact_rows(None, None), layer.rows(None, None)
    for attention, right in zip(found, expected, strict=True):
        assert attention.dtype == torch.float32
        assert_same(attention, right)
        assert not attention.requires_grad


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.attention(3), "Layer 3 does not exist: this model has layers 0-2"),
        (lambda t: t.attention(0, heads=5), "Head 5 does not exist: this model has heads 0-4"),
        (lambda t: t.attention(0, queries=[25]), "Token 25 does not exist: this model has tokens 0-24"),
        (lambda t: t.received(0, -1), "Token -1 does not exist"),
    ],
)
def test_an_index_outside_is_named_with_the_range(call: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call(random_trace())  # type: ignore[operator]


def test_what_was_not_kept_is_said_in_one_sentence() -> None:
    layout = TokenLayout(grid=(4, 6))
    trace = trace_from(q=torch.randn(1, 5, 25, 8), k=torch.randn(1, 5, 25, 8), layout=layout)
    with pytest.raises(CaptureError, match="target="):
        trace.attention_gradient(0)
    with pytest.raises(CaptureError, match="keep_norms=True or keep_values=True"):
        trace.value_norms(0)


def test_a_layout_with_another_number_of_tokens_is_refused() -> None:
    q = torch.randn(1, 5, 25, 8)
    with pytest.raises(ParameterError, match="The layout has 24 tokens"):
        trace_from(q=q, k=q, layout=TokenLayout(grid=(4, 6), prefix=()))


def test_proof_status_says_whether_every_layer_was_compared() -> None:
    q = torch.randn(2, 5, 25, 8)
    layout = TokenLayout(grid=(4, 6))
    status = [
        trace_from(q=q, k=q, layout=layout, proof=proof).proof_status
        for proof in ([1e-6, 2e-5], [1e-6, math.nan], [1e-6, 1e-2], ())
    ]
    assert status == ["proven", "captured, not proven", "refuted", "captured, not proven"]


def test_head_dim_is_that_of_the_queries_and_0_where_they_are_not_known() -> None:
    layout, q = TokenLayout(grid=(2, 3), prefix=()), torch.randn(3, 5, 6, 8)
    assert trace_from(q=q, k=q, layout=layout).head_dim == 8
    assert trace_from(attention=torch.rand(3, 5, 6, 6).softmax(-1), layout=layout).head_dim == 0
