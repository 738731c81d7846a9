"""What the Positions tab is told beside the answers to its questions: what a model has, and its small maps as bytes."""

from __future__ import annotations

import numpy as np
import pytest

import vit_viz as vv
from tests.ui.desk import odd_session
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.opened import _positions
from vit_viz.ui.positions import answers
from vit_viz.ui.positions.answers import every, tile_bytes
from vit_viz.views.state import ViewState

RESAMPLED, PERIODS, COMPONENTS = "resampling", "rotary_similarity", "position_components"
KINDS: list[tuple[dict[str, object], list[str], tuple[str, ...]]] = [
    ({}, ["positions", RESAMPLED, COMPONENTS], ("class", "register 0")),
    ({"position": "sinusoidal_2d"}, ["positions", COMPONENTS], ()),
    ({"position": "sinusoidal_1d"}, ["positions", COMPONENTS], ("class", "register 0")),
    ({"position": "rotary"}, ["positions", PERIODS], ()),
    ({"position": "none"}, [], ()),
    ({"position": "none", "relative_bias": True, "reg_tokens": 0}, [], ()),
]


@pytest.mark.parametrize(("changes", "questions", "prefix"), KINDS)
def test_a_model_is_asked_what_it_has_and_nothing_else(
    changes: dict[str, object], questions: list[str], prefix: tuple[str, ...]
) -> None:
    session = odd_session(**changes)
    told = _positions(session.model("odd"))
    assert told["questions"] == [*questions, "filter_components"]
    assert told["grid"] == (4, 6)
    if "positions" in questions:
        assert tuple(vv.position_similarity(session.model("odd")).extra) == told["prefix"] == prefix
        assert told["why"] == ""
    else:
        assert told["prefix"] == ()
        assert told["why"].startswith("This model has no position embedding")


def test_the_small_maps_are_the_similarity() -> None:
    session, subject = odd_session(), Subject("odd", "tower", "fit", "ada")
    view = ViewState(model="odd", image="tower", query="2,1")
    grid = session.trace_of(subject).layout.grid
    for places, shown in (("image", grid), ("trained", (4, 6))):
        chosen = view.with_options({"position_grid": places})
        expected = vv.position_similarity(session.model("odd"), grid=shown)
        tiles = np.frombuffer(
            tile_bytes(session, subject, trained=chosen.positions.position_grid == "trained"), "<f2"
        ).reshape(*shown, *shown)
        np.testing.assert_allclose(tiles, expected.values.reshape(*shown, *shown), atol=5e-4)


def test_too_many_places_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    session, subject = Session(model="mini", device="cpu"), Subject("mini", "shapes", "fit", "ada")
    assert (every((24, 24)), every((16, 39)), every((32, 32)), every((64, 64))) == (1, 1, 2, 8)
    monkeypatch.setattr(answers, "MOST_CELLS", 8 * 8 * 256 - 1)
    view = ViewState(image="shapes", query="3,5")
    tiles = np.frombuffer(
        tile_bytes(session, subject, trained=view.positions.position_grid == "trained"), "<f2"
    ).reshape(6, 6, 16, 16)
    np.testing.assert_allclose(tiles[5, 1], vv.position_similarity("mini").tile(15, 3), atol=5e-4)
