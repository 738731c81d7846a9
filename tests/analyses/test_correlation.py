"""Rank correlation of maps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from vit_viz.analyses.correlation import spearman


def test_spearman_equals_scipys_with_ties() -> None:
    random = np.random.default_rng(0)
    for _ in range(5):
        one, other = random.integers(0, 6, (2, 4, 6)).astype(np.float32)
        assert spearman(one, other) == pytest.approx(spearmanr(one.ravel(), other.ravel()).statistic)


def test_spearman_worked_by_hand() -> None:
    one = np.array([[1, 2, 3]], dtype=np.float32)
    assert spearman(one, one * 7 - 3) == pytest.approx(1)
    assert spearman(one, -(one**3)) == pytest.approx(-1)
    assert spearman(one, np.array([[1, 3, 2]], dtype=np.float32)) == pytest.approx(1 - 6 * 2 / (3 * 8))


def test_spearman_of_constant_maps_is_defined() -> None:
    flat = np.ones((2, 2), dtype=np.float32)
    assert spearman(flat, flat) == 1
    assert spearman(flat, np.arange(4, dtype=np.float32).reshape(2, 2)) == 0
