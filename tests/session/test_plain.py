"""An answer as JSON: every number, the words around the numbers, and arrays in a few numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vit_viz.answer import Provenance
from vit_viz.session.serialization import facts_of, numbers_of, provenance_in, summary_of

VALUES = np.array([[0.5, -2.0, 3.0], [3.0, 0.25, 1.0]], np.float32)


@dataclass(frozen=True)
class Inner:
    name: str
    values: np.ndarray[Any, Any]


@dataclass(frozen=True)
class Outer:
    parts: tuple[Any, ...]
    named: dict[int, Any]
    provenance: Provenance | None = None


# --- every number


def test_finite_numbers_come_back_from_json_to_the_last_bit() -> None:
    values = np.random.default_rng(4).normal(size=(3, 2, 5)).astype(np.float32)
    listed = json.loads(json.dumps(numbers_of({"values": values})["values"]))
    assert np.array(listed, np.float32).tobytes() == values.tobytes()


def test_numbers_that_json_does_not_have_are_texts_and_those_beside_them_stay_numbers() -> None:
    values = np.array([[1.5, np.inf, -np.inf], [0.0, np.nan, -2.0]], np.float32)
    listed = numbers_of({"values": values})["values"]
    assert listed == [[1.5, "inf", "-inf"], [0.0, "nan", -2.0]]
    json.dumps(listed, allow_nan=False)


def test_only_the_rows_that_need_it_hold_texts() -> None:
    assert numbers_of({"a": np.array([[1.0, 2.0], [np.inf, 4.0]])}) == {"a": [[1.0, 2.0], ["inf", 4.0]]}


def test_whole_numbers_and_truth_values_stay_what_they_are() -> None:
    listed = numbers_of({"count": np.array([1, 2, 3]), "is": np.array([True, False])})
    assert json.dumps(listed) == '{"count": [1, 2, 3], "is": [true, false]}'


# --- words


def test_facts_are_all_but_the_arrays_however_deep_they_lie() -> None:
    answer = Outer(
        (Inner("first", VALUES), VALUES, "second", 3), {4: Inner("third", VALUES), 5: VALUES, 6: None}
    )
    assert facts_of(answer) == {
        "parts": [{"name": "first"}, "second", 3],
        "named": {"4": {"name": "third"}, "6": None},
        "provenance": None,
    }


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (True, True),
        (7, 7),
        ("word", "word"),
        (None, None),
        (0.25, 0.25),
        (np.float32(0.25), 0.25),
        (float("inf"), "inf"),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
        ([1, (2.5, float("inf"))], [1, [2.5, "inf"]]),
        (Path("a/b"), "a/b"),
    ],
)
def test_single_values_are_as_json_has_them(value: object, fact: object) -> None:
    found = facts_of(value)
    assert (found, type(found)) == (fact, type(fact))
    json.dumps(found, allow_nan=False)


def test_provenance_is_told_as_it_tells_itself() -> None:
    provenance = Provenance("mini", "ab", "cd", "fit")
    assert facts_of(Outer((), {}, provenance))["provenance"] == provenance.to_dict()


def test_provenance_is_found_in_parts_and_in_what_is_named() -> None:
    first, second = Provenance("first"), Provenance("second")
    assert provenance_in(first) is first
    assert provenance_in(Outer((), {1: Outer((), {}, second)}, first)) is second  # the order of the fields
    assert provenance_in({"a": VALUES, "b": Outer((), {}, first), "c": second}) is first
    assert provenance_in(Outer((), {}, None)) is None
    assert provenance_in(VALUES) is None


# --- arrays in a few numbers


def test_a_summary_by_hand() -> None:
    assert summary_of(VALUES) == {
        "shape": [2, 3],
        "min": -2.0,
        "max": 3.0,
        "total": 5.75,
        "top": [
            {"at": [0, 2], "value": 3.0},
            {"at": [1, 0], "value": 3.0},  # of equal values the first comes first
            {"at": [1, 2], "value": 1.0},
            {"at": [0, 0], "value": 0.5},
            {"at": [1, 1], "value": 0.25},
        ],
    }


def test_a_summary_of_few_numbers_names_all_and_of_infinite_ones_says_so() -> None:
    found = summary_of(np.array([-np.inf, 2.0, 3.5], np.float32))
    assert (found["shape"], found["min"], found["max"], found["total"]) == ([3], "-inf", 3.5, "-inf")
    assert found["top"] == [
        {"at": [2], "value": 3.5},
        {"at": [1], "value": 2.0},
        {"at": [0], "value": "-inf"},
    ]
    assert summary_of(np.array([np.inf]))["max"] == "inf"


def test_many_small_numbers_are_added_exactly() -> None:
    assert summary_of(np.full((7, 1000), 0.1, np.float32))["total"] == pytest.approx(
        7000 * float(np.float32(0.1)), rel=1e-12
    )
