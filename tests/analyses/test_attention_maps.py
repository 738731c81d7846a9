"""Attention maps: rows, columns, fusion, regions, pools, prefix mass, mass mask, norm weighting."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.attention import attention_map, mass_mask, mosaic_maps
from vit_viz.errors import ParameterError
from vit_viz.results import PatchMap

HAND = [
    [[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]],
    [[0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.4, 0.4, 0.2]],
]


def total(patch_map: PatchMap) -> float:
    return float(patch_map.values.sum()) + sum(patch_map.prefix.values())


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
@pytest.mark.parametrize("query", [(0, 0), (3, 5), [(1, 1), (1, 2), (2, 2)], "pool"])
@pytest.mark.parametrize("head", [0, 4, "mean"])
def test_a_row_with_its_prefix_sums_to_one(make_trace, prefix, query, head):
    trace = make_trace(prefix=prefix)
    for layer in range(3):
        assert total(attention_map(trace, layer=layer, query=query, head=head)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("direction", ["row", "column"])
@pytest.mark.parametrize("prefix", [0, 2, 5])
def test_maps_equal_the_written_out_matrix(make_trace, matrices, direction, prefix):
    trace = make_trace(prefix=prefix)
    full = matrices(trace)[1]
    full = full if direction == "row" else full.transpose(-1, -2)
    token = trace.layout.token((2, 4))
    for head, fused in (
        (3, full[3]),
        ("mean", full.mean(0)),
        ("max", full.max(0).values),
        ("min", full.min(0).values),
    ):
        got = attention_map(trace, layer=1, query=(2, 4), head=head, direction=direction)
        assert_same(got.values.ravel(), fused[token, prefix:].numpy(), relative=1e-6)
        assert_same(list(got.prefix.values()), fused[token, :prefix].numpy(), relative=0, floor=1e-6)


def test_row_and_column_worked_by_hand(trace_of):
    trace = trace_of([HAND])
    row = attention_map(trace, layer=0, query="class", head=0)
    assert_same(row.values, [[0.2, 0.3]], relative=3e-6)
    column = attention_map(trace, layer=0, query="class", head=0, direction="column")
    assert_same(column.values, [[0.1, 0.2]], relative=3e-6)
    assert column.prefix["class"] == pytest.approx(0.5)
    fused = attention_map(trace, layer=0, query=(0, 1), head="max")
    assert_same(fused.values, [[0.4, 0.6]], relative=1e-6)


def test_a_region_is_the_mean_of_its_rows(make_trace):
    trace = make_trace(prefix=1)
    region = attention_map(trace, layer=2, query=[(0, 1), (3, 3), (2, 0)], head=1).values
    alone = [attention_map(trace, layer=2, query=patch, head=1).values for patch in ((0, 1), (3, 3), (2, 0))]
    assert_same(region, np.mean(alone, axis=0), relative=0, floor=1e-7)


def test_the_pool_of_a_model_without_class_token_is_the_mean_of_all_patches(make_trace, matrices):
    trace = make_trace(prefix=0)
    got = attention_map(trace, layer=0, head=2)  # no query: what the output is read from
    assert_same(got.values.ravel(), matrices(trace)[0, 2].mean(0).numpy(), relative=0, floor=1e-7)
    assert "pool (mean of patches)" in got.caption


def test_a_learned_pool_weighs_the_rows_by_its_own_attention(make_trace, matrices):
    pooling = torch.rand(5, 24)
    pooling /= pooling.sum(-1, keepdim=True)
    trace = make_trace(prefix=0, pooling="attention", pooling_attention=pooling)
    got = attention_map(trace, layer=1, query="pool", head=4)
    expected = pooling.mean(0).double() @ matrices(trace)[1, 4]
    assert_same(got.values.ravel(), expected, relative=0, floor=1e-7)


def test_the_mosaic_is_every_head_of_every_layer(make_trace):
    trace = make_trace(prefix=2)
    for direction in ("row", "column"):
        mosaic = mosaic_maps(trace, query=(3, 0), direction=direction)
        assert mosaic.shape == (3, 5, 4, 6)
        assert mosaic.dtype == np.float32
        for layer, head in ((0, 0), (2, 3)):
            one = attention_map(trace, layer=layer, query=(3, 0), head=head, direction=direction)
            assert_same(mosaic[layer, head], one.values, relative=0, floor=1e-7)


def test_direction_is_named_in_caption_and_method(make_trace):
    row = attention_map(make_trace(), layer=1, head=2)
    column = attention_map(make_trace(), layer=1, query=(1, 2), direction="column")
    assert (row.caption, row.method) == ("layer 1, head 2: class token looks at", "attention (row)")
    assert column.caption == "layer 1, mean over heads: patch (1, 2) is looked at by"
    assert column.method == "attention (column)"
    assert row.class_blind


def mask_of(values, share):
    patch_map = PatchMap(np.array(values), "weight", (0, 1), False, "test", True)
    return mass_mask(patch_map, share).tolist()


def test_mass_mask_worked_by_hand():
    assert mask_of([[0.1, 0.2], [0.05, 0.15]], 0.6) == [[False, True], [False, True]]  # 0.35 of 0.5 >= 0.6
    assert mask_of([[0.1, 0.2], [0.05, 0.15]], 0.4) == [
        [False, True],
        [False, False],
    ]  # 0.2 of 0.5, just enough
    assert mask_of([[0.1, 0.2], [0.05, 0.15]], 1.0) == [[True, True], [True, True]]


@pytest.mark.parametrize("share", [0.1, 0.37, 0.6, 0.95, 1.0])
def test_mass_mask_is_the_smallest_set_that_holds_the_share(make_trace, share):
    patch_map = attention_map(make_trace(), layer=0)
    mask = mass_mask(patch_map, share)
    values = patch_map.values.astype(np.float64) / patch_map.values.sum(dtype=np.float64)
    assert values[mask].sum() >= share - 1e-9
    assert values[mask].sum() - values[mask].min() < share
    assert mask.all() or values[mask].min() >= values[~mask].max()


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_a_mass_share_outside_its_range_is_refused(share):
    with pytest.raises(ParameterError, match="share"):
        mask_of([[1.0]], share)


def test_norm_weighting_worked_by_hand(trace_of):
    norms = torch.tensor([[[1.0, 2.0, 10.0], [3.0, 1.0, 0.5]]])  # [layers, heads, tokens]
    trace = trace_of([HAND])
    trace.value_norms = norms.__getitem__
    row = attention_map(trace, layer=0, query="class", head=0, norm_weighted=True)
    assert_same(row.values, [[0.4, 3.0]], relative=0, floor=1e-6)
    column = attention_map(trace, layer=0, query=(0, 1), head=1, direction="column", norm_weighted=True)
    assert_same(column.values, [[0.2, 0.1]], relative=3e-6)  # both weighted by the norm of the key (0, 1)
    mean = attention_map(trace, layer=0, query="class", norm_weighted=True)
    assert_same(mean.values, [[0.6, 1.525]], relative=0, floor=1e-6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layer": 3}, "layers 0-2"),
        ({"layer": -4}, "layers 0-2"),
        ({"layer": 0, "head": 14}, "Head 14 does not exist: this model has heads 0-4."),
        ({"layer": 0, "head": "sum"}, "mean, max or min"),
        ({"layer": 0, "direction": "diagonal"}, "row or column"),
        ({"layer": 0, "query": "register 0"}, "register 0"),
        ({"layer": 0, "query": (0, 6)}, "columns 0-5"),
    ],
)
def test_what_does_not_exist_is_refused_in_one_sentence(make_trace, options, words):
    with pytest.raises(ParameterError, match=words):
        attention_map(make_trace(), **options)
