"""Rank correlation of maps, and class sensitivity and stability, which are made of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from vit_viz.analyses.correlation import class_sensitivity_of, mirror_stability_of, spearman
from vit_viz.results import PatchMap


def patch_map(values: Any, *, method: str = "test", class_blind: bool = False) -> PatchMap:
    return PatchMap(
        np.asarray(values, np.float32),
        unit="weight",
        value_range=(0, 10),
        signed=False,
        method=method,
        class_blind=class_blind,
    )


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


def test_class_sensitivity_worked_by_hand() -> None:
    first = patch_map([[1, 2, 3], [4, 5, 6]])
    second = patch_map([[6, 5, 4], [3, 2, 1]])
    swapped = patch_map([[2, 1, 3], [4, 5, 6]])
    assert class_sensitivity_of(first, first) == 0
    assert class_sensitivity_of(first, second) == pytest.approx(2)
    assert class_sensitivity_of(first, swapped) == pytest.approx(6 * 2 / (6 * 35))


def test_class_sensitivity_of_class_blind_maps_is_exactly_zero() -> None:
    first, second = [[1, 2, 3]], [[1, 3, 2]]
    blind = [patch_map(values, class_blind=True) for values in (first, second)]
    assert class_sensitivity_of(*blind) == 0
    assert class_sensitivity_of(blind[0], patch_map(second, method="other", class_blind=True)) > 0
    assert class_sensitivity_of(blind[0], patch_map(second)) > 0


def test_mirror_stability_turns_the_mirrored_map_back_along_its_columns() -> None:
    values = np.array([[1, 2, 3], [6, 5, 4]])
    assert mirror_stability_of(patch_map(values), patch_map(values[:, ::-1])) == 1
    assert mirror_stability_of(patch_map(values), patch_map(values)) == pytest.approx(
        spearmanr(values.ravel(), values[:, ::-1].ravel()).statistic
    )
