"""What the palette and the panel are told of the questions, and where an answer is saved."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.explorer.value import link_fields
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS
from vit_viz.ui.palette.view import LISTING, listing
from vit_viz.ui.routes import NOTHING_HERE, routes
from vit_viz.ui.scripts import file_address
from vit_viz.views.panel import Panel
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HEAD_MEASURES

PHOTO = "model=odd&image=twins&mode=crop"


def after(link: str, change: dict[str, str | None]) -> ViewState:
    """The view of a link once a part of it has changed."""
    view, problems = ViewState.from_address(link)
    assert problems == ()
    changed = {name: text for name, text in (view.to_link() | change).items() if text is not None}
    return ViewState.from_address(urlencode(changed))[0]


# --- the palette


def test_the_list_has_every_question_and_is_kept_for_good(session: Session) -> None:
    client = TestClient(Starlette(routes=routes(session)))
    answer = client.get(file_address(LISTING, listing()))
    assert "immutable" in answer.headers["cache-control"]
    listed = {one["name"]: one for one in answer.json()}
    assert list(listed)[: len(QUESTIONS)] == list(QUESTIONS)
    for name, question in QUESTIONS.items():
        assert listed[name]["tab"] in ("", *(tab.name for tab in TABS))
        assert (listed[name]["label"], listed[name]["slow"]) == (question.words.label, question.is_slow)
    assert client.get("/vit_viz/page/0123/questions.json").text == NOTHING_HERE


def test_the_list_is_made_once_however_often_it_is_fetched(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody may fetch it, under any digest: to make it takes longer than to send the page."""
    made: list[bytes] = []
    monkeypatch.setattr("vit_viz.ui.palette.view.listing", lambda: made.append(b"[]") or b"[]")
    client = TestClient(Starlette(routes=routes(session)))
    for digest in ("0123", "4567", "0123"):
        client.get(f"/vit_viz/page/{digest}/questions.json")
    assert len(made) == 1


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_every_question_opens_on_its_tab_or_in_the_panel(name: str) -> None:
    (change,) = (one["link"] for one in json.loads(listing()) if one["name"] == name)
    assert change.keys() <= {field["link"] for field in link_fields()}
    place, opened = QUESTIONS[name].place, after(f"{PHOTO}&ask=links&tab=tokens&layer=1", change)
    assert opened.layer == 1
    if place is None:
        assert change == {"ask": name}
        assert (opened.panel, opened.tab) == (Panel(name, QUESTIONS[name].options()), "tokens")
    else:
        assert change["ask"] is None
        assert (opened.panel, opened.tab) == (None, place.tab)
        assert all(opened.held(one) == value for one, value in place.view.items())


def test_a_measure_of_heads_is_found_once_and_opens_the_heads_by_it() -> None:
    listed = {one["name"]: one["link"] for one in json.loads(listing()) if one["name"].startswith("heads.")}
    by_questions = {
        one.place.view["measure"] for one in QUESTIONS.values() if one.place and "measure" in one.place.view
    }
    assert [*listed] == [f"heads.{name}" for name in HEAD_MEASURES if name not in by_questions]
    for name in ("left_neighbour", "entropy"):
        opened = after(f"{PHOTO}&tab=heads&face=surgery", listed[f"heads.{name}"])
        assert (opened.tab, opened.heads.face, opened.heads.measure) == ("heads", "atlas", name)


# --- the panel


def test_the_list_says_what_each_question_takes_and_what_becomes_of_it() -> None:
    listed = {one["name"]: one for one in json.loads(listing()) if "controls" in one}
    assert [*listed] == [*QUESTIONS]
    segments = {one["name"]: one for one in listed["segments"]["controls"]}
    assert [*segments] == ["layer", "role", "method", "count", "seed", "box"]
    assert (segments["layer"]["layer"], segments["count"]["high"], segments["count"]["sentence"][-1]) == (
        True,
        24,
        ".",
    )
    assert listed["segments"]["formats"][0] == "png"
    for name, question in QUESTIONS.items():
        told, links = listed[name], {one["name"]: one["link"] for one in listed[name]["controls"]}
        assert (told["photo"], bool(told["runs"])) == (question.takes_image, question.is_slow)
        assert (links.get("query") == "q", "target" in links) == (question.follows_pin, question.takes_target)


# --- what is saved
