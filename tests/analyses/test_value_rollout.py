"""Value-aware rollout: by hand, against loops over layers, heads and tokens, and where it is plain rollout."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import vit_viz as vv
from tests.analyses.conftest import HEADS, LAYERS
from tests.comparing import assert_same
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.errors import CaptureError, ParameterError


def by_loops(attention, values, projections, start, share):
    """R_L ... R_1 formed whole, from A [layers, heads, N, N], v [layers, heads, N, d] and W_O [layers, dim, heads * d]."""
    depth, heads, tokens, head_dim = values.shape
    product = np.eye(tokens)
    for layer in range(depth):
        mixed = np.zeros((tokens, tokens))
        for i in range(tokens):
            for j in range(tokens):
                for h in range(heads):
                    slice_of_head = projections[layer][:, h * head_dim : (h + 1) * head_dim]
                    mixed[i, j] += attention[layer, h, i, j] * np.linalg.norm(
                        slice_of_head @ values[layer, h, j]
                    )
            mixed[i] = share * mixed[i] / mixed[i].sum()
            mixed[i, i] += 1 - share
        product = mixed @ product
    return start @ product


@pytest.mark.parametrize(
    ("prefix", "query", "share"), [(1, "class", 0.5), (5, "register 2", 0.8), (2, (1, 3), 0.25)]
)
def test_it_is_the_product_of_explicit_loops(make_trace, matrices, prefix, query, share):
    random = torch.Generator().manual_seed(4)
    projections = torch.randn(LAYERS, 11, HEADS * 8, generator=random)
    trace = make_trace(prefix=prefix, projections=projections)
    start = trace.query_weights(query).double().numpy()
    expected = by_loops(
        matrices(trace).numpy(), trace.v.double().numpy(), projections.double().numpy(), start, share
    )
    got = vv.value_rollout(trace, query=query, attention_share=share)
    assert_same(got.values.ravel(), expected[prefix:].astype(np.float32))
    assert_same(list(got.prefix.values()), expected[:prefix].astype(np.float32))
    assert got.total == pytest.approx(1, abs=1e-6)
    assert got.caption.startswith("value-aware rollout through layers 0-2: ")


def test_it_is_worked_by_hand(trace_of):
    # one head: the class token gives 0.2, 0.2 and 0.6; values of lengths 5, 3 and 1 make that 1, 0.6 and 0.6, of 2.2
    attention = torch.tensor([[0.2, 0.2, 0.6], [0, 1, 0], [0, 0, 1]])[None, None]
    values = torch.tensor([[3.0, 4], [0, 3], [1, 0]])[None, None]
    trace = trace_of(attention, v=values, projections=torch.eye(2)[None])
    got = vv.value_rollout(trace, query="class", attention_share=0.5)
    assert got.values.tolist() == [pytest.approx([0.3 / 2.2, 0.3 / 2.2])]
    assert got.prefix["class"] == pytest.approx(0.5 + 0.5 / 2.2)


def test_where_all_values_are_as_long_it_is_rollout(make_trace):
    projections = torch.eye(HEADS * 8).repeat(LAYERS, 1, 1)
    longer = torch.nn.functional.normalize(torch.randn(LAYERS, HEADS, 25, 8), dim=-1) * 3
    trace = make_trace(v=longer, projections=projections)
    got, expected = vv.value_rollout(trace, attention_share=0.3), vv.rollout(trace, attention_share=0.3)
    assert_same(got.values, expected.values)
    assert not np.allclose(
        vv.value_rollout(make_trace(projections=projections)).values, expected.values, rtol=0.1
    )


def test_asked_beside_others_or_by_name_it_is_the_same(make_model, pixels):
    subject = PreparedImage.of(make_model(reg_tokens=4), pixels)
    beside = explain_subject(subject, methods=["relevance", "value_rollout", "rollout"], target=2)[
        "value_rollout"
    ]
    alone = vv.value_rollout(subject.trace(keep_values=True))
    assert_same(beside.values, alone.values)
    loaded = vv.load("mini")
    asked = vv.run(loaded, "lion", "value_rollout", attention_share=0.75, query="3,4")
    trace = vv.trace(loaded, "lion", keep_norms=True)
    assert_same(asked.values, vv.value_rollout(trace, query=(3, 4), attention_share=0.75).values)


def test_it_needs_the_norms_of_values_and_a_share_within_its_range(make_trace):
    with pytest.raises(CaptureError, match="output projection"):
        vv.value_rollout(make_trace())
    with pytest.raises(ParameterError, match="attention share of the values"):
        vv.value_rollout(make_trace(), attention_share=1.2)
