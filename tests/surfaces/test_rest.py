"""Questions over HTTP: on only when asked for, names only, bounded, and one sentence for whatever is refused."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import anyio
import numpy as np
import pytest
import safetensors.numpy
from fastapi.openapi.models import OpenAPI
from hypothesis import HealthCheck, given, settings, strategies as st
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import odd_picture
from tests.waiting import until
from vit_viz import rest
from vit_viz.analyses.ablation import CausalMap
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import BusyError, Cancelled, CaptureError, ParameterError
from vit_viz.images import image_hash
from vit_viz.results import HeadTable
from vit_viz.session.handles import cookie_name, new_visitor
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import LARGE_BYTES, Session
from vit_viz.session.uploads import GONE
from vit_viz.surface import EVENTS, PAGE_HEADER, QUESTION_BYTES
from vit_viz.ui import opened
from vit_viz.ui.app import TABS
from vit_viz.ui.edge.addresses import kind_of
from vit_viz.views.panel import Panel
from vit_viz.views.places import showing
from vit_viz.views.state import ViewState

TWINS = {"image": {"sample": "twins"}}


def png_of(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def ask(api: TestClient, name: str, body: Any = TWINS, **options: Any) -> Any:
    return api.post(f"{rest.PREFIX}/{name}", json=body, **options)


def test_others_than_the_page_ask_only_where_that_is_offered(
    session: Session, open_client: Callable[..., TestClient]
) -> None:
    client = open_client(session)
    made_up = {"Cookie": f"{cookie_name()}={'x' * 40}"}
    for headers in ({}, made_up):
        for path in (rest.PREFIX, f"{rest.PREFIX}/openapi.json"):
            assert client.get(path, headers=headers).status_code == 404
        assert client.get("/mcp", headers=headers).status_code == 404
        assert ask(client, "look", headers=headers).status_code == 404


def test_a_browser_that_has_opened_the_page_asks_as_its_page_does(
    session: Session, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own pictures by their ids and nobody else's, under its own name, and what is quick in the lane of what is quick."""
    client = open_client(session)
    ada, eve = new_visitor(), new_visitor()
    mine = session.add_upload(odd_picture(), owner=ada)
    door: Any = client.app.middleware_stack  # type: ignore[attr-defined]  # of the stand-in
    owners, lanes, run = set(), dict[str, str](), session.run

    def noted(request: Request, **options: Any) -> Any:
        owners.add(request.owner)
        lanes[request.question] = "quick" if door.has_quick_questions() else "slow"
        assert door.slow.is_held("answers") == (lanes[request.question] == "slow")
        return run(request, **options)

    monkeypatch.setattr(session, "run", noted)
    asked = {"image": {"upload": mine}}
    for name in ("look", "saco"):
        answer = ask(client, name, asked, headers={"Cookie": f"{cookie_name()}={ada}"})
        assert answer.status_code == 200, answer.text
    assert (owners, lanes["look"], lanes["saco"]) == ({ada}, "quick", "slow")
    of_eve = {"Cookie": f"{cookie_name()}={eve}"}
    assert client.get(rest.PREFIX, headers=of_eve).status_code == 200
    for stranger in (mine, "u" + "x" * 24, "twins", "../twins"):
        refused = ask(client, "look", {"image": {"upload": stranger}}, headers=of_eve)
        assert (refused.status_code, refused.json()) == (400, {"error": GONE})
    assert ask(client, "look", asked, headers=of_eve | {"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert (
        ask(client, "look", asked, headers={"Cookie": f"{cookie_name()}={ada}"}).status_code == 200
    )  # it is kept


def test_every_question_is_listed_with_its_schema(api: TestClient) -> None:
    listed = {one["name"]: one for one in api.get(rest.PREFIX).json()["questions"]}
    assert list(listed) == list(QUESTIONS)
    for name, question in QUESTIONS.items():
        fields = listed[name]["body"]["properties"]
        assert {field.name for field in question.options.schema()} <= set(fields)
        assert ("query" in fields, "target" in fields, "image" in fields) == (
            question.takes_query, question.takes_target, question.takes_image,
        )  # fmt: skip
    assert listed["rollout"]["body"]["properties"]["discard"] == {
        "description": "Share of the patch keys that each row drops, lowest first.",
        "default": 0.0, "type": "number", "minimum": 0, "maximum": 0.95,
    }  # fmt: skip


def test_the_openapi_document_is_one(api: TestClient) -> None:
    document = api.get(f"{rest.PREFIX}/openapi.json").json()
    OpenAPI.model_validate(document)
    assert {path.rpartition("/")[2] for path in document["paths"]} == {*QUESTIONS, "v1"}
    content = document["paths"][f"{rest.PREFIX}/look"]["post"]["responses"]["200"]["content"]
    types = {mime: said["schema"]["type"] for mime, said in content.items()}
    assert types.pop("application/json") == "object"
    assert {*types.values()} == {"string"}


def test_an_answer_says_where_its_numbers_came_from(api: TestClient, session: Session) -> None:
    found = ask(api, "rollout", TWINS | {"query": [2, 3], "discard": 0.25}).json()
    wanted = request_for(session, Subject("odd", "twins"), "rollout", query=(2, 3), discard=0.25)
    assert Request.from_json(json.dumps(found["request"])) == wanted
    assert found["provenance"]["weights"] == "odd"
    assert found["facts"]["unit"] == "share of the query"
    assert np.array(found["numbers"]["values"]).shape == (4, 8)


LINKS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("rollout", {"query": [2, 3], "discard": 0.25}, {"tab": "explain", "method": "rollout", "query": "2,3"}),
    (
        "relevance",
        {"target": [3, 5], "mode": "crop"},
        {"tab": "explain", "method": "relevance", "target": "3-5", "mode": "crop"},
    ),
    (
        "trust",
        {"target": [3, 5], "sides": "difference", "method": "legrad"},
        {"tab": "explain", "method": "legrad", "target": "3-5"},
    ),
    ("look", {"layer": -1, "head": "4", "norm": True}, {"tab": "look", "layer": 2, "head": 4}),
    ("mosaic", {"query": "class", "direction": "column"}, {"tab": "look", "query": "class"}),
    ("ablation", {"how": "mean", "target": 2}, {"tab": "heads", "target": "2"}),
    ("head_importance", {"how": "uniform"}, {"tab": "heads", "target": ""}),
    ("heads", {"measure": "entropy"}, {"tab": "heads"}),
    ("head_tables", {}, {"tab": "heads"}),
    ("head_names", {}, {"tab": "heads"}),
    ("links", {"layer": 1, "head": "3", "count": 7}, {"tab": "heads", "layer": 1, "head": 3, "query": ""}),
    ("links", {"query": [2, 3]}, {"tab": "heads", "head": "mean", "query": "2,3"}),
    ("classes", {"part": "0,0,64,96"}, {"tab": "look", "part": "0,0,64,96"}),
    ("decomposition", {"target": 2}, {"tab": "explain", "target": "2", "explain_face": "parts"}),
    ("patches", {"numbers": True}, {"tab": "patches"}),
    ("sequence", {}, {"tab": "patches"}),
]


