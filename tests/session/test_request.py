"""What is asked: complete, hashable, written as JSON and read back as the same; who asks is no part of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from vit_viz.errors import ParameterError, VitVizError
from vit_viz.images import Mode
from vit_viz.images.part import MIN_PART_SIDE
from vit_viz.session.edits import ModelEdits
from vit_viz.session.request import Request, Subject

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS, lambda inner: st.lists(inner, max_size=4).map(tuple)
)


PARTS = st.none() | st.tuples(*[st.integers(0, 999)] * 2, *[st.integers(MIN_PART_SIDE, 999)] * 2)

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    parameters = draw(st.dictionaries(TEXTS, VALUES, max_size=4))
    mode, size = draw(st.sampled_from(get_args(Mode))), draw(st.integers(0, 99))
    subject = Subject(draw(TEXTS), draw(TEXTS), mode, draw(TEXTS), size=size, part=draw(PARTS))
    return Request(subject, draw(TEXTS), tuple(sorted(parameters.items(), key=lambda pair: pair[0])))


@UNHURRIED
@given(requests())
def test_a_request_survives_json(request: Request) -> None:
    again = Request.from_json(request.to_json())
    assert again == request
    assert hash(again) == hash(request)
    assert repr(again) == repr(
        request.of_picture(request.subject.image)
    )  # 1 and 1.0 and True are equal, but not the same


@UNHURRIED
@given(requests(), TEXTS)
def test_the_owner_is_no_part_of_the_key_nor_of_the_json(request: Request, owner: str) -> None:
    other = replace(request, subject=replace(request.subject, owner=owner))
    assert other == request
    assert hash(other) == hash(request)
    assert other.to_json() == request.to_json()
    assert Request.from_json(other.to_json()).owner == ""


@UNHURRIED
@given(
    st.recursive(VALUES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=6), TEXTS
)
def test_any_other_json_is_refused_in_a_sentence(value: Any, text: str) -> None:
    for written in (json.dumps(value), text):
        with pytest.raises(ParameterError, match=r"request"):
            Request.from_json(written)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", 3),
        ("image", None),
        ("mode", "sideways"),
        ("mode", ["fit"]),
        ("size", -1),
        ("size", 9.0),
        ("size", True),
        ("size", None),
        ("part", [0, 0, 40]),
        ("part", [0, -1, 40, 50]),
        ("part", [0, 0, 40, 31]),
        ("part", [0, 0, 40, 50.0]),
        ("part", "0,0,40,50"),
        ("analysis", {}),
        ("edits", ["zero head 3"]),
        ("edits", "off 3.1"),
        ("edits", [3]),
        ("edits", {}),
        ("parameters", []),
        ("parameters", {"query": {}}),
        ("parameters", {"discard": float("inf")}),
        ("parameters", {"discard": float("nan")}),
        ("owner", "ada"),
    ],
)
def test_a_field_of_another_kind_is_refused(field: str, value: Any) -> None:
    written = json.loads(Request.of("mini", "lion", "rollout", query="class").to_json())
    with pytest.raises(VitVizError):
        Request.from_json(json.dumps(written | {field: value}))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": ' * 100_000, "", "null"])
def test_json_without_measure_is_refused(text: str) -> None:
    with pytest.raises(ParameterError):
        Request.from_json(text)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": Subject("other", "lion", "crop")},
        {"subject": Subject("mini", "tower", "crop")},
        {"subject": Subject("mini", "lion", "fit")},
        {"subject": Subject("mini", "lion", "crop", size=9)},
        {"subject": Subject("mini", "lion", "crop", part=(0, 0, 40, 50))},
        {"subject": Subject("mini", "lion", "crop", edits=ModelEdits.parse("off 3.1"))},
        {"question": "rollout"},
        {"parameters": (("layer", 2), ("query", (1, 3)))},
        {"parameters": (("layer", 1), ("query", (1, 2)))},
    ],
)
def test_requests_that_differ_in_one_field_are_not_equal(change: dict[str, Any]) -> None:
    request = Request.of("mini", "lion", "look", mode="crop", layer=1, query=[1, 3])
    assert replace(request, **change) != request


@pytest.mark.parametrize(
    "parameters",
    [(("b", 1), ("a", 1)), (("a", 1), ("a", 2)), (("a", [1]),), (("a", {1}),), (("a", (1, print)),)],
    ids=str,
)
def test_parameters_are_sorted_unique_and_plain(parameters: Any) -> None:
    with pytest.raises(ParameterError):
        Request(Subject("mini", "lion"), "attention", parameters)


def test_a_subject_asks_about_itself() -> None:
    subject = Subject("mini", "lion", "crop", "ada")
    expected = Request.of("mini", "lion", "rollout", mode="crop", owner="ada", query="class")
    assert repr(subject.request("rollout", query="class")) == repr(expected)


def test_a_subject_asks_about_its_size_and_its_part() -> None:
    subject = Subject("mini", "lion", "crop", "ada", size=9, part=(1, 2, 40, 50))
    request = subject.request("rollout")
    assert request.subject == Subject("mini", "lion", "crop", size=9, part=(1, 2, 40, 50))
    assert request.of_picture("digest").subject == replace(request.subject, image="digest")


def test_a_request_written_before_there_were_sizes_and_parts_reads_as_the_same() -> None:
    request = Request.of("mini", "lion", "rollout", query="class")
    written = json.loads(request.to_json())
    assert (written.pop("size"), written.pop("part")) == (0, None)
    assert Request.from_json(json.dumps(written)) == request


def test_a_part_is_a_tuple_so_that_it_can_be_a_key() -> None:
    listed = Subject("mini", "lion", part=[1, 2, 40, 50])  # type: ignore[arg-type]
    assert hash(listed) == hash(Subject("mini", "lion", part=(1, 2, 40, 50)))


def test_another_question_is_about_the_same_subject_of_the_same_owner() -> None:
    request = Request.of("mini", "lion", "rollout", mode="crop", owner="ada", query="class")
    trace = request.about("trace")
    assert (trace.subject, trace.owner, trace.parameters) == (request.subject, "ada", ())
    other = request.of_picture("digest")
    assert (other.subject.image, other.owner, other.parameters) == ("digest", "", request.parameters)
