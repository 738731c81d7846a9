"""Attention flow: against networkx, by hand, and its bounds."""

from __future__ import annotations

import networkx
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.explain import explain
from vit_viz.analyses.flow import UNIT, attention_flow
from vit_viz.errors import Cancelled, ParameterError


def by_networkx(matrices, row, share):
    """The flow from a source with these weights to every token, with capacities in floating point."""
    graph = networkx.DiGraph()
    layers, tokens = matrices.shape[0], matrices.shape[-1]
    for token in range(tokens):
        graph.add_edge("source", (layers, token), capacity=float(row[token]))
    for layer in range(layers):
        mixed = share * matrices[layer].mean(0) + (1 - share) * torch.eye(tokens)
        for query in range(tokens):
            for key in range(tokens):
                graph.add_edge((layer + 1, query), (layer, key), capacity=float(mixed[query, key]))
    return [networkx.maximum_flow_value(graph, "source", (0, token)) for token in range(tokens)]


@pytest.mark.parametrize(
    ("prefix", "query", "share"), [(2, "class", 0.5), (1, "pool", 0.9), (1, (0, 2), 0.3)]
)
def test_flows_equal_networkx(trace_of, prefix, query, share):
    random = torch.Generator().manual_seed(prefix)
    attention = torch.softmax(3 * torch.randn(3, 2, 6 + prefix, 6 + prefix, generator=random), dim=-1)
    trace = trace_of(attention, prefix=("class", "register 0")[:prefix], grid=(2, 3))
    found = attention_flow(trace, query=query, attention_share=share)
    expected = by_networkx(attention.double(), trace.query_weights(query), share)
    flows = [*found.prefix.values(), *found.values.ravel().tolist()]
    assert flows == pytest.approx(expected, abs=64 / UNIT + 1e-7)


def test_a_bottleneck_worked_by_hand(trace_of):
    # the class token sends 0.3 to patch 0 and 0.5 to patch 1 in the last layer; before it patch 0 has 0.8 of itself, patch 1 all,
    # and patch 1 sends nothing to patch 0
    last = [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    before = [[1.0, 0.0, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]]
    found = attention_flow(trace_of([[before], [last]]), attention_share=1.0)
    assert found.values.ravel().tolist() == pytest.approx([0.3, 0.7], abs=1e-6)
    assert found.prefix["class"] == pytest.approx(0.2, abs=1e-6)


def test_one_layer_is_its_row_and_flows_stay_within_what_enters_and_leaves(make_trace, matrices):
    trace = make_trace(prefix=2)
    row = matrices(trace)[1].mean(0)[0]
    one = attention_flow(trace, query="class", layers=(1, 2), attention_share=1.0)
    assert_same(one.values.ravel(), row[2:].numpy(), relative=1e-5)
    received = (0.5 * matrices(trace)[0].mean(0) + 0.5 * torch.eye(26)).sum(0)
    whole = attention_flow(trace, query="class")
    assert (whole.values.ravel() <= received[2:].clamp(max=1).numpy() + 1e-6).all()
    assert whole.values.min() > 0


def test_too_many_tokens_and_impossible_shares_are_refused(trace_of, make_trace):
    many = trace_of(torch.full((1, 1, 401, 401), 1 / 401))
    with pytest.raises(ParameterError, match="up to 400 tokens, not 401"):
        attention_flow(many)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        attention_flow(make_trace(), attention_share=1.5)


def test_as_a_method_it_tells_how_far_it_is_and_can_be_ended(make_model, pixels):
    shares = []
    maps = explain(make_model(), pixels, methods=["attention_flow"], progress=shares.append)
    assert maps["attention_flow"].grid == (4, 6)
    assert maps["attention_flow"].class_blind
    assert len(shares) == 25
    assert shares[-1] == 1
    with pytest.raises(Cancelled):
        explain(make_model(), pixels, methods=["attention_flow"], cancelled=lambda: True)
