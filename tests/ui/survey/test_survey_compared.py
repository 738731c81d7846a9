"""A second survey beside the opened one: what the tab says is what the comparison says, and what cannot be is answered by why."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

pytest.importorskip("duckdb", reason="surveys are opened by duckdb, which is not installed here")

from tests.surveys.made import made_survey
from tests.ui.survey.test_survey_room import get
from vit_viz.bundled import example_survey
from vit_viz.errors import ParameterError
from vit_viz.session.session import Session
from vit_viz.surveys.comparison import COMPARED, compare_surveys
from vit_viz.surveys.opened import open_survey
from vit_viz.surveys.run import Survey
from vit_viz.ui.survey import view as survey_view
from vit_viz.ui.survey.compared import KINDS, OtherSurveys, named
from vit_viz.ui.survey.routes import OpenedRoom, open_room

PHOTOS, WRONG = 61, ("wolf", "fox")


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey, and others: of the same photos twice, of other photos, with other labels, and of a model of another shape."""
    place = tmp_path_factory.mktemp("surveys")
    for name, seed in (("own", 0), ("tuned", 1), ("edited", 3)):
        made_survey(place / name, photos=PHOTOS, seed=seed, wrong=WRONG)
    made_survey(place / "fewer", photos=PHOTOS - 1)
    made_survey(place / "boxless", photos=PHOTOS, boxes=False)
    made_survey(place / "wide", photos=PHOTOS, layers=2, heads=7, seed=1, wrong=WRONG, edits="off 1.2")
    return place


NAMES = ("tuned", "edited", "fewer", "boxless", "wide")


@pytest.fixture(scope="module")
def opened(session: Session, place: Path) -> OpenedRoom:
    return open_room(session, place / "own", *(place / name for name in NAMES))


@pytest.fixture(scope="module")
def client(opened: OpenedRoom) -> Iterator[TestClient]:
    with TestClient(
        Starlette(routes=survey_view.survey_routes(opened)), raise_server_exceptions=False
    ) as client:
        yield client


def test_the_tab_says_what_the_comparison_says(client, place):
    told = get(client, "compared", second="tuned").json()
    found = compare_surveys(place / "own", place / "tuned")
    assert (told["name"], told["photos"], told["changed"]) == ("tuned", PHOTOS, len(found.answers))
    assert told["accuracy"].endswith(f" {found.accuracy.lost} right to wrong, {found.accuracy.won} wrong to right "
                                     f"(McNemar's exact p = {found.accuracy.p:.2g}).")  # fmt: skip
    moved = [one for one in found.heads if one.is_beyond_chance]
    assert told["heads"] == (
        f"{len(moved)} of {3 * 5 * len(COMPARED)} statistics of heads moved by more than rounding: their 95% interval over photos "
        "leaves out 0, which chance alone would do to about 4."
    )
    assert [(one["layer"], one["head"], one["statistic"]) for one in told["moved"]] == [
        (one.layer, one.head, one.statistic) for one in moved
    ]
    for column in ("before", "after", "difference", "low", "high", "effect"):
        shown = [one[column] for one in told["moved"]]
        assert shown == pytest.approx([getattr(one, column) for one in moved], rel=1e-4)
    lines = list(csv.DictReader(io.StringIO(get(client, "heads.csv", second="tuned").text)))
    assert [float(line["difference"]) for line in lines] == [one.difference for one in moved]


