"""How one output is shown: a share of a softmax, a sigmoid of its own, or a value."""

from __future__ import annotations

import math

import pytest
import torch

from vit_viz.errors import ParameterError
from vit_viz.labels import Labels
from vit_viz.outputs import Output, checked_output, output_kind, output_name, shown

SCORES = torch.tensor([math.log(1.0), math.log(2.0), math.log(5.0)])


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (None, [1 / 8, 2 / 8, 5 / 8]),
        ("softmax", [1 / 8, 2 / 8, 5 / 8]),
        ("sigmoid", [1 / 2, 2 / 3, 5 / 6]),
        ("value", SCORES.tolist()),
    ],
)
def test_outputs_are_shown_by_their_kind(output: Output | None, expected: list[float]) -> None:
    torch.testing.assert_close(shown(SCORES, output), torch.tensor(expected))
    torch.testing.assert_close(shown(SCORES.expand(4, 3), output), torch.tensor(expected).expand(4, 3))


def test_one_output_is_a_value_unless_it_is_said_to_be_a_score() -> None:
    assert (output_kind(None, 1), output_kind(None, 2)) == ("value", "softmax")
    assert shown(torch.tensor([-3.5]), None).tolist() == [-3.5]
    assert shown(torch.tensor([0.0]), "sigmoid").tolist() == [0.5]


def test_a_softmax_over_one_output_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"always 1 .* output='sigmoid' .* output='value'"):
        shown(torch.tensor([0.7]), "softmax")


@pytest.mark.parametrize("given", ["tanh", "", 1, ["value"]])
def test_a_kind_that_does_not_exist_is_refused_by_those_that_do(given: object) -> None:
    with pytest.raises(ParameterError, match="'softmax', 'sigmoid', 'value'"):
        checked_output(given)


def test_half_precision_is_shown_in_single() -> None:
    assert shown(SCORES.half(), "softmax").dtype == torch.float32
    assert shown(SCORES.double(), "sigmoid").dtype == torch.float64


def test_an_output_has_its_name_or_its_number() -> None:
    assert output_name(0, Labels(("age",)), "output") == "age"
    assert (output_name(3, None), output_name(3, Labels(("age",)), "output")) == ("class 3", "output 3")
