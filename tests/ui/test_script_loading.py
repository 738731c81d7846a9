"""Modules that come late, or not at all, and components that are made again: in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr
import pytest

from tests.ui.conftest import served_here, wait_until_ready
from tests.ui.waits import expect
from vit_viz.session.session import Session
from vit_viz.ui import scripts
from vit_viz.ui.kit import Top
from vit_viz.ui.routes import routes

pytestmark = pytest.mark.browser
OURS = "**/vit_viz/js/**"
ADDRESS = (
    "/visit/",
    "/kit/elements.js",
    "/explorer/elements.js",
    "/explorer/options.js",
    "/explorer/source.js",
    "/web/kit/",
)
"""What the address bar needs."""
TRAVELLED = """(ours) => performance.getEntriesByType('resource').filter(({ name }) => name.includes(ours))
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
def test_what_arrives_before_the_modules_is_shown_once_they_are_there(
    opened: Callable[..., Any], app_url: str
) -> None:
    page, held = opened(), []

    def hold(route: Any) -> None:
        if held is None or any(part in route.request.url for part in ADDRESS):
            route.continue_()
        else:
            held.append(route)

    page.route(OURS, hold)
    page.goto(f"{app_url}?image=tower&layer=3&mode=stretch")
    page.wait_for_function("document.querySelector('#vv-mode input')?.value.includes('stretch')")
    expect(page.locator(".vv-sample")).to_have_count(0)
    waiting, held = held, None
    for route in waiting:
        route.continue_()
    wait_until_ready(page)
    expect(page.locator("#vv-explorer [data-vv=caption]")).to_have_text(
        re.compile("^Layer 3"), use_inner_text=True
    )
    expect(page.locator(".vv-sample[aria-pressed=true]")).to_have_attribute("title", "tower")


def test_a_module_that_does_not_come_is_said_in_its_place(opened: Callable[..., Any], app_url: str) -> None:
    page = opened()
    page.route("**/explorer/geometry.js", lambda route: route.abort())
    page.goto(app_url)
    page.locator("#vv-explorer", has_text=scripts.NOT_LOADED).wait_for()
    page.wait_for_selector(
        "#vv-facts .vv-model-facts:not(:empty)", state="attached"
    )  # the rest of the page works
    expect(page.get_by_text(scripts.NOT_LOADED)).to_have_count(1)


@pytest.mark.slow
def test_scripts_are_fetched_once_and_kept(opened: Callable[..., Any], app_url: str) -> None:
    page, asked = opened(), []
    page.on("response", lambda r: asked.append(r) if scripts.ADDRESS in r.url else None)
    page.goto(app_url)
    wait_until_ready(page)
    names = [answer.url.split(f"/{scripts.digest()}/")[1] for answer in asked]
    assert len(names) == len(set(names))
    assert set(names) <= set(scripts.modules())
    assert {answer.header_value("cache-control") for answer in asked} == set(scripts.FOR_GOOD.values())
    page.goto(f"{app_url}?layer=2")
    wait_until_ready(page)
    sizes = page.evaluate(TRAVELLED, scripts.ADDRESS)
    assert len(sizes) > 20
    assert set(sizes) == {0}


@pytest.mark.slow
def test_a_component_that_is_hidden_and_shown_again_is_mounted_again(opened: Callable[..., Any]) -> None:
    session = Session(model="mini", device="cpu")
    with gr.Blocks(analytics_enabled=False) as demo:
        top = Top({"top": [{"name": "first", "probability": 0.5}]})
        for words, visible in (("hide", False), ("show", True)):
            gr.Button(words).click(lambda visible=visible: gr.update(visible=visible), None, top)
        news = {"top": [{"name": "second", "probability": 0.25}]}
        gr.Button("change").click(lambda: news, None, top)
    with served_here(demo, session, app_kwargs={"routes": routes(session)}) as url:
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
