"""Surveys of models whose answers are no shares of a softmax: columns, manifest, list and comparison follow the kind."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.capture.models import own
from tests.surveys.conftest import loaded
from vit_viz.cli.surveying import _comparison_lines
from vit_viz.errors import ParameterError
from vit_viz.outputs import shown
from vit_viz.surveys import manifest
from vit_viz.surveys.comparison import compare_surveys
from vit_viz.surveys.opened import open_survey
from vit_viz.surveys.run import Survey, survey
from vit_viz.ui.survey.compared import Compared
from vit_viz.ui.survey.routes import lists_of


@pytest.fixture(scope="module")
def made(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Survey]:
    """The same photos by one model, whose outputs are said to be of each kind, and by one with a single output."""
    torch.manual_seed(4)
    one = own(reg_tokens=2, num_classes=1).requires_grad_(False)
    several = loaded()
    models = {
        "softmax": several,
        "sigmoid": several.with_output("sigmoid"),
        "value": several.with_output("value"),
        "single": replace(several, model=one, config=one.config, labels=None, output=None),
    }
    folder = tmp_path_factory.mktemp("kinds")
    return {
        name: survey(model, photos / "inside", folder / name, progress=False)
        for name, model in models.items()
    }


def rows_of(one: Survey) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = one.table("photos").to_pydict()
    return rows


def test_the_manifest_says_what_an_output_is(made: dict[str, Survey]) -> None:
    kinds = {name: one.manifest["output"] for name, one in made.items()}
    assert kinds == {"softmax": "softmax", "sigmoid": "sigmoid", "value": "value", "single": "value"}


def test_probabilities_are_of_the_kind_and_values_are_none(made: dict[str, Survey]) -> None:
    softmax, sigmoid, value = (rows_of(made[name]) for name in ("softmax", "sigmoid", "value"))
    scores = torch.tensor(value["top_values"])
    torch.testing.assert_close(torch.tensor(sigmoid["top_probabilities"]), shown(scores, "sigmoid"))
    log_odds = torch.tensor(softmax["top_probabilities"]).log()
    torch.testing.assert_close(
        log_odds[:, 0] - log_odds[:, 1], scores[:, 0] - scores[:, 1], rtol=1e-4, atol=1e-4
    )
    assert softmax["top_classes"] == sigmoid["top_classes"] == value["top_classes"]
    assert value["top_probabilities"] == [[]] * len(scores)
    for name in ("margin", "label_probability", "right", "right_in_five"):
        assert value[name] == [None] * len(scores)
    assert softmax["top_values"] == sigmoid["top_values"] == [None] * len(scores)
    single = rows_of(made["single"])
    assert [len(one) for one in single["top_values"]] == [1] * len(scores)
    assert single["top_names"] == [["output 0"]] * len(scores)


def test_an_opened_survey_has_the_value_in_place_of_a_confidence(made: dict[str, Survey]) -> None:
    opened = open_survey(made["single"].folder)
    rows = opened.select("value > -1000")
    assert len(rows) == opened.num_photos
    assert np.isnan(opened.numbers["confidence"]).all()
    expected = [values[0] for values in rows_of(made["single"])["top_values"]]
    text = lists_of(opened, rows, layer=0, head=0, measure="entropy")["all"].csv(opened)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert [float(line["value"]) for line in lines] == pytest.approx(expected, rel=1e-4)
    with pytest.raises(ParameterError):
        open_survey(made["softmax"].folder).select("value > 0")


def test_a_survey_of_another_kind_is_another_survey(made: dict[str, Survey], photos: Path) -> None:
    with pytest.raises(ParameterError, match="its kind of the model's outputs is sigmoid, not softmax"):
        survey(loaded(), photos / "inside", made["sigmoid"].folder, progress=False)


def test_a_survey_that_does_not_say_its_kind_is_of_a_softmax(made: dict[str, Survey]) -> None:
    said = made["softmax"].manifest
    before = {key: value for key, value in said.items() if key != "output"}
    assert manifest.settings(before) == manifest.settings(said) != manifest.settings(made["sigmoid"].manifest)


@pytest.mark.parametrize(
    ("before", "after", "note", "compares"),
    [
        ("softmax", "softmax", "", True),
        ("sigmoid", "sigmoid", "", True),
        ("softmax", "sigmoid", "Probabilities before are by softmax, those after by sigmoid: they are not of one kind.", True),
        ("value", "value", "The outputs of both models are values and no classes, so that answers are not compared.", False),
        ("softmax", "value", "The outputs of the second model are values and no classes, so that answers are not compared.", False),
        ("single", "softmax", "The outputs of the first model are values and no classes, so that answers are not compared.", False),
    ],
)  # fmt: skip
def test_what_two_kinds_leave_out_of_a_comparison_is_said(
    made: dict[str, Survey], before: str, after: str, note: str, compares: bool
) -> None:
    compared = compare_surveys(made[before], made[after], heads=False)
    assert (compared.note, compared.compares_answers) == (note, compares)
    lines = list(_comparison_lines(compared))
    assert any("changed their answer" in line for line in lines) == compares
    assert (note in lines) == bool(note)
    told = Compared("other", "odd", compared, "", {}).value()
    assert (told["note"], told["changed"] is None) == (note, not compares)
