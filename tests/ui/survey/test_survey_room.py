"""The Survey tab: it fetches what the survey says, and its photos are the owner's files by number."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.surveys.made import made_survey
from tests.ui.views import view_with
from vit_viz.cli import main
from vit_viz.errors import ImageError
from vit_viz.session.session import Session
from vit_viz.surveys import atlas
from vit_viz.surveys.opened import open_survey
from vit_viz.surveys.photo_files import PhotoFiles
from vit_viz.ui.app import TABS
from vit_viz.ui.look.view import picture
from vit_viz.ui.routes import PREFIX, routes
from vit_viz.ui.survey import routes as survey_answers, view as survey_view
from vit_viz.ui.survey.routes import OTHER_MODEL, OpenedRoom, open_room
from vit_viz.ui.survey.view import survey_routes

PHOTOS = 23
LAYERS = HEADS = 6


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def folder(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey that says it is of the session's own model, with photos beside it."""
    place = tmp_path_factory.mktemp("survey")
    weights = session.model().provenance.weights
    return made_survey(
        place / "made", photos=PHOTOS, layers=LAYERS, heads=HEADS, files=place / "photos", weights=weights
    )


@pytest.fixture(scope="module")
def opened(session: Session, folder: Path) -> OpenedRoom:
    return open_room(session, folder)


@pytest.fixture(scope="module")
def client(session: Session, opened: OpenedRoom) -> Iterator[TestClient]:
    app = Starlette(routes=[*survey_routes(opened), *routes(session)])
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def get(client: TestClient, path: str, **asked: object):
    return client.get(f"{PREFIX}/survey/{path}", params={name: str(value) for name, value in asked.items()})


def test_what_is_chosen_is_what_the_survey_says(client, opened):
    where = "margin > 0.15 and label is not null"
    told = get(client, "chosen", where=where, layer=2, head=3, measure="distance").json()
    rows = opened.survey.select(where)
    assert 0 < told["count"] == len(rows) < PHOTOS
    assert told["accuracy"] == pytest.approx(opened.survey.numbers["is_right"][rows].mean())
    bits = np.unpackbits(np.frombuffer(base64.b64decode(told["bits"]), np.uint8), bitorder="little")[:PHOTOS]
    assert np.flatnonzero(bits).tolist() == rows.tolist()
    found = atlas.atlas(opened.survey, rows, "distance")
    np.testing.assert_allclose(told["atlas"]["mean"], found.mean, rtol=1e-4)
    np.testing.assert_allclose(told["atlas"]["spread"], found.spread, rtol=1e-4)
    high, low = atlas.exemplars(opened.survey, rows, layer=2, head=3, measure="distance", count=12)
    assert [card["row"] for card in told["lists"]["high"]] == high.tolist()
    assert [card["row"] for card in told["lists"]["low"]] == low.tolist()
    assert len(told["atlas"]["names"]) == LAYERS * HEADS
    assert {line["label"] for line in told["classes"]} <= {"cat", "dog", "it's odd"}


def test_a_card_has_its_ring_in_the_middle_of_the_highest_patch_and_its_small_picture(client, opened):
    card = get(client, "photo/7", layer=1, head=4).json()
    row, col = opened.survey.peaks[7, 1, 4].tolist()
    assert card["peak"] == pytest.approx(
        [(row + 0.5) / 4, (8 + (col + 0.5) / 6 * 48) / 64]
    )  # region 0, 8, 48, 48 of 48 x 64
    assert card["photo"] == opened.survey.texts["photo"][7]
    small = get(client, "thumbnail/7")
    assert small.headers["content-type"] == "image/webp"
    assert Image.open(io.BytesIO(small.content)).size == (96, 72)


