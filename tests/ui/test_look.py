"""What the explorer says is heard, and its own words come back with their number, so that an old echo is recognised."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import vit_viz
from vit_viz.explorer import template
from vit_viz.explorer.value import described, explorer_options
from vit_viz.figures.styles import STYLES
from vit_viz.session.session import Session
from vit_viz.ui.look.view import followed
from vit_viz.ui.payload import explorer_value
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import HeadsTabOptions, MatrixTabOptions, TokensTabOptions

_OPTIONS = Path(__file__).parents[1] / "js" / "options.json"
_ROOMS = Path(vit_viz.__file__).parent / "ui"


def test_what_the_explorer_pins_is_followed_with_its_number() -> None:
    view = followed(
        ViewState(revision=3), {"query": "2,3", "layer": 1, "seq": 7, "image": "another", "trace": "x"}
    )
    assert (view.query, view.layer, view.last_event, view.revision) == ("2,3", 1, 7, 3)
    assert view.image == ""


@pytest.mark.parametrize("seq", [None, "7", -1, 2**60, 1.5])
def test_a_number_that_is_none_leaves_the_last_one(seq: object) -> None:
    assert followed(ViewState(last_event=4), {"query": "2,3", "seq": seq}).last_event == 4


def test_the_number_goes_back_to_the_explorer_and_never_into_a_link() -> None:
    session = Session(device="cpu")
    view = ViewState(image="shapes", query="2,3", last_event=9)
    value = explorer_value(session, view, "")
    assert value["view"]["seq"] == 9
    assert value["view"]["query"] == "2,3"
    assert "heard" not in view.to_address()


def test_the_scripts_are_tested_with_the_options_that_are_declared() -> None:
    value = explorer_value(Session(device="cpu"), ViewState(image="shapes"), "")
    assert json.loads(_OPTIONS.read_text("utf-8")) == value["options"]


def test_the_scripts_of_the_tabs_are_tested_with_the_options_that_python_declares() -> None:
    groups = {"tokens": TokensTabOptions, "heads": HeadsTabOptions, "matrix": MatrixTabOptions}
    declared = {name: [described(field) for field in kind.schema()] for name, kind in groups.items()}
    assert json.loads((_OPTIONS.parent / "tab_options.json").read_text("utf-8")) == declared


def test_the_controls_of_the_tokens_tab_offer_each_choice_once_and_hold_no_limits() -> None:
    html = (_ROOMS / "tokens" / "room.html").read_text("utf-8")
    choices = {field.name: list(field.choices) for field in TokensTabOptions.schema()}
    rows = re.findall(r'<tr data-row="(\w+)".*?data-value="(\w+)".*?data-fold="(\w+)"', html)
    assert all(len(set(row)) == 1 for row in rows)
    assert {row for row, *_ in rows} == set(choices["token_measure"])
    choices["style"] = list(STYLES)
    groups = re.findall(
        r'data-option="(\w+)"[^>]*>((?:\s*<button type="button" data-value[^>]*>[^<]*</button>)+)', html
    )
    assert len(groups) == 5
    for name, buttons in groups:
        assert re.findall(r'data-value="([^"]+)"', buttons) == choices[name]
    assert set(re.findall(r'data-option="(\w+)"', html)) == set(choices) - {"token_state"}
    assert not re.search(r"<input[^>]* (?:min|max|step|value)=", html)


def test_every_option_of_the_explorer_has_a_control() -> None:
    named = set(re.findall(r'name="__ID__-(\w+)"', template("__ID__")))
    assert named == {field.name for field in explorer_options()} | {"masked", "pointer"}
