"""The strongest links of a head: by hand, against a list of all pairs that is sorted, and what cannot be asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.links import Links, links
from vit_viz.errors import ParameterError

HAND = torch.tensor(
    [  # a class token and three patches
        [0.10, 0.70, 0.15, 0.05],
        [0.20, 0.50, 0.10, 0.20],
        [0.00, 0.30, 0.30, 0.40],
        [0.60, 0.20, 0.05, 0.15],
    ]
)


def test_the_best_pairs_of_patches_by_hand(trace_of):
    found = links(trace_of(HAND[None, None]), layer=0, head=0, count=3)
    assert found.pairs.tolist() == [[2, 3], [2, 1], [1, 3]]  # 0.2 of patch 0 comes before 0.2 of patch 2
    assert_same(found.scores, [0.4, 0.3, 0.2], relative=1e-6)
    assert found.names[0] == "patch (0, 1) looks at patch (0, 2)"
    assert found.share == pytest.approx(0.9 / (0.1 + 0.2 + 0.3 + 0.4 + 0.2 + 0.05))
    assert found.caption == "layer 0, head 0: the 3 strongest links between patches"


def test_with_all_tokens_and_their_links_to_themselves_by_hand(trace_of):
    trace = trace_of(HAND[None, None])
    found = links(trace, layer=0, head=0, count=3, tokens="all", own=True)
    assert found.pairs.tolist() == [[0, 1], [3, 0], [1, 1]]
    assert found.names[:2] == (
        "class token looks at patch (0, 0)",
        "patch (0, 2) looks at class token",
    )
    assert found.share == pytest.approx(1.8 / 4)
    without = links(trace, layer=0, head=0, count=3, tokens="all")
    assert without.pairs.tolist() == [[0, 1], [3, 0], [2, 3]]


def test_the_links_of_one_query_by_hand(trace_of):
    trace = trace_of(HAND[None, None])
    found = links(trace, layer=0, head=0, query="0,2", count=5)
    assert found.pairs.tolist() == [[3, 1], [3, 2]]  # there are no more
    assert found.share == pytest.approx(1)
    assert found.caption == "layer 0, head 0: the 2 strongest links of patch (0, 2)"
    named = links(trace, layer=0, head=0, query="class", count=1)
    assert named.pairs.tolist() == [[0, 1]]
    region = links(trace, layer=0, head=0, query="0,0;0,2", count=9)
    assert {pair[0] for pair in region.pairs.tolist()} == {1, 3}


@pytest.mark.parametrize("prefix", [0, 5])
@pytest.mark.parametrize("tokens", ["patches", "all"])
@pytest.mark.parametrize("own", [False, True])
def test_links_are_the_first_of_all_pairs_when_these_are_sorted(make_trace, matrices, prefix, tokens, own):
    trace = make_trace(prefix=prefix)
    matrix = matrices(trace)[2, 3].tolist()
    chosen = range(prefix if tokens == "patches" else 0, 24 + prefix)
    pairs = [(i, j) for i in chosen for j in chosen if own or i != j]
    expected = sorted(pairs, key=lambda pair: -matrix[pair[0]][pair[1]])[:50]
    found = links(trace, layer=2, head=3, count=50, tokens=tokens, own=own)
    assert [tuple(pair) for pair in found.pairs.tolist()] == expected
    assert_same(found.scores, [matrix[i][j] for i, j in expected], relative=1e-5)
    whole = sum(matrix[i][j] for i, j in pairs)
    assert found.share == pytest.approx(sum(matrix[i][j] for i, j in expected) / whole, rel=1e-5)


def test_all_links_hold_the_whole_weight_to_the_last_digit(make_trace):
    """Sums of hundreds of weights in single precision would be off by some of their last digits."""
    trace = make_trace(prefix=2)
    for layer, head in np.ndindex(3, 5):
        found = links(trace, layer=layer, head=head, count=26 * 26, tokens="all", own=True)
        assert found.share == pytest.approx(1, rel=1e-12)
        most = links(trace, layer=layer, head=head, count=26 * 26 - 1, tokens="all", own=True)
        expected = found.scores[:-1].astype(float).sum() / found.scores.astype(float).sum()
        assert most.share == pytest.approx(expected, rel=1e-12)


def test_links_without_any_weight_have_no_share(trace_of):
    trace = trace_of(torch.eye(4)[None, None])
    found = links(trace, layer=0, head=0, count=5)
    assert found.share == 0
    assert found.pairs.tolist() == [[1, 2], [1, 3], [2, 1], [2, 3], [3, 1]]
    assert not found.scores.any()


def test_rows_in_several_blocks_give_the_same_links(make_trace, monkeypatch):
    trace = make_trace()
    expected = links(trace, layer=1, head="max", count=30)
    monkeypatch.setattr("vit_viz.analyses.links._QUERIES_AT_ONCE", 7)
    found = links(trace, layer=1, head="max", count=30)
    assert_same(found.pairs, expected.pairs)
    assert_same(found.scores, expected.scores)
    assert found.share == pytest.approx(expected.share, rel=1e-6)


def test_of_equal_weights_the_first_pair_of_the_sequence_is_taken(trace_of):
    even = torch.full((1, 1, 6, 6), 1 / 6)
    found = links(trace_of(even, prefix=()), layer=0, head=0, count=7)
    assert found.pairs.tolist() == [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [1, 0], [1, 2]]
    steps = torch.full((1, 1, 20, 20), 0.04)
    steps[..., 10:] = 0.06
    many = links(trace_of(steps, prefix=()), layer=0, head=0, count=300).pairs.tolist()
    assert (
        many
        == [[i, j] for ends in ((10, 20), (0, 10)) for i in range(20) for j in range(*ends) if i != j][:300]
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"count": 0}, "from 1 to 1000, not 0"),
        ({"count": 1001}, "from 1 to 1000, not 1001"),
        ({"tokens": "registers"}, "patches or all tokens"),
        ({"layer": 3}, "Layer 3 does not exist"),
        ({"head": 5}, "Head 5 does not exist"),
        ({"query": "9,9"}, r"Patch \(9, 9\) does not exist"),
    ],
)
def test_what_there_is_not_is_refused(make_trace, asked, message):
    with pytest.raises(ParameterError, match=message):
        links(make_trace(), **{"layer": 0} | asked)
    links(make_trace(), layer=0, count=1000)


def test_links_need_as_many_pairs_as_names():
    with pytest.raises(ParameterError, match="2 links need as many pairs"):
        Links(("one", "two"), np.ones(2), "weight", "links", pairs=np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="as many names as scores"):
        Links(("one",), np.ones(2), "weight", "links", pairs=np.zeros((2, 2)))
