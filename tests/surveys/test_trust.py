"""Which method to trust: intervals of what is known, and a sentence that says no more than they do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.surveys.made import made_survey

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from vit_viz.surveys import trust
from vit_viz.surveys.opened import open_survey


def estimate(mean, reach, photos=47):
    return trust.Estimate(mean, mean - reach, mean + reach, photos)


def test_a_column_of_which_nothing_is_known_leaves_those_after_it_alone():
    values = np.random.default_rng(2).uniform(size=(31, 3))
    values[:, 1] = np.nan
    first, unknown, last = trust.intervals(values)
    assert unknown is None
    (alone,) = trust.intervals(values[:, 2:])
    expected = (alone.mean, alone.low, alone.high)
    assert (last.mean, last.low, last.high) == pytest.approx(expected, rel=1e-12)
    assert (first.photos, last.photos) == (31, 31)
    assert last.mean == pytest.approx(values[:, 2].mean())


def test_what_is_the_same_on_every_photo_has_an_interval_of_no_width():
    (one,) = trust.intervals(np.full((29, 1), 0.25))
    assert (one.mean, one.low, one.high, one.photos) == (0.25, 0.25, 0.25, 29)


def test_an_interval_of_few_zeros_and_ones_is_that_of_the_binomial():
    """A resampled mean of 7 ones of 20 is binomial: its 2.5% and 97.5% points are 3 and 11 of 20."""
    (one,) = trust.intervals(np.array([[1.0]] * 7 + [[0.0]] * 13))
    assert (one.mean, one.low, one.high) == pytest.approx((0.35, 0.15, 0.55), abs=1e-9)


@pytest.mark.parametrize(
    ("other", "shared"),
    [((0.1, 0.3), True), ((0.6, 0.9), True), ((0.1, 0.29), False), ((0.61, 0.9), False), ((0.4, 0.5), True)],
)
def test_intervals_that_touch_overlap(other, shared):
    one, second = trust.Estimate(0.4, 0.3, 0.6, 9), trust.Estimate(sum(other) / 2, *other, 9)
    assert (one.overlaps(second), second.overlaps(one)) == (shared, shared)


def test_an_estimate_is_said_with_two_decimals():
    assert str(trust.Estimate(0.8512, 0.8249, 0.8666, 5)) == "0.85 (0.82 to 0.87)"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            {"a": {"energy": estimate(0.5, 0.1)}, "b": {"energy": estimate(0.9, 0.1)}},
            "On these 47 photos b has most of its map on the object best, 0.90 (0.80 to 1.00); no other method's "
            "interval reaches it.",
        ),
        (
            {"a": {"insertion": estimate(0.3, 0.1, 1234)}},
            "On these 1,234 photos a finds what is enough for the answer best, 0.30 (0.20 to 0.40); no other was scored.",
        ),
        (
            {
                "a": {"deletion": estimate(0.5, 0.2)},
                "b": {"deletion": estimate(0.4, 0.2)},
                "c": {"deletion": estimate(0.45, 0.2)},
                "d": {"deletion": estimate(-0.4, 0.2)},
                "e": {"deletion": estimate(0.49, 0.2)},
            },
            "On these 47 photos a finds what the answer needs best, 0.50 (0.30 to 0.70), but its interval overlaps that of "
            "e, c and b: they cannot be told apart here.",
        ),
        (
            {  # the first score that is known of any method decides
                "a": {"insertion": estimate(0.9, 0.01)},
                "b": {"energy": estimate(0.1, 0.01), "insertion": estimate(0.2, 0.01)},
            },
            "On these 47 photos b has most of its map on the object best, 0.10 (0.09 to 0.11); no other was scored.",
        ),
        ({"a": {"energy": estimate(0.5, 0.1, 20)}}, "On these 20 photos a "),
        ({"a": {"energy": estimate(0.5, 0.1, 19)}}, "Only 19 of these photos have a score: too few to prefer a method."),
        ({"a": {}, "b": {}}, "No method has a score on these photos: none of them has a box."),
    ],
)  # fmt: skip
def test_the_conclusion_is_one_sentence(lines, says):
    assert trust._conclusion(lines).startswith(says)


def test_what_is_known_of_no_photo_is_left_out_of_the_table(tmp_path):
    """Without boxes nothing points anywhere; the gains over random orders are known all the same."""
    survey = open_survey(made_survey(tmp_path / "made", photos=23, boxes=False))
    table = trust.method_table(survey, survey.select())
    assert {method: list(line) for method, line in table.lines.items()} == {
        "rollout": ["insertion", "deletion"],
        "relevance": ["insertion", "deletion"],
    }
    assert "finds what is enough for the answer best" in table.conclusion


def test_no_photo_and_no_method_are_said(tmp_path):
    survey = open_survey(made_survey(tmp_path / "made", photos=12))
    assert trust.method_table(survey, survey.select("false")) == trust.MethodTable(
        {}, "No photo passes the filter."
    )
    without = replace(survey, manifest=dict(survey.manifest) | {"methods": []})
    assert trust.method_table(without, without.select()) == trust.MethodTable({}, trust.NONE)


def test_columns_are_resampled_with_the_same_photos() -> None:
    values = np.random.default_rng(4).uniform(size=(31, 1))
    first, second = trust.intervals(np.concatenate([values, 5 * values - 2], -1))
    assert first is not None
    assert second is not None
    assert (second.low, second.high) == pytest.approx((5 * first.low - 2, 5 * first.high - 2))
