"""What a page saves of an answer is the app's file: the same columns and lines of a table, the same arrays and facts for NumPy."""

from __future__ import annotations

import base64
import csv
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.engine import Jobs
from tests.browser.test_answers import CASES, TINIES, _facts, _loaded
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import VitVizError
from vit_viz.figures.export import npz_contents
from vit_viz.figures.files import Answered, as_file
from vit_viz.samples import sample
from vit_viz.service import read_body, requested
from vit_viz.session.session import Session

pytestmark = pytest.mark.numbers

BESIDE: list[tuple[str, dict[str, Any]]] = [
    ("ablation", {}),
    ("occlusion", {}),
    ("trust", {"method": "rollout"}),
    ("without_patches", {"gone": "1,1;1,2"}),
    ("lesson_what_if", {"change": "head"}),
    ("lesson_what_if", {"change": "patch", "patch": 5}),
]
"""Questions that run the model again: of tiny models, whose passes are short."""
MASKED: list[tuple[str, dict[str, Any]]] = [("token_components", {"foreground": True})]
"""With an array of yes and no, which in tiny models, whose patches are alike, is any."""
SAME = 1e-4
"""Of the largest number of a column: how near the numbers are is held by `test_answers`; here each has to stand in its place."""
MODELS = ("mini", "rotary", "attention pooling")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """By a model's name: what the app and the page save of each answer that it has."""

    @cache
    def of(name: str) -> dict[str, tuple[Answered, str, bytes]]:
        folder: Path = tmp_path_factory.mktemp("files")
        loaded, path = _loaded(name, folder)
        session = Session(model=loaded.name, device="cpu")
        session.add_model(loaded)
        answered: dict[str, Answered] = {}
        asked = []
        for question, body in [*(BESIDE if name in TINIES else MASKED), *CASES]:
            about = {"model": loaded.name}
            about |= {"image": "runner", "mode": "crop"} if QUESTIONS[question].takes_image else {}
            key = f"{question} of a place" if "place" in body else question  # which is a map
            key = f"{question} {body['change']}" if "change" in body else key
            if key in answered:
                continue
            try:
                read = read_body(QUESTIONS[question], about | body)
                with requested(session, QUESTIONS[question], read, owner="test") as request:
                    answered[key] = Answered(session, request, session.run(request))
                asked.append((question, {"model": loaded.name} | body))
            except VitVizError:  # this model has no such answer
                continue
        jobs = Jobs(folder)
        photo, options = jobs.picture(sample("runner")), {"mode": "crop"}
        jobs.add("files", path=str(path), picture=photo, options=options, questions=asked)
        (result,) = jobs.run()
        assert "error" not in result, result
        pairs = zip(answered.items(), result["files"], strict=True)
        return {key: (one, table, base64.b64decode(npz)) for (key, one), (table, npz) in pairs}

    return of


def _cells(text: str) -> tuple[dict[str, str], list[list[str]]]:
    """What is said of the numbers, by name, and the lines."""
    lines = text.splitlines()
    said = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    assert said.pop("vit_viz")
    return said, list(csv.reader(line for line in lines if not line.startswith("# ")))


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


@pytest.mark.parametrize("model", MODELS)
def test_a_table_has_the_columns_and_lines_of_the_apps(model: str, files: Any) -> None:
    found = files(model)
    assert len(found) >= 24
    for question, (answered, text, _) in found.items():
        said, lines = _cells(text)
        expected_said, expected = _cells(as_file(answered, "csv").decode())
        for beside in ("prefix", "suffix"):
            wanted = json.loads(expected_said.pop(beside, "{}"))
            assert json.loads(said.pop(beside, "{}")) == pytest.approx(wanted, rel=SAME), question
        assert said == expected_said, question
        assert lines[0] == expected[0], question
        assert len(lines) == len(expected), question
        columns = [[abs(_number(cell) or 0.0) for cell in cells] for cells in zip(*expected[1:], strict=True)]
        apart = [SAME * max(column) for column in columns]
        for row, other_row in zip(lines[1:], expected[1:], strict=True):
            for cell, other, most in zip(row, other_row, apart, strict=True):
                value = _number(other)
                if value is None:
                    assert cell == other, (question, row, other_row)
                else:
                    assert float(cell) == pytest.approx(value, rel=0, abs=most), (question, row)


@pytest.mark.parametrize("model", MODELS)
def test_numpy_reads_the_arrays_and_facts_of_the_apps(model: str, files: Any) -> None:
    for question, (answered, _, file) in files(model).items():
        arrays, facts = npz_contents(file)
        expected, wanted = npz_contents(as_file(answered, "npz"))
        assert list(arrays) == list(expected) or set(arrays) == set(expected), question
        for name, array in expected.items():
            assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape), (question, name)
        assert facts.pop("provenance") == {"software": "vit_viz"}
        assert json.dumps(_facts(facts), sort_keys=True) != ""
        assert set(facts) == set(wanted) - {"provenance"}, question
        assert (facts["kind"], facts.get("crop_box")) == (wanted["kind"], wanted.get("crop_box")), question


def test_equal_answers_are_equal_bytes(files: Any) -> None:
    _, text, file = files("mini")["look"]
    with np.load(io.BytesIO(file), allow_pickle=False) as entries:
        assert set(entries.files) == {"values", "vit_viz"}
    assert text.splitlines()[-257].split(",") == ["row", "col", "value"]
