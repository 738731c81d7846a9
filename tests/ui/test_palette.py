"""The palette and the panel on the page: what is opened, what is asked, what is refused, and where the answer is saved."""

from __future__ import annotations

import io
import json
from typing import Any

import gradio as gr
import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import LAYERS, Desk, arrived
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.session.questions import ask
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.app import TABS
from vit_viz.ui.palette import view
from vit_viz.ui.palette.view import LISTING, MOST_FACTS, facts_shown, listing
from vit_viz.ui.routes import NOTHING_HERE, routes
from vit_viz.ui.scripts import file_address
from vit_viz.views.panel import Panel
from vit_viz.views.tab_options import HEAD_MEASURES


def shown(desk: Desk, prop: str = "value") -> Any:
    return desk.shown["vv-panel"][prop]


@pytest.fixture
def desk(demo: gr.Blocks) -> Desk:
    return arrived(demo, "twins", "look")


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
def test_every_question_opens_on_its_tab_or_in_the_panel(desk: Desk, name: str) -> None:
    before = desk.view()
    desk.act("vv-palette", "ask", data={"name": name})
    place, opened = QUESTIONS[name].place, desk.view()
    assert opened.revision > before.revision
    assert desk.shown["Address"]["value"]["push"]
    if place is None:
        assert (opened.panel, opened.tab) == (Panel.of(name), before.tab)
        assert shown(desk)["question"]["label"] == QUESTIONS[name].words.label
    else:
        assert (opened.panel, opened.tab) == (None, place.tab)
        assert desk.shown["vv-tabs"]["value"].selected == place.tab


def test_a_measure_of_heads_is_found_once_and_opens_the_heads_by_it(desk: Desk) -> None:
    listed = [one for one in json.loads(listing()) if one["name"].startswith("heads.")]
    by_questions = {
        one.place.view["measure"] for one in QUESTIONS.values() if one.place and "measure" in one.place.view
    }
    assert [one["name"] for one in listed] == [
        f"heads.{name}" for name in HEAD_MEASURES if name not in by_questions
    ]
    desk.act("", "arrive", data={"search": "?model=odd&image=twins&tab=heads&face=surgery"})
    for name in ("left_neighbour", "entropy"):
        desk.act("vv-palette", "ask", data={"name": f"heads.{name}"})
        assert [desk.view().tab, *map(desk.view().held, ("face", "measure"))] == ["heads", "atlas", name]
    with pytest.raises(gr.Error, match="measure"):
        desk.act("vv-palette", "ask", data={"name": "heads.nothing"})


def test_a_question_that_there_is_not_is_refused_in_words(desk: Desk) -> None:
    with pytest.raises(gr.Error, match="There is nothing called"):
        desk.act("vv-palette", "ask", data={"name": "nothing"})


# --- the panel


def test_a_quick_question_is_answered_at_once_and_its_link_is_the_same(desk: Desk, demo: gr.Blocks) -> None:
    desk.act("", "arrive", data={"search": "?model=odd&image=twins&ask=segments&ask.count=3&ask.layer=1"})
    told, job = shown(desk), shown(desk, "job")
    assert {one["name"]: one["value"] for one in told["controls"]} == {
        "layer": 1, "role": "keys", "method": "k-means", "count": 3, "seed": 0, "box": "",
    }  # fmt: skip
    assert next(one for one in told["controls"] if one["name"] == "layer")["high"] == LAYERS - 1
    assert (job["key"], told["quick"]) == (told["key"], True)
    assert "ask=segments&ask.layer=1&ask.count=3" in desk.view().to_address()
    again = Desk(demo, page="again")
    again.arrive(f"?{desk.view().to_address()}")
    assert shown(again, "job")["answer"]["facts"] == job["answer"]["facts"]


