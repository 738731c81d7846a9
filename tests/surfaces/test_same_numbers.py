"""The same question through every surface gives the same bits, for every question that there is."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.testclient import TestClient

import vit_viz as vv
from tests.comparing import assert_unchanged
from tests.ui.test_toy_method import TOY
from vit_viz import rest
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import arrays_of
from vit_viz.cli import asking, main
from vit_viz.errors import ParameterError
from vit_viz.samples import sample
from vit_viz.session.questions import ask
from vit_viz.session.run import subject_of
from vit_viz.session.session import Session

pytestmark = pytest.mark.numbers

SAMPLE = "twins"
Arrays = dict[str, NDArray[Any]]

MANY = {name for name, question in QUESTIONS.items() if question.cost == "many passes"}
REFUSED_HERE = ("added_register", "rotary_similarity", "sentence_patches", "head_words")
"""The tiny model has no outliers that a register could take over, its positions are learned, and it has no text tower."""

NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] if name in MANY else [])
    for name in QUESTIONS
    if name not in REFUSED_HERE
]
OPTIONS: dict[str, dict[str, Any]] = {
    "rollout": {"discard": 0.25, "query": "2,3"},
    "look": {"layer": 1, "head": "3", "norm": True, "direction": "column"},
    "mosaic": {"query": "register 0"},
    "heads": {"measure": "entropy"},
    "relevance": {"target": "animal 3"},
    "gradcam": {"target": "1-4"},
    "patches": {"numbers": True},
    "positions": {"grid": "3,5", "place": "2,4"},
    "segments": {"count": 3, "box": "5,5,60,70"},
    "trust": {"sides": "difference", "target": "1-4"},
    "on_object": {"box": "5,5,60,70"},
    "resampling": {"rows": 5, "cols": 3},
}
"""Of questions that have some to change; the others are asked as they are."""


def by_python(session: Session, name: str) -> Arrays:
    subject = subject_of(session, SAMPLE if QUESTIONS[name].takes_image else None)
    answer = ask(session, subject, name, **OPTIONS.get(name, {}))
    assert_unchanged(pickle.loads(pickle.dumps(answer)), answer)  # as from a process that has a GPU
    arrays = arrays_of(answer)
    assert not any(values.flags.writeable for values in arrays.values())  # who asks again gets the same one
    return arrays


def words_of(name: str) -> list[str]:
    words = [SAMPLE] if QUESTIONS[name].takes_image else []
    for option, value in OPTIONS.get(name, {}).items():
        words += [f"--{option}"] if value is True else [f"--{option}", str(value)]
    return words


def by_command(name: str, folder: Path) -> Arrays:
    file = folder / f"{name}.npz"
    assert main([name, *words_of(name), "-o", str(file)]) == 0
    with np.load(file, allow_pickle=False) as found:
        return {entry: found[entry] for entry in found.files if entry != "vit_viz"}


def body_of(name: str) -> dict[str, Any]:
    image = {"image": {"sample": SAMPLE}} if QUESTIONS[name].takes_image else {}
    return image | OPTIONS.get(name, {})


def by_http(api: TestClient, name: str) -> Arrays:
    answer = api.post(f"{rest.PREFIX}/{name}", json=body_of(name))
    assert answer.status_code == 200, answer.text
    return {part: np.array(values) for part, values in answer.json()["numbers"].items()}


def table_by_command(name: str, folder: Path) -> bytes:
    file = folder / f"{name}.csv"
    assert main([name, *words_of(name), "-o", str(file)]) == 0
    return file.read_bytes()


def table_by_http(api: TestClient, name: str) -> bytes:
    answer = api.post(f"{rest.PREFIX}/{name}", json=body_of(name), headers={"Accept": "text/csv"})
    assert answer.status_code == 200, answer.text
    content: bytes = answer.content
    return content


def by_tool(session: Session, name: str) -> Arrays:
    pytest.importorskip("mcp", reason="the package mcp is not installed; requirements-dev.txt has it")
    from mcp import Client

    from vit_viz import mcp

    async def call() -> Any:
        async with Client(mcp.server(session)) as client:
            return await client.call_tool(name, body_of(name) | {mcp.FULL: True})

    result = anyio.run(call)
    assert not result.is_error, result.content
    numbers: dict[str, Any] = json.loads(result.content[0].text)["numbers"]
    return {part: np.array(values) for part, values in numbers.items()}


def by_notebook(session: Session, name: str) -> Arrays:
    """Through the explorer of a notebook and its line to the browser, in a session that knows nothing of the others."""
    pytest.importorskip("anywidget", reason="anywidget is not installed; requirements-dev.txt has it")
    from tests.notebook.line import Line

    explorer = vv.explore(session.model(), sample(SAMPLE))
    return Line(explorer).question(name, **OPTIONS.get(name, {}))


def assert_same(found: Arrays, expected: Arrays) -> None:
    assert found.keys() == expected.keys()
    for part, values in expected.items():
        assert found[part].astype(values.dtype).tobytes() == values.tobytes(), part
        assert (found[part] == values).all()


@pytest.mark.parametrize("name", ["relevance", "rollout", "head_tables"])
def test_what_an_answer_says_is_said_on_every_surface(
    session: Session, api: TestClient, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    pytest.importorskip("mcp", reason="the package mcp is not installed; requirements-dev.txt has it")
    from mcp import Client

    from vit_viz import mcp

    expected = ask(session, subject_of(session, SAMPLE), name, **OPTIONS.get(name, {})).to_words()
    assert (expected == "") == (name == "head_tables")
    assert main([name, *words_of(name), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["words"] == expected
    assert api.post(f"{rest.PREFIX}/{name}", json=body_of(name)).json()["words"] == expected

    async def call() -> Any:
        async with Client(mcp.server(session)) as client:
            return await client.call_tool(name, body_of(name))

    assert json.loads(anyio.run(call).content[0].text)["words"] == expected


def six_digits(values: NDArray[Any]) -> NDArray[Any]:
    """As an agent is told them."""
    told = [float(f"{value:.6g}") for value in values.ravel().tolist()]
    return np.array(told, values.dtype if values.dtype.kind != "f" else np.float64).reshape(values.shape)


@pytest.fixture(autouse=True)
def _one_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands compute with a session of their own; here it has the same tiny model, and keeps nothing from before."""
    monkeypatch.setattr(asking, "Session", lambda **_options: session)