@pytest.mark.parametrize(("name", "more", "shown"), LINKS, ids=[name for name, *_ in LINKS])
def test_a_link_leads_to_the_same_in_the_app(
    api: TestClient, name: str, more: dict[str, Any], shown: dict[str, Any]
) -> None:
    link = urlsplit(ask(api, name, TWINS | more).json()["link"])
    assert (link.scheme, link.netloc, link.path) == ("http", "127.0.0.1:7860", "/")
    view, problems = ViewState.from_address(link.query)
    assert problems == ()
    assert (view.model, view.image) == ("odd", "twins")
    for field, value in shown.items():
        assert getattr(view.explain if field == "explain_face" else view, field) == value
    if name == "rollout":
        assert getattr(view.options_of("rollout"), "discard") == 0.25  # noqa: B009 - its type is that of any method
    assert view.patches.numbers == (name == "patches")
    measures = {"ablation": ("effect", "mean"), "head_importance": ("estimate", "uniform")}
    if view.tab == "heads":
        expected = measures.get(name, (more.get("measure", "distance"), "zero"))
        assert (view.heads.measure, view.heads.how) == expected
    if name == "links":
        expected = ("head", 7) if "count" in more else ("query", 20)
        assert (view.matrix.matrix_links, view.matrix.matrix_count) == expected
    if name in ("look", "mosaic"):
        assert (view.attention.norm, view.attention.direction) == (
            name == "look",
            "row" if name == "look" else "column",
        )


OPENED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("token_similarity", {"role": "keys", "query": [1, 2]}, {"token_measure": "similarity", "token_role": "keys"}),
    ("token_change", {}, {"token_measure": "norms"}),
    (
        "token_components",
        {"foreground": True, "whitened": True},
        {"token_measure": "components", "token_foreground": True, "token_whitened": True},
    ),
    ("token_norms", {"factor": 2.5}, {"token_measure": "norms", "token_factor": 2.5, "token_register": False}),
    ("logit_lens", {"target": 4}, {"token_measure": "lens"}),
    ("layer_similarity", {"role": "queries"}, {"token_measure": "layers", "token_role": "queries"}),
    ("segments", {"method": "cut", "layer": 1}, {"token_measure": "segments", "token_method": "cut", "token_state": 1}),
    (
        "segments",
        {"role": "tokens", "layer": 1, "count": 3, "box": "1,2,30,40"},
        {"token_segment_role": "tokens", "token_state": 2, "token_count": 3, "token_box": "1,2,30,40"},
    ),
    ("position_components", {}, {"position_part": "components", "position_grid": "trained"}),
    ("filter_components", {}, {"position_part": "filters"}),
    ("positions", {}, {"position_part": "similarity", "position_grid": "trained"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "more", "shown"), OPENED, ids=[f"{one[0]}-{i}" for i, one in enumerate(OPENED)]
)
def test_a_link_opens_the_measure_that_was_asked_for(
    api: TestClient, name: str, more: dict[str, Any], shown: dict[str, Any]
) -> None:
    image = TWINS if QUESTIONS[name].takes_image else {}
    answer = ask(api, name, image | more)
    assert answer.status_code == 200, answer.text
    view, problems = ViewState.from_address(urlsplit(answer.json()["link"]).query)
    place = QUESTIONS[name].place
    assert place is not None
    assert (view.tab, view.method, view.panel, problems) == (place.tab, ViewState().method, None, ())
    options = view.tokens if view.tab == "tokens" else view.positions
    assert {field: getattr(options, field) for field in shown} == shown
    assert (view.target, view.query) == (
        str(more.get("target", "")),
        "1,2" if "query" in more else view.query,
    )


