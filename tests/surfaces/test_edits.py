"""An edited model on every surface: the same bits everywhere, in links, commands and files that are made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.comparing import assert_same
from tests.surfaces.test_same_numbers import six_digits
from tests.ui.desk import odd_session
from vit_viz import rest
from vit_viz.cli import asking, main
from vit_viz.figures.files import file_of, named
from vit_viz.figures.recipes import as_command, as_python
from vit_viz.figures.replay import record_of, replay
from vit_viz.figures.request import Output, figure_for
from vit_viz.results import PatchMap
from vit_viz.session.edits import ModelEdits
from vit_viz.session.questions import ask, request_for
from vit_viz.session.run import subject_of
from vit_viz.session.session import Session
from vit_viz.views.choices import subject_of as subject_of_view
from vit_viz.views.state import ViewState

SAMPLE, WORDS = "twins", "off 1.3;temperature 2=0.5;forbid class>1-2,3@0"


@pytest.fixture(autouse=True)
def _one_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "Session", lambda **_options: session)


def edited_map(session: Session, words: str = WORDS) -> PatchMap:
    answer = ask(session, subject_of(session, SAMPLE, edits=ModelEdits.parse(words)), "relevance")
    assert isinstance(answer, PatchMap)
    return answer


@pytest.mark.parametrize("words", [WORDS, WORDS.split(";")])
def test_an_edited_model_gives_the_same_bits_everywhere(
    session: Session, api: TestClient, tmp_path: Path, words: Any
) -> None:
    pytest.importorskip("mcp", reason="the package mcp is not installed; requirements-dev.txt has it")
    from mcp import Client

    from vit_viz import mcp

    expected = edited_map(session).values
    assert not np.allclose(expected, edited_map(session, "").values)
    body = {"image": {"sample": SAMPLE}, "edits": words}
    file = tmp_path / "relevance.npz"
    assert main(["relevance", SAMPLE, "--edits", WORDS, "-o", str(file)]) == 0
    with np.load(file, allow_pickle=False) as found:
        assert (found["values"] == expected).all()
    answer = api.post(f"{rest.PREFIX}/relevance", json=body).json()
    assert_same(np.array(answer["numbers"]["values"], np.float32), expected, relative=0)
    assert answer["request"]["edits"] == list(ModelEdits.parse(WORDS).words)

    async def call() -> Any:
        async with Client(mcp.server(session)) as client:
            return await client.call_tool("relevance", body)

    told = json.loads(anyio.run(call).content[0].text)
    assert_same(np.array(told["numbers"]["values"]), six_digits(expected), relative=0)


def test_the_link_of_an_answer_opens_the_edited_model_elsewhere(session: Session, api: TestClient) -> None:
    body = {"image": {"sample": SAMPLE}, "edits": WORDS}
    link = api.post(f"{rest.PREFIX}/relevance", json=body).json()["link"]
    view, problems = ViewState.from_address(urlsplit(link).query)
    assert problems == ()
    elsewhere = odd_session()
    opened = subject_of_view(elsewhere, view, "")
    assert (opened.edits, opened.image) == (ModelEdits.parse(WORDS), SAMPLE)
    shown = elsewhere.trace_of(opened)
    again = session.trace_of(subject_of(session, SAMPLE, edits=ModelEdits.parse(WORDS)))
    assert_same(shown.logits, again.logits, relative=0)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ("off 1.3 1.3", "Head 3 of layer 1 is edited twice; please name it once."),
        ("off 7.0", "Layer 7 does not exist: this model has layers 0-2."),
        ("forbid everything>everything", "Every token has to see at least one, but class would see none in layer 0: forbid less."),
        ([1], "Edits are words such as 'off 3.1;temperature 7=0.5', or a list of them."),
    ],
)  # fmt: skip
def test_odd_edits_get_one_sentence_everywhere(
    api: TestClient, capsys: pytest.CaptureFixture[str], edits: Any, said: str
) -> None:
    answer = api.post(f"{rest.PREFIX}/relevance", json={"image": {"sample": SAMPLE}, "edits": edits})
    assert (answer.status_code, answer.json()) == (400, {"error": said})
    if isinstance(edits, str):
        assert main(["classes", SAMPLE, "--edits", edits]) == 2
        assert capsys.readouterr().err == f"vit-viz: {said}\n"


@pytest.mark.parametrize("form", ["png", "csv"])
def test_a_file_of_an_edited_model_says_so_and_is_made_again(session: Session, form: str) -> None:
    subject = subject_of(session, SAMPLE, edits=ModelEdits.parse(WORDS))
    request = request_for(session, subject, "look", layer=2, head="1")
    output = Output.of({"format": form, "width_cm": 6.0, "dpi": 72}.items())
    figure = figure_for(request)
    saved = file_of(session, figure, output)
    plain = file_of(
        session,
        figure_for(subject_of(session, SAMPLE).request(request.question, **dict(request.parameters))),
        output,
    )
    assert saved.data != plain.data
    record = record_of(saved.data)
    assert record["request"]["edits"] == list(subject.edits.words)
    assert record["parameters"]["edits"] == WORDS
    assert replay(saved.data, odd_session()).data == saved.data
    figure = named(session, figure)
    assert f"--edits '{WORDS}'" in as_command(figure, output)
    assert f"edits={WORDS!r}" in as_python(figure, output)
