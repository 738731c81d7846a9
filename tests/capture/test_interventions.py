"""What an edit asks for, as tensors: each table is kept for exactly the call that it was made for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from vit_viz.capture.interventions import Edits, edge_mask
from vit_viz.errors import ParameterError

CPU, META = torch.device("cpu"), torch.device("meta")
CALL: dict[str, Any] = {
    "layer": 1,
    "batch": 2,
    "queries": 7,
    "keys": 7,
    "tokens": 9,
    "device": CPU,
    "first": 0,
}
OTHER_CALL = {"layer": 2, "batch": 1, "queries": 1, "keys": 5, "tokens": 8, "device": META, "first": 2}
HEADS: dict[str, Any] = {"layer": 1, "what": "factor", "shape": (2, 5), "like": torch.zeros(())}
OTHER_HEADS = {
    "layer": 2, "what": "mean", "shape": (2, 6), "like": torch.zeros((), dtype=torch.float16),
}  # fmt: skip


def edits() -> Edits:
    return Edits(
        heads={(1, 3): [0.5, "mean"], (2, 0): 2.0},
        knockout={1: [(0, 1)], 2: [(0, 2)]},
        mask_keys=[3],
        temperature={},
    )


def assert_same_table(found: Tensor | None, expected: Tensor | None) -> None:
    assert (found.shape, found.device, found.dtype) == (expected.shape, expected.device, expected.dtype)
    assert found.is_meta or torch.equal(found, expected)


@pytest.mark.parametrize("name", OTHER_CALL)
def test_a_mask_is_not_taken_for_that_of_another_call(name: str) -> None:
    used, call = edits(), CALL | {name: OTHER_CALL[name]}
    used.allowed(**CALL)
    assert_same_table(used.allowed(**call), edits().allowed(**call))
    assert len(used.tables) == 2


@pytest.mark.parametrize("name", OTHER_HEADS)
def test_a_table_of_heads_is_not_taken_for_that_of_another_call(name: str) -> None:
    used, call = edits(), HEADS | {name: OTHER_HEADS[name]}
    used.head_table(**HEADS)
    assert_same_table(used.head_table(**call), edits().head_table(**call))
    assert len(used.tables) == 2


def test_what_a_head_is_given_by_hand() -> None:
    table = edits().head_table(**HEADS)
    assert table[:, :, 0, 0].tolist() == [[1, 1, 1, 0.5, 1], [1, 1, 1, 1, 1]]


def test_tables_of_one_call_are_made_once() -> None:
    used = edits()
    assert used.allowed(**CALL) is used.allowed(**CALL)
    assert used.head_table(**HEADS) is used.head_table(**HEADS)


@pytest.mark.parametrize(
    ("masked", "everywhere"), [(None, False), ([3], True), ({1: [3]}, False), ([], True), ({}, False)]
)
def test_tokens_are_removed_everywhere_where_no_layer_is_named(masked: Any, everywhere: bool) -> None:
    assert (
        Edits(heads={(1, 3): 0.0}, knockout={}, mask_keys=masked, temperature={}).masks_everywhere
        == everywhere
    )


@pytest.mark.parametrize(
    "change",
    [
        {"heads": {(-1, 3): 0.0}},
        {"knockout": {-1: [(0, 1)]}},
        {"mask_keys": {-1: [3]}},
        {"temperature": {-1: 2.0}},
    ],
)
def test_layers_are_not_counted_from_the_last(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="Layer -1 does not exist: an edit counts layers from 0"):
        Edits(**{"heads": {}, "knockout": {}, "mask_keys": None, "temperature": {}} | change)


def test_each_item_of_a_batch_has_its_own_forbidden_edges() -> None:
    expected = torch.zeros(2, 3, 4, dtype=torch.bool)
    expected[0, 1, 2] = expected[1, 0, 3] = expected[1, 2, 0] = True
    assert torch.equal(edge_mask([[(1, 2)], [(0, 3), (2, 0)]], 3, 4, 2), expected)


def test_a_matrix_of_forbidden_edges_has_a_row_for_each_query() -> None:
    edges = torch.tensor([[True, False, False], [False, True, True]])
    assert torch.equal(edge_mask(edges, 2, 3, 1), edges[None])
    with pytest.raises(ParameterError, match="between 3 x 2 tokens, but this pass has 2 x 3"):
        edge_mask(edges.T, 2, 3, 1)
