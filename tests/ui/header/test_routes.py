"""What the header is told: of the view, of what can be opened, and of what is edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from tests.ui.desk import odd_picture
from vit_viz import samples
from vit_viz.checkpoints.catalog import CATALOG
from vit_viz.errors import Cancelled, CheckpointError, ParameterError
from vit_viz.session.session import Session
from vit_viz.surface import BRING, FILE_HEADER, OWNER as OWNER_OF
from vit_viz.ui.header import offers
from vit_viz.ui.header.routes import ANSWERS, bring_route, edited, tray
from vit_viz.ui.opened import PageCall, _opened as facts, far_words
from vit_viz.views.choices import arrived

OWNER = "ada"
WORDS = "off 1.3;temperature 2=0.5;forbid class>1-2,3@0"


@pytest.fixture(scope="module")
def image(session: Session) -> str:
    """The id of a picture that Ada has brought."""
    return session.add_upload(odd_picture(), owner=OWNER)


@pytest.fixture(scope="module")
def call(session: Session, image: str) -> Callable[..., PageCall]:
    def asked(link: str = "", **body: Any) -> PageCall:
        whole = link if "image=" in link else f"model=odd&image={image}&mode=crop{link}"
        view, problems = arrived(session, whole, OWNER)
        return PageCall(session, OWNER, view, problems, {"view": whole} | body, lambda: False)

    return asked


# --- facts


def test_the_facts_are_of_the_view(call: Callable[..., PageCall]) -> None:
    told = facts(call("&layer=1"))
    assert len(told["top"]) == 5
    assert told["short"] == "3 layers x 5 heads, patch 8"
    assert "this image: 4 x 6 patches" in told["card"]
    assert (told["own"], told["awaits"], told["notes"]) == (True, False, [])
    assert told["badge"]["state"] in ("proven", "checking")


def test_a_link_to_a_picture_that_is_gone_says_so_and_waits_for_it(call: Callable[..., PageCall]) -> None:
    told = facts(call("model=odd&image=unothing&layer=2"))
    assert any("is no longer kept" in note for note in told["notes"])
    assert (told["awaits"], told["own"]) == (True, False)


def test_what_is_not_possible_in_a_link_is_told(call: Callable[..., PageCall]) -> None:
    told = facts(call("model=../../etc&image=shapes&alpha=9&layer=77&edits=remove+1.3"))
    assert told["top"]
    for words in ("strength", "not offered here", "Layer 77 does not exist", "An edit is 'off 3.1'"):
        assert any(words in note for note in told["notes"]), words


def test_a_pass_is_followed(call: Callable[..., PageCall]) -> None:
    asked = call("model=odd&image=tower")
    facts(asked)
    assert asked.so_far.share == 1.0
    assert json.loads(asked.so_far.preview) == {"words": "Running odd …"}


def test_a_model_that_cannot_be_loaded_is_told_and_the_own_one_is_refused(
    session: Session, call: Callable[..., PageCall], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(ref: str, **_options: Any) -> Any:
        raise CheckpointError(f"There is no {ref}.")

    monkeypatch.setattr(session, "has_model", lambda _ref: False)
    monkeypatch.setattr(session, "model", fails)
    assert facts(call("model=someone/gone&image=lion")) == {
        "refused": "There is no someone/gone.",
        "instead": {"model": "odd"},
    }
    with pytest.raises(CheckpointError):
        facts(call())

    def ended(_ref: str, **_options: Any) -> Any:
        raise Cancelled("It was cancelled.")

    monkeypatch.setattr(session, "model", ended)
    with pytest.raises(Cancelled):  # nobody waits for another view in its place
        facts(call("model=someone/gone&image=lion"))


def test_a_size_or_an_edit_that_is_not_possible_is_told_and_the_rest_of_the_link_is_shown(
    call: Callable[..., PageCall],
) -> None:
    for link, words in (
        ("size=1", "The short side has at least"),
        ("edits=off+9.9", "Layer 9 does not exist"),
    ):
        told = facts(call(f"model=odd&image=shapes&{link}"))
        assert told["instead"] == {"size": 0, "part": "", "edits": "", "sentences": "", "templates": ""}
        assert words in told["refused"]


# --- models


def test_a_download_says_how_far_it_is() -> None:
    for done, total, told in (
        (0, 8_000_000, {"words": "Looking for x …"}),
        (2_000_000, 8_000_000, {"words": "Downloading x", "amount": "2 of 8 MB", "of": 0.25}),
        (2_000_000, 0, {"words": "Downloading x", "amount": "2 MB"}),
        (8_000_000, 8_000_000, {"words": "Loading x …", "of": 1.0}),
    ):
        assert far_words("x", done, total) == told | {"loads": True}


def test_a_model_that_is_here_is_loaded_at_once_and_another_one_when_its_visitor_agrees(
    session: Session, call: Callable[..., PageCall], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = ANSWERS["load"]
    assert load(call(name="odd")) == {}
    with pytest.raises(ParameterError, match="not offered here"):
        load(call(name="../../etc"))
    loaded = list[str]()
    monkeypatch.setattr(session, "model", lambda ref, **_options: loaded.append(ref))
    name, hub_id = CATALOG[0].name, CATALOG[0].hub_id
    monkeypatch.setattr(offers, "is_on_disk", lambda _ref: False)
    for agreed in ({}, {"agreed": False}, {"agreed": "true"}):
        question = load(call(name=name, **agreed))
        assert (question["hub"], loaded) == (hub_id, [])
    assert load(call(name=name, agreed=True)) == {}
    assert loaded == [name]


def test_what_can_be_opened_is_the_models_and_the_pictures(session: Session, image: str) -> None:
    view, _ = arrived(session, f"image={image}", OWNER)
    told = ANSWERS["offered"](PageCall(session, OWNER, view, (), {}, lambda: False))
    assert told["models"]["offered"][0]["name"] == "odd"
    assert image in {entry["id"] for entry in told["pictures"]}


# --- pictures


def test_the_tray_has_the_samples_and_the_pictures_of_its_visitor_alone(session: Session, image: str) -> None:
    mine = session.add_upload(odd_picture(3), owner=OWNER, file_name="C:\\x\\My cat.final.JPG")
    theirs = session.add_upload(odd_picture(4), owner="somebody else", file_name="secret.png")
    told = tray(session, mine, OWNER)
    names = {entry["id"]: entry["name"] for entry in told["pictures"]}
    assert list(names)[: len(samples.sample_names())] == list(samples.sample_names())
    assert (names[mine], image in names, theirs in names) == ("My cat.final", True, False)
    assert told["aspects"][mine] == pytest.approx(odd_picture(3).width / odd_picture(3).height)
    session.uploads._drop(mine)
    assert mine not in {entry["id"] for entry in tray(session, image, OWNER)["pictures"]}
    assert "" in tray(session, "", OWNER)["aspects"]  # of a picture that is in no tray


@pytest.fixture
def ada(session: Session) -> TestClient:
    """A browser that sends files to the route alone."""

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        await bring_route(session)(scope | {"path_params": {}, OWNER_OF: OWNER}, receive, send)

    return TestClient(behind)


def brought(client: TestClient, name: str, content: bytes) -> dict[str, Any]:
    headers = {FILE_HEADER: quote(name)}
    answer = client.post(BRING, content=content, headers=headers)
    assert answer.status_code == 200
    return dict(answer.json())


def png(seed: int) -> bytes:
    content = BytesIO()
    odd_picture(seed).save(content, "PNG")
    return content.getvalue()


def test_a_file_becomes_a_picture_of_its_owner_under_its_name(session: Session, ada: TestClient) -> None:
    told = brought(ada, "C:\\Fotos\\Löwe & Bär.png", png(5))
    kept = session.uploads.of(OWNER)
    assert kept[told["image"]].name == "Löwe & Bär"
    assert kept[told["image"]].image.size == odd_picture(5).size
    assert told["kept"] == list(kept)
    assert told["image"] not in session.uploads.of("somebody else")


def test_a_file_that_is_no_picture_is_told_in_a_sentence_and_not_kept(
    session: Session, ada: TestClient
) -> None:
    before = session.uploads.of(OWNER)
    assert "text file" in brought(ada, "bad<b>.png", b"a text")["problem"]
    assert brought(ada, "", b"").keys() == {"problem"}
    assert session.uploads.of(OWNER) == before


def test_what_had_to_make_room_is_not_among_those_that_are_kept(
    session: Session, ada: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = brought(ada, "first.png", png(6))["image"]
    monkeypatch.setattr(session.uploads, "owner_bytes", session.uploads._used[OWNER])
    second = brought(ada, "second.png", png(7))
    assert second["image"] in second["kept"]
    while first in second["kept"]:  # older ones of this owner leave before it
        second = brought(ada, "more.png", png(7))
    assert first not in session.uploads.of(OWNER)


# --- edits


def test_what_is_edited_is_told_each_with_what_is_left_without_it(call: Callable[..., PageCall]) -> None:
    told = edited(call(f"&edits={WORDS.replace('=', '%3D')}"))
    assert told["words"] == "1 head off, temperature of layer 2, 1 view forbidden"
    assert [one["said"] for one in told["each"]] == [
        "layer 1, head 3: off",
        "layer 2: temperature 0.5, sharper",
        "the class token can no longer see patches 1-2,3, in layer 0",
    ]
    assert [one["left"] for one in told["each"]] == [
        "temperature 2=0.5;forbid class>1-2,3@0",
        "off 1.3;forbid class>1-2,3@0",
        "off 1.3;temperature 2=0.5",
    ]


def test_the_answers_before_and_now_stand_beside_each_other(call: Callable[..., PageCall]) -> None:
    plain, changed = facts(call()), facts(call("&edits=off+1.3+2.0"))
    told = edited(call("&edits=off+1.3+2.0"))
    assert told["before"] == plain["top"]
    assert told["after"] == changed["top"] != plain["top"]
    assert "this holds for the edited model" in changed["badge"]["title"]
    assert "edited" not in plain["badge"]["title"]
    assert edited(call()) == {"words": "", "each": []}


def test_impossible_edits_are_one_sentence_and_can_be_undone(call: Callable[..., PageCall]) -> None:
    told = edited(call("&edits=off+14.0"))
    assert told["error"] == "Layer 14 does not exist: this model has layers 0-2."
    assert [one["left"] for one in told["each"]] == [""]


def test_edits_are_told_in_one_way_of_writing_them_before_they_are_made(
    call: Callable[..., PageCall],
) -> None:
    words = "forbid class>1-2,3@0;off 2.0 1.3;temperature 2=0.5"
    assert edited(call("&edits=off 1.3", edits=words)) == {
        "edits": "off 1.3 2.0;temperature 2=0.5;forbid class>1-2,3@0"
    }
    assert edited(call("&edits=off 1.3", edits="")) == {"edits": ""}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("off 1.9", "Head 9 does not exist: this model has heads 0-4."),
        ("forbid class>99,9", "Patch (99, 9) does not exist: rows are 0-3 and columns 0-5."),
        ("forbid everything>everything", "Every token has to see at least one, but class would see none in layer 0"),
        ("off <b>", "A head is layer.head, such as 3.1, not '<b>'."),
        (None, "Edits are words such as"),
    ],
)  # fmt: skip
def test_edits_that_the_model_cannot_have_are_refused(
    call: Callable[..., PageCall], words: object, said: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        edited(call("&edits=off 1.3", edits=words))
    assert str(refused.value).startswith(said)
