"""What the page is told and shown of a picture, a model and a grid in which no two sizes are equal."""

from __future__ import annotations

import io
from urllib.parse import parse_qsl

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from tests.ui.desk import COLS, HEIGHT, OWNER, ROWS, WIDTH
from vit_viz.figures.screen import screen_photo
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.look.view import map_request, picture
from vit_viz.ui.payload import explorer_value, facts_value
from vit_viz.ui.routes import PREFIX
from vit_viz.views.state import ViewState


@pytest.fixture(scope="module")
def view(image: str) -> ViewState:
    return ViewState(model="odd", image=image, mode="crop", layer=1, head=3, query="2,5")


@pytest.fixture(scope="module")
def subject(image: str) -> Subject:
    return Subject("odd", image, "crop", OWNER)


@pytest.fixture(scope="module")
def handle(session: Session, subject: Subject) -> str:
    return session.handles.issue(subject)


def test_the_explorer_is_told_each_size_by_its_name(session: Session, view: ViewState) -> None:
    value = explorer_value(session, view, OWNER)
    assert (value["layers"], value["heads"], value["tokens"], value["head_dim"]) == (3, 5, 2 + 24, 8)
    assert (value["grid"], value["photo_size"]) == ([4, 6], [37, 90])
    assert value["prefix"] == ["class", "register 0"]
    assert value["crop"]["original"] == [37, 90]
    assert value["crop"]["input"] == [32, 48]
    top, left, tall, wide = value["crop"]["region"]
    assert (top, tall) == (pytest.approx(0, abs=0.5), pytest.approx(37, abs=0.5))
    assert (left, wide) == (pytest.approx((90 - 55.5) / 2, abs=0.5), pytest.approx(55.5, abs=0.5))
    assert (value["mode"], value["note"]) == ("crop", "")
    assert value["tour"] == []  # which is for samples
    assert session.handles.find(value["trace"].split("/")[-1]) == Subject("odd", view.image, "crop", OWNER)
    assert session.handles.find(value["photo"].split("/")[-1]) == Subject("", view.image, "fit", OWNER)


def test_the_facts_name_rows_and_columns_and_all_that_was_found(session: Session, view: ViewState) -> None:
    value = facts_value(session, view, OWNER, notes=("first",))
    assert "this image: 4 x 6 patches" in value["card"]
    ranking = session.top_classes_of(Subject("odd", view.image, mode="crop", owner=OWNER))
    assert ranking is not None
    assert [entry["name"] for entry in value["top"]] == list(ranking.names)
    assert [entry["probability"] for entry in value["top"]] == pytest.approx(ranking.scores.tolist())
    assert value["badge"]["state"] == "proven"
    assert value["notes"] == ["first"]


def test_a_share_counts_the_prefix(
    client: TestClient, handle: str, session: Session, view: ViewState
) -> None:
    params = {"layer": "1", "head": "3", "query": "2,5", "direction": "row", "at": "1,4"}
    numbers = client.get(f"{PREFIX}/numbers/{handle}", params=params).json()
    trace = session.trace("odd", view.image, mode="crop", owner=OWNER)
    row = trace.attention(1, heads=3, queries=trace.layout.token((2, 5)))[0, 0]
    assert numbers["value"] == pytest.approx(float(row[2 + 1 * 6 + 4]), rel=1e-5)
    assert numbers["share"] == pytest.approx(float(row[2 + 1 * 6 + 4] / row.sum()), rel=1e-5)
    assert numbers["patches"] == pytest.approx(float(row[2:].sum()), rel=1e-5)
    prefix = {"class": float(row[0]), "register 0": float(row[1])}
    assert numbers["prefix"] == pytest.approx(prefix, rel=1e-5)
    ends = [float(row[2:].min()), float(row[2:].max())]
    assert [numbers["min"], numbers["max"]] == pytest.approx(ends, rel=1e-5)
    assert numbers["peak"] == list(divmod(int(row[2:].argmax()), 6))


@pytest.mark.parametrize(("at", "code"), [("3,5", 200), ("4,0", 400), ("0,6", 400), ("5,3", 400)])
def test_a_patch_is_named_by_row_and_column(client: TestClient, handle: str, at: str, code: int) -> None:
    answer = client.get(f"{PREFIX}/numbers/{handle}", params={"layer": "0", "head": "0", "at": at})
    assert answer.status_code == code
    if code == 400:
        assert "rows are 0-3 and columns 0-5" in answer.text


def shown(session: Session, subject: Subject, view: ViewState, **options: str) -> Image.Image:
    return Image.open(io.BytesIO(picture(session, subject, view.with_options(options)).data))


def test_the_photo_keeps_height_and_width(client: TestClient, session: Session, view: ViewState) -> None:
    handle = session.handles.issue(Subject("", view.image, "fit", OWNER))
    photo = Image.open(io.BytesIO(client.get(f"{PREFIX}/photo/{handle}").content))
    assert photo.size == (WIDTH, HEIGHT)


def test_pictures_of_an_oblong_photo_are_oblong(session: Session, view: ViewState, subject: Subject) -> None:
    drawn = shown(session, subject, view, layer="1", head="3")
    assert drawn.width / drawn.height == pytest.approx(WIDTH / HEIGHT, rel=0.02)
    assert max(drawn.size) >= 640


def test_the_brightest_place_of_a_map_is_its_peak(
    session: Session, view: ViewState, subject: Subject
) -> None:
    found = session.run(map_request(session, subject, view))
    options = dict(parse_qsl("layer=1&head=3&q=2,5&alpha=1&style=heat&colors=gray&smooth=0&scale=own"))
    pixels = np.asarray(shown(session, subject, view, **options).convert("L"), float)
    assert found.crop_box is not None
    scale = pixels.shape[0] / HEIGHT
    means = np.zeros((ROWS, COLS))
    for row, col in np.ndindex(ROWS, COLS):
        top, left, bottom, right = (
            round(side * scale) for side in found.crop_box.patch_rect(row, col, (4, 6))
        )
        means[row, col] = pixels[top + 3 : bottom - 3, left + 3 : right - 3].mean()
    assert np.unravel_index(means.argmax(), means.shape) == found.peak
    assert np.corrcoef(means.ravel(), found.values.ravel())[0, 1] > 0.999


def test_a_screen_photo_whose_upload_went_meanwhile_is_not_kept(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = session.add_upload(Image.new("RGB", (31, 17)), owner="eve")
    before = session.cache.stats.entries

    def shrink(*_args: object, **_options: object) -> None:
        session.uploads.forget("eve")

    monkeypatch.setattr(Image.Image, "thumbnail", shrink)
    assert screen_photo(session, Subject("", image, "fit", "eve")).size == (31, 17)
    assert session.cache.stats.entries == before