@pytest.mark.parametrize(
    ("path", "asked", "says"),
    [
        ("methods", {"where": "getenv('HOME') = ''"}, "cannot use the function"),
        ("chosen", {"layer": 6}, "no head 0 of layer 6"),
        ("chosen", {"layer": "-1"}, "whole number"),
        ("chosen", {"measure": "margin"}, "not 'margin'"),
        ("points", {"across": "label", "up": "margin"}, "no numeric column 'label'"),
        ("points", {"across": "margin"}, "no numeric column ''"),
        (f"photo/{PHOTOS}", {}, f"photos 0 to {PHOTOS - 1}"),
        (f"thumbnail/{PHOTOS}", {}, f"photos 0 to {PHOTOS - 1}"),
        ("lit/1", {"layer": 2, "head": 6}, "no head 6"),
        ("photo/1e3", {}, "whole number"),
        (f"look/{PHOTOS}", {}, f"photos 0 to {PHOTOS - 1}"),
        ("look/..%2F..%2Fetc%2Fpasswd", {}, ""),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(client, path, asked, says):
    answer = get(client, path, **asked)
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"].startswith("text/plain")
    assert says in answer.text
    assert "\n" not in answer.text


def test_a_filter_that_is_none_is_answered_by_what_is_wrong_with_it(client):
    for where, says in (
        ("getenv('HOME') = ''", "cannot use the function"),
        ("mean_entropi > 2", "did you mean 'mean_entropy'?"),
    ):
        answer = get(client, "chosen", where=where)
        assert answer.status_code == 200  # anything else would stand in the browser's console
        assert list(answer.json()) == ["refused"]
        assert says in answer.json()["refused"]


def test_a_filter_knows_columns_by_the_words_of_the_table(client, opened):
    told = get(client, "chosen", where="Not right and mean entropy > 0.2")
    assert told.json()["count"] == len(opened.survey.select("not is_right and mean_entropy > 0.2")) > 0
    for column in survey_answers.opened_value(opened.survey)["columns"]:
        if column["kind"] == "text":
            continue
        for words in column["words"]:
            known = opened.survey.select(f"{column['name']} is not null", layer=2, head=3)
            assert opened.survey.select(f"{words} is not null", layer=2, head=3).tolist() == known.tolist()
    assert not len(opened.survey.select("label = 'mean entropy'"))


def test_the_dots_are_the_numbers_of_all_photos(client, opened):
    answer = get(client, "points", across="margin", up="head_distance", layer=3, head=1)
    x, y, right = np.frombuffer(answer.content, "<f4").reshape(3, PHOTOS)
    np.testing.assert_allclose(x, opened.survey.numbers["margin"], rtol=1e-6)
    np.testing.assert_allclose(y, opened.survey.heads["distance"][:, 3, 1], rtol=1e-6)
    assert np.isnan(right).sum() == np.isnan(opened.survey.numbers["is_right"]).sum() > 0


def test_plotly_is_served_with_its_version_and_packed_for_who_can_read_that(client, opened):
    told = survey_view.build(opened)["props"]["survey"]
    assert told["figure"]["layout"]["height"] == 420
    packed = get(client, "plotly.js", of=told["plotly"])
    assert packed.headers["content-encoding"] == "gzip"
    assert "immutable" in packed.headers["cache-control"]
    plain = client.get("/vit_viz/survey/plotly.js", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text
    assert f"plotly.js v{told['plotly']}" in plain.text[:200]


def test_methods_have_intervals(client):
    told = get(client, "methods", where="").json()
    assert set(told["lines"]) == {"Attention rollout", "Relevance"}  # as everywhere on the page
    one = told["lines"]["Relevance"]["pointing"]
    assert one["low"] <= one["mean"] <= one["high"]
    assert told["conclusion"].endswith(".")


def test_a_lit_photo_is_the_map_that_look_would_draw(client, opened, session):
    answer = get(client, "lit/5", layer=2, head=1)
    assert answer.status_code == 200
    view = view_with(layer=2, head=1, style="light")
    expected = picture(session, opened.subject(5, ""), view)
    assert answer.content == expected.data
    assert get(client, "lit/5", layer=2, head=2).content != expected.data
    assert get(client, "lit/6", layer=2, head=1).content != expected.data


def test_the_photos_of_an_edited_model_are_lit_by_the_edited_model(opened, client, monkeypatch):
    plain = get(client, "lit/5", layer=4, head=1).content
    monkeypatch.setitem(opened.survey.manifest, "edits", "temperature 4=0.25")
    assert str(opened.subject(5, "").edits) == "temperature 4=0.25"
    assert get(client, "lit/5", layer=4, head=1).content != plain
    assert get(client, "look/5").json()["edits"] == "temperature 4=0.25"


def test_a_list_goes_on_where_it_stopped_and_is_saved_whole(client, opened):
    asked = {"where": "margin > 0.01", "layer": 2, "head": 3, "measure": "distance"}
    told = get(client, "chosen", **asked).json()
    for which in ("high", "low", "all"):
        total = told["totals"][which]
        assert len(told["lists"][which]) == 12 < total < 24
        more = get(client, "cards", **asked, list=which, **{"from": 12}).json()
        rows = [card["row"] for card in told["lists"][which] + more]
        assert len(set(rows)) == len(rows) == total
        lines = list(csv.DictReader(io.StringIO(get(client, "photos.csv", **asked, list=which).text)))
        assert [line["photo"] for line in lines] == [opened.survey.texts["photo"][row] for row in rows]
    first = get(client, "photos.csv", **asked, list="low").text.splitlines()[0]
    assert first == 'photo,label,answer,is_right,confidence,"distance of layer 2, head 3"'
    assert get(client, "cards", **asked, list="high", **{"from": 99}).json() == []
    assert get(client, "photos.csv", **asked, list="best").status_code == 400


def test_the_tab_says_through_which_model_a_photo_opens(client, opened, monkeypatch):
    def beside(**page: str):
        return get(client, "beside", **page).json()

    read = {"model": "", "mode": "crop", "size": 0, "edits": ""}
    assert beside() == beside(model="mini") == {"lit": True, "jump": "", "note": "", "read": read}
    assert beside(model="vit_tiny")["jump"] == (
        "A photo opens in Look through mini, as it was surveyed; the page now shows vit_tiny."
    )
    monkeypatch.setitem(opened.survey.manifest, "edits", "off 3.1")
    assert "through mini with its edits (off 3.1)" in beside()["jump"]
    assert beside(edits="off 3.1")["jump"] == ""
    monkeypatch.setitem(opened.survey.manifest, "weights", "others")
    assert "whose weights are not those of the survey" in beside()["jump"]
    assert beside() | {"jump": ""} == {
        "lit": False,
        "jump": "",
        "note": survey_view.OTHER_MODEL,
        "read": None,
    }
    monkeypatch.setitem(opened.survey.manifest, "model", "nobody's")
    assert "nobody's, is not offered here: a photo opens in Look through mini" in beside()["jump"]
    assert (
        get(client, "look/3", model="vit_tiny").json()["model"] == "vit_tiny"
    )  # the one that the page shows


def test_a_photo_of_another_model_is_not_lit(session, folder, tmp_path):
    other = OpenedRoom(session, open_survey(made_survey(tmp_path / "other", photos=11)))
    assert not other.is_own_model
    assert other.patch_size is None
    with TestClient(Starlette(routes=survey_routes(other))) as client:
        answer = get(client, "lit/5")
    assert (answer.status_code, answer.text) == (400, OTHER_MODEL)
    session.library = None
    open_room(session, folder)


# --- photos


@pytest.fixture
def files(session: Session, tmp_path: Path) -> PhotoFiles:
    made = made_survey(tmp_path / "made", photos=11, files=tmp_path / "photos")
    return PhotoFiles(open_survey(made))


def test_a_photo_is_its_file_also_where_it_moved_with_its_survey(files, tmp_path):
    path, name = tmp_path / "photos" / files.survey.texts["photo"][4], files.name_of(4)
    picture, digest = files.picture(name)
    with Image.open(path) as image:
        assert np.array_equal(np.asarray(picture), np.asarray(image.convert("RGB")))
    assert (files.title(name), digest) == ("class 1/photo 00004.png", files.picture(name)[1])
    (tmp_path / "elsewhere").mkdir()
    for folder in ("made", "photos"):
        (tmp_path / folder).rename(tmp_path / "elsewhere" / folder)
    moved = PhotoFiles(open_survey(tmp_path / "elsewhere" / "made"))
    assert moved.picture(moved.name_of(4))[1] == digest


def test_a_file_that_has_changed_or_is_gone_or_was_nowhere_says_so(files, tmp_path):
    path, name = tmp_path / "photos" / "class 1" / "photo 00004.png", files.name_of(4)
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(ImageError, match="has changed since the survey was made"):
        files.picture(name)
    path.unlink()
    with pytest.raises(ImageError, match="is gone: its file is not where it was"):
        files.picture(name)
    assert files.picture(files.name_of(5))
    bare = PhotoFiles(open_survey(made_survey(tmp_path / "bare", photos=11, thumbnails=False)))
    with pytest.raises(ImageError, match="not where they were"):
        bare.picture(bare.name_of(2))
    with pytest.raises(ImageError, match="keeps no thumbnails"):
        bare.thumbnail(3)


def test_only_names_of_this_survey_are_its_photos(files):
    assert files.holds(files.name_of(10))
    for name in (files.name_of(11), "survey-other000-3", files.name_of(3) + " ", "../" + files.name_of(3)):
        assert not files.holds(name)


# --- the view


def test_a_photo_opens_as_the_model_of_the_survey_saw_it(client, opened):
    subject = get(client, "look/3", model="another").json()
    name = opened.files.name_of(3)
    assert subject == {"image": name, "model": "mini", "part": "", "mode": "crop", "size": 0, "edits": ""}
    assert opened.session.picture(name, owner="ada")[0].size == (64, 48)
    assert opened.session.name_of(name) == "class 0/photo 00003.png"


def test_a_photo_whose_file_is_gone_is_not_opened_and_no_error_of_the_browser(session, tmp_path):
    files = tmp_path / "photos"
    room = open_room(session, made_survey(tmp_path / "made", photos=11, files=files))
    (files / "class 1" / "photo 00004.png").unlink()
    with TestClient(Starlette(routes=survey_routes(room)), raise_server_exceptions=False) as client:
        answer = get(client, "look/4")
        assert (answer.status_code, answer.json().keys()) == (200, {"refused"})
        assert answer.json()["refused"].endswith(".")
    session.library = None


def test_without_a_survey_there_is_neither_tab_nor_address(session):
    assert "survey" not in {tab.name for tab in TABS}
    with TestClient(Starlette(routes=routes(session))) as client:
        assert get(client, "chosen").status_code == 404


def test_the_command_line_opens_a_survey_and_those_beside_it(folder, tmp_path, monkeypatch):
    given: list[dict] = []
    monkeypatch.setattr(
        "vit_viz.ui.app.launch",
        lambda session, **options: given.append({"of": session.default_model} | options),
    )
    beside = str(made_survey(tmp_path / "beside", photos=11))
    assert main(["serve", "--survey", str(folder), "--survey", beside, "--device", "cpu"]) == 0
    assert main(["serve", "--device", "cpu"]) == 0
    (room,) = given[0]["rooms"]
    assert (room.tab.label, given[0]["of"]) == ("Survey", "mini")
    assert len(room.routes) == 13
    with TestClient(Starlette(routes=list(room.routes))) as client:
        assert "surveys of other photos" in get(client, "compared", second="beside").json()["refused"]
    assert given[1]["rooms"] == []


def test_a_folder_that_is_no_survey_ends_with_a_sentence(tmp_path, capsys):
    assert main(["serve", "--survey", str(tmp_path)]) == 2
    assert "holds no survey" in capsys.readouterr().err


def test_what_was_opened_is_told_as_json(opened):
    told = json.loads(json.dumps(survey_answers.opened_value(opened.survey)))
    assert (told["photos"], told["layers"], told["heads"]) == (PHOTOS, LAYERS, HEADS)
    assert {"label", "margin", "head_entropy", "rollout_energy"} <= {
        column["name"] for column in told["columns"]
    }
    assert all(column["meaning"].endswith(".") for column in told["columns"])
