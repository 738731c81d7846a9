"""Tokens compared: cosines with a chosen one, and with themselves a layer earlier."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.tokens import token_change, token_similarity, token_states
from vit_viz.errors import CaptureError, ParameterError


def stream(tokens: int = 25, states: int = 4, dim: int = 6, seed: int = 0) -> torch.Tensor:
    return torch.randn(states, tokens, dim, generator=torch.Generator().manual_seed(seed))


def cosine(a, b) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(
        sum(x * x for x in a) * sum(y * y for y in b)
    )


def test_similarity_is_the_cosine_of_each_pair(make_trace):
    states = stream(tokens=29)
    found = token_similarity(make_trace(prefix=5, residual=states), query=(1, 4))
    for state, row, col in ((0, 0, 0), (1, 3, 5), (3, 2, 1)):
        expected = cosine(states[state, 5 + 10].tolist(), states[state, 5 + 6 * row + col].tolist())
        assert found.values[state, row, col] == pytest.approx(expected, abs=1e-6)
    assert found.names == ("input", "after layer 0", "after layer 1", "after layer 2")
    assert found.named["register 2"][1] == pytest.approx(
        cosine(states[1, 15].tolist(), states[1, 3].tolist()), abs=1e-6
    )


def test_similarity_by_hand(trace_of):
    states = torch.tensor([[[9.0, 9.0], [3.0, 4.0], [4.0, 3.0], [0.0, 0.0], [-6.0, -8.0]]])
    trace = trace_of(torch.eye(5)[None, None], residual=states.expand(2, -1, -1))
    assert_same(token_similarity(trace, query=(0, 0)).values[0], [[1, 0.96, 0, -1]], relative=1e-6)


@pytest.mark.parametrize("role", ["queries", "keys"])
def test_queries_and_keys_are_compared_with_all_heads_side_by_side(make_trace, role):
    trace = make_trace(prefix=1)
    operand = trace.q if role == "queries" else trace.k  # [layers, heads, tokens, head_dim]
    found = token_similarity(trace, query=(0, 1), role=role)
    for layer, patch in ((0, 7), (2, 23)):
        a = torch.cat([operand[layer, head, 2] for head in range(5)]).tolist()
        b = torch.cat([operand[layer, head, 1 + patch] for head in range(5)]).tolist()
        assert found.values[layer].flat[patch] == pytest.approx(cosine(a, b), abs=1e-6)
    assert found.names == ("layer 0", "layer 1", "layer 2")


def test_a_region_is_compared_by_the_mean_of_its_vectors(make_trace):
    states = stream()
    found = token_similarity(make_trace(residual=states), query=[(0, 0), (0, 2)])
    mean = ((states[2, 1] + states[2, 3]) / 2).tolist()
    assert found.values[2, 3, 3] == pytest.approx(cosine(mean, states[2, 22].tolist()), abs=1e-6)


def test_the_tokens_of_another_photo_are_compared_with_the_query_of_this_one(make_trace):
    here, there = stream(), stream(seed=1)
    found = token_similarity(make_trace(residual=here), query=(1, 1), other=make_trace(residual=there))
    assert found.values[1, 2, 5] == pytest.approx(
        cosine(here[1, 8].tolist(), there[1, 18].tolist()), abs=1e-6
    )
    with pytest.raises(ParameterError, match="within one model"):
        token_similarity(make_trace(residual=here), query=(1, 1), other=make_trace(residual=stream(dim=7)))


def test_change_is_the_cosine_with_the_token_before_the_layer(make_trace):
    states = stream()
    states[2] = 3 * states[1]
    found = token_change(make_trace(residual=states))
    assert found.values.shape == (3, 4, 6)
    np.testing.assert_allclose(found.values[1], 1, atol=1e-6)
    assert found.values[2, 1, 2] == pytest.approx(
        cosine(states[3, 9].tolist(), states[2, 9].tolist()), abs=1e-6
    )


def test_what_is_missing_is_said(make_trace):
    with pytest.raises(CaptureError, match="keep_residual=True"):
        token_similarity(make_trace(), query=(0, 0))
    with pytest.raises(ParameterError, match="tokens, queries, keys, not 'values'"):
        token_states(make_trace(), "values")
    with pytest.raises(ParameterError, match="Patch"):
        token_similarity(make_trace(residual=stream()), query=(4, 0))
