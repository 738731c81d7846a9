"""What a view is of, opened for the rooms that keep their state in the browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import HEIGHT, WIDTH, odd_picture
from vit_viz import samples
from vit_viz.analyses.opening import opening
from vit_viz.errors import ParameterError
from vit_viz.rest import SAFETENSORS
from vit_viz.session.handles import cookie_name, new_visitor
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import GONE
from vit_viz.surface import EVENTS, OWNER, PAGE_HEADER
from vit_viz.ui.opened import PageCall, page_route


@pytest.fixture(scope="module")
def client(session: Session, open_client: Callable[..., TestClient]) -> TestClient:
    return open_client(session)


@pytest.fixture
def ada() -> str:
    return new_visitor()


def opened(client: TestClient, view: Any, visitor: str = "", **options: Any) -> Any:
    headers = {"Cookie": f"{cookie_name()}={visitor}"} if visitor else {}
    body = options or {"json": {"view": view}}
    return client.post("/vit_viz/open", headers=headers, **body)


def test_a_view_is_opened_with_its_tokens_its_place_on_the_photo_and_what_a_question_takes(
    client: TestClient, session: Session, ada: str
) -> None:
    mine = session.add_upload(odd_picture(), owner=ada)
    told = opened(client, f"image={mine}&mode=crop&edits=off+1.3&q=class&tab=patches", ada).json()
    assert (told["grid"], told["prefix"], told["suffix"]) == ([4, 6], ["class", "register 0"], [])
    assert told["crop"]["original"] == [HEIGHT, WIDTH]
    about = {
        "model": "odd",
        "image": {"upload": mine},
        "mode": "crop",
        "size": 0,
        "part": "",
        "edits": "off 1.3",
        "sentences": "",
        "templates": "",
    }
    assert told["about"] == about
    found = session.handles.find(told["trace"], visitor=ada)
    assert isinstance(found, Subject)
    assert (found.image, found.mode, str(found.edits)) == (mine, "crop", "off 1.3")
    assert session.handles.find(told["trace"], visitor=new_visitor()) is None
    headers = {"Cookie": f"{cookie_name()}={ada}", "Accept": SAFETENSORS}
    asked = client.post("/api/v1/patches", json=about, headers=headers)
    assert safetensors.numpy.load(asked.content)["values"].shape == (4, 6, 4)
    received = safetensors.numpy.load(client.post("/api/v1/sequence", json=about, headers=headers).content)[
        "values"
    ]
    assert (received.shape, received.dtype) == ((32, 48, 3), np.uint8)


@pytest.mark.parametrize("body", ['{"view": "tab=\\ud800"}', '{"view": "", "x": [{"\\udfff": 1}]}'])
def test_half_a_character_is_refused_wherever_it_stands(client: TestClient, ada: str, body: str) -> None:
    answer = opened(client, None, ada, content=body)
    words = "A text in the body of a question has half a character (a lone surrogate)."
    assert (answer.status_code, answer.json()) == (400, {"error": words})


def test_what_is_opened_says_where_a_look_begins_and_which_pictures_there_are(
    client: TestClient, session: Session, ada: str
) -> None:
    mine = session.add_upload(odd_picture(), owner=ada, file_name="my cat.png")
    session.add_upload(odd_picture(8), owner=new_visitor(), file_name="another.png")
    told = opened(client, f"image={mine}", ada).json()
    assert [one["name"] for one in told["pictures"]] == [*samples.sample_names(), "my cat"]
    tour = opening(session.trace_of(Subject("odd", mine, "fit", ada))).tour
    assert told["opening"]["patch"] == next(iter(tour), None)


def test_the_classes_that_a_view_can_be_explained_for(client: TestClient, ada: str) -> None:
    headers = {"Cookie": f"{cookie_name()}={ada}"}

    def target(view: str, **more: str) -> dict[str, Any]:
        return client.post("/vit_viz/target", json={"view": view, **more}, headers=headers).json()  # type: ignore[no-any-return]

    first = target("image=twins")
    best = first["chosen"]
    ranked = client.post("/api/v1/classes", json={"image": "twins"}, headers=headers).json()["facts"]
    assert (best, first["name"], first["link"]) == (ranked["indices"][0], ranked["names"][0], str(best))
    assert [one["index"] for one in first["classes"]] == ranked["indices"][:3]
    last = ranked["indices"][-1]
    pair = target(f"image=twins&target={last}-{best}")
    assert (pair["chosen"], pair["other"], pair["link"]) == (last, best, f"{last}-{best}")
    assert last in [one["index"] for one in pair["classes"]]
    missing = target("image=twins&target=9999")
    assert (missing["chosen"], missing["link"]) == (best, str(best))
    assert missing["words"].endswith("its first class is explained instead.")
    assert target("image=twins", find=str(last))["hits"] == [{"index": last, "name": ranked["names"][-1]}]
    assert target("image=twins", find="nobody")["hits"] == []
    assert target("image=twins&size=2000").keys() == {"error"}


class OneSurvey:
    """A survey of one photo."""

    def holds(self, name: str) -> bool:
        return name == "survey-0"

    def title(self, name: str) -> str:
        return f"cats/{name}.jpg"

    def picture(self, name: str) -> tuple[Image.Image, str]:
        return odd_picture(8), f"digest of {name}"


def test_a_photo_of_the_survey_is_opened_and_asked_about_by_its_name(
    client: TestClient, session: Session, ada: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = {"Cookie": f"{cookie_name()}={ada}"}
    body = {"image": {"survey": "survey-0"}}
    gone = client.post("/api/v1/patches", json=body, headers=headers)
    assert (gone.status_code, gone.json()) == (400, {"error": "There is no picture 'survey-0' here."})
    monkeypatch.setattr(session, "library", OneSurvey())
    about = opened(client, "image=survey-0&mode=crop", ada).json()["about"]
    assert about["image"] == body["image"]
    assert client.post("/api/v1/patches", json=about, headers=headers).status_code == 200
    mine = session.add_upload(odd_picture(), owner=ada)
    for name in (mine, "twins", "survey-1"):  # each kind of picture has a name of its own
        refused = client.post("/api/v1/patches", json={"image": {"survey": name}}, headers=headers)
        words = "There is no picture 'survey-1' here." if name == "survey-1" else GONE
        assert (refused.status_code, refused.json()) == (400, {"error": words})


def test_the_patches_say_what_becomes_of_their_pixels(client: TestClient, session: Session, ada: str) -> None:
    mine = session.add_upload(odd_picture(), owner=ada)
    body = {"image": {"upload": mine}, "mode": "crop"}
    facts = client.post("/api/v1/patches", json=body, headers={"Cookie": f"{cookie_name()}={ada}"}).json()[
        "facts"
    ]
    shapes = {"image": [3, 32, 48], "patch": [3, 8, 8], "patches": [24, 192], "tokens": [26, 40]}
    assert facts["shapes"] == shapes
    assert facts["note"] == "photo 37 x 90 px to input 32 x 48 px, 38.5% of the photo left out"


def test_what_is_not_possible_is_said_and_something_is_opened_all_the_same(
    client: TestClient, session: Session, ada: str
) -> None:
    hers = session.add_upload(odd_picture(), owner=new_visitor())
    for view, sentence in (
        (f"image={hers}", "The link is to a picture that was uploaded elsewhere or is no longer kept"),
        ("model=nothing", "The model 'nothing' is not offered here; odd is shown instead."),
        ("mode=round", "The mode is one of fit, crop, stretch, not 'round'."),
    ):
        answer = opened(client, view, ada)
        assert answer.status_code == 200
        assert any(sentence in note for note in answer.json()["notes"]), view
        assert answer.json()["about"]["image"].keys() == {"sample"}


def test_what_cannot_be_opened_is_one_sentence(client: TestClient, ada: str) -> None:
    too_large = opened(client, "image=twins&size=2000", ada).json()
    assert (too_large["refused"].count("."), too_large["instead"]["size"]) == (1, 0)
    for body in ({"content": b"{"}, {"json": []}, {"json": {"view": 3}}, {"json": {}}):
        answer = opened(client, None, ada, **body)
        assert answer.status_code == 400
        assert answer.json().keys() == {"error"}


def test_a_target_is_the_first_classes_and_those_that_are_chosen(
    client: TestClient, session: Session, ada: str
) -> None:
    mine = session.add_upload(odd_picture(), owner=ada)
    ranking = session.top_classes_of(Subject("odd", mine, mode="crop", owner=ada), count=7)
    assert ranking is not None

    def told(target: str, **more: Any) -> Any:
        body = {"view": f"image={mine}&mode=crop&target={target}", **more}
        headers = {"Cookie": f"{cookie_name()}={ada}"}
        return client.post("/vit_viz/target", headers=headers, json=body).json()

    first = told("")
    assert [entry["index"] for entry in first["classes"]] == list(ranking.indices[:3])
    assert [entry["probability"] for entry in first["classes"]] == pytest.approx(ranking.scores[:3].tolist())
    assert (first["chosen"], first["other"], first["words"]) == (ranking.indices[0], None, "")
    assert first["link"] == str(ranking.indices[0])
    last, second = ranking.indices[6], ranking.indices[1]
    pair = told(f"{last}-{second}")
    assert (pair["chosen"], pair["other"], pair["link"]) == (last, second, f"{last}-{second}")
    assert [entry["index"] for entry in pair["classes"]] == [*ranking.indices[:3], last]
    assert pair["name"] == f"animal {last} and not animal {second}"
    missing = told("7")
    assert (missing["chosen"], missing["link"]) == (ranking.indices[0], first["link"])
    assert "0-6" in missing["words"]
    assert told("", find="animal 6") == {"hits": [{"index": 6, "name": "animal 6"}]}


def test_what_an_answer_is_made_of_says_what_stands_out(client: TestClient, ada: str) -> None:
    body = {"image": {"sample": "twins"}, "mode": "crop", "target": "3-1"}
    answer = client.post(
        "/api/v1/decomposition", json=body, headers={"Cookie": f"{cookie_name()}={ada}"}
    ).json()
    assert "the lead of animal" in answer["facts"]["finding"]
    assert "; " in answer["facts"]["finding"]


def test_a_browser_that_keeps_no_cookies_is_known_by_the_name_of_its_page(
    client: TestClient, session: Session
) -> None:
    mine = session.add_upload(odd_picture(), owner="page 0123456789abcdef")
    body = {"view": f"image={mine}"}
    answer = client.post("/vit_viz/open", json=body, headers={PAGE_HEADER: "0123456789abcdef"})
    assert answer.json()["about"]["image"] == {"upload": mine}
    asked = client.post(
        "/api/v1/patches", json=answer.json()["about"], headers={PAGE_HEADER: "0123456789abcdef"}
    )
    assert asked.status_code == 200
    for name in ("itspage1", "nopage01", "", "../x"):
        refused = client.post("/vit_viz/open", json=body, headers={PAGE_HEADER: name})
        assert refused.status_code == 404
        assert client.post("/api/v1/patches", json={}, headers={PAGE_HEADER: name}).status_code == 404


def test_who_has_not_opened_the_page_opens_nothing(client: TestClient, ada: str) -> None:
    assert opened(client, "image=twins").status_code == 404
    assert client.get("/vit_viz/open", headers={"Cookie": f"{cookie_name()}={ada}"}).status_code == 405


def test_a_page_may_hear_how_far_an_answer_is(client: TestClient, session: Session, ada: str) -> None:
    def answer(asked: PageCall) -> dict[str, Any]:
        if asked.body.get("fails"):
            raise ParameterError("This is not possible.")
        asked.progress(0.5)
        asked.preview({"words": "half"})
        return {"image": asked.view.image}

    app = Starlette(routes=[page_route(session, "half", answer)])
    app.add_middleware(_Owned)
    with TestClient(app) as half:
        asked = {"view": "image=lion"}
        assert half.post("/vit_viz/half", json=asked).json() == {"image": "lion"}
        told = half.post("/vit_viz/half", json=asked, headers={"Accept": f"{EVENTS}, application/json"})
        assert told.headers["content-type"].startswith(EVENTS)
        assert told.text.endswith('event: answer\ndata: {"image":"lion"}\n\n')
        refused = half.post("/vit_viz/half", json=asked | {"fails": True}, headers={"Accept": EVENTS})
        assert refused.text.endswith(
            'event: refused\ndata: {"error": "This is not possible.", "status": 400}\n\n'
        )


class _Owned:
    """As the guard does, it says who asks."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope | {OWNER: "ada"}, receive, send)
