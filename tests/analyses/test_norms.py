"""Norms of tokens and outliers: by hand, against a written-out attention, and where nothing stands out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.heads import head_table
from vit_viz.analyses.norms import token_norms
from vit_viz.errors import ParameterError


def test_norms_thresholds_and_outliers_by_hand(trace_of):
    lengths = torch.tensor([[1.0, 2.0, 2.0, 3.0, 11.0], [1.0, 1.0, 1.0, 1.0, 5.0]])
    states = lengths[..., None] * torch.tensor([0.6, -0.8])
    attention = torch.zeros(1, 2, 5, 5)
    attention[0, 0, :, 4], attention[0, 1, :, 1] = 1, 1  # one head looks at the outlier only, one not at all
    found = token_norms(trace_of(attention, residual=states))
    assert_same(found.maps.values[:, 0], [[2, 2, 3, 11], [1, 1, 1, 5]], relative=1e-6)
    assert_same(found.maps.named["class"], [1, 1], relative=1e-6)
    assert_same(found.thresholds, [10, 5], relative=1e-6)
    assert found.outliers == ((4,), ())  # 5 is not more than 5 times the median
    assert_same(found.received, [0.5], relative=1e-6)
    assert_same(found.fair, [0.2], relative=1e-6)
    assert found.first == 0


@pytest.mark.parametrize("prefix", [0, 5])
def test_outliers_receive_what_the_columns_of_the_matrix_hold(make_trace, matrices, prefix):
    states = torch.randn(4, 24 + prefix, 6, generator=torch.Generator().manual_seed(3))
    states[1, prefix + 7] *= 40
    states[1, prefix + 20] *= 50
    trace = make_trace(prefix=prefix, residual=states)
    found = token_norms(trace)
    assert found.outliers[1] == (prefix + 7, prefix + 20)
    columns = matrices(trace)[1][..., [prefix + 7, prefix + 20]]
    assert found.received[1] == pytest.approx(float(columns.sum((-2, -1)).mean()) / (24 + prefix), abs=1e-6)
    assert found.fair[1] == pytest.approx(2 / (24 + prefix))
    shares = head_table(trace, measure="sink_share").values.mean(1)
    assert found.received == pytest.approx(shares, abs=1e-6)


def test_alike_tokens_have_no_outliers_and_receive_nothing(make_trace):
    found = token_norms(make_trace(residual=torch.ones(4, 25, 6)))
    np.testing.assert_allclose(found.maps.values, math.sqrt(6), rtol=1e-6)
    assert found.first is None
    assert (found.received == 0).all()


def test_a_factor_that_is_not_positive_is_refused(make_trace):
    with pytest.raises(ParameterError, match="positive, not 0"):
        token_norms(make_trace(residual=torch.ones(4, 25, 6)), factor=0)
