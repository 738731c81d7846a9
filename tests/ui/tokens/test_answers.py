"""What the Tokens tab fetches: true unit vectors, the numbers of the functions, and one sentence for everything else."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import vit_viz as vv
from tests.comparing import assert_same
from vit_viz import samples
from vit_viz.analyses.components import colours_of
from vit_viz.analyses.key_segments import segment_overlap
from vit_viz.analyses.opening import opening
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.figures.screen import screen_photo
from vit_viz.figures.styles import unsuitable
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.explain.questions import class_matches
from vit_viz.ui.page import with_choices
from vit_viz.ui.routes import GONE, PREFIX, routes
from vit_viz.ui.tokens import answers
from vit_viz.ui.tokens.view import DRAWING, OPTIONS, TAB, asked_about, computed, room_value
from vit_viz.views.state import ViewState


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject("mini", "shapes", "fit", "ada")


@pytest.fixture(scope="module")
def client(session: Session) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes(session)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def handle(session: Session, subject: Subject) -> str:
    return session.handles.issue(subject)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return vv.trace("mini", samples.sample("shapes"), keep_residual=True)


def numbers(client: TestClient, handle: str, kind: str, **options: Any) -> dict[str, Any]:
    answer = client.get(f"{PREFIX}/token_numbers/{handle}", params={"kind": kind, **options})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(("role", "state"), [("tokens", 0), ("tokens", 6), ("queries", 2), ("keys", 5)])
def test_products_of_the_vectors_are_the_cosines_of_the_function(
    client: TestClient, handle: str, trace: Trace, role: Any, state: int
) -> None:
    answer = client.get(f"{PREFIX}/tokens/{handle}/{state}?role={role}")
    vectors = np.frombuffer(answer.content, "<f2").reshape(trace.num_tokens, -1).astype(np.float32)
    row, col = 3, 9
    found = trace.layout.patches(vectors @ vectors[trace.layout.token((row, col))])
    expected = vv.token_similarity(trace, query=(row, col), role=role).values[state]
    np.testing.assert_allclose(found, expected, atol=2e-3)  # fp16


def test_colours_and_shares_are_those_of_the_components(
    client: TestClient, handle: str, trace: Trace
) -> None:
    told, expected = numbers(client, handle, "components"), vv.token_components(trace)
    assert_same(told["explained"], expected.explained, relative=1e-4)
    for state, colours in enumerate(colours_of(expected)[0]):
        bytes_ = np.frombuffer(base64.b64decode(told["colours"][state]), np.uint8)
        np.testing.assert_allclose(bytes_.reshape(colours.shape), 255 * colours, atol=1)


def test_norms_and_outliers_are_those_of_the_function(
    client: TestClient, handle: str, trace: Trace, session: Session, subject: Subject
) -> None:
    told, expected = numbers(client, handle, "norms"), vv.token_norms(trace)
    assert_same(np.reshape(told["values"], expected.maps.values.shape), expected.maps.values, relative=1e-4)
    assert_same(told["thresholds"], expected.thresholds, relative=1e-4)
    assert_same(told["others"]["class"], expected.maps.named["class"], relative=1e-4)
    assert [len(a) + len(b) for a, b in zip(told["outliers"], told["named"], strict=True)] == [
        len(tokens) for tokens in expected.outliers
    ]


def test_outlier_patches_are_counted_from_the_first_patch(session: Session, subject: Subject) -> None:
    layout = session.trace_of(subject).layout
    told = answers.numbers(session, subject, "norms", {"factor": "1.5"})  # so that there are some
    values, thresholds = np.array(told["values"]), np.array(told["thresholds"])
    for state, patches in enumerate(told["outliers"]):
        assert patches == np.flatnonzero(values[state] > thresholds[state]).tolist()
    assert any(told["outliers"])
    assert {name for names in told["named"] for name in names} <= set(layout.named)


def test_the_lens_names_what_comes_first(client: TestClient, handle: str, session: Session) -> None:
    told = numbers(client, handle, "lens")
    expected = vv.logit_lens("mini", samples.sample("shapes"))
    assert expected.top is not None
    assert told["top"][3] == expected.top[3].ravel().tolist()
    assert told["words"][str(told["top"][3][0])] == expected.words[told["top"][3][0]]
    assert_same(np.reshape(told["values"], expected.maps.values.shape), expected.maps.values, relative=1e-4)
    assert told["title"] == f"What speaks for {told['target']}"
    assert told["note"].startswith("A probe")


def test_the_lens_is_of_the_class_that_is_asked_for(
    client: TestClient, handle: str, session: Session
) -> None:
    labels = session.model("mini").labels
    assert labels is not None
    told = numbers(client, handle, "lens", target=7)
    expected = vv.logit_lens("mini", samples.sample("shapes"), target=7)
    assert told["target"] == labels.name(7)
    assert_same(np.reshape(told["values"], expected.maps.values.shape), expected.maps.values, relative=1e-4)
    assert told["values"] != numbers(client, handle, "lens")["values"]


def test_two_photos_share_their_colours(
    client: TestClient, handle: str, session: Session, trace: Trace
) -> None:
    other = session.handles.issue(Subject("mini", "lion", "fit", "ada"))
    told = numbers(client, handle, "components", also=other, foreground="true")
    second = vv.trace("mini", samples.sample("lion"), keep_residual=True)
    expected = vv.token_components([trace, second], foreground=True)
    assert_same(told["explained"], expected.explained, relative=1e-4)
    assert_same(told["overall"], expected.overall, relative=1e-4)
    for photo, colours in zip(("colours", "second"), colours_of(expected), strict=True):
        bytes_ = np.frombuffer(base64.b64decode(told[photo][4]), np.uint8)
        np.testing.assert_allclose(bytes_.reshape(colours[4].shape), 255 * colours[4], atol=1)
    assert numbers(client, handle, "components")["second"] is None


def test_change_and_likeness_of_layers_are_those_of_the_functions(
    client: TestClient, handle: str, trace: Trace
) -> None:
    change, expected = numbers(client, handle, "change"), vv.token_change(trace)
    assert_same(np.reshape(change["values"], expected.values.shape), expected.values, relative=1e-4)
    assert_same(change["others"]["class"], expected.named["class"], relative=1e-4)
    layers, matrix = numbers(client, handle, "layers", role="keys"), vv.layer_similarity(trace, role="keys")
    assert_same(layers["matrix"], matrix.values, relative=1e-4)
    assert (layers["names"], layers["unit"]) == (list(matrix.names), matrix.unit)


def test_segments_are_those_of_the_function_with_their_overlap(
    client: TestClient, handle: str, trace: Trace
) -> None:
    told = numbers(client, handle, "segments", layer=2, count=3, role="queries")
    expected = vv.key_segments(trace, layer=2, count=3, role="queries")
    assert told["labels"] == expected.labels.ravel().tolist()
    assert sum(told["shares"]) == pytest.approx(1, abs=1e-4)
    assert told["overlap"] is None
    boxed = numbers(client, handle, "segments", layer=2, count=3, role="queries", box="20,10,120,90")
    overlap = segment_overlap(expected, boxes=[(20, 10, 120, 90)])
    assert overlap.max() > 0
    assert_same(boxed["overlap"], overlap, relative=1e-4)


def test_a_register_is_told_with_norms_and_attention_before_and_after(
    session: Session, subject: Subject
) -> None:
    told = answers.numbers(session, subject, "register", {"factor": "1.5"})
    found = vv.add_register("mini", samples.sample("shapes"), factor=1.5)
    assert told["patches"] == list(found.outlier_patches)
    assert told["name"] == "register 4"
    assert len(told["neurons"]) == 10
    for side, norms in zip(told["norms"], (found.before, found.after), strict=True):
        assert_same(np.reshape(side["values"], norms.maps.values.shape), norms.maps.values, relative=1e-4)
        assert [len(a) for a in side["outliers"]] == [
            int((row > limit).sum())
            for row, limit in zip(
                norms.maps.values.reshape(len(norms.maps.values), -1), norms.thresholds, strict=True
            )
        ]
    for values, one in zip(told["attention"], found.attention, strict=True):
        assert_same(np.reshape(values, one.values.shape), one.values, relative=1e-4)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("tokens/HANDLE/7?role=tokens", 400, "State 7 does not exist: they are 0-6."),
        ("tokens/HANDLE/6?role=keys", 400, "State 6 does not exist: they are 0-5."),
        ("tokens/HANDLE/-1", 400, ""),
        ("tokens/HANDLE/x", 400, ""),
        ("tokens/HANDLE/0?role=values", 400, "Vectors are tokens, queries, keys, not 'values'."),
        (
            "token_numbers/HANDLE?kind=beauty",
            400,
            "The Tokens tab shows components, norms, lens, change, layers, segments, register, not 'beauty'.",
        ),
        ("token_numbers/HANDLE", 400, "The Tokens tab shows"),
        (
            "token_numbers/HANDLE?kind=norms&factor=1",
            400,
            "The token norms's factor is a number from 1.5 to 100",
        ),
        ("token_numbers/HANDLE?kind=norms&colour=1", 400, "'token_norms' has no option 'colour'"),
        ("token_numbers/HANDLE?kind=lens&target=99999", 400, "Class 99999 does not exist"),
        ("token_numbers/HANDLE?kind=segments&box=9,0,5,9", 400, "A box is left,top,right,bottom"),
        ("token_numbers/HANDLE?kind=register", 400, "No patch is an outlier in any layer"),
        ("token_numbers/HANDLE?kind=components&also=nothing", 404, GONE),
        ("tokens/nothing/0", 404, GONE),
        ("token_numbers/nothing?kind=norms", 404, GONE),
    ],
)
def test_everything_else_is_one_sentence(
    client: TestClient, handle: str, path: str, status: int, words: str
) -> None:
    answer = client.get(f"{PREFIX}/{path.replace('HANDLE', handle)}")
    assert answer.status_code == status
    assert answer.text.startswith(words)
    assert answer.headers["content-type"].startswith("text/plain")


class _Page:
    def __init__(self, session: Session) -> None:
        self.session = session


def test_the_value_says_what_the_tokens_are_of(session: Session) -> None:
    value = room_value(_Page(session), ViewState(image="shapes", query="2,3"), "ada")  # type: ignore[arg-type]
    assert value["grid"] == list(session.trace("mini", "shapes").layout.grid)
    assert value["query"] == "2,3"
    assert value["roles"] == ["tokens", "queries", "keys"]
    assert value["classes"] is None
    assert value["second"] is None
    assert "shapes" not in {one["id"] for one in value["pictures"]}


def test_what_is_chosen_is_in_the_value_and_in_the_link(session: Session) -> None:
    view = with_choices(
        ViewState(image="shapes", tab="tokens"), {"token_measure": "lens", "token_state": 3, "x": 1}, OPTIONS
    )
    assert view.to_address() == "image=shapes&tab=tokens&tokens=lens&state=3"
    view = asked_about(view, {"index": 9})
    value = room_value(_Page(session), view, "ada")  # type: ignore[arg-type]
    assert (value["chosen"]["token_measure"], value["chosen"]["token_state"]) == ("lens", 3)
    assert (value["target"], value["classes"]["chosen"], value["classes"]["single"]) == ("9", 9, True)
    with pytest.raises(ParameterError):
        with_choices(view, {"token_count": 99}, OPTIONS)


def test_the_second_photo_has_a_handle_of_its_own_or_a_sentence(session: Session) -> None:
    for image, has_handle in (("lion", True), ("gone", False)):
        view = with_choices(
            ViewState(image="shapes"), {"token_measure": "components", "token_second": image}, OPTIONS
        )
        second = room_value(_Page(session), view, "ada")["second"]  # type: ignore[arg-type]
        assert bool(second["handle"]) is has_handle
        assert has_handle or second["note"].endswith(".")


def test_classes_are_found_by_name(session: Session) -> None:
    page = _Page(session)
    hits = class_matches(page, ViewState(image="shapes"), "ada", {"text": "lion", "seq": 4})  # type: ignore[arg-type]
    assert hits["seq"] == 4
    assert "lion" in [hit["name"] for hit in hits["hits"]]


def test_a_computation_says_how_far_it_is_and_then_its_numbers_are_kept(
    session: Session, subject: Subject
) -> None:
    page, view = _Page(session), ViewState(image="shapes", mode="fit")
    data = {"kind": "layers", "key": "k", "options": {"role": "queries"}}
    said = [*computed(page, view, "ada", data, threading.Event())]  # type: ignore[arg-type]
    assert said[0] == {"key": "k", "share": 0.0}
    assert said[-1] == {"key": "k", "done": True}
    assert session.keeps(answers.request_of(session, subject, "layers", {"role": "queries"}))
    said = [*computed(page, view, "ada", {"kind": "register", "key": "r"}, threading.Event())]  # type: ignore[arg-type]
    assert said[-1]["error"].startswith("No patch is an outlier")


def test_a_computation_that_is_stopped_says_so(session: Session) -> None:
    stop = threading.Event()
    stop.set()
    data = {"kind": "register", "key": "r", "options": {"factor": "2"}}
    page, view = _Page(session), ViewState(image="lion", mode="fit")
    said = [*computed(page, view, "ada", data, stop)]  # type: ignore[arg-type]
    assert "error" in said[-1]


def test_a_patch_that_is_worth_a_visit_is_looked_at_first(session: Session) -> None:
    for image in ("shapes", "lion"):
        value = room_value(_Page(session), ViewState(image=image), "ada")  # type: ignore[arg-type]
        trace = session.trace("mini", image)
        assert value["query"] == ",".join(map(str, divmod(opening(trace).tour[0], trace.layout.grid[1])))
        named = room_value(_Page(session), ViewState(image=image, query="class"), "ada")  # type: ignore[arg-type]
        assert named["query"] == "class"


def test_photos_are_drawn_in_the_style_of_the_page(session: Session) -> None:
    view = with_choices(ViewState(image="shapes"), {"style": "tint", "alpha": 0.5, "smooth": False}, DRAWING)
    chosen = room_value(_Page(session), view, "ada")["chosen"]  # type: ignore[arg-type]
    assert (chosen["style"], chosen["alpha"], chosen["smooth"]) == ("tint", 0.5, True)
    assert TAB.shows(view) != TAB.shows(ViewState(image="shapes"))
    value = room_value(_Page(session), ViewState(image="shapes"), "ada")  # type: ignore[arg-type]
    assert value["unlit"] == unsuitable(screen_photo(session, Subject("mini", "shapes", "fit", "ada")))


def test_no_class_is_chosen_until_somebody_chooses_one(session: Session) -> None:
    view = with_choices(ViewState(image="shapes"), {"token_measure": "lens"}, OPTIONS)
    value = room_value(_Page(session), view, "ada")  # type: ignore[arg-type]
    assert (value["target"], value["classes"]["chosen"]) == ("", None)
    assert asked_about(asked_about(view, {"index": 9}), {"index": ""}).target == ""


def test_another_query_or_picture_wakes_the_tab_and_another_layer_does_not() -> None:
    view = ViewState(image="shapes")
    assert TAB.shows(view) == TAB.shows(view.with_options({"layer": 3}))
    assert TAB.shows(view) != TAB.shows(view.with_options({"query": "1,1"}))
    assert TAB.shows(view) != TAB.shows(view.with_options({"image": "lion"}))
    assert TAB.shows(view) != TAB.shows(view.with_options({"target": "7"}))
    assert TAB.shows(view) != TAB.shows(view.with_options({"token_whitened": True}))


def test_a_query_that_is_none_is_refused() -> None:
    with pytest.raises(ParameterError):
        ViewState().with_options({"query": "<b>"})
