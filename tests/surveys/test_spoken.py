"""Columns by the words on the screen."""

from __future__ import annotations

import pytest

from vit_viz.surveys.filters import with_columns, words_of

WORDS = words_of(["is_right", "mean_entropy", "head_entropy", "grad_cam_energy"], ["grad cam"])


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("mean entropy > 0.8", "mean_entropy > 0.8"),
        ("entropy > 0.8", "head_entropy > 0.8"),
        ("Mean  Entropy > 0.8 and not right", "mean_entropy > 0.8 and not is_right"),
        ("is_right and is right", "is_right and is_right"),
        ("label = 'is right'' entropy' and right", "label = 'is right'' entropy' and is_right"),
        ('"mean entropy" > 1', "mean_entropy > 1"),
        ("grad cam map on the object > 0.5", "grad_cam_energy > 0.5"),
        ("upright and rights", "upright and rights"),
    ],
)
def test_words_outside_quotes_become_columns(where: str, named: str) -> None:
    assert with_columns(where, WORDS) == named


def test_without_words_a_filter_stays() -> None:
    assert with_columns("is right", {}) == "is right"
