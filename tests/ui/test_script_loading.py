"""The page's script in a browser: that it is kept, and components that are made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import pytest

from tests.ui.conftest import served_here, wait_until_ready
from tests.ui.waits import expect
from vit_viz.session.session import Session
from vit_viz.ui import scripts
from vit_viz.ui.edge.user_errors import GuardedBlocks
from vit_viz.ui.kit import Top

pytestmark = pytest.mark.browser
TRAVELLED = """() => performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/parts.js'))
    .map(({ transferSize }) => transferSize)"""


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """A new visitor's page, before it goes anywhere."""
    contexts: list[Any] = []

    def make() -> Any:
        contexts.append(browser.new_context(viewport={"width": 1440, "height": 900}))
        return contexts[-1].new_page()

    yield make
    for context in contexts:
        context.close()


@pytest.mark.slow
def test_the_script_is_fetched_once_and_kept(opened: Callable[..., Any], app_url: str) -> None:
    page, asked = opened(), []
    page.on("response", lambda r: asked.append(r) if r.url.endswith("/parts.js") else None)
    page.goto(app_url)
    wait_until_ready(page)
    assert [answer.header_value("cache-control") for answer in asked] == [*scripts.FOR_GOOD.values()]
    page.goto(f"{app_url}?layer=2")
    wait_until_ready(page)
    assert page.evaluate(TRAVELLED) == [0]


@pytest.mark.slow
def test_a_component_that_is_hidden_and_shown_again_is_mounted_again(opened: Callable[..., Any]) -> None:
    session = Session(model="mini", device="cpu")
    with GuardedBlocks(analytics_enabled=False) as demo:
        top = Top({"top": [{"name": "first", "probability": 0.5}]})
        for words, visible in (("hide", False), ("show", True)):
            gr.Button(words).click(lambda visible=visible: gr.update(visible=visible), None, top)
        news = {"top": [{"name": "second", "probability": 0.25}]}
        gr.Button("change").click(lambda: news, None, top)
    with served_here(demo, session) as url:
        page = opened()
        page.goto(url)
        page.locator(".vv-top", has_text="first").wait_for()
        page.get_by_role("button", name="hide").click()
        page.locator(".vv-top").wait_for(state="detached")
        page.get_by_role("button", name="show").click()
        page.locator(".vv-top", has_text="first").wait_for()
        page.get_by_role("button", name="change").click()
        page.locator(".vv-top", has_text="second").wait_for()
        expect(page.locator(".vv-top")).to_have_count(1)
