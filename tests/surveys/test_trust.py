"""Intervals and tables of methods where some scores are known of no photo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.surveys.made import METHODS, made_survey
from vit_viz.surveys import trust
from vit_viz.surveys.opened import open_survey


@pytest.mark.parametrize("unknown", [[0], [1], [3], [0, 1], [0, 2], [1, 2, 3]])
def test_a_column_of_which_nothing_is_known_leaves_its_place_to_none(unknown: list[int]) -> None:
    values = np.random.default_rng(4).uniform(size=(31, 4))
    values[:, unknown] = np.nan
    estimates = trust.intervals(values)
    assert [one is None for one in estimates] == [column in unknown for column in range(4)]
    for column, one in enumerate(estimates):
        if one is not None:
            assert one.photos == 31
            assert one.mean == pytest.approx(values[:, column].mean())
            assert one.low < one.mean < one.high


def test_columns_are_resampled_with_the_same_photos() -> None:
    values = np.random.default_rng(4).uniform(size=(31, 1))
    first, second = trust.intervals(np.concatenate([values, 5 * values - 2], -1))
    assert first is not None
    assert second is not None
    assert (second.low, second.high) == pytest.approx((5 * first.low - 2, 5 * first.high - 2))


@pytest.mark.parametrize("photos", [range(1, 47, 2), range(1, 39, 2)])
def test_a_score_that_none_of_the_chosen_photos_has_is_left_out(tmp_path: Path, photos: range) -> None:
    """Every second photo has a box; without any, the first score that is left decides."""
    survey = open_survey(made_survey(tmp_path / "made"))
    table = trust.method_table(survey, np.array(photos))
    assert {method: list(line) for method, line in table.lines.items()} == {
        method: ["insertion", "deletion"] for method in METHODS
    }
    assert {estimate.photos for line in table.lines.values() for estimate in line.values()} == {len(photos)}
    enough = len(photos) >= 20
    assert ("finds what is enough for the answer best" in table.conclusion) == enough
    assert ("Only 19 of these photos" in table.conclusion) == (not enough)


def test_of_no_photo_there_is_no_table(tmp_path: Path) -> None:
    survey = open_survey(made_survey(tmp_path / "made", photos=12))
    table = trust.method_table(survey, survey.select("false"))
    assert (table.lines, table.conclusion) == ({}, "No photo passes the filter.")
