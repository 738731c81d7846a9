"""What the palette and the panel are answered with: what opens, what is asked, what is refused, and where the answer is saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import LAYERS
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.explorer.value import link_fields
from vit_viz.session.questions import ask
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS
from vit_viz.ui.opened import PageCall
from vit_viz.ui.palette.routes import MOST_FACTS, _answer, _panel, facts_shown
from vit_viz.ui.palette.view import LISTING, listing
from vit_viz.ui.payload import about_of
from vit_viz.ui.routes import NOTHING_HERE, routes
from vit_viz.ui.scripts import file_address
from vit_viz.views.choices import arrived
from vit_viz.views.panel import Panel
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HEAD_MEASURES

PHOTO = "model=odd&image=twins&mode=crop"


@pytest.fixture
def call(session: Session) -> Callable[..., PageCall]:
    def asked(link: str, **body: Any) -> PageCall:
        view, problems = arrived(session, link, "ada")
        return PageCall(session, "ada", view, problems, {"view": link} | body, lambda: False)

    return asked


Call = Callable[..., PageCall]


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


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_every_question_opens_on_its_tab_or_in_the_panel(name: str) -> None:
    (change,) = (one["link"] for one in json.loads(listing()) if one["name"] == name)
    assert change.keys() <= {field["link"] for field in link_fields()}
    place, opened = QUESTIONS[name].place, after(f"{PHOTO}&ask=links&tab=tokens&layer=1", change)
    assert opened.layer == 1
    if place is None:
        assert change == {"ask": name}
        assert (opened.panel, opened.tab) == (Panel.of(name), "tokens")
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


def test_a_quick_question_is_answered_and_its_link_is_the_same(call: Call) -> None:
    link = f"{PHOTO}&ask=segments&ask.count=3&ask.layer=1"
    told = _panel(call(link))
    assert {one["name"]: one["value"] for one in told["controls"]} == {
        "layer": 1, "role": "keys", "method": "k-means", "count": 3, "seed": 0, "box": "",
    }  # fmt: skip
    assert next(one for one in told["controls"] if one["name"] == "layer")["high"] == LAYERS - 1
    assert (told["quick"], told["own"], told["question"]["name"]) == (True, False, "segments")
    answer = _answer(call(link))
    assert told["about"] == about_of(call(link).view)
    assert answer["facts"] == [["labels", "4 x 6, 0 to 2"]]
    assert _answer(call(link))["facts"] == answer["facts"]
    assert _panel(call(f"{link}&style=tint&tab=heads"))["key"] == told["key"]
    for other in (f"{link}&ask.count=4", link.replace("twins", "lion"), f"{link}&edits=off+1.3"):
        assert _panel(call(other))["key"] != told["key"]


def test_a_slow_question_does_not_come_by_itself_until_it_was_computed(call: Call) -> None:
    link = f"{PHOTO}&ask=input_x_gradient&target=1"
    told = _panel(call(link))
    assert (told["quick"], told["question"]["slow"]) == (False, True)
    assert told["question"]["runs"].startswith("Computing it takes")
    far = call(link)
    assert _answer(far)["facts"]
    assert far.told.share > 0
    assert _panel(call(link))["quick"]
    chosen = _panel(call(link, options={"target": "animal 3"}))
    assert chosen == {"refused": {}, "link": {"target": "3", "run": None}}
    assert not _panel(call(link.replace("target=1", "target=3")))["quick"]


def test_a_bad_value_is_one_sentence_beside_its_control_and_the_others_are_taken(call: Call) -> None:
    link = f"{PHOTO}&ask=links"
    told = _panel(call(link, options={"count": 0, "own": True, "query": "somewhere"}))
    assert set(told["refused"]) == {"count", "query"}
    assert "from 1 to" in told["refused"]["count"]
    assert told["link"] == {"ask.*": "ask.own=1", "run": None}
    told = _panel(call(f"{link}&ask.own=1", options={"own": False, "query": "1,2"}))
    assert told == {"refused": {}, "link": {"q": "1,2", "ask.*": "", "run": None}}
    assert _panel(call(link, options={"own": False}))["link"] == {}  # it is so already
    told = _panel(call(link, options={"target": "no such animal"}))
    assert "no such animal" in told["refused"]["target"]
    assert "does not exist" in _panel(call(link, options={"query": "90,90"}))["refused"]["query"]
    with pytest.raises(ParameterError, match="names and values"):
        _panel(call(link, options=["count"]))


def test_what_the_model_does_not_have_is_one_sentence(call: Call) -> None:
    with pytest.raises(ParameterError, match="77"):
        _answer(call(f"{PHOTO}&ask=links&ask.layer=77"))
    told = _panel(call("image=twins&model=odd&size=2000&ask=links"))
    assert (told["question"]["name"], "controls" in told) == ("links", False)
    assert told["error"].endswith(".")
    with pytest.raises(ParameterError, match="rotary"):
        _answer(call(f"{PHOTO}&ask=rotary_similarity"))


@pytest.mark.parametrize("link", [PHOTO, f"{PHOTO}&ask=nothing", f"{PHOTO}&ask.count=3&run=1"])
def test_a_link_without_a_question_asks_none(call: Call, link: str) -> None:
    assert _panel(call(link)) == {}
    with pytest.raises(ParameterError, match="asks no question"):
        _answer(call(link))


def test_a_computation_that_nobody_waits_for_ends(session: Session, call: Call) -> None:
    asked = call(f"{PHOTO}&ask=gradient_shap&target=2")
    session.trace_of(asked.subject)
    left = PageCall(session, "ada", asked.view, (), asked.body, lambda: True)
    with pytest.raises(Cancelled):
        _answer(left)
    assert not _panel(asked)["quick"]


# --- what is saved


@pytest.mark.parametrize(
    "name", ["links", "classes", "head_names", "resampling", "segments", "mosaic", "trust"]
)
def test_facts_are_words_and_no_arrays(session: Session, name: str) -> None:
    answer = ask(session, Subject("odd", "twins" if QUESTIONS[name].takes_image else ""), name)
    facts = facts_shown(answer)
    assert 0 < len(facts) <= MOST_FACTS
    json.dumps(facts)
    for label, words in facts:
        assert label
        assert words
        assert "provenance" not in label
