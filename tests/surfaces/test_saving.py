"""An answer as a file: the same question with another `Accept`, drawn as the body says, with the bytes that Python saves."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.test_rest import TWINS, ask
from vit_viz.figures.files import file_of
from vit_viz.figures.replay import record_of
from vit_viz.figures.request import DrawingOptions, FigureRequest, Output, figure_for
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
