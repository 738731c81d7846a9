"""What the page's scripts offer is what Python declares."""

from __future__ import annotations

import json
import re
from pathlib import Path

import vit_viz
from vit_viz.explorer import template
from vit_viz.explorer.value import described, explorer_options
from vit_viz.session.session import Session
from vit_viz.ui.payload import explorer_value
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import TokensTabOptions

_OPTIONS = Path(__file__).parents[1] / "js" / "options.json"
_ROOMS = Path(vit_viz.__file__).parent / "ui"


def test_the_scripts_are_tested_with_the_options_that_are_declared() -> None:
    value = explorer_value(Session(device="cpu"), ViewState(image="shapes"), "")
    assert json.loads(_OPTIONS.read_text("utf-8")) == value["options"]


def test_the_scripts_of_the_tabs_are_tested_with_the_options_that_python_declares() -> None:
    groups = {"tokens": TokensTabOptions}
    declared = {name: [described(field) for field in kind.schema()] for name, kind in groups.items()}
    assert json.loads((_OPTIONS.parent / "tab_options.json").read_text("utf-8")) == declared


def test_every_option_of_the_explorer_has_a_control() -> None:
    named = set(re.findall(r'name="__ID__-(\w+)"', template("__ID__")))
    assert named == {field.name for field in explorer_options()} | {"masked", "pointer"}