PANELS: list[tuple[str, dict[str, Any]]] = [
    ("links", {"tokens": "all", "head": "2"}),
    ("links", {"count": 150}),
    ("resampling", {}),
    ("resampling", {"rows": 9, "cols": 5}),
    ("filter_components", {"count": 3}),
    ("positions", {"place": "1,2"}),
    ("token_components", {"balanced": False}),
    ("token_norms", {"factor": 60}),
    ("segments", {"seed": 3, "layer": 1}),
    ("layer_similarity", {"form": "biased"}),
    ("gradient_shap", {"target": 3}),
]


@pytest.mark.parametrize(("name", "more"), PANELS, ids=[f"{one[0]}-{i}" for i, one in enumerate(PANELS)])
def test_a_link_opens_the_panel_where_no_tab_shows_exactly_that(
    api: TestClient, name: str, more: dict[str, Any]
) -> None:
    answer = ask(api, name, (TWINS if QUESTIONS[name].takes_image else {}) | more)
    assert answer.status_code == 200, answer.text
    view, problems = ViewState.from_address(urlsplit(answer.json()["link"]).query)
    asked = answer.json()["request"]["parameters"]
    own = {field: value for field, value in asked.items() if field not in ("query", "target")}
    assert view.panel == Panel(name, QUESTIONS[name].read(own), runs=QUESTIONS[name].is_slow)
    assert (problems, view.target) == ((), str(more.get("target", "")))


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_every_question_has_a_place_on_the_page_that_its_link_opens(name: str) -> None:
    """A tab that holds everything that was asked with, or the panel; and no part of the link is a problem."""
    question = QUESTIONS[name]
    chosen = question.options().for_layers(3).values()
    chosen |= {"query": "class"} if question.takes_query else {}
    chosen |= {"target": 2} if question.takes_target else {}
    shown = showing(ViewState(image="twins"), question, chosen)
    view, problems = ViewState.from_address(shown.to_address())
    assert (view, problems) == (shown, ())
    assert view.tab in {tab.name for tab in TABS}
    assert (view.target, view.query) == (str(chosen.get("target", "")), str(chosen.get("query", "")))
    if view.panel is not None:
        assert view.panel == Panel(
            name, question.options.of(question.chosen(chosen).values().items()), question.is_slow
        )
        return
    assert question.place is not None
    assert view.tab == question.place.tab
    for option, value in question.place.view.items():
        assert view.held(option) == value


def test_a_picture_of_the_caller_is_answered_and_forgotten(api: TestClient, session: Session) -> None:
    picture, before = odd_picture(8), session.uploads.used_bytes
    answer = ask(api, "look", {"image": {"base64": png_of(picture)}, "layer": 1, "head": "2"})
    assert answer.status_code == 200
    key = session.uploads.add(picture)
    found = session.run(request_for(session, Subject("odd", key), "look", layer=1, head="2"))
    session.uploads.remove(key, owner="")
    assert np.array(answer.json()["numbers"]["values"], np.float32).tobytes() == found.values.tobytes()  # type: ignore[union-attr]
    assert answer.json()["link"] is None
    assert answer.json()["request"]["image"] == ""
    assert session.uploads.used_bytes == before
    refused = ask(api, "look", {"image": {"base64": png_of(picture)}, "layer": 77})
    assert refused.status_code == 400
    assert session.uploads.used_bytes == before


def test_the_accept_header_chooses_the_format(api: TestClient) -> None:
    found = ask(api, "look", headers={"Accept": "application/x-npz"})
    with np.load(io.BytesIO(found.content), allow_pickle=False) as arrays:
        assert arrays["values"].shape == (4, 8)
    drawn = ask(api, "look", headers={"Accept": "image/png"})
    with Image.open(io.BytesIO(drawn.content)) as picture:
        assert picture.format == "PNG"
    for answer in (found, drawn):
        assert answer.headers["cache-control"] == "no-store"


ACCEPTED: list[tuple[str | None, str]] = [
    (None, "application/json"),
    ("", "application/json"),
    ("*/*", "application/json"),
    ("*; q=.2", "application/json"),  # as Java writes it
    ("application/json, text/plain, */*", "application/json"),  # as axios does
    ("text/html,application/xhtml+xml,*/*;q=0.8", "application/json"),
    ("text/csv", "text/csv"),
    ("Text/CSV; charset=UTF-8", "text/csv"),
    ("text/*", "text/csv"),
    ("text/csv, */*", "text/csv"),
    ("*/*, text/csv", "text/csv"),
    ("application/*", "application/json"),
    ("image/*", "image/png"),
    ("text/csv;q=0.5, application/json", "application/json"),
    ("text/csv ; Q=0.9 , application/json;q=0.8", "text/csv"),
    ("application/json;q=0, */*", "text/csv"),
    ("text/*;q=0, image/*, image/png;q=0.1", "image/svg+xml"),
    ("application/vnd.api+json, text/csv;q=0.1", "text/csv"),
    ('text/x;title="a, text/csv", application/x-npz', "application/x-npz"),
    ("text/csv;q=high, application/json;q=0.1", "application/json"),
]


@pytest.mark.parametrize(("accept", "expected"), ACCEPTED)
def test_an_answer_has_the_type_that_the_caller_likes_best(
    api: TestClient, accept: str | None, expected: str
) -> None:
    api.headers.pop("accept", None)  # httpx's own
    answer = ask(api, "look", headers={} if accept is None else {"Accept": accept})
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (200, expected)


def test_a_header_in_several_lines_is_one_list(api: TestClient) -> None:
    found = ask(api, "look", headers=[("Accept", "application/vnd.api+json"), ("Accept", "text/csv")])
    assert found.headers["content-type"] == "text/csv; charset=utf-8"


