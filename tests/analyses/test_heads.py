"""Statistics of heads: each against loops over a written-out matrix and a case worked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz.analyses.head_sums import LayerInput, Offsets, layer_sums
from vit_viz.analyses.heads import (
    available_measures,
    head_table,
    head_tables,
)
from vit_viz.analyses.rollout import rollout
from vit_viz.capture.layers import LayerAttention
from vit_viz.errors import Cancelled, CaptureError, ParameterError
from vit_viz.samples import sample

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


BESIDE = {
    "left_neighbour": (0, -1),
    "right_neighbour": (0, 1),
    "upper_neighbour": (-1, 0),
    "lower_neighbour": (1, 0),
}


def pairs_by_offset(values, grid):
    """The entries of [patches, patches] by their offset (rows down, columns right), pair by pair."""
    found = {}
    for query, key in np.ndindex(values.shape):
        (row, col), (to_row, to_col) = divmod(query, grid[1]), divmod(key, grid[1])
        found.setdefault((to_row - row, to_col - col), []).append(float(values[query, key]))
    return found


@pytest.mark.parametrize("block", [None, 4, 7])
@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_what_falls_on_each_offset_equals_loops_over_pairs_of_patches(make_trace, matrices, prefix, block):
    trace = make_trace(prefix=prefix)
    tiles = trace.tiles
    trace.tiles = lambda layer: tiles(layer, block)
    tables = head_tables(trace, measures=[*BESIDE, "strongest_offset", "positional_share"])
    full = matrices(trace)[:, :, prefix:, prefix:]
    for layer, head in ((0, 0), (1, 4), (2, 2)):
        pairs = pairs_by_offset(full[layer, head], (4, 6))
        for measure, offset in BESIDE.items():
            assert_same(tables[measure].values[layer, head], np.mean(pairs[offset]))
        usual = {at: np.mean(w) for at, w in pairs.items() if len(w) >= 12 and at != (0, 0)}
        assert_same(tables["strongest_offset"].values[layer, head], max(usual.values()))
        mean = float(full[layer, head].mean())
        explained = sum(len(w) * (np.mean(w) - mean) ** 2 for w in pairs.values())
        share = explained / float(((full[layer, head] - mean) ** 2).sum())
        assert_same(tables["positional_share"].values[layer, head], share, relative=1e-5)


@pytest.mark.parametrize("prefix", [0, 2])
def test_the_content_correlation_equals_numpy_on_what_offsets_leave_over(make_trace, matrices, prefix):
    random = torch.Generator().manual_seed(5)
    trace = make_trace(prefix=prefix, residual=torch.randn(4, 24 + prefix, 6, generator=random))
    values = head_table(trace, measure="content_correlation").values
    full = matrices(trace)[:, :, prefix:, prefix:].numpy()
    place = np.array([divmod(i, 6) for i in range(24)])
    code = (place[None] - place[:, None] + (3, 5)) @ (11, 1)
    for layer, head in ((0, 0), (1, 4), (2, 2)):
        tokens = trace.residual[layer, prefix:].double().numpy()
        tokens = tokens - tokens.mean(0)
        tokens /= np.linalg.norm(tokens, axis=1, keepdims=True)
        left = []
        for matrix in (full[layer, head], tokens @ tokens.T):
            means = np.bincount(code.ravel(), matrix.ravel()) / np.maximum(np.bincount(code.ravel()), 1)
            left.append((matrix - means[code]).ravel())
        assert values[layer, head] == pytest.approx(np.corrcoef(*left)[0, 1], abs=1e-4)


def test_the_positional_share_is_one_for_offsets_alone_and_nothing_for_even_attention(trace_of):
    itself = trace_of(torch.eye(15)[None, None], grid=(3, 5), prefix=())
    assert head_table(itself, measure="positional_share").values.item() == pytest.approx(1)
    even = trace_of(torch.full((1, 1, 15, 15), 1 / 15), grid=(3, 5), prefix=())
    assert head_table(even, measure="positional_share").values.item() == 0


def test_the_class_token_is_told_from_the_registers(make_trace, matrices):
    trace = make_trace(prefix=5)
    expected = matrices(trace)[:, :, 5:, 0].mean(-1)
    assert_same(head_table(trace, measure="class_mass").values, expected.numpy())
    several = replace(
        trace.layout,
        prefix=("class 0", "register 0", "class 1", "class 2", "register 1"),
        unread=("class 2",),
    )
    expected = matrices(trace)[:, :, 5:, [0, 2, 3]].sum(-1).mean(-1)
    assert_same(head_table(replace(trace, layout=several), measure="class_mass").values, expected.numpy())
    assert not head_table(make_trace(prefix=0), measure="class_mass").values.any()


def test_the_sink_share_is_what_outlying_tokens_receive_layer_by_layer(make_trace, matrices):
    residual = torch.ones(4, 25, 6)
    residual[1, 7] *= 5.1
    residual[1, 9] *= 4.9  # of 5 medians that it takes
    residual[2, [3, 9]] *= 8
    trace = make_trace(prefix=1, residual=residual)
    table = head_table(trace, measure="sink_share").values
    expected = [
        matrices(trace)[layer][..., outliers].sum(-1).mean(-1) for layer, outliers in ((1, [7]), (2, [3, 9]))
    ]
    assert_same(table[1:], torch.stack(expected).numpy())
    assert not table[0].any()
    assert table[2].min() > table[0].max()


def test_all_measures_of_one_pass_equal_those_alone(make_trace):
    trace = make_trace(prefix=2, residual=torch.randn(4, 26, 6), projections=torch.randn(3, 40, 40))
    together = head_tables(trace, patch_size=PATCH)
    assert tuple(together) == available_measures(trace, PATCH)
    assert {"distance", "norm", "sink_share", "rollout_share"} <= set(together)
    for measure, table in together.items():
        alone = head_table(trace, measure=measure, patch_size=PATCH)
        assert np.array_equal(table.values, alone.values)
        assert (table.values >= table.value_range[0]).all()
        assert (table.values <= table.value_range[1]).all()


def test_each_tile_is_formed_once_for_all_measures(make_trace, monkeypatch):
    trace = make_trace(prefix=1)
    blocks, asked = LayerAttention.blocks, []

    def counted(layer, *given):
        asked.append(next(i for i, one in enumerate(trace.layers) if one is layer))
        return blocks(layer, *given)

    monkeypatch.setattr(LayerAttention, "blocks", counted)
    head_tables(trace)
    assert sorted(asked) == [0, 1, 2]


def test_measures_are_the_same_where_the_kernel_gave_the_normalisers(make_trace):
    """Then the attention is exp(score - normaliser), and its logarithm is at hand."""
    plain = make_trace(prefix=2)
    given = [replace(layer, lse=layer.normaliser()) for layer in plain.layers]
    assert all(layer.log_rows(slice(0, 3)) is not None for layer in given)
    assert all(layer.log_rows(slice(0, 3)) is None for layer in plain.layers)
    quick = replace(plain, layers=tuple(given))
    for measure, table in head_tables(plain, patch_size=PATCH).items():
        np.testing.assert_allclose(
            head_table(quick, measure=measure, patch_size=PATCH).values, table.values, rtol=2e-5, atol=2e-6
        )


def test_what_a_trace_cannot_give_is_left_out(make_trace):
    measures = available_measures(make_trace(v=None))
    assert not {"distance", "norm", "sink_share", "content_correlation"} & set(measures)
    assert "entropy" in measures
    assert tuple(head_tables(make_trace(v=None))) == measures


def test_uniform_attention_has_entropy_one_and_identity_zero(trace_of):
    uniform = torch.full((1, 1, 5, 5), 0.2)
    assert head_table(trace_of(uniform), measure="entropy").values.item() == pytest.approx(1)
    assert head_table(trace_of(torch.eye(5)[None, None]), measure="entropy").values.item() == 0  # 0 ln 0 is 0


def test_distance_worked_by_hand_and_not_understated_by_the_class_token(trace_of):
    # three patches in a row, 10 px wide: each sends half to the class token; the rest goes to the first patch
    rows = [[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0]]
    table = head_table(trace_of([[rows]]), measure="distance", patch_size=(4, 10))
    assert table.values.item() == pytest.approx((0 + 10 + 20) / 3)
    assert table.value_range == (0, 20)


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


def test_sinks_need_the_residual_stream(make_trace):
    with pytest.raises(CaptureError, match="keep_residual"):
        head_table(make_trace(), measure="sink_share")


def test_distance_without_the_size_of_a_patch_is_refused(make_trace):
    with pytest.raises(ParameterError, match="size of a patch"):
        head_table(make_trace(), measure="distance")


def test_an_unknown_measure_is_refused(make_trace):
    with pytest.raises(ParameterError, match="entropy"):
        head_table(make_trace(), measure="beauty")


def test_the_share_grows_layer_by_layer_up_to_all() -> None:
    trace, told = vv.trace("mini", sample("shapes")), list[float]()
    head_tables(trace, measures=("entropy",), progress=told.append)
    assert told == [(layer + 1) / trace.num_layers for layer in range(trace.num_layers)]


def test_a_stop_ends_it_within_a_layer() -> None:
    trace = vv.trace("mini", sample("shapes"))
    given = LayerInput(trace, 0, Offsets(trace.layout.grid))
    with pytest.raises(Cancelled):
        layer_sums(given, ["entropy"], cancelled=lambda: True)


def test_a_stop_after_two_layers_ends_it_there() -> None:
    trace, told = vv.trace("mini", sample("shapes")), list[float]()
    with pytest.raises(Cancelled):
        head_tables(trace, measures=("entropy",), progress=told.append, cancelled=lambda: len(told) >= 2)
    assert len(told) == 2
