"""What the Heads tab shows and fetches: the numbers of the functions, links that hold every choice, a causal map that fills."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz import samples
from vit_viz.analyses.ablation import CausalMap, causal_map, head_importance
from vit_viz.analyses.head_names import RULES, name_heads
from vit_viz.analyses.head_statistics import Measure
from vit_viz.analyses.heads import OF_THE_STREAM, head_tables
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.capture import Trace
from vit_viz.errors import CaptureError
from vit_viz.results import HeadTable
from vit_viz.session.engine import Engine
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain.questions import Questions, class_matches
from vit_viz.ui.heads import answers
from vit_viz.ui.heads.answers import MEASURES
from vit_viz.ui.heads.view import STOPPED, TAB, _draw_matrix, cost_words, followed, room_value
from vit_viz.ui.jobs import News
from vit_viz.ui.page import with_choices
from vit_viz.ui.payload import explorer_value
from vit_viz.ui.routes import GONE, PREFIX, routes
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HeadMeasure

PHOTO = "shapes"


class Page:
    """What the tab needs of a page."""

    def __init__(self, session: Session) -> None:
        self.session = session


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def page(session: Session) -> Any:
    return Page(session)


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject("mini", PHOTO, "fit", "ada")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return vv.trace("mini", samples.sample(PHOTO), keep_residual=True)


@pytest.fixture(scope="module")
def client(session: Session) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(session)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def told(client: TestClient, session: Session, subject: Subject) -> dict[str, Any]:
    answer = client.get(f"{PREFIX}/head_numbers/{session.handles.issue(subject)}?kind=measures")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_every_measure_has_words_of_its_own() -> None:
    assert set(MEASURES) == {*get_args(HeadMeasure)} == {*get_args(Measure), "estimate", "effect"}
    assert len({said.label for said in MEASURES.values()}) == len(MEASURES)
    for said in MEASURES.values():
        assert said.sentence.endswith(".")
        assert len(said.sentence) < 140
    groups = [said.group for said in MEASURES.values()]
    assert len(set(groups)) == 1 + sum(a != b for a, b in pairwise(groups))


def test_every_measure_is_that_of_the_function(told: dict[str, Any], trace: Trace) -> None:
    expected = head_tables(vv.trace("mini", samples.sample(PHOTO), keep_residual=True, keep_values=True))
    assert set(told["measures"]) == set(get_args(Measure)) == set(expected)
    for name, table in expected.items():
        found = told["measures"][name]
        np.testing.assert_allclose(found["values"], table.values, rtol=1e-4, atol=1e-6)
        assert found["unit"] == table.unit
        assert found["signed"] == (name == "content_correlation")
    assert told["note"] == ""
    assert trace.num_layers == len(told["measures"]["entropy"]["values"])


def test_every_head_has_its_name_with_the_numbers_and_the_rules(told: dict[str, Any], trace: Trace) -> None:
    expected = name_heads([head_tables(trace)])
    assert [(one["layer"], one["head"], one["label"]) for one in told["names"]] == [
        (one.layer, one.head, one.label) for one in expected
    ]
    assert [one["thin"] for one in told["names"]] == [one.is_thin for one in expected]
    assert any(one["thin"] for one in told["names"])
    assert told["names"][7]["numbers"] == pytest.approx(expected[7].numbers, rel=1e-3)
    assert told["names"][7]["sentence"] == expected[7].sentence
    assert [rule["name"] for rule in told["rules"]] == [rule.name for rule in RULES]
    assert told["rules"][3]["at_most"] == dict(RULES[3].at_most)


def test_a_model_whose_tokens_cannot_be_recorded_is_measured_by_the_rest(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Engine._record

    def without_stream(self: Engine, request: Any, cancelled: Any, *, keep_residual: bool) -> Trace:
        if keep_residual:
            raise CaptureError("There is no residual stream here.")
        return record(self, request, cancelled, keep_residual=False)

    monkeypatch.setattr(Engine, "_record", without_stream)
    found = answers.numbers(session, Subject("mini", "twins", "fit", "ada"), ViewState(), "measures")
    assert set(found["measures"]) == set(get_args(Measure)) - OF_THE_STREAM
    assert found["note"] == answers.UNSEEN
    assert len(found["names"]) == 36


@pytest.mark.parametrize("how", ["zero", "uniform"])
def test_the_importance_is_that_of_the_function(
    client: TestClient, session: Session, subject: Subject, how: Any
) -> None:
    handle = session.handles.issue(subject)
    found = client.get(f"{PREFIX}/head_numbers/{handle}?kind=importance&target=7&how={how}").json()
    prepared = PreparedImage.of(session.model("mini"), samples.sample(PHOTO))
    expected = head_importance(prepared, target=7, how=how)
    assert_same(np.array(found["values"], np.float32), expected.values, relative=1e-3)
    assert found["unit"] == "change of the logit of class 7 (cliff)"
    assert found["signed"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("HANDLE?kind=beauty", 400, "The Heads tab shows measures and importance, not 'beauty'."),
        ("HANDLE", 400, "The Heads tab shows"),
        ("HANDLE?kind=importance&target=999", 400, "Class 999 does not exist"),
        (
            "HANDLE?kind=importance&how=half",
            400,
            "The option “how” is one of zero, mean, uniform, not 'half'.",
        ),
        ("nothing?kind=measures", 404, GONE),
    ],
)
def test_everything_else_is_one_sentence(
    client: TestClient, session: Session, subject: Subject, path: str, status: int, words: str
) -> None:
    answer = client.get(f"{PREFIX}/head_numbers/{path.replace('HANDLE', session.handles.issue(subject))}")
    assert (answer.status_code, answer.text[: len(words)]) == (status, words)


def test_the_value_says_what_is_shown_and_chosen(page: Any) -> None:
    view = ViewState.from_address("?image=shapes&layer=3&head=2&measure=entropy&order=value&q=2,3&target=5")[
        0
    ]
    value = room_value(page, view, "ada")
    assert (value["layers"], value["heads"], value["layer"], value["head"]) == (6, 6, 3, 2)
    assert value["options"] == {"face": "atlas", "measure": "entropy", "how": "zero", "head_order": "value"}
    assert (value["query"], value["target"]["chosen"], value["target"]["link"]) == ("2,3", 5, "5")
    assert value["cost"].startswith("switches off 36 heads, one after the other, at about half a pass each")


def test_a_choice_is_in_the_link_and_wakes_the_tab() -> None:
    view = ViewState(image=PHOTO)
    changed = with_choices(
        view,
        {"measure": "effect", "how": "mean", "head_order": "value", "layer": 5},
        ("measure", "how", "head_order"),
    )
    assert changed.to_address() == "image=shapes&measure=effect&how=mean&order=value"
    chosen = with_choices(view, {"layer": 5, "head": 1}, ("layer", "head"))
    assert (chosen.layer, chosen.head) == (5, 1)
    assert len({TAB.shows(one) for one in (view, changed, chosen, view.with_options({"q": "1,1"}))}) == 4
    assert TAB.shows(view) == TAB.shows(view.with_options({"style": "heat", "step": 3}))


def test_the_matrix_is_in_the_link_and_a_change_of_it_draws_nothing_anew() -> None:
    view, problems = ViewState.from_address("?matrix_scale=linear&links=head&strongest=7&zoom=4.5,0.25,0.5")
    assert problems == ()
    assert asdict(view.matrix) == {
        "matrix_scale": "linear", "matrix_links": "head", "matrix_count": 7, "matrix_zoom": "4.5,0.25,0.5",
    }  # fmt: skip
    changed = view.with_options({"matrix_zoom": "", "matrix_count": 8})
    assert changed.to_address() == "matrix_scale=linear&links=head&strongest=8"
    assert TAB.shows(changed) == TAB.shows(view)


@pytest.mark.parametrize("zoom", ["0,0,0", "2,0", "2,2,0", "12345,0,0", "2,0,0,0", "1e3,0,0", "2,-0.1,0"])
def test_a_zoom_that_is_none_is_refused_in_one_sentence(zoom: str) -> None:
    view, problems = ViewState.from_address(f"?zoom={zoom}")
    assert view.matrix.matrix_zoom == ""
    assert len(problems) == 1


def test_where_nobody_has_chosen_it_begins_with_the_head_that_the_look_tab_begins_with(page: Any) -> None:
    view = ViewState(image=PHOTO)
    look = explorer_value(page.session, view, "ada")
    begins = (look["opening"]["layer"], look["opening"]["head"])
    value = room_value(page, view, "ada")
    assert (value["layer"], value["head"]) == begins
    (matrix,) = _draw_matrix(page, view.with_options({"face": "matrix"}), "ada")
    assert (matrix["view"]["layer"], matrix["view"]["head"]) == begins
    assert matrix["matrix"] == asdict(view.matrix)


def test_any_class_can_be_searched_for(page: Any) -> None:
    found = class_matches(page, ViewState(image=PHOTO), "ada", {"text": "lion", "seq": 3})
    assert found["seq"] == 3
    assert "lion" in [hit["name"] for hit in found["hits"]]
    assert room_value(page, ViewState(image=PHOTO), "ada")["target"]["single"]


def test_a_number_that_is_not_there_is_null() -> None:
    table = HeadTable(np.array([[0.123456789, -2.0]]), "change", (-np.inf, np.inf), True, "ablation")
    found = answers.causal_value(CausalMap(table, table, np.array([[True, False]])))
    assert found["table"]["values"] == [[0.12346, None]]
    assert found["estimate"] == [[0.12346, -2.0]]
    assert (found["done"], found["table"]["range"]) == (1, [None, None])


def said_of(steps: list[Any], how: str) -> list[dict[str, Any]]:
    return [step["causal"]["of"][how] for step in steps]


def test_a_causal_map_is_followed_to_its_end_and_kept(page: Any, session: Session) -> None:
    view = ViewState.from_address("?image=shapes&target=5&how=mean")[0]
    questions_ = Questions.of(page, view, "ada")
    steps = list(followed(questions_, threading.Event(), News()))
    said = said_of(steps, "mean")
    assert said[0]["running"]
    assert (said[-1]["running"], said[-1]["done"]) == (False, 36)
    prepared = PreparedImage.of(session.model("mini"), samples.sample(PHOTO))
    expected = causal_map(prepared, target=5, how="mean")
    assert_same(np.array(said[-1]["table"]["values"], np.float32), expected.table.values, relative=1e-3)
    assert_same(np.array(said[-1]["estimate"], np.float32), expected.estimate.values, relative=1e-3)
    assert said[-1]["correlation"] == pytest.approx(expected.correlation, abs=0.02)
    assert steps[-1]["causal"]["key"] == questions_.key
    assert set(room_value(page, view, "ada")["effects"]) == {"mean"}
    assert "about" in cost_words(questions_)


def test_a_map_that_is_stopped_shows_what_was_done(page: Any) -> None:
    stop, news = threading.Event(), News()
    view = ViewState.from_address("?image=twins&how=uniform")[0]
    questions_ = Questions.of(page, view, "ada")

    def stopping() -> Any:
        run = page.session.run

        def stopped(request: Any, *, preview: Any = None, **options: Any) -> Any:
            def told(found: Any) -> None:
                preview(found)
                stop.set()

            return run(request, preview=told if preview else None, **options)

        return stopped

    page.session.run, original = stopping(), page.session.run
    try:
        said = said_of(list(followed(questions_, stop, news)), "uniform")
    finally:
        page.session.run = original
    assert (said[-1]["running"], said[-1]["error"]) == (False, STOPPED)
    assert 0 < said[-1]["done"] < 36
    assert None in np.array(said[-1]["table"]["values"], object)
    assert room_value(page, view, "ada")["effects"] == {}  # nothing of it is kept


def test_names_and_importance_are_questions() -> None:
    assert {"head_names", "head_importance"} <= set(QUESTIONS)
