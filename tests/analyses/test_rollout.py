"""Rollout: the row chain against products of matrices, and the errors in circulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.rollout import rollout
from vit_viz.errors import ParameterError

OPTIONS = list(itertools.product((0.0, 0.3, 0.5, 1.0), ("mean", "max", "min"), (0.0, 0.3, 0.9)))


def by_matrices(attention, *, num_prefix, share=0.5, fusion="mean", discard=0.0, layers=None):
    """R_L [tokens, tokens] as the product of whole matrices, row renormalisation after the identity; an oracle in plain loops."""
    tokens = attention.shape[-1]
    first, end = layers or (0, len(attention))
    result = torch.eye(tokens, dtype=torch.float64)
    for heads in attention[first:end]:
        fused = {"mean": heads.mean(0), "max": heads.max(0).values, "min": heads.min(0).values}[
            fusion
        ].clone()
        dropped = int(np.floor(discard * (tokens - num_prefix) + 1e-9))
        for row in fused.numpy():
            row[num_prefix + np.argsort(row[num_prefix:], kind="stable")[:dropped]] = 0
        layer = share * fused + (1 - share) * torch.eye(tokens, dtype=torch.float64)
        layer = layer / layer.sum(dim=1, keepdim=True)
        result = layer @ result  # the new layer multiplies from the left
    return result


@pytest.mark.parametrize(("share", "fusion", "discard"), OPTIONS)
def test_rollout_rows_sum_to_one_for_every_option(make_trace, share, fusion, discard):
    trace = make_trace(prefix=5)
    for query in ("class", "register 2", (3, 1), [(0, 0), (2, 5)]):
        result = rollout(trace, query=query, attention_share=share, head_fusion=fusion, discard=discard)
        assert result.values.sum() + sum(result.prefix.values()) == pytest.approx(1, abs=1e-6)
        assert (result.values >= 0).all()


@pytest.mark.parametrize(("share", "fusion", "discard"), OPTIONS)
@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
def test_row_chain_equals_the_product_of_matrices(make_trace, matrices, prefix, share, fusion, discard):
    trace = make_trace(prefix=prefix)
    expected = by_matrices(matrices(trace), num_prefix=prefix, share=share, fusion=fusion, discard=discard)
    got = rollout(trace, query=(2, 3), attention_share=share, head_fusion=fusion, discard=discard)
    row = expected[trace.layout.token((2, 3))]
    assert_same(got.values.ravel(), row[prefix:].numpy(), relative=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.999999, 1.0])
def test_min_fusion_keeps_its_digits_in_fp32_beside_the_identity(make_trace, matrices, share):
    trace = make_trace(prefix=1, spread=9.0)  # sharp heads: their minimum is tiny
    attention = matrices(trace)
    expected = by_matrices(attention, num_prefix=1, share=share, fusion="min")[0, 1:]
    got = rollout(trace, query="class", attention_share=share, head_fusion="min").values.ravel()
    assert float(attention.min(1).values.sum(-1).min()) < 1e-7
    assert_same(got, expected.numpy())


def test_two_tokens_and_two_layers_worked_by_hand(trace_of):
    # layer 0: [[.8 .2] [.4 .6]], layer 1: [[.6 .4] [0.2 .8]]; with a = 1/2:
    # A'_0 = [[.9 .1] [.2 .8]], A'_1 = [[.8 .2] [.1 .9]]; row 0 of A'_1 A'_0 = .8 (.9 .1) + .2 (.2 .8) = (.76 .24)
    trace = trace_of([[[[0.8, 0.2], [0.4, 0.6]]], [[[0.6, 0.4], [0.2, 0.8]]]])
    result = rollout(trace, query="class")
    assert result.prefix["class"] == pytest.approx(0.76, abs=1e-6)
    assert result.values.item() == pytest.approx(0.24, abs=1e-6)


def test_a_mean_pool_draws_the_change_against_its_uniform_start(make_trace, matrices):
    trace = make_trace(prefix=0)
    result = rollout(trace)  # no class token: the pool is what the output is read from
    expected = by_matrices(matrices(trace), num_prefix=0).mean(0) - 1 / 24
    assert_same(result.values.ravel(), expected.numpy())
    assert result.signed
    assert result.value_range == (-1, 1)
    assert "change" in result.note


def test_an_attention_pool_starts_from_its_fused_row(make_trace, matrices):
    pooling = torch.rand(5, 24, generator=torch.Generator().manual_seed(3))
    pooling /= pooling.sum(-1, keepdim=True)
    trace = make_trace(prefix=0, pooling="attention", pooling_attention=pooling)
    start = pooling.mean(0).double()
    expected = start @ by_matrices(matrices(trace), num_prefix=0) - start
    assert_same(rollout(trace).values.ravel(), expected.numpy())


@pytest.mark.parametrize("layers", [(0, 1), (1, 3), (2, 3)])
def test_layer_range_takes_only_those_layers(make_trace, matrices, layers):
    trace = make_trace(prefix=1)
    expected = by_matrices(matrices(trace), num_prefix=1, layers=layers)[0, 1:]
    assert_same(rollout(trace, layers=layers).values.ravel(), expected.numpy(), relative=3e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"attention_share": 1.1},
        {"attention_share": float("nan")},
        {"discard": 1.0},
        {"discard": -0.1},
        {"head_fusion": "median"},
        {"layers": (1, 1)},
        {"layers": (0, 4)},
        {"query": "register 9"},
        {"query": (4, 0)},
    ],
)
def test_options_outside_their_range_are_refused_in_one_sentence(make_trace, options):
    with pytest.raises(ParameterError):
        rollout(make_trace(), **options)


def test_rollout_says_what_it_is(make_trace):
    result = rollout(make_trace(prefix=1), query=(1, 2), discard=0.25)
    assert result.class_blind
    assert dict(result.provenance.parameters)["discard"] == "0.25"
    assert dict(result.provenance.parameters)["query"] == "(1, 2)"
    assert result.caption == "rollout through layers 0-2: patch (1, 2) draws on"
