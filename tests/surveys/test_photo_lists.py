"""Photos of a survey in lists, of a few photos whose numbers are written down here."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from vit_viz.errors import ParameterError
from vit_viz.surveys import photo_lists

NAN = float("nan")


@pytest.fixture
def survey():
    numbers = {
        "confidence": [0.5, 0.875, 0.75, 0.25, 1.0, 0.5, 0.125],
        "outside_box": [0.5, 0.25, 1.0, 1.0, NAN, 0.75, 0.5],
        "is_right": [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, NAN],
        "margin": [0.25, 0.5, NAN, 0.5, 0.0, 0.125, 0.75],
        "mean_entropy": [0.5] * 7,
        "mean_concentration": [NAN] * 7,
    }
    kinds = {"is_right": "bool", "photo": "text", "unknown": "int"}
    names = [*numbers, "photo", "unknown"]
    return SimpleNamespace(
        numbers={name: np.array(values) for name, values in numbers.items()},
        texts={"label": ["dog", "cat", "dog", "", "owl", "cat", "ant"]},
        columns=[SimpleNamespace(name=name, kind=kinds.get(name, "float")) for name in names],
        heads={"entropy": np.arange(7 * 2 * 3, dtype=np.float32).reshape(7, 2, 3)},
        measures=("entropy",),
        checked=lambda layer, head: (layer, head),
    )


ALL = np.arange(7)


def test_wrong_and_sure_and_elsewhere_by_the_product(survey):
    """0.25 of photo 0, 0.21875 of 1, 0.25 of 3, 0.375 of 5; 2 is right, 4 has no box, of 6 nobody knows."""
    assert photo_lists.elsewhere(survey, ALL, count=9).tolist() == [5, 0, 3, 1]
    assert photo_lists.elsewhere(survey, ALL, count=3).tolist() == [5, 0, 3]
    assert photo_lists.elsewhere(survey, np.array([1, 2, 3]), count=9).tolist() == [3, 1]
    assert photo_lists.elsewhere(survey, ALL, count=0).tolist() == []


def test_a_column_of_a_head_is_that_of_its_layer(survey):
    values = photo_lists.column_of(survey, "head_entropy", layer=1, head=2)
    assert values.tolist() == [6 * photo + 3 + 2 for photo in range(7)]
    assert values.dtype == np.float64
    for name in ("head_margin", "entropy", "x" * 41):
        with pytest.raises(ParameterError) as refused:
            photo_lists.column_of(survey, name)
        assert str(refused.value) == f"The survey has no numeric column {name[:40]!r} for photos."


def test_columns_are_offered_where_a_number_is_known(survey):
    assert photo_lists.scatter_columns(survey) == (
        *("confidence", "outside_box", "margin", "mean_entropy", "head_entropy"),
    )


def test_classes_come_by_their_number_of_photos_then_by_name(survey):
    lines = photo_lists.classes(survey, ALL)
    assert [(line.label, line.photos, line.accuracy) for line in lines] == [
        ("cat", 2, 0.0),
        ("dog", 2, 0.5),
        ("ant", 1, None),
        ("owl", 1, 0.0),
    ]
    assert lines[0].means == {
        "confidence": 0.6875, "margin": 0.3125, "mean_entropy": 0.5, "mean_concentration": None, "outside_box": 0.5,
    }  # fmt: skip
    assert lines[1].means["margin"] == 0.25  # of the one that is known
    assert lines[3].means["outside_box"] is None


def test_only_the_chosen_photos_make_classes(survey):
    lines = photo_lists.classes(survey, np.array([2, 3, 6]))
    assert [(line.label, line.photos, line.accuracy) for line in lines] == [("ant", 1, None), ("dog", 1, 1.0)]
    assert photo_lists.classes(survey, np.array([3])) == ()
