"""The explorer as a Gradio component: its template and its tables. The browser tests are in test_explorer.py."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest

from vit_viz.explorer import STYLES, _read, colour_tables
from vit_viz.figures.colormaps import TABLES, table
from vit_viz.ui.kit import explorer


@pytest.mark.parametrize("name", ["explorer.html", *STYLES])
def test_templates_hold_nothing_that_gradio_would_run(name: str) -> None:
    text = _read(name)
    assert len(text) > 1000
    assert not any(sign in text for sign in ("${", "{{", "`", "\\"))


def test_ids_differ_between_two_explorers() -> None:
    first, second = (set(re.findall(r'\bid="([^"]+)"', explorer().html_template)) for _ in range(2))
    assert first
    assert not first & second


def test_labels_by_id_point_to_elements_of_the_same_explorer() -> None:
    template = explorer().html_template
    named = set(re.findall(r'aria-describedby="([^"]+)"', template))
    assert named
    assert named <= set(re.findall(r'\bid="([^"]+)"', template))


@pytest.mark.parametrize("name", TABLES)
def test_colour_tables_are_those_of_the_renderer(name: str) -> None:
    sent = np.frombuffer(base64.b64decode(colour_tables()[name]), np.uint8).reshape(256, 3)
    np.testing.assert_array_equal(sent, table(name))  # type: ignore[arg-type]  # a name from TABLES
