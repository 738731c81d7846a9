"""The map of a slow method, which is computed only where somebody asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.ui.desk import call_of
from vit_viz.errors import ParameterError
from vit_viz.session.session import Session
from vit_viz.ui.explain.answers import gallery_value, slow_map
from vit_viz.ui.explain.questions import Questions
from vit_viz.ui.pictures import card_named
from vit_viz.views.state import ViewState


def view_of(image: str) -> ViewState:
    return ViewState(model="odd", image=image, mode="crop", target="5")


def card(session: Session, view: ViewState, name: str) -> dict[str, Any]:
    asked, _said = call_of(session, view)
    cards = gallery_value(Questions.of(asked, view, asked.owner))["cards"]
    return next(one for one in cards if one["name"] == name)


def test_a_map_says_how_far_it_is_and_is_in_the_gallery_then(session: Session, image: str) -> None:
    view = view_of(image)
    assert card(session, view, "occlusion")["runs"] == card_named("occlusion").words.runs
    asked, said = call_of(session, view, method="occlusion")
    answer = slow_map(asked)
    assert "for animal 5. Scale: " in answer["caption"]
    shares = [value for name, value in said if name == "share"]
    assert (shares, shares[-1]) == (sorted(shares), 1.0)
    assert len(set(shares)) > 2
    assert card(session, view, "occlusion")["map"] == answer
    assert "map" not in card(session, replace(view, target="2"), "occlusion")


def test_a_quick_method_and_one_without_a_card_are_refused(session: Session, image: str) -> None:
    with pytest.raises(ParameterError, match="Attention rollout needs no waiting"):
        slow_map(call_of(session, view_of(image), method="rollout")[0])
    for name in ({}, {"method": "nothing"}, {"method": 3}):
        with pytest.raises(ParameterError):
            slow_map(call_of(session, view_of(image), **name)[0])
