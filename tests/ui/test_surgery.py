"""Surgery on the page: switches change what every tab shows, the badge says so everywhere, and undoing brings all of it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
import pytest

from tests.ui.desk import Desk, arrived
from vit_viz.views.state import ViewState

WORDS = "off 1.3;temperature 2=0.5;forbid class>1-2,3@0"


@pytest.fixture
def visit(demo: gr.Blocks, image: str) -> Callable[..., Desk]:
    def arrive(tab: str, edits: str = "", more: str = "") -> Desk:
        return arrived(demo, image, tab, f"{more}&edits={edits.replace('=', '%3D')}")

    return arrive


def value_of(desk: Desk, part: str) -> Any:
    return desk.shown[part]["value"]


def test_a_page_without_edits_has_no_badge(visit: Callable[..., Desk]) -> None:
    desk = visit("look")
    assert value_of(desk, "vv-edited") == {"revision": desk.view().revision, "words": "", "each": []}
    assert "edits" not in desk.view().to_address()


@pytest.mark.parametrize("tab", ["look", "heads", "explain", "walkthrough", "tokens", "positions", "patches"])
def test_the_badge_stands_on_every_tab(visit: Callable[..., Desk], tab: str) -> None:
    badge = value_of(visit(tab, WORDS), "vv-edited")
    assert badge["words"] == "1 head off, temperature of layer 2, 1 view forbidden"
    assert [one["said"] for one in badge["each"]] == [
        "layer 1, head 3: off",
        "layer 2: temperature 0.5, sharper",
        "the class token can no longer see patches 1-2,3, in layer 0",
    ]


def test_the_badge_has_the_answers_before_and_now(visit: Callable[..., Desk]) -> None:
    desk, plain = visit("look", WORDS), visit("look")
    badge, facts = value_of(desk, "vv-edited"), value_of(desk, "vv-facts")
    assert badge["before"] == value_of(plain, "vv-facts")["top"]
    assert badge["after"] == facts["top"] != badge["before"]
    assert "this holds for the edited model" in facts["proof"]["title"]
    assert "edited" not in value_of(plain, "vv-facts")["proof"]["title"]


def test_an_edit_changes_what_every_tab_shows_and_undoing_brings_it_back(visit: Callable[..., Desk]) -> None:
    desk = visit("heads", more="&layer=1&head=3&q=2,5")
    before = value_of(desk, "vv-facts")["top"]
    desk.act("", "follow", data={"set": {"edits": "off 1.3 2.0"}, "told": 1})
    assert desk.view().edits == "off 1.3 2.0"
    assert (desk.view().layer, desk.view().query) == (1, "2,5")
    assert value_of(desk, "vv-facts")["top"] != before
    assert parse_qs(desk.view().to_address())["edits"] == ["off 1.3 2.0"]
    desk.act("vv-edited", "undo", data={"words": "off 1.3"})
    assert desk.view().edits == "off 2.0"
    desk.act("vv-edited", "undo", data={"words": ""})
    assert desk.view().edits == ""
    assert value_of(desk, "vv-facts")["top"] == before


def test_a_link_with_impossible_edits_says_so_and_can_be_undone(visit: Callable[..., Desk]) -> None:
    desk = visit("heads", "off 14.0")
    assert value_of(desk, "vv-facts")["error"] == "Layer 14 does not exist: this model has layers 0-2."
    assert value_of(desk, "vv-edited")["error"] == "Layer 14 does not exist: this model has layers 0-2."
    desk.act("vv-edited", "undo", data={"words": ""})
    assert value_of(desk, "vv-facts")["top"]


def test_an_unreadable_edit_of_a_link_is_left_out_with_a_sentence(visit: Callable[..., Desk]) -> None:
    desk = visit("look", "remove 1.3")
    assert desk.view().edits == ""
    assert any("An edit is 'off 3.1'" in note for note in value_of(desk, "vv-facts")["notes"])


def test_edits_by_place_end_with_the_grid_and_all_with_the_model() -> None:
    view = ViewState(model="odd", image="lion", edits="off 1.3;forbid class>patches;forbid class>1,2")
    for change in ({"image": "tower"}, {"mode": "crop"}, {"size": 9}, {"part": "0,0,40,50"}):
        assert view.on_subject(**change).edits == "off 1.3;forbid class>patches"
    assert view.on_subject(model="mini").edits == ""
