"""What the Positions tab draws beside similarity: the numbers of the functions, in bytes that a browser reads."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import vit_viz as vv
from tests.comparing import assert_same
from tests.ui.desk import odd_session
from vit_viz.errors import ParameterError
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.positions import answers
from vit_viz.ui.positions.answers import every, part_value, parts_of, similarity_value, tile_bytes
from vit_viz.ui.positions.view import TAB
from vit_viz.views.state import ViewState

SUBJECT = Subject("mini", "shapes", "fit", "ada")


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(model="mini", device="cpu")


def floats(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), "<f4")


def colours(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), np.uint8).astype(float) / 255


def test_every_way_of_resampling_is_there_with_its_difference(session: Session) -> None:
    told = part_value(session, SUBJECT, "resampled", (5, 9))
    expected = vv.resampling("mini", grid=(5, 9))
    assert (told["old_grid"], told["grid"], told["own"]) == ([16, 16], [5, 9], expected.own)
    assert [one["name"] for one in told["variants"]] == list(expected.after.names)
    for i, variant in enumerate(told["variants"]):
        assert_same(floats(variant["difference"]).reshape(5, 9), expected.difference.values[i])
        assert variant["overall"] == pytest.approx(float(expected.overall[i]))
        assert colours(variant["colours"]).shape == (5 * 9 * 3,)
    assert told["high"] == float(expected.difference.values.max()) > 0


def test_all_tables_are_coloured_on_one_scale(session: Session) -> None:
    told = part_value(session, SUBJECT, "resampled", (7, 7))
    expected = vv.resampling("mini", grid=(7, 7))
    values = np.concatenate([expected.before.values.reshape(-1, 3), expected.after.values.reshape(-1, 3)])
    low, high = np.percentile(values, (1, 99), axis=0)
    by_hand = np.clip((expected.after.values[2].reshape(-1, 3) - low) / (high - low), 0, 1)
    np.testing.assert_allclose(
        colours(told["variants"][2]["colours"]).reshape(-1, 3), by_hand, atol=0.5 / 255 + 1e-6
    )


def test_filters_are_gray_where_they_are_0_and_reach_an_end(session: Session) -> None:
    told, expected = part_value(session, SUBJECT, "filters", None), vv.filter_components("mini")
    assert len(told["filters"]) == len(told["shares"]) == 28
    first = colours(told["filters"][0]).reshape(8, 8, 3).transpose(2, 0, 1)
    by_hand = 0.5 + expected.values[0] / (2 * np.abs(expected.values[0]).max())
    np.testing.assert_allclose(first, by_hand, atol=0.5 / 255 + 1e-6)
    assert max(first.max(), 1 - first.min()) == 1


def test_the_components_have_their_shares(session: Session) -> None:
    told, expected = part_value(session, SUBJECT, "components", None), vv.position_components("mini")
    assert told["grid"] == [16, 16]
    assert_same(np.array(told["shares"]), expected.shares)


def test_rotary_periods_are_told_by_axis() -> None:
    session = odd_session(position="rotary", embed_dim=40, num_heads=5, resample="timm")
    subject = Subject("odd", "shapes", "fit", "ada")
    told = part_value(session, subject, "periods", (3, 7))
    expected = vv.rotary_similarity(session.model("odd"), grid=(3, 7))
    assert_same(np.array(told["periods"]), expected.periods)
    for axis, values in (("rows", expected.rows), ("cols", expected.cols)):
        assert told[axis]["count"] == values.shape[1]
        assert_same(floats(told[axis]["values"]).reshape(values.shape), values)
    with pytest.raises(ParameterError, match=r"^Only learned positions are resampled"):
        part_value(session, subject, "resampled", (3, 7))


def test_what_a_model_has_nothing_of_is_one_sentence(session: Session) -> None:
    with pytest.raises(ParameterError, match=r"^Periods belong to rotary positions"):
        part_value(session, SUBJECT, "periods", None)
    assert part_value(session, SUBJECT, "similarity", None) == {}


def test_another_part_wakes_the_tab() -> None:
    view = ViewState(image="shapes")
    assert TAB.shows(view) != TAB.shows(view.with_options({"position_part": "filters"}))


KINDS: list[tuple[dict[str, object], list[str]]] = [
    ({}, ["similarity", "resampled", "components", "filters"]),
    ({"position": "sinusoidal_2d"}, ["similarity", "components", "filters"]),
    ({"position": "sinusoidal_1d"}, ["similarity", "components", "filters"]),
    ({"position": "rotary"}, ["similarity", "periods", "filters"]),
    ({"position": "none"}, ["filters"]),
    ({"position": "none", "relative_bias": True, "reg_tokens": 0}, ["filters"]),
]


@pytest.mark.parametrize(("changes", "parts"), KINDS)
def test_the_parts_that_are_offered_are_those_that_can_be_drawn(
    changes: dict[str, object], parts: list[str]
) -> None:
    session, subject = odd_session(**changes), Subject("odd", "shapes", "fit", "ada")
    assert parts_of(session, subject) == parts
    view = ViewState(model="odd", image="shapes")
    for part in ("similarity", "resampled", "periods", "components", "filters"):
        if part in parts:
            part_value(session, subject, part, (3, 7))
        elif part != "similarity":
            with pytest.raises(ParameterError):
                part_value(session, subject, part, (3, 7))  # type: ignore[arg-type]
    if "similarity" in parts:
        assert similarity_value(session, subject, view)["title"].startswith("Positions ")
    else:
        with pytest.raises(ParameterError, match=r"^This model has no position embedding"):
            similarity_value(session, subject, view)


def test_the_small_maps_are_the_similarity_and_the_pinned_place_is_exact() -> None:
    session, subject = odd_session(), Subject("odd", "tower", "fit", "ada")
    view = ViewState(model="odd", image="tower", query="2,1")
    grid = session.trace_of(subject).layout.grid
    expected = vv.position_similarity(session.model("odd"), grid=grid)
    tiles = np.frombuffer(tile_bytes(session, subject, view), "<f2").reshape(*grid, *grid)
    np.testing.assert_allclose(tiles, expected.values.reshape(*grid, *grid), atol=5e-4)
    told = similarity_value(session, subject, view)
    assert (told["place"], told["every"], told["photo"]["grid"]) == ([2, 1], 1, list(grid))
    assert_same(floats(told["row"]), expected.tile(2, 1).ravel())
    assert told["about"].startswith("Resampled from the 4 x 6 positions")
    assert told["prefix"]["name"] == "class"
    assert_same(floats(told["prefix"]["values"]), expected.extra["class"])
    trained = similarity_value(session, subject, view.with_options({"position_grid": "trained"}))
    assert trained["photo"]["grid"] == [4, 6]
    assert trained["about"].startswith(
        f"The positions were trained at 4 x 6; this photo has {grid[0]} x {grid[1]}"
    )


def test_too_many_places_are_thinned_out(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    view = ViewState(image="shapes", query="3,5")
    assert (every((24, 24)), every((16, 39)), every((32, 32)), every((64, 64))) == (1, 1, 2, 8)
    monkeypatch.setattr(answers, "MOST_CELLS", 8 * 8 * 256 - 1)
    told = similarity_value(session, SUBJECT, view)
    tiles = np.frombuffer(tile_bytes(session, SUBJECT, view), "<f2").reshape(6, 6, 16, 16)
    assert told["every"] == 3
    similar = vv.position_similarity("mini")
    np.testing.assert_allclose(tiles[5, 1], similar.tile(15, 3), atol=5e-4)
    assert_same(floats(told["row"]), similar.tile(3, 5).ravel())  # the pinned place has no small map


def test_who_has_no_position_is_said(session: Session) -> None:
    about = similarity_value(session, SUBJECT, ViewState(image="shapes"))["about"]
    assert about.endswith("The class token and the registers have no position of their own.")
