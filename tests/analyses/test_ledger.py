"""The ledger of attention: its rows sum to 1, by hand, against loops, and beside the numbers that are there already."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import vit_viz as vv
from tests.analyses.conftest import HEADS, LAYERS
from vit_viz.errors import CaptureError, ParameterError


def stream(tokens: int, *, long: dict[int, tuple[int, ...]]) -> torch.Tensor:
    """A residual stream of directions of length 1, but for some tokens of some states, of length 9."""
    random = torch.Generator().manual_seed(8)
    residual = torch.nn.functional.normalize(torch.randn(LAYERS + 1, tokens, 7, generator=random), dim=-1)
    for state, which in long.items():
        residual[state, list(which)] *= 9
    return residual


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
@pytest.mark.parametrize("query", [None, "2,3", [(0, 1), (3, 5), (1, 1)]])
def test_every_row_sums_to_one_and_is_the_sum_of_loops(make_trace, matrices, prefix, query):
    long = {0: (prefix + 4,), 1: (0, prefix + 2, prefix + 23), 3: (prefix,)}
    trace = make_trace(prefix=prefix, residual=stream(prefix + 24, long=long))
    got = vv.ledger(trace, query=query, rows="heads")
    attention = matrices(trace).numpy()
    tokens = range(prefix + 24) if query is None else trace.layout.tokens(query)
    expected = np.zeros((LAYERS * HEADS, prefix + 2))
    for layer in range(LAYERS):
        for head in range(HEADS):
            for i in tokens:
                for j in range(prefix + 24):
                    is_sink = j in long.get(layer, ())
                    column = j if j < prefix else prefix if is_sink else prefix + 1
                    expected[layer * HEADS + head, column] += attention[layer, head, i, j] / len(tokens)
    np.testing.assert_allclose(got.values, expected, atol=1e-6)
    np.testing.assert_allclose(got.values.sum(1), 1, atol=1e-6)
    assert got.others == (*trace.layout.prefix, "sinks", "other patches")
    assert (got.names[0], got.names[-1]) == ("layer 0, head 0", f"layer {LAYERS - 1}, head {HEADS - 1}")
    layers = vv.ledger(trace, query=query)
    np.testing.assert_allclose(layers.values, expected.reshape(LAYERS, HEADS, -1).mean(1), atol=1e-6)


def test_it_is_worked_by_hand(trace_of):
    attention = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0, 1, 0, 0], [0, 0, 1, 0], [0.5, 0, 0, 0.5]])[None, None]
    residual = torch.tensor([1.0, 2, 40, 1]).reshape(1, 4, 1).expand(2, 4, 1)  # 40 > 5 * 1.5
    trace = trace_of(attention, residual=residual)
    assert vv.ledger(trace, query="class").values.tolist() == [pytest.approx([0.1, 0.3, 0.6])]
    assert vv.ledger(trace).values.tolist() == [pytest.approx([0.6 / 4, 1.3 / 4, 2.1 / 4])]
    assert vv.ledger(trace, factor=30).values.tolist() == [pytest.approx([0.6 / 4, 0, 3.4 / 4])]


def test_it_needs_the_residual_stream_and_a_factor_above_zero(make_trace):
    with pytest.raises(CaptureError, match="keep_residual"):
        vv.ledger(make_trace())
    with pytest.raises(ParameterError, match="factor is positive"):
        vv.ledger(make_trace(), factor=0)
    with pytest.raises(ParameterError, match="layers or heads"):
        vv.ledger(make_trace(), rows="tokens")
