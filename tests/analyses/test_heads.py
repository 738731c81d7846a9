"""Statistics of heads: each against loops over a written-out matrix and a case worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.heads import head_table, sinks
from vit_viz.analyses.rollout import rollout
from vit_viz.errors import CaptureError, ParameterError

PATCH = (16, 8)


def by_loops(attention, measure, layout, norms=None):
    """One number of one head from its matrix [tokens, tokens], query by query."""
    tokens, prefix = layout.num_tokens, layout.num_prefix
    values = []
    for query in range(tokens):
        row = attention[query]
        if measure == "entropy":
            values.append(-sum(float(p) * math.log(float(p)) for p in row if p > 0) / math.log(tokens))
        elif measure == "norm":
            values.append(float((row * norms.double()).sum()))
        elif query < prefix:
            continue
        elif measure == "prefix_mass":
            values.append(float(row[:prefix].sum()))
        elif measure == "diagonal_mass":
            values.append(float(row[query]))
        else:
            weights = row[prefix:] / row[prefix:].sum()
            here = divmod(query - prefix, layout.grid[1])
            distances = [
                math.hypot(
                    (here[0] - key // layout.grid[1]) * PATCH[0], (here[1] - key % layout.grid[1]) * PATCH[1]
                )
                for key in range(layout.num_patches)
            ]
            values.append(float(weights @ torch.tensor(distances, dtype=torch.float64)))
    return sum(values) / len(values)


@pytest.mark.parametrize("measure", ["distance", "entropy", "prefix_mass", "diagonal_mass", "norm"])
@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_streamed_statistics_equal_loops_over_the_matrix(make_trace, matrices, measure, prefix):
    norms = torch.rand(3, 5, 24 + prefix)
    trace = make_trace(prefix=prefix)
    trace.value_norms = norms.__getitem__
    table = head_table(trace, measure=measure, patch_size=PATCH)
    full = matrices(trace)
    for layer, head in ((0, 0), (1, 4), (2, 2)):
        expected = by_loops(full[layer, head], measure, trace.layout, norms[layer, head])
        assert_same(table.values[layer, head], expected)
    assert table.values.shape == (3, 5)
    assert (table.values >= table.value_range[0]).all()
    assert (table.values <= table.value_range[1]).all()


def test_uniform_attention_has_entropy_one_and_identity_zero(trace_of):
    uniform = torch.full((1, 1, 5, 5), 0.2)
    assert head_table(trace_of(uniform), measure="entropy").values.item() == pytest.approx(1)
    assert head_table(trace_of(torch.eye(5)[None, None]), measure="entropy").values.item() == 0  # 0 ln 0 is 0


def test_distance_worked_by_hand_and_not_understated_by_the_class_token(trace_of):
    # three patches in a row, 10 px wide: each sends half to the class token; the rest goes to the first patch
    rows = [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]
    table = head_table(trace_of([[rows]]), measure="distance", patch_size=(4, 10))
    assert table.values.item() == pytest.approx((0 + 10 + 20) / 3)


def test_identity_attention_has_distance_zero_and_diagonal_mass_one(trace_of):
    trace = trace_of(torch.eye(7)[None, None])
    assert head_table(trace, measure="distance", patch_size=PATCH).values.item() == 0
    assert head_table(trace, measure="diagonal_mass").values.item() == 1
    assert head_table(trace, measure="prefix_mass").values.item() == 0


def test_distance_does_not_change_when_attention_moves_to_the_class_token(trace_of):
    patches = torch.rand(6, 6, dtype=torch.float64)
    patches /= patches.sum(-1, keepdim=True)
    tables = []
    for share in (0.0, 0.6):
        full = torch.zeros(7, 7, dtype=torch.float64)
        full[:, 0] = share
        full[1:, 1:] = (1 - share) * patches
        full[0, 0] = 1
        tables.append(
            head_table(
                trace_of(full[None, None], grid=(2, 3)), measure="distance", patch_size=PATCH
            ).values.item()
        )
    assert tables[0] == pytest.approx(tables[1], abs=1e-5)


@pytest.mark.parametrize("query", ["class", (1, 1), "pool"])
def test_rollout_shares_of_a_layer_sum_to_one(make_trace, query):
    table = head_table(make_trace(prefix=5), measure="rollout_share", query=query)
    np.testing.assert_allclose(table.values.sum(1), 1, atol=1e-6)


def test_rollout_shares_rebuild_the_patch_mass_of_the_last_layer(make_trace, matrices):
    trace = make_trace(prefix=1)
    table = head_table(trace, measure="rollout_share")
    one_layer = rollout(trace, layers=(2, 3), attention_share=1.0).values.sum()
    heads = matrices(trace)[2, :, 0, 1:].sum(-1)  # patch mass of the class row, per head
    assert_same(table.values[2] * one_layer, heads.numpy() / 5, relative=3e-6)


def test_rollout_share_worked_by_hand(trace_of):
    one = [[0.9, 0.1], [0.5, 0.5]]
    two = [[0.7, 0.3], [0.5, 0.5]]
    table = head_table(trace_of([[one, two]]), measure="rollout_share")
    assert_same(table.values, [[0.25, 0.75]], relative=1e-6)


def test_sinks_are_the_tokens_far_above_the_median_norm(make_trace, matrices):
    trace = make_trace(prefix=1)
    residual = torch.ones(4, 25, 6)
    residual[1, 7] *= 5.1
    residual[1, 9] *= 4.9
    trace.residual = residual
    report = sinks(trace, layer=1)
    assert report.tokens == (7,)
    assert report.names == ("patch (1, 0)",)
    expected = matrices(trace)[1, :, :, 7].mean(1)
    assert_same(report.received, expected.numpy())
    assert sinks(trace, layer=0).tokens == ()


def test_sinks_need_the_residual_stream(make_trace):
    with pytest.raises(CaptureError, match="keep_residual"):
        sinks(make_trace(), layer=0)


def test_distance_without_the_size_of_a_patch_is_refused(make_trace):
    with pytest.raises(ParameterError, match="size of a patch"):
        head_table(make_trace(), measure="distance")


def test_an_unknown_measure_is_refused(make_trace):
    with pytest.raises(ParameterError, match="entropy"):
        head_table(make_trace(), measure="beauty")
