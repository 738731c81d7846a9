"""What the Positions tab draws beside similarity: the numbers of the functions, in bytes that a browser reads."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import vit_viz as vv
from tests.comparing import assert_same
from tests.ui.desk import odd_session
from vit_viz.errors import ParameterError
from vit_viz.session.handles import Subject
from vit_viz.session.session import Session
from vit_viz.ui.positions.tables import part_value
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
