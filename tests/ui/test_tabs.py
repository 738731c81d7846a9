"""A tab is declared in one place: here stands one that the app does not have, and the page has it all the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import pytest

from tests.ui.desk import Desk, app_of, arrived
from vit_viz.session.session import Session
from vit_viz.ui.page import Page, Tab, subject_in
from vit_viz.ui.tabs import TABS
from vit_viz.views.state import ViewState


@dataclass(frozen=True)
class Toy:
    """The components of a tab that says how many layers the model has."""

    words: gr.Textbox


def build() -> Toy:
    return Toy(gr.Textbox(elem_id="toy-words"))


def wire(toy: Toy, page: Page) -> None:
    page.drawing("toy", draw, [toy.words])


def draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    trace = page.session.trace(view.model, view.image, mode=view.mode, owner=owner)
    yield f"{trace.num_layers} layers of {view.model}, layer {view.layer}"


TOY = Tab("toy", "Toy", build, wire, shows=lambda view: (subject_in(view), view.layer))


@pytest.fixture(scope="module")
def demo(session: Session) -> gr.Blocks:
    return app_of(session, tabs=(*TABS, TOY))


@pytest.fixture
def desk(demo: gr.Blocks, image: str) -> Desk:
    return arrived(demo, image, "toy", "&layer=1")


def test_a_tab_of_one_declaration_stands_on_the_page(demo: gr.Blocks) -> None:
    assert [block.label for block in demo.blocks.values() if isinstance(block, gr.Tab)][-1] == "Toy"


def test_it_opens_by_a_link_and_is_drawn(desk: Desk) -> None:
    assert (desk.view().tab, desk.view().notes) == ("toy", ())
    assert desk.shown["toy-words"]["value"] == "3 layers of odd, layer 1"
    assert "tab=toy" in desk.view().to_address()


def test_it_sleeps_while_another_tab_is_on_the_screen(desk: Desk) -> None:
    desk.act("vv-tab-patches", "select")
    assert desk.view().tab == "patches"
    drawn = [what for name, what in desk.told if name == "toy-words"]
    desk.act("vv-mode", "input", "fit")
    assert [what for name, what in desk.told if name == "toy-words"] == drawn
    desk.act("vv-tab-toy", "select")
    assert len([what for name, what in desk.told if name == "toy-words"]) == len(drawn) + 1


def test_a_tab_that_is_not_there_is_refused_by_a_link() -> None:
    known = [tab.name for tab in TABS]
    view, problems = ViewState.from_address("?tab=toy", tabs=known)
    assert view.tab == "look"
    assert problems == (f"The tab is one of {', '.join(known)}, not 'toy'.",)
