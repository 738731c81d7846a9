"""A tab is declared in one place: here stands one that the app does not have, and the page has it all the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gradio as gr
import pytest

from tests.ui.desk import Desk, app_of, arrived
from vit_viz.session.session import Session
from vit_viz.ui.app import TABS
from vit_viz.ui.page import Page, Tab
from vit_viz.views.state import ViewState


def build(page: Page) -> None:
    """A tab that says how many layers the model has."""
    page.drawing("toy", draw, [gr.Textbox(elem_id="toy-words")])
    button, told = gr.Button(elem_id="toy-button"), gr.Textbox(elem_id="toy-told")
    page.reply(button.click, lambda view, _owner, _data: f"reply in {view.mode}", [told])
    page.job(button.click, lambda view, _owner, _data: iter([f"job in {view.mode}"]), [told])


def draw(page: Page, view: ViewState, owner: str) -> Iterator[Any]:
    trace = page.session.trace(view.model, view.image, mode=view.mode, owner=owner)
    yield f"{trace.num_layers} layers of {view.model}, layer {view.layer}"


TOY = Tab("toy", "Toy", build, shows=lambda view: (view.about, view.layer))


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
    desk.act("", "follow", data={"set": {"tab": "patches"}, "told": 1})
    assert desk.view().tab == "patches"
    drawn = [what for name, what in desk.told if name == "toy-words"]
    desk.act("", "follow", data={"set": {"mode": "fit"}, "told": 2})
    assert [what for name, what in desk.told if name == "toy-words"] == drawn
    desk.act("", "follow", data={"set": {"tab": "toy"}, "told": 3})
    assert len([what for name, what in desk.told if name == "toy-words"]) == len(drawn) + 1


def test_what_a_slow_answer_overwrites_is_neither_drawn_nor_asked_about(desk: Desk) -> None:
    state = next(one for one, value in desk.states.items() if isinstance(value, ViewState))
    earlier = desk.view()
    desk.act("", "follow", data={"set": {"mode": "fit"}, "told": 1})
    assert (earlier.mode, desk.view().mode) == ("crop", "fit")
    desk.states[state] = earlier
    desk.act("toy-button", "click")
    assert [what["value"] for name, what in desk.told if name == "toy-told"] == [
        "reply in fit",
        "job in fit",
    ]


def test_a_tab_that_is_not_there_is_refused_by_a_link() -> None:
    known = [tab.name for tab in TABS]
    view, problems = ViewState.from_address("?tab=toy", tabs=known)
    assert view.tab == "look"
    assert problems == (f"The tab is one of {', '.join(known)}, not 'toy'.",)
