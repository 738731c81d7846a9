"""The cache of head-fused matrices: each is kept for exactly the fusion that it was formed by."""

from __future__ import annotations

import pytest
import torch

from vit_viz.analyses.chains import Chain, FusedCache

SIZE = 4 * 25**2
"""Bytes of one fused matrix of these traces."""


@pytest.mark.parametrize("other", [{"fusion": "max"}, {"discard": 0.4}])
def test_a_matrix_is_not_taken_for_that_of_another_fusion(make_trace, other):
    trace = make_trace()
    cache = FusedCache(trace, max_bytes=10 * SIZE)
    first = cache.get(trace, 1, Chain("attention"))
    found = cache.get(trace, 1, Chain("attention", **other))
    expected = FusedCache(trace, max_bytes=SIZE).get(trace, 1, Chain("attention", **other))
    assert torch.equal(found, expected)
    assert not torch.equal(found, first)


def test_a_matrix_is_not_taken_for_that_of_another_layer(make_trace):
    trace = make_trace()
    cache = FusedCache(trace, max_bytes=10 * SIZE)
    for layer in (2, 0):
        found = cache.get(trace, layer, Chain("attention"))
        torch.testing.assert_close(found, trace.attention(layer).mean(0))


def test_what_is_kept_stays_within_the_budget(make_trace):
    trace = make_trace()
    for budget, kept in ((2 * SIZE - 1, 1), (2 * SIZE, 2), (2 * SIZE + 1, 2)):
        cache = FusedCache(trace, max_bytes=budget)
        found = [cache.get(trace, layer, Chain("attention")) for layer in (2, 1, 0)]
        assert [matrix is not None for matrix in found] == [True] * kept + [False] * (3 - kept)
        assert cache.nbytes == kept * SIZE
        assert cache.get(trace, 2, Chain("attention")) is found[0]