@pytest.mark.parametrize("name", NAMES)
def test_every_question_gives_the_same_bits_everywhere(
    session: Session, api: TestClient, tmp_path: Path, name: str
) -> None:
    expected = by_python(session, name)
    assert expected
    assert all(values.size for values in expected.values())
    session.cache.clear()  # so that the others compute, too
    assert_same(by_command(name, tmp_path), expected)
    assert_same(by_http(api, name), expected)
    assert_same(by_tool(session, name), {part: six_digits(values) for part, values in expected.items()})
    assert_same(by_notebook(session, name), expected)
    assert table_by_http(api, name) == table_by_command(name, tmp_path)


@pytest.mark.parametrize("name", REFUSED_HERE)
def test_what_is_refused_is_refused_in_the_same_words_everywhere(
    session: Session, api: TestClient, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ParameterError) as refused:
        by_python(session, name)
    assert main([name, *([SAMPLE] if QUESTIONS[name].takes_image else [])]) == 2
    assert capsys.readouterr().err == f"vit-viz: {refused.value}\n"
    answer = api.post(f"{rest.PREFIX}/{name}", json=body_of(name))
    assert (answer.status_code, answer.json()) == (400, {"error": str(refused.value)})
    with pytest.raises(ParameterError, match=re.escape(str(refused.value))):
        vv.explore(session.model(), sample(SAMPLE)).run(name)


def test_a_method_of_one_declaration_is_on_every_surface(
    session: Session, api: TestClient, tmp_path: Path
) -> None:
    with METHODS.including(TOY):
        expected = by_python(session, "toy")
        assert expected["values"].max() == 1
        assert_same(by_http(api, "toy"), expected)
        assert "stripes" in str(api.get(rest.PREFIX).json())
        assert_same(by_tool(session, "toy"), expected)  # whole numbers
        assert_same(by_notebook(session, "toy"), expected)
        assert_same(by_command("toy", tmp_path), expected)
    assert main(["toy", SAMPLE]) == 2
    assert api.post(f"{rest.PREFIX}/toy", json=body_of("look")).status_code == 404