@pytest.mark.parametrize(
    "accept", ["text/plain", "application/json;q=0", "application/xjson", "json", "*/*;q=0.0", "image/bmp,"]
)
def test_a_type_that_is_not_offered_is_refused_before_anything_is_computed(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    monkeypatch.setattr(session, "run", None)
    answer = ask(api, "look", headers={"Accept": accept})
    offered = [*rest.openapi()["paths"][f"{rest.PREFIX}/look"]["post"]["responses"]["200"]["content"]]
    assert offered == [
        "application/json", "text/csv", "application/x-npz", "application/x-safetensors",
        "image/png", "image/svg+xml", "application/pdf", "image/gif", "image/webp", "text/event-stream",
        "text/x-python", "text/x-shellscript",
    ]  # fmt: skip
    said = f"None of the types in Accept is offered here; these are: {', '.join(offered)}."
    assert (answer.status_code, answer.json()) == (406, {"error": said})


@pytest.mark.parametrize("path", ["", "/openapi.json"])
def test_what_there_is_comes_as_json_only(api: TestClient, path: str) -> None:
    for accept, status in (("text/html, */*;q=0.1", 200), ("application/json", 200), ("text/csv", 406)):
        answer = api.get(f"{rest.PREFIX}{path}", headers={"Accept": accept})
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"].endswith("these are: application/json.")


@pytest.mark.parametrize(("form", "accept"), [("csv", "text/csv"), ("json", "application/json")])
def test_what_is_too_long_for_a_text_is_refused(
    api: TestClient, monkeypatch: pytest.MonkeyPatch, form: str, accept: str
) -> None:
    for most, status in ((31, 413), (32, 200), (33, 200)):
        monkeypatch.setitem(rest._MOST, form, most)
        assert ask(api, "look", headers={"Accept": accept}).status_code == status
    monkeypatch.setitem(rest._MOST, form, 1)
    assert ask(api, "look", headers={"Accept": "application/x-npz"}).status_code == 200


def test_large_answers_are_written_one_at_a_time_and_small_ones_beside_them(
    api: TestClient, session: Session
) -> None:
    figure = TWINS | {"figure": {"width_cm": 40, "dpi": 155}}  # six million dots
    with ThreadPoolExecutor(1) as pool:
        with session.writing(LARGE_BYTES + 1):
            answer = pool.submit(ask, api, "look", figure, headers={"Accept": "image/png"})
            until(lambda: session.turns.waiting("a large answer") or answer.done(), what="its turn")
            small = ask(api, "look", headers={"Accept": "image/png"})
            assert (small.status_code, answer.done()) == (200, False)
        assert answer.result().status_code == 200


def test_safetensors_hold_the_arrays_as_they_are_and_the_rest_of_the_answer_beside_them(
    api: TestClient,
) -> None:
    for name in ("look", "classes", "segments"):
        whole = ask(api, name).json()
        answer = ask(api, name, headers={"Accept": rest.SAFETENSORS})
        assert answer.headers["content-type"] == rest.SAFETENSORS
        size = int.from_bytes(answer.content[:8], "little")
        beside = json.loads(answer.content[8 : 8 + size])["__metadata__"]["vit_viz"]
        assert json.loads(beside) == {part: said for part, said in whole.items() if part != "numbers"}
        arrays = safetensors.numpy.load(answer.content)
        assert {part: array.tolist() for part, array in arrays.items()} == whole["numbers"]


# --- what is at hand

KEPT = {"Cache-Control": "max-age=0, only-if-cached"}


def test_what_is_not_at_hand_says_what_it_costs(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cost(name: str, **body: Any) -> str:
        answer = ask(api, name, TWINS | body, headers=KEPT).json()
        return answer["cost"].replace("\N{NO-BREAK SPACE}", " ")  # type: ignore[no-any-return]

    rows, cols = session.trace("odd", "twins").layout.grid
    monkeypatch.setattr(session, "pass_seconds", lambda _subject: 0.5)
    assert cost("occlusion") == f"one run per patch: about {rows * cols // 2} s"
    assert cost("integrated_gradients").endswith(": at least 50 s")
    test = {"method": "legrad", "target": "4-1", "mode": "stretch"}  # of which nobody else runs random orders
    for known, words in ((False, "4 min"), (True, "23 s")):
        assert cost("trust", **test).endswith(f": at most about {words}")
        assert cost("trust", **test | {"sides": "difference"}).endswith(f": at most about {words}")
        of_one_class = cost("trust", **test | {"target": 4})  # of the same orders
        assert of_one_class.endswith(f": at most about {words}")
        assert known or ask(api, "trust", TWINS | test | {"method": "rollout"}).status_code == 200


@pytest.mark.parametrize(("accept", "target"), [("application/json", 2), (rest.SAFETENSORS, 4)])
def test_an_answer_is_given_only_if_it_is_at_hand_and_what_is_asked_is_told(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch, accept: str, target: int
) -> None:
    body, headers = TWINS | {"target": f"animal {target}", "how": "mean", "mode": "crop"}, {"Accept": accept}

    def said(answer: Any) -> dict[str, Any]:
        if accept == "application/json":
            return answer.json()  # type: ignore[no-any-return]
        size = int.from_bytes(answer.content[:8], "little")
        return json.loads(json.loads(answer.content[8 : 8 + size])["__metadata__"]["vit_viz"])  # type: ignore[no-any-return]

    recorded = session.trace("odd", "twins", mode="crop")
    with monkeypatch.context() as patch:
        patch.setattr(session, "pass_seconds", lambda subject: 0.25 if subject.mode == "crop" else None)
        there = said(ask(api, "ablation", body, headers=headers | KEPT))
    assert there.keys() == {"question", "request", "link", "cost"}
    assert there["request"]["parameters"] == {"how": "mean", "target": target}
    seconds = round(0.25 * 0.45 * recorded.num_layers * recorded.num_heads)
    assert there["cost"] == f"about half a pass for each head: about {seconds}\N{NO-BREAK SPACE}s"
    bad = said(ask(api, "ablation", body | {"how": "off"}, headers=headers | KEPT))
    assert (bad.keys(), "one of zero" in bad["refused"]) == ({"question", "refused"}, True)
    computed = ask(api, "ablation", body, headers=headers)
    assert computed.content == ask(api, "ablation", body, headers=headers | KEPT).content
    assert {name: said(computed)[name] for name in ("request", "link")} == {
        name: there[name] for name in ("request", "link")
    }
    assert "cost" in said(ask(api, "ablation", body | {"target": target + 1}, headers=headers | KEPT))
    beyond = ask(api, "links", TWINS | {"query": "90,90"}, headers=headers | KEPT)
    assert "Patch (90, 90) does not exist" in said(beyond)["refused"]
    assert said(ask(api, "positions", {}, headers=KEPT | headers)).keys() & {"request", "cost"} == {"request"}


# --- how far an answer is

TOLD = {"Accept": EVENTS}


def events_of(text: str) -> list[tuple[str, Any]]:
    """The events of a stream."""
    return [
        (kind.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for kind, data in (event.split("\n") for event in text.removesuffix("\n\n").split("\n\n"))
    ]


class Following:
    """A session whose answers wait, at a third and at two thirds, until that was sent to whoever asked."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[str] = []
        self.seen: list[Any] = []
        self.look: Callable[[], Any] = lambda: None
        self._run, self._send = session.run, rest._send_event
        monkeypatch.setattr(session, "run", self.run)
        monkeypatch.setattr(rest, "_send_event", self.send)

    def run(self, request: Request, **options: Any) -> Any:
        if progress := options.get("progress"):
            for number, share in enumerate((1 / 3, 2 / 3), 2):  # after the one with which each stream begins
                progress(share)
                until(lambda number=number: len(self.sent) == number, what="news of it")  # type: ignore[misc]
                self.seen.append(self.look())
        return self._run(request, **options | {"progress": None})

    async def send(self, *message: Any, **options: Any) -> None:
        await self._send(*message, **options)
        self.sent.append(message[1])


def test_who_wants_it_hears_how_far_an_answer_is(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ask(api, "look").json()
    following = Following(session, monkeypatch)
    told = ask(api, "look", headers=TOLD)
    assert (told.status_code, told.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    *progress, answer = events_of(told.text)
    assert following.sent == ["progress"] * 3 + ["answer"]
    assert [said["share"] for _, said in progress] == [0.0, 1 / 3, 2 / 3]
    assert answer == ("answer", expected)


def test_who_wants_it_hears_why_an_answer_takes_longer_and_nobody_else_does(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lefts() -> list[str]:
        *progress, _answer = events_of(ask(api, "look", headers=TOLD).text)
        return [said["left"] for _, said in progress]

    with monkeypatch.context() as patch:
        following = Following(session, patch)
        following.look = lambda: following.seen or rest.notice("No GPU is available.")
        (first, second, third) = lefts()
        assert "No GPU" not in first + second
        assert third.endswith("No GPU is available.")
    assert not any("No GPU" in left for left in lefts())
    assert caplog.text.count("No GPU is available.") == 1


@pytest.mark.parametrize(
    ("accept", "is_raw"), [(f"{EVENTS}, {rest.SAFETENSORS}", True), (f"{EVENTS}, */*", False)]
)
def test_the_last_event_is_what_is_accepted_beside_events(api: TestClient, accept: str, is_raw: bool) -> None:
    told = ask(api, "look", headers={"Accept": accept}).text
    kind, said = told.removesuffix("\n\n").split("\n\n")[-1].split("\n")
    data = said.removeprefix("data: ")
    assert (kind, ask(api, "look", headers={"Accept": rest.SAFETENSORS}).content) == (
        "event: answer",
        base64.b64decode(data) if is_raw else ask(api, "look", headers={"Accept": rest.SAFETENSORS}).content,
    )
    assert is_raw or json.loads(data) == ask(api, "look").json()


class Previewing(Following):
    """The same, whose answer tells what there is of it, twice, before it is there."""

    parts = tuple(
        CausalMap(table, table, np.array([[True, count == 2]]))
        for count in (1, 2)
        for table in [
            HeadTable(np.array([[0.5, -0.25 * (count - 1)]]), "change", (-np.inf, np.inf), True, "ablation")
        ]
    )

    def run(self, request: Request, **options: Any) -> Any:
        if preview := options.get("preview"):
            for number, part in enumerate(self.parts, 2):
                preview(part)
                until(lambda number=number: len(self.sent) == number, what="the preview")  # type: ignore[misc]
        return self._run(request, **options | {"preview": None, "progress": None})


@pytest.mark.parametrize("is_binary", [False, True])
def test_who_hears_how_far_an_answer_is_sees_what_there_is_of_it(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch, is_binary: bool
) -> None:
    expected = ask(api, "ablation", TWINS).json()
    following = Previewing(session, monkeypatch)
    accept = {"Accept": f"{EVENTS}, {rest.SAFETENSORS}"} if is_binary else TOLD
    text = ask(api, "ablation", TWINS, headers=accept).text
    assert following.sent == ["progress", "preview", "preview", "answer"]
    data = [event.split("\ndata: ")[1] for event in text.removesuffix("\n\n").split("\n\n")]
    if is_binary:
        found = [safetensors.numpy.load(base64.b64decode(one)) for one in data[1:]]
        assert found[0].keys() == {"table.values", "estimate.values", "known"}
        assert found[0]["known"].tolist() == [[True, False]]
        assert found[1]["table.values"].tolist() == [[0.5, -0.25]]
        assert found[2]["values"].tolist() == expected["numbers"]["values"]
    else:
        first, second, answer = map(json.loads, data[1:])
        assert first["numbers"]["known"] == [[True, False]]
        assert second["numbers"]["table.values"] == [[0.5, -0.25]]
        assert second["facts"]["table"]["unit"] == "change"
        assert answer == expected


def test_an_ablation_fills_with_what_matters_most_first(session: Session) -> None:
    seen: list[CausalMap] = []
    subject = Subject("odd", "tower")
    found = session.run(request_for(session, subject, "ablation", how="mean"), preview=seen.append)
    assert isinstance(found, HeadTable)
    assert seen[-1].known.all()
    assert all(a.known.sum() < b.known.sum() for a, b in pairwise(seen))
    assert seen[-1].table.values.tolist() == found.values.tolist()
    estimate = session.run(request_for(session, subject, "head_importance", how="mean"))
    np.testing.assert_allclose(seen[0].estimate.values, estimate.values, rtol=1e-5)


def test_a_refusal_on_the_way_is_the_last_event_and_one_before_is_none(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask(api, "look", TWINS | {"layer": "high"}, headers=TOLD).status_code == 400
    told = ask(api, "look", TWINS | {"layer": 99}, headers=TOLD)
    kind, said = events_of(told.text)[-1]
    plain = ask(api, "look", TWINS | {"layer": 99})
    assert (told.status_code, kind, said) == (200, "refused", plain.json() | {"status": plain.status_code})
    monkeypatch.setattr(session, "run", lambda *_, **__: 1 / 0)
    kind, said = events_of(ask(api, "look", headers=TOLD).text)[-1]
    assert (kind, said["status"], "division" in said["error"]) == ("refused", 500, False)


async def direct(session: Session, accept: str, leave: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """Ask for a map without a server between: `leave` ends when whoever asked hangs up, `send` is given what they hear."""
    scope = {
        "type": "http", "method": "POST", "path": f"{rest.PREFIX}/look", "query_string": b"", "root_path": "",
        "scheme": "http", "server": ("127.0.0.1", 80), "headers": [(b"accept", accept.encode())],
    }  # fmt: skip
    body = iter([{"type": "http.request", "body": json.dumps(TWINS).encode()}])

    async def receive() -> Any:
        message = next(body, None)
        if message is None:
            await leave()
        return message or {"type": "http.disconnect"}

    await Starlette(routes=rest.routes(session))(scope, receive, send)


@pytest.mark.parametrize("accept", [EVENTS, "application/json"])
def test_who_hangs_up_ends_what_is_computed(
    session: Session, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    began, ended, plain = threading.Event(), list[bool](), session.run

    def run(request: Request, **options: Any) -> Any:
        if "cancelled" not in options:  # the pass from which options are read
            return plain(request, **options)
        began.set()
        until(options["cancelled"], what="the word that nobody waits")
        ended.append(True)
        raise Cancelled("It was ended.")

    monkeypatch.setattr(session, "run", run)

    async def leave() -> None:
        await anyio.to_thread.run_sync(began.wait)

    async def send(_message: Any) -> None:
        return

    anyio.run(direct, session, accept, leave, send)
    assert ended == [True]


def test_an_answer_that_is_there_before_its_stream_has_begun_follows_the_beginning(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the line to whoever asked is slow, and the answer at hand."""
    sent, run_sync = list[Any](), rest.run_sync

    async def ask_slowly() -> None:
        computed = anyio.Event()

        async def compute(*given: Any, **options: Any) -> Any:
            made = await run_sync(*given, **options)
            computed.set()  # what waits for it goes on once the answer has been taken
            return made

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                await computed.wait()
                await anyio.lowlevel.checkpoint()
            sent.append(message)

        monkeypatch.setattr(rest, "run_sync", compute)
        await direct(session, EVENTS, anyio.sleep_forever, send)

    anyio.run(ask_slowly)
    assert [one["type"] for one in sent] == ["http.response.start"] + ["http.response.body"] * 2
    kinds = [kind for kind, _ in events_of(b"".join(one["body"] for one in sent[1:]).decode())]
    assert kinds == ["progress", "answer"]


def test_a_question_keeps_its_place_until_its_answer_is_computed(
    session: Session, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client(session, rest.FOR_OTHERS)
    door: Any = client.app.middleware_stack  # type: ignore[attr-defined]  # of the stand-in
    following = Following(session, monkeypatch)
    following.look = lambda: door.quick.is_held("answers")
    assert ask(client, "look", headers=TOLD).status_code == 200
    assert following.seen == [True, True]
    assert not door.quick.is_held("answers")


def test_slow_questions_leave_quick_ones_their_threads(
    session: Session, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "THREADS", 1)
    client = open_client(session, rest.FOR_OTHERS)
    began, released, run = threading.Event(), threading.Event(), session.run

    def held(request: Request, **options: Any) -> Any:
        if request.question == "saco":
            began.set()
            assert released.wait(60)
        return run(request, **options)

    monkeypatch.setattr(session, "run", held)
    with ThreadPoolExecutor() as others:
        slow = [others.submit(ask, client, "saco") for _ in range(3)]
        try:
            assert began.wait(60)
            assert [ask(client, "look").status_code for _ in range(3)] == [200] * 3
        finally:
            released.set()
        assert [one.result().status_code for one in slow] == [200] * 3


REFUSED: list[tuple[str, Any, str]] = [
    ("nothing", TWINS, "There is nothing called 'nothing'"),
    ("look", [], "The body of a question is a JSON object."),
    ("look", {}, "'look' is about a photo."),
    ("positions", TWINS, "'positions' is about a model."),
    (
        "look",
        TWINS | {"colour": 1},
        "'look' takes no 'colour'; it takes: mode, size, part, edits, sentences, templates, query",
    ),
    ("look", {"image": "/etc/passwd"}, "There is no sample '/etc/passwd'"),
    ("look", {"image": {"path": "/etc/passwd"}}, "The photo:"),
    ("look", {"image": {"url": "http://127.0.0.1/"}}, "The photo:"),
    ("look", {"image": {"sample": "twins", "base64": ""}}, "The photo:"),
    ("look", {"image": {"sample": "../twins"}}, "There is no sample '../twins'"),
    ("look", {"image": {"base64": "%%%"}}, "The base64 of a picture"),
    ("look", {"image": {"base64": "AAAA"}}, "This"),
    ("look", TWINS | {"model": "/etc/passwd"}, "The model '/etc/passwd' is not offered here"),
    ("look", TWINS | {"model": 3}, "The name of a model must be a text."),
    ("look", TWINS | {"size": "huge"}, "The size is a whole number"),
    ("look", TWINS | {"part": [0, 0, 9, 9]}, "A part has at least 32 x 32"),
    ("look", TWINS | {"query": {"row": 1}}, "A query is a token name or row,col pairs"),
    ("look", TWINS | {"target": 3}, "'look' takes no 'target'"),
    ("relevance", TWINS | {"target": [1, 2, 3]}, "A target is a class"),
    ("positions", {"place": "4,0"}, "Position (4, 0) does not exist: the grid is 4 x 6."),
    ("positions", {"place": "register 7"}, "There is no position 'register 7' beside the patches"),
    ("positions", {"place": "0.5"}, "The positions's place cannot be"),
    ("positions", {"grid": "0,3"}, "A grid has 1 to 4096 positions"),
    ("relevance", TWINS | {"target": True}, "A target is a class"),
    ("relevance", TWINS | {"target": 10**30}, "Class 1000"),
]


@pytest.mark.parametrize(("name", "body", "words"), REFUSED)
def test_what_is_not_possible_is_one_sentence(api: TestClient, name: str, body: Any, words: str) -> None:
    answer = ask(api, name, body)
    assert answer.status_code == (404 if name == "nothing" else 400)
    assert answer.json()["error"].startswith(words)
    assert "\n" not in answer.json()["error"]


def test_a_picture_of_another_visitor_has_no_name_here(api: TestClient, session: Session) -> None:
    key = session.uploads.add(odd_picture(9), owner="api no cookie testclient")
    assert ask(api, "look", {"image": {"sample": key}}).json()["error"].startswith("There is no sample")
    session.uploads.remove(key, owner="api no cookie testclient")


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_there_are_only_questions_and_what_says_which(api: TestClient, method: str) -> None:
    for path, allowed in (("/look", "POST"), ("", "GET"), ("/openapi.json", "GET")):
        answer = getattr(api, method)(f"{rest.PREFIX}{path}")
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed", "words"),
    [
        ("get", "/look", 405, "POST", "Questions are posted: POST /api/v1/look with a JSON body;"),
        ("get", "/nothing", 404, None, "There is nothing called 'nothing'"),
        ("post", "", 405, "GET", "This address only answers GET."),
        ("post", "/openapi.json", 405, "GET", "This address only answers GET."),
    ],
)
def test_another_method_is_answered_in_one_sentence(
    api: TestClient, method: str, path: str, status: int, allowed: str | None, words: str
) -> None:
    answer = getattr(api, method)(f"{rest.PREFIX}{path}")
    assert (answer.status_code, answer.headers.get("allow")) == (status, allowed)
    assert list(answer.json()) == ["error"]
    assert answer.json()["error"].startswith(words)


# --- pictures that are brought


def test_a_program_brings_a_picture_by_itself_and_asks_about_it_by_its_id(
    api: TestClient, session: Session, open_client: Callable[..., TestClient]
) -> None:
    """A large one, too; a browser has others, and where programs may not ask they may not bring either."""
    noise = np.random.default_rng(5).integers(0, 256, (300, 400, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    assert file.tell() > QUESTION_BYTES
    brought = api.post("/vit_viz/bring", content=file.getvalue()).json()
    for image in ({"upload": brought["image"]}, brought["image"]):
        answer = ask(api, "patches", {"image": image})
        assert answer.status_code == 200
        assert answer.json()["provenance"]["image"] == image_hash(Image.fromarray(noise))
    of_ada = {"Cookie": f"{cookie_name()}={new_visitor()}"}
    refused = ask(api, "patches", {"image": {"upload": brought["image"]}}, headers=of_ada)
    assert (refused.status_code, refused.json()) == (400, {"error": GONE})
    assert open_client(session).post("/vit_viz/bring", content=b"x").status_code == 404
    session.uploads.remove(brought["image"], owner="program testclient")


# --- limits of the door


def test_a_body_is_bounded(api: TestClient) -> None:
    for size, status in ((QUESTION_BYTES, 400), (QUESTION_BYTES + 1, 413)):
        answer = api.post(f"{rest.PREFIX}/look", content=b"x" * size)
        assert (answer.status_code, "error" in answer.json()) == (status, True)


def test_a_body_that_hides_its_length_is_refused(api: TestClient) -> None:
    def parts() -> Any:
        for _ in range(65):
            yield b"x" * 2**10

    assert api.post(f"{rest.PREFIX}/look", content=parts()).status_code == 411


def test_a_question_is_read_beside_everybody_else_s_requests(
    api: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a thread, and not where the event loop runs."""
    read, loops = rest.read_json, list[bool]()

    def noted(body: bytes) -> object:
        try:
            asyncio.get_running_loop()
            loops.append(True)
        except RuntimeError:
            loops.append(False)
        return read(body)

    monkeypatch.setattr(rest, "read_json", noted)
    monkeypatch.setattr(opened, "read_json", noted)
    assert ask(api, "look").status_code == 200
    assert api.post("/vit_viz/open", json={"view": ""}, headers={PAGE_HEADER: "a" * 16}).status_code == 200
    assert loops == [False, False]


def test_pages_of_other_sites_and_other_names_are_refused(api: TestClient) -> None:
    assert ask(api, "look", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert ask(api, "look", headers={"host": "evil.example"}).status_code == 421


def test_a_question_belongs_to_its_caller(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: list[str] = []
    run = session.run

    def noted(request: Request, **options: Any) -> Any:
        owners.append(request.owner)
        return run(request, **options)

    monkeypatch.setattr(session, "run", noted)
    ask(api, "classes")
    assert set(owners) == {"program testclient"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BusyError("Busy."), 429),
        (Cancelled("It was ended."), 429),
        (ParameterError("No."), 400),
        (CaptureError("No."), 400),
        (KeyError("secret"), 500),
    ],
)
def test_the_status_says_whether_to_ask_again_to_ask_otherwise_or_neither(
    api: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(session, "run", fail)
    answer = ask(api, "look")
    assert answer.status_code == status
    assert (answer.json()["error"] == str(error)) == (status < 500)
    assert "secret" not in answer.text


ADDRESSES = {
    "/api/v1": "api", "/api/v1/look": "api", "/api/v1/openapi.json": "api", "/mcp": "mcp", "/api/v1/a/b": None, "/api/v1/..": None,
    "/api/v1/": None, "/api/v2": None, "/mcp/x": None,
}  # fmt: skip


@pytest.mark.parametrize(("path", "kind"), ADDRESSES.items())
def test_addresses_have_one_shape(path: str, kind: str | None) -> None:
    assert kind_of("POST", path) == kind


# --- fuzz

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
_FIELDS = sorted({"model", "image", "mode", "size", "part", "query", "target"} | {
    field.name for name in ("look", "rollout", "relevance") for field in QUESTIONS[name].options.schema()
})  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(["look", "rollout", "relevance"]),
    more=st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=4),
)
def test_no_body_makes_the_server_fail(api: TestClient, name: str, more: dict[str, Any]) -> None:
    answer = api.post(f"{rest.PREFIX}/{name}", content=json.dumps(TWINS | more))
    assert answer.status_code < 500, (more, answer.text)
    if answer.status_code != 200:
        assert list(answer.json()) == ["error"]


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    content=st.binary(max_size=40)
    | _JSON.map(lambda value: json.dumps(value).encode())
    | st.just(b"[" * 100_000)
)
def test_no_bytes_make_the_server_fail(api: TestClient, content: bytes) -> None:
    answer = api.post(f"{rest.PREFIX}/look", content=content)
    assert 400 <= answer.status_code < 500


def test_a_question_about_the_map_of_a_method_takes_its_options(api: TestClient, session: Session) -> None:
    body = TWINS | {"method": "rollout", "target": "animal 3"}
    usual = ask(api, "own_part", body).json()
    answer = ask(api, "own_part", body | {"options": {"attention_share": 0.25, "discard": 0}}).json()
    assert answer["numbers"]["values"] != usual["numbers"]["values"]
    assert answer["request"]["parameters"]["options"] == [["attention_share", 0.25]]  # what is not usual
    assert "options" not in usual["request"]["parameters"]
    request = request_for(
        session,
        Subject(session.default_model, "twins"),
        "own_part",
        method="rollout",
        target=3,
        options={"attention_share": 0.25},
    )
    np.testing.assert_array_equal(answer["numbers"]["values"], session.run(request).values.tolist())


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("own_part", {"steps": 3}, "'relevance' has no option 'steps'"),
        ("trust", 3, "The options of 'relevance' are given by name, not as '3'."),
        ("randomisation", {"attention_share": 0.5}, "'randomisation' takes no 'options'"),
        ("saco", {}, "'saco' takes no 'options'"),
        ("relevance", {}, "'relevance' takes no 'options'"),
    ],
)
def test_options_of_a_method_that_it_does_not_have_are_refused_in_a_sentence(
    api: TestClient, name: str, options: object, words: str
) -> None:
    answer = ask(api, name, TWINS | {"options": options})
    assert answer.status_code == 400
    assert words in answer.json()["error"]
