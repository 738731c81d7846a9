"""Sentences and templates that somebody makes up: cleaned or refused alike everywhere, and never markup in what is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import anyio
import pytest
from starlette.testclient import TestClient

import vit_viz as vv
from tests.checkpoints.test_text_towers import own_file
from vit_viz import rest
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.cli import main
from vit_viz.prompts import MOST_SENTENCES
from vit_viz.service import read_body
from vit_viz.session.inputs import InputOptions
from vit_viz.session.session import Session
from vit_viz.ui.target import with_sentences
from vit_viz.views.state import ViewState

LION = {"image": {"sample": "lion"}}
EVIL = "</title></style><script>alert(1)</script>\"'&"
ONCE = "A template has {} once, where the sentence goes, as 'a photo of {}.' has: not %r."
LONG = f"One of the sentences is longer than 300 characters: {'x' * 40!r}..."
MANY = f"At most 32 sentences are compared at a time, not {MOST_SENTENCES + 1}."
REFUSED = [
    ("templates", "{0}", ONCE % "{0}"),
    ("templates", "{} {}", ONCE % "{} {}"),
    ("templates", "{x}\x1b", ONCE % "{x}"),
    ("templates", "<script>", ONCE % "<script>"),
    ("sentences", "x" * 301, LONG),
    ("sentences", "x" * 20_000, LONG),
    ("sentences", "|".join(map(str, range(MOST_SENTENCES + 1))), MANY),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a text tower, of random weights."""
    path = tmp_path_factory.mktemp("reader") / "reader.safetensors"
    own_file(path)
    return path


@pytest.mark.parametrize(("name", "written", "said"), REFUSED)
def test_what_is_refused_is_one_sentence_everywhere(
    session: Session, api: TestClient, capsys: pytest.CaptureFixture[str], name: str, written: str, said: str
) -> None:
    pytest.importorskip("mcp", reason="the package mcp is not installed; requirements-dev.txt has it")
    from mcp import Client

    from vit_viz import mcp

    answer = api.post(f"{rest.PREFIX}/relevance", json=LION | {name: written})
    assert (answer.status_code, answer.json()) == (400, {"error": said})

    async def call() -> Any:
        async with Client(mcp.server(session)) as client:
            return await client.call_tool("relevance", LION | {name: written})

    told = anyio.run(call)
    assert (told.is_error, told.content[0].text) == (True, said)
    assert main(["relevance", "lion", f"--{name}", written]) == 2
    assert capsys.readouterr().err == f"vit-viz: {said}\n"
    view, problems = ViewState.from_address(urlencode({name: written}))
    assert (getattr(view, name), problems) == ("", (said,))
    refused = api.post("/vit_viz/target", json={"view": "image=lion&sentences=0", name: written})
    assert (refused.status_code, refused.json()) == (400, {"error": said})


@pytest.mark.parametrize("value", [3, True, None, {"a dog": 1}])
@pytest.mark.parametrize("name", ["sentences", "templates"])
def test_what_is_no_text_is_refused(api: TestClient, name: str, value: Any) -> None:
    answer = api.post(f"{rest.PREFIX}/relevance", json=LION | {name: value})
    said = f"The {name} are a text or a list of texts, not {str(value)!r}."
    assert (answer.status_code, answer.json()) == (400, {"error": said})


@pytest.mark.parametrize("as_list", [False, True])
def test_what_has_no_shape_is_cleaned_alike_in_a_text_and_in_a_list(as_list: bool) -> None:
    texts = ["\u202eevil\u202c  dog\x07", "a\ncat"]
    given: Any = texts if as_list else "|".join(texts)
    subject, *_ = read_body(QUESTIONS.named("relevance"), {"image": "lion", "sentences": given})
    assert subject.prompts.sentences == ("evil dog", "a cat")
    assert InputOptions(sentences="|".join(texts)).prompts == subject.prompts


def test_a_sentence_that_is_written_joins_the_others_and_is_chosen() -> None:
    view = ViewState(sentences="a dog | a cat")
    assert with_sentences(view, " the\u202e sky ") == {"sentences": "a dog | a cat | the sky", "target": "2"}
    assert with_sentences(view, "grass | a dog") == {"sentences": "a dog | a cat | grass", "target": "0"}
    assert with_sentences(view, " \x00 ") == {"sentences": "a dog | a cat"}


@pytest.mark.parametrize("question", ["class_maps", "sentence_patches", "classes"])
def test_markup_in_a_sentence_is_text_in_a_figure(reader: Path, question: str) -> None:
    made = vv.figure(
        str(reader), "lion", question, sentences=[EVIL, "red"], templates=["<b>{}</b>"], format="svg"
    )
    svg = ElementTree.fromstring(made.data)
    assert not [one.tag for one in svg.iter() if one.tag.rpartition("}")[2] in ("script", "b")]
    assert any("<script>alert(1)</script>" in (one.text or "") for one in svg.iter())


def test_markup_in_a_sentence_is_text_in_a_saved_page(reader: Path, tmp_path: Path) -> None:
    loaded = vv.load(str(reader), device="cpu").with_prompts([EVIL, "red"])
    page = vv.explore(loaded, "lion").save(tmp_path / "page.html").read_text("utf-8")
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "</title></style>" not in page
