"""A tab is declared in one place: here stands one that the app does not have, and the page has it all the same."""

from __future__ import annotations

import json
from typing import Any

import gradio as gr
import pytest

from tests.ui.desk import app_of
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS
from vit_viz.ui.kit import part
from vit_viz.ui.page import Tab

TOY = Tab("toy", "Toy", lambda: part("web/patches/room", html="a toy"), about="What a toy is for.")


@pytest.fixture(scope="module")
def demo(session: Session) -> gr.Blocks:
    return app_of(session, tabs=(*TABS, TOY))


def told(demo: gr.Blocks, name: str) -> Any:
    """What the script of the page is told, by its name."""
    props = (one["props"].get("props", {}) for one in demo.config["components"])
    return next(json.loads(one[name]) for one in props if name in one)


def test_a_tab_of_one_declaration_stands_on_the_page(demo: gr.Blocks) -> None:
    tab = told(demo, "page")["tabs"][-1]
    assert (tab["name"], tab["label"], tab["html"]) == ("toy", "Toy", "a toy")
    assert tab["module"] == "web/patches/room.js"


def test_links_the_palette_and_the_help_know_it(demo: gr.Blocks) -> None:
    (tab,) = (field for field in told(demo, "fields") if field["link"] == "tab")
    assert tab["choices"] == [*(one.name for one in TABS), "toy"]
    (help_,) = (one for one in told(demo, "page")["parts"] if one["name"] == "help")
    assert help_["props"]["value"]["tabs"]["toy"] == "What a toy is for."


def test_nothing_on_the_page_asks_python_by_an_event(demo: gr.Blocks) -> None:
    assert demo.config["dependencies"] == []
    assert not [block for block in demo.blocks.values() if isinstance(block, gr.State)]
