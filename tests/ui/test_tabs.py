"""A tab is declared in one place: here stands one that the app does not have, and the page has it all the same."""

from __future__ import annotations

import json

import gradio as gr
import pytest

from tests.ui.desk import app_of
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS
from vit_viz.ui.page import Tab

TOY = Tab("toy", "Toy", lambda: gr.HTML("a toy"), about="What a toy is for.")


@pytest.fixture(scope="module")
def demo(session: Session) -> gr.Blocks:
    return app_of(session, tabs=(*TABS, TOY))


def props_of(demo: gr.Blocks, elem_id: str) -> dict[str, object]:
    (found,) = (one["props"] for one in demo.config["components"] if one["props"].get("elem_id") == elem_id)
    return dict(found)


def test_a_tab_of_one_declaration_stands_on_the_page(demo: gr.Blocks) -> None:
    assert [block.label for block in demo.blocks.values() if isinstance(block, gr.Tab)][-1] == "Toy"


def test_links_the_palette_and_the_help_know_it(demo: gr.Blocks) -> None:
    fields = next(
        json.loads(one["props"]["props"]["fields"])
        for one in demo.config["components"]
        if "fields" in one["props"].get("props", {})
    )
    (tab,) = (field for field in fields if field["link"] == "tab")
    assert tab["choices"] == [*(one.name for one in TABS), "toy"]
    assert props_of(demo, "vv-palette")["props"]["tabs"]["toy"] == "Toy"  # type: ignore[index]
    assert props_of(demo, "vv-help")["value"]["tabs"]["toy"] == "What a toy is for."  # type: ignore[index]


def test_nothing_on_the_page_asks_python_by_an_event(demo: gr.Blocks) -> None:
    assert demo.config["dependencies"] == []
    assert not [block for block in demo.blocks.values() if isinstance(block, gr.State)]
