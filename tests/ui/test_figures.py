"""Figures over HTTP: what the dialog saves is what Python saves, and what it copies makes the same file."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import odd_picture
from tests.ui.views import view_with
from vit_viz.figures.files import file_of
from vit_viz.figures.replay import record_of
from vit_viz.figures.request import Output, figure_for
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.payload import figure_address, picture_address
from vit_viz.ui.routes import PREFIX, routes

VIEW: dict[str, Any] = {"layer": 1, "head": 3, "query": "2,5", "style": "tint"}


@pytest.fixture(scope="module")
def subject(session: Session) -> Subject:
    return Subject("odd", session.add_upload(odd_picture(), owner="ada", file_name="cat.png"), "crop", "ada")


@pytest.fixture(scope="module")
def client(session: Session) -> TestClient:
    return TestClient(Starlette(routes=routes(session)))


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        *(("map", "svg"), ("mosaic", "pdf"), ("explain", "csv"), ("map", "png")),
        *(("patches", "csv"), ("numbered", "svg"), ("sequence", "npz"), ("sequence", "png")),
        *(("positions", "svg"), ("position", "png"), ("prefix", "csv")),
    ],
)
def test_the_page_saves_the_bytes_of_python(
    session: Session, subject: Subject, client: TestClient, kind: Any, form: Any
) -> None:
    view = view_with(**VIEW, method="rollout")
    address = figure_address(picture_address(session, subject, view, kind))
    answer = client.get(f"{address}&format={form}&width_cm=6&dpi=72")
    wanted = file_of(session, pictures.figure_of(session, subject, view, kind), Output(form, 6.0, 72))
    assert answer.status_code == 200, answer.text
    assert answer.content == wanted.data
    assert wanted.file_name in answer.headers["content-disposition"]
    assert answer.headers["content-type"] == wanted.media_type
    assert subject.image not in str(record_of(answer.content))


@pytest.mark.parametrize(
    ("search", "name", "asked"),
    [
        ("tab=heads&measure=entropy", "heads", {"measure": "entropy"}),
        ("tab=tokens&tokens=similarity&q=1,3", "token_similarity", {"query": "1,3"}),
        ("tab=tokens&tokens=segments&layer=0&method=cut", "segments", {"layer": 0}),
    ],
)
def test_a_tab_saves_the_answer_that_it_shows(
    session: Session, subject: Subject, client: TestClient, search: str, name: str, asked: dict[str, Any]
) -> None:
    address = f"{PREFIX}/figure/{session.handles.issue(subject)}?kind=shown&{search}"
    wanted = file_of(session, figure_for(request_for(session, subject, name, **asked)), Output("csv"))
    answer = client.get(f"{address}&format=csv")
    assert (answer.status_code, answer.content) == (200, wanted.data)
    lines = client.get(f"{address.replace('/figure/', '/recipe/')}&format=csv").json()
    assert f"{name!r}" in lines["python"]


def test_what_is_copied_names_the_figure(session: Session, subject: Subject, client: TestClient) -> None:
    address = figure_address(picture_address(session, subject, view_with(**VIEW), "map"))
    lines = client.get(f"{address.replace('/figure/', '/recipe/')}&format=svg&width_cm=8").json()
    assert lines["python"].startswith(
        "import vit_viz as vv\n\nvv.figure('odd', 'cat', 'look', layer=1, head='3'"
    )
    assert lines["command"].startswith("vit-viz look cat --model odd --layer 1 --head 3")
    assert subject.image not in str(lines)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("kind=map&format=docx", "format"),
        ("kind=map&dpi=1201", "dpi"),
        ("kind=map&width_cm=61", "width cm is a number from 4 to 60"),
        ("kind=map&dpi=1200&width_cm=60", "fewer dots"),
        ("kind=portrait", "A picture is one of"),
        ("kind=sequence&format=gif", "through the layers"),
        ("kind=positions&format=webp", "through the layers"),
        ("kind=mosaic&format=gif", "through the layers"),
    ],
)
def test_what_cannot_be_saved_is_refused_in_one_sentence(
    session: Session, subject: Subject, client: TestClient, asked: str, words: str
) -> None:
    answer = client.get(f"{PREFIX}/figure/{session.handles.issue(subject)}?{asked}")
    assert answer.status_code == 400
    assert words in answer.text


def test_the_old_address_of_a_picture_saves_the_figure(
    session: Session, subject: Subject, client: TestClient
) -> None:
    address = picture_address(session, subject, view_with(numbers=True), "numbered")
    answer = client.get(address)
    assert (
        answer.content == file_of(session, pictures.figure_of(session, subject, view_with(), "numbered")).data
    )
    assert client.get(f"{address.replace('numbered', 'portrait')}").status_code == 400


def test_figures_of_positions_follow_the_view(session: Session, subject: Subject) -> None:
    def asked(kind: str, **view: Any) -> dict[str, Any]:
        return pictures.figure_of(session, subject, view_with(**view), kind).parameters

    assert asked("positions") == {"grid": "4,6", "place": ""}
    assert asked("positions", position_grid="trained") == {"grid": "", "place": ""}
    assert asked("position", query="3,3") == {"grid": "4,6", "place": "3,3"}
    assert asked("position", query="class") == {"grid": "4,6", "place": "2,3"}
    assert asked("prefix", query="class")["place"] == "class"
