"""An answer as a file: the same question with another `Accept`, drawn as the body says, with the bytes that Python saves."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.test_rest import TWINS, ask
from tests.ui.desk import odd_picture
from vit_viz.figures.files import file_of, named
from vit_viz.figures.recipes import as_command, as_python
from vit_viz.figures.replay import record_of
from vit_viz.figures.request import DrawingOptions, FigureRequest, Output, figure_for
from vit_viz.session.handles import cookie_name, new_visitor
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

CLASSES = {"target": [3, 5]}
LOOK = {"layer": 1, "head": "3", "query": "2,5"}
HOW = {"style": "heat", "mask": 0.5, "table": "magma", "clip": False}
TYPES = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "npz": "application/x-npz",
    "gif": "image/gif",
    "webp": "image/webp",
}


def figure_of(session: Session, name: str, asked: Any, *, about: Any = None, **how: Any) -> FigureRequest:
    subject = Subject(session.default_model, "twins", owner="api", **about or {})
    scale, title = how.pop("shared_scale", False), how.pop("title", "")
    request = request_for(session, subject, name, **asked)
    return figure_for(request, DrawingOptions(**how), shared_scale=scale, title=title)


@pytest.mark.parametrize(
    ("name", "form", "asked", "how"),
    [
        *(("look", form, LOOK, HOW) for form in TYPES),
        ("look", "png", LOOK, {"scale": "shared", "title": "Two of them"}),
        ("mosaic", "pdf", {"query": "class"}, {"alpha": 0.25}),
        ("rollout", "svg", {"attention_share": 0.25}, {"shared_scale": True}),
        ("rollout", "npz", {}, {}),
        ("relevance", "csv", {"target": 3}, {"shared_scale": True, "smooth": False}),
        ("class_difference", "png", {"method": "relevance", **CLASSES}, {"style": "tint"}),
        ("own_part", "svg", {"method": "gradient_rollout", "target": 5}, {}),
        ("patches", "svg", {"numbers": True}, {}),
        ("sequence", "png", {}, {}),
        ("positions", "svg", {"grid": "4,6", "place": "3,1"}, {}),
        ("token_similarity", "csv", {"query": "1,3", "role": "keys"}, {"style": "heat"}),
    ],
)
def test_an_answer_is_saved_as_python_saves_it(
    api: TestClient, session: Session, name: str, form: str, asked: Any, how: Any
) -> None:
    about = {} if name == "positions" else TWINS
    body = about | asked | {"figure": how | {"width_cm": 6, "dpi": 72, "format": "svg"}}
    answer = ask(api, name, body, headers={"Accept": TYPES[form]})
    wanted = file_of(session, figure_of(session, name, _of_python(asked), **how), Output(form, 6.0, 72))  # type: ignore[arg-type]
    assert answer.status_code == 200, answer.text
    assert answer.content == wanted.data
    assert answer.headers["content-disposition"] == f'attachment; filename="{wanted.file_name}"'
    assert answer.headers["content-type"].partition(";")[0] == TYPES[form]
    assert record_of(answer.content)


def _of_python(asked: Any) -> Any:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}


@pytest.mark.parametrize(
    ("media_type", "written"), [("text/x-python", as_python), ("text/x-shellscript", as_command)]
)
def test_the_lines_that_save_a_file_are_had_in_its_place(
    api: TestClient, session: Session, media_type: str, written: Any
) -> None:
    body = TWINS | LOOK | {"figure": HOW | {"format": "pdf", "width_cm": 8}}
    answer = ask(api, "look", body, headers={"Accept": media_type})
    figure = named(session, figure_of(session, "look", LOOK, **HOW))
    assert (answer.status_code, answer.headers["content-type"]) == (200, f"{media_type}; charset=utf-8")
    assert answer.text == written(figure, Output("pdf", 8.0)) != ""
    assert "content-disposition" not in answer.headers


def test_json_has_a_name_where_it_is_saved(api: TestClient) -> None:
    answer = ask(api, "links", TWINS | {"query": "1,2", "figure": {"style": "tint"}})
    assert answer.headers["content-disposition"].endswith('_links_odd_layer-2_head-mean.json"')
    assert answer.json()["request"]["parameters"]["query"] == [1, 2]


def test_a_saved_file_says_nothing_of_whose_picture_it_is(api: TestClient, session: Session) -> None:
    ada = new_visitor()
    image = session.add_upload(odd_picture(7), owner=ada, file_name="/home/ada/Zwei K\u00e4tzchen.v2.jpg")
    body = {"image": {"upload": image}, "mode": "crop"} | LOOK
    for form in ("image/svg+xml", "application/x-npz", "text/x-python", "application/json"):
        answer = ask(api, "look", body, headers={"Accept": form, "Cookie": f"{cookie_name()}={ada}"})
        assert answer.status_code == 200, answer.text
        assert image.encode() not in answer.content
        assert image not in str(answer.headers)
    saved = ask(api, "look", body, headers={"Accept": "image/svg+xml", "Cookie": f"{cookie_name()}={ada}"})
    assert 'filename="vit_viz_Zwei-K-tzchen-v2_look_odd_layer-1_head-3.svg"' in str(saved.headers)
    assert "Zwei K\u00e4tzchen.v2: " in saved.text


@pytest.mark.parametrize(
    ("name", "how", "form", "status", "words"),
    [
        ("look", {"dpi": 1201}, "png", 400, "figure's dpi is a whole number from 72 to 1200"),
        ("look", {"width_cm": 61}, "png", 400, "figure's width cm is a number from 4 to 60"),
        ("look", {"dpi": 1200, "width_cm": 60}, "png", 400, "fewer dots"),
        ("look", {"style": "oil"}, "svg", 400, "figure's style is one of"),
        ("look", {"colour": "red"}, "svg", 400, "There is no option 'colour' here; there are: format,"),
        ("look", {"format": "docx"}, "png", 400, "figure's format is one of"),
        ("look", {"shared_scale": True}, "json", 400, "Only maps of methods share a scale"),
        ("look", "heat", "png", 400, "The figure of a question is an object"),
        ("sequence", {}, "gif", 406, "None of the types in Accept is offered here"),
        ("mosaic", {}, "webp", 406, "None of the types in Accept is offered here"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(
    api: TestClient, name: str, how: Any, form: str, status: int, words: str
) -> None:
    headers = {"Accept": TYPES.get(form, "application/json")}
    answer = ask(api, name, TWINS | {"figure": how}, headers=headers)
    assert (answer.status_code, words in answer.json()["error"]) == (status, True), answer.text


def test_what_is_wrong_with_a_figure_is_told_before_a_photo_is_looked_at(api: TestClient) -> None:
    body = {"image": {"base64": "bm8gcGhvdG8="}, "figure": {"shared_scale": True}}
    assert "share a scale" in ask(api, "look", body, headers={"Accept": "image/png"}).json()["error"]