def test_a_slow_question_waits_until_it_is_asked_and_then_its_link_says_so(desk: Desk) -> None:
    desk.arrive("?model=odd&image=twins&ask=input_x_gradient&target=1")
    told = shown(desk)
    assert (told["quick"], told["runs"]) == (False, False)
    assert "job" not in desk.shown["vv-panel"] or shown(desk, "job")["key"] != told["key"]
    desk.act("vv-panel", "run", data={})
    assert shown(desk)["runs"]
    assert "run=1" in desk.view().to_address()
    desk.act("vv-panel", "start")
    assert shown(desk, "job")["answer"]["facts"]
    desk.act("vv-panel", "choose", data={"options": {"target": "animal 3"}})
    assert (desk.view().target, desk.view().panel) == ("3", Panel.of("input_x_gradient"))
    assert not shown(desk)["quick"]


def test_a_bad_value_is_one_sentence_beside_its_control_and_the_others_are_taken(desk: Desk) -> None:
    desk.arrive("?model=odd&image=twins&ask=links")
    desk.act("vv-panel", "choose", data={"options": {"count": 0, "own": True, "query": "somewhere"}})
    refused = shown(desk, "refused")
    assert set(refused["of"]) == {"count", "query"}
    assert "from 1 to" in refused["of"]["count"]
    assert refused["revision"] == desk.view().revision
    assert desk.view().panel == Panel.of("links", {"own": True})
    desk.act("vv-panel", "choose", data={"options": {"target": "no such animal"}})
    assert "no such animal" in shown(desk, "refused")["of"]["target"]


def test_what_the_model_does_not_have_is_one_sentence(desk: Desk) -> None:
    desk.arrive("?model=odd&image=twins&ask=links&ask.layer=77")
    assert "77" in (shown(desk).get("error") or shown(desk, "job")["error"])
    desk.arrive("?model=odd&image=twins&ask=rotary_similarity")
    assert "rotary" in shown(desk, "job")["error"]


def test_closing_and_going_back_leave_the_panel(desk: Desk) -> None:
    desk.act("vv-palette", "ask", data={"name": "saliency"})
    desk.act("vv-panel", "close", data={})
    assert (desk.view().panel, shown(desk)["key"]) == (None, "")
    link = desk.shown["Address"]["value"]
    assert (link["set"]["ask"], link["push"]) == (None, True)


def test_a_computation_that_is_stopped_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(_run: Any, stop: Any) -> Any:
        stop.set()
        raise RuntimeError

    monkeypatch.setattr(view, "steps", stopped)
    desk.arrive("?model=odd&image=twins&ask=links")
    assert shown(desk, "job")["error"] == view.STOPPED
    desk.act("vv-panel", "stop")


# --- what is saved


def test_the_answer_is_saved_in_every_format_that_it_has(session: Session) -> None:
    client = TestClient(Starlette(routes=routes(session)))
    handle = session.handles.issue(Subject("odd", "twins", owner=""))

    def get(asked: str) -> Any:
        return client.get(f"/vit_viz/figure/{handle}?kind=asked&{asked}")

    expected = ask(session, Subject("odd", "twins"), "segments", layer=1, count=3)
    with np.load(io.BytesIO(get("ask=segments&ask.layer=1&ask.count=3&format=npz").content)) as arrays:
        assert np.array_equal(arrays["labels"], expected.labels)
    told = get("ask=segments&ask.layer=1&ask.count=3&format=json").json()
    assert told["request"]["parameters"]["count"] == 3
    drawn = get("ask=links&q=1,2&format=png&width_cm=8&dpi=100")
    with Image.open(io.BytesIO(drawn.content)) as picture:
        assert picture.width == pytest.approx(8 / 2.54 * 100, abs=2)
    assert 'filename="vit_viz_' in drawn.headers["content-disposition"]
    assert get("ask=segments&format=gif").status_code == 400
    assert get("ask=&format=png").text == "This link asks no question."
    recipe = client.get(f"/vit_viz/recipe/{handle}?kind=asked&ask=links&q=1,2&ask.count=4").json()
    assert "vv.figure('odd', 'twins', 'links'" in recipe["python"]
    assert "count=4" in recipe["python"]


def test_an_answer_of_too_many_numbers_is_no_json(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_NUMBERS", 10)
    client = TestClient(Starlette(routes=routes(session)))
    handle = session.handles.issue(Subject("odd", "twins", owner=""))
    refused = client.get(f"/vit_viz/figure/{handle}?kind=asked&ask=links&format=json")
    assert (refused.status_code, "NPZ" in refused.text) == (400, True)


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