@pytest.mark.parametrize("where", ["", "margin > 0.12"])
def test_the_photos_that_changed_are_those_of_the_comparison_that_pass(client, opened, place, where):
    asked = {"where": where, "layer": 2, "head": 3, "measure": "distance", "second": "edited"}
    told, photos = get(client, "chosen", **asked).json(), opened.survey.texts["photo"]
    passing = {photos[row] for row in opened.survey.select(where)}
    answers = [
        one for one in compare_surveys(place / "own", place / "edited").answers if one.photo in passing
    ]
    assert 0 < len(answers) == told["totals"]["changed"]
    for which, kind in KINDS.items():
        wanted = [one for one in answers if one.kind == kind]
        cards = told["lists"][which] + get(client, "cards", **asked, list=which, **{"from": 12}).json()
        assert len(told["lists"][which]) == min(12, told["totals"][which])
        assert [(card["photo"], card["change"]["was"], card["change"]["now"]) for card in cards] == [
            (one.photo, one.before, one.after) for one in wanted
        ]
        assert [card["change"]["kind"] for card in cards] == [kind] * len(wanted)
    lines = list(csv.DictReader(io.StringIO(get(client, "photos.csv", **asked, list="changed").text)))
    kinds = list(KINDS.values())
    in_order = sorted(answers, key=lambda one: kinds.index(one.kind))  # those that changed sides first
    assert [(line["photo"], line["change"], line["answer"], line["answer_after"]) for line in lines] == [
        (one.photo, one.kind, one.before, one.after) for one in in_order
    ]
    plain = get(client, "chosen", **asked | {"second": ""}).json()
    assert {which: plain["totals"][which] for which in ("lost", "won", "other", "changed")} == dict.fromkeys(
        ("lost", "won", "other", "changed"), 0
    )
    assert plain["lists"]["high"] == told["lists"]["high"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fewer", "surveys of other photos: 1 is in one of them only, such as 'class 0/photo 00060.png' in this survey."),
        ("boxless", "'class 0/photo 00000.png' has different boxes in the two surveys, so that they cannot be compared."),
        ("nobody's", "No survey called \"nobody's\" is open here to compare with: there is tuned, edited, fewer, boxless, wide."),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_answered_by_why_and_nothing_else_is_lost(client, place, name, says):
    answer = get(client, "compared", second=name)
    assert answer.status_code == 200  # a refusal would stand in the browser's console
    (refusal,) = answer.json().values()
    assert (list(answer.json()), refusal[-len(says) :]) == (["refused"], says)
    assert str(place) not in refusal
    asked = {"layer": 1, "head": 2, "measure": "entropy"}
    with_it, without = get(client, "chosen", **asked, second=name), get(client, "chosen", **asked)
    assert with_it.json() == without.json()
    assert with_it.json()["count"] == PHOTOS


def test_of_a_model_of_another_shape_the_answers_are_compared(client, place):
    told = get(client, "compared", second="wide").json()
    assert told["moved"] == []
    assert told["heads"] == (
        "Heads cannot be compared: this survey's model has 3 x 5 layers and heads, that of wide 2 x 7. Their answers are compared."
    )
    assert told["changed"] == len(compare_surveys(place / "own", place / "wide", heads=False).answers) > 0
    assert told["model"] == "mini with edits (off 1.2)"


def test_a_survey_that_was_not_finished_is_tried_again_after_a_while(tmp_path):
    made_survey(tmp_path / "one", photos=20)
    half = made_survey(tmp_path / "half", photos=20, seed=2)
    (half / "batch=000001").rename(tmp_path / "away")
    (half / "_batch=000001").rename(tmp_path / "rest")
    own = open_survey(tmp_path / "one")
    others, patient = OtherSurveys(own, {"half": half}, refused_for=0), OtherSurveys(own, {"half": half})
    for one in (others, patient, others, patient):
        with pytest.raises(ParameterError, match=r"^half is not finished: 10 of 20 photos"):
            one.compared("half")
    (tmp_path / "away").rename(half / "batch=000001")
    (tmp_path / "rest").rename(half / "_batch=000001")
    with pytest.raises(ParameterError):
        patient.compared("half")  # whoever asks again at once does not keep the server busy
    kept = others.compared("half")
    assert kept.comparison.photos == 20
    assert others.compared("half") is kept


def test_surveys_go_by_the_ends_of_their_paths(session, place, tmp_path):
    paths = [place / name for name in ("own", "tuned")]
    assert list(named(paths)) == ["own", "tuned"]
    assert list(named([tmp_path / "a" / "out", tmp_path / "b" / "out", tmp_path / "a" / "x" / ".." / "out"])) == [
        "a/out",
        "b/out",
    ]  # fmt: skip
    assert open_room(session, *paths, place / "own", place / "tuned").others.names == ("tuned",)
    room = open_room(session, place / "own", "example")
    assert room.others.names == ("example",)
    assert Survey(example_survey()).num_photos == 96
    with pytest.raises(ParameterError, match="other photos"):
        room.others.compared("example")
    with pytest.raises(ParameterError, match="the app opened one survey only"):
        open_room(session, place / "own").others.compared("tuned")
    with pytest.raises(ParameterError, match="no survey"):
        open_room(session, place / "own", tmp_path)


# --- what is there of a photo


@pytest.mark.parametrize("thumbnails", [True, False])
def test_a_card_says_which_pictures_there_are_of_its_photo(session, tmp_path, thumbnails):
    weights, files = session.model().provenance.weights, tmp_path / "photos"
    made = made_survey(
        tmp_path / "made", photos=11, layers=6, heads=6, files=files, thumbnails=thumbnails, weights=weights
    )
    (files / "class 1" / "photo 00004.png").unlink()
    changed = files / "class 2" / "photo 00005.png"
    changed.write_bytes(changed.read_bytes() + b"more")
    room = open_room(session, made)
    with TestClient(
        Starlette(routes=survey_view.survey_routes(room)), raise_server_exceptions=False
    ) as client:
        cards = get(client, "chosen").json()["lists"]["all"]
        assert [card["small"] for card in cards] == [thumbnails] * 11
        assert [card["row"] for card in cards if not card["there"]] == [4]
        for card in cards:
            assert (get(client, f"thumbnail/{card['row']}").status_code == 200) == card["small"]
        statuses = [get(client, f"lit/{row}", layer=2, head=1).status_code for row in (3, 4, 5)]
    assert statuses == [200, 204, 204]  # none of them an error in the browser's console
    session.library = None
