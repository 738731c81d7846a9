"""What the explorer says is heard, and its own words come back with their number, so that an old echo is recognised."""

from __future__ import annotations

import pytest

from vit_viz.session import Session
from vit_viz.ui.payload import explorer_value
from vit_viz.ui.state import ViewState
from vit_viz.ui.views.look import followed


def test_what_the_explorer_pins_is_followed_with_its_number() -> None:
    view = followed(
        ViewState(turn=3), {"query": "2,3", "layer": 1, "seq": 7, "image": "another", "trace": "x"}
    )
    assert (view.query, view.layer, view.heard, view.turn) == ("2,3", 1, 7, 3)
    assert view.image == ""


@pytest.mark.parametrize("seq", [None, "7", -1, 2**60, 1.5])
def test_a_number_that_is_none_leaves_the_last_one(seq: object) -> None:
    assert followed(ViewState(heard=4), {"query": "2,3", "seq": seq}).heard == 4


def test_the_number_goes_back_to_the_explorer_and_never_into_a_link() -> None:
    session = Session(device="cpu")
    view = ViewState(image="shapes", query="2,3", heard=9)
    value = explorer_value(session, view, "")
    assert value["view"]["seq"] == 9
    assert value["view"]["query"] == "2,3"
    assert "heard" not in view.to_address()
