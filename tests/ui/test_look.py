"""What the page's scripts and templates offer is what Python declares."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest

from vit_viz.explorer import STYLES, _read, colour_tables, template
from vit_viz.explorer.value import described, explorer_options
from vit_viz.figures.colormaps import TABLES, table
from vit_viz.session.session import Session
from vit_viz.ui.payload import explorer_value
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import TokensTabOptions

_JS = Path(__file__).parents[1] / "js"


def test_the_scripts_are_tested_with_the_options_that_python_declares() -> None:
    value = explorer_value(Session(device="cpu"), ViewState(image="shapes"), "")
    assert json.loads((_JS / "options.json").read_text("utf-8")) == value["options"]
    tabs = {"tokens": [described(field) for field in TokensTabOptions.schema()]}
    assert json.loads((_JS / "tab_options.json").read_text("utf-8")) == tabs


def test_every_option_of_the_explorer_has_a_control() -> None:
    named = set(re.findall(r'name="__ID__-(\w+)"', template("__ID__")))
    assert named == {field.name for field in explorer_options()} | {"masked", "pointer"}


@pytest.mark.parametrize("name", ["explorer.html", *STYLES])
def test_templates_hold_nothing_that_gradio_would_run(name: str) -> None:
    text = _read(name)
    assert len(text) > 1000
    assert not any(sign in text for sign in ("${", "{{", "`", "\\"))


def test_ids_differ_between_two_explorers() -> None:
    one, other = template("a"), template("b")
    first, second = (set(re.findall(r'\bid="([^"]+)"', text)) for text in (one, other))
    assert not first & second
    described_by = set(re.findall(r'aria-describedby="([^"]+)"', one))
    assert described_by
    assert described_by <= first


@pytest.mark.parametrize("name", TABLES)
def test_colour_tables_are_those_of_the_renderer(name: str) -> None:
    sent = np.frombuffer(base64.b64decode(colour_tables()[name]), np.uint8).reshape(256, 3)
    np.testing.assert_array_equal(sent, table(name))  # type: ignore[arg-type]  # a name from TABLES
