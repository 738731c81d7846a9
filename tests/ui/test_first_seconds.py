"""The first seconds of a visit, until the visitor does something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.conftest import wait_until_ready
from tests.ui.waits import expect, expect_in_address

pytestmark = pytest.mark.browser

GHOST = "#vv-explorer [data-vv=ghost]"
CAPTION = "#vv-explorer [data-vv=caption]"
STAY = 2000
"""Milliseconds after which the ghost goes on (explorer/ghost.js), by the page's clock."""


def caption(page: Any) -> str:
    return str(page.locator(CAPTION).text_content())


VISITS = """(ghost) => {
  const ring = document.querySelector(ghost);
  window.visits = Number(!ring.hidden);
  new MutationObserver(() => (window.visits += !ring.hidden)).observe(ring, { attributes: true });
}"""


def visits_later(page: Any) -> int:
    """How often the ghost shows itself in the time of some visits, which passes at once."""
    page.evaluate(VISITS, GHOST)
    page.clock.run_for(3 * STAY)
    return int(page.evaluate("window.visits"))


UNTOUCHED = "Object.defineProperty(navigator, 'userActivation', { value: { hasBeenActive: false } })"
"""Whatever Playwright evaluates counts as an act of the visitor."""


@pytest.mark.slow
def test_a_ghost_visits_patches_until_the_first_movement_and_never_comes_back(
    browser: Any, app_url: str
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(UNTOUCHED)
    page = context.new_page()
    page.clock.install()
    page.goto(app_url)
    page.wait_for_selector("#vv-explorer [data-vv=root][data-state=ready]")
    pinned = caption(page)
    page.locator(GHOST).wait_for()
    page.wait_for_function(
        "([caption, pinned]) => document.querySelector(caption).textContent !== pinned", arg=[CAPTION, pinned]
    )
    page.wait_for_url(lambda url: "layer=" in url and "q=" not in url)  # nobody has chosen what is shown
    page.mouse.move(700, 450)
    page.locator(GHOST).wait_for(state="hidden")
    page.mouse.move(3, 3)
    page.wait_for_function(
        "([caption, pinned]) => document.querySelector(caption).textContent === pinned", arg=[CAPTION, pinned]
    )
    assert visits_later(page) == 0
    expect(page.locator(CAPTION)).to_have_text(pinned)
    context.close()


UNTOLD = (
    "for (const name of ['pointermove', 'mousemove']) "
    "addEventListener(name, (event) => event.stopImmediatePropagation(), true)"
)
"""A browser tells a page nothing of a pointer that was there before it: no movement reaches any script."""


@pytest.mark.slow
def test_no_ghost_comes_to_a_pointer_that_rests_on_the_photo(browser: Any, app_url: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(UNTOLD)
    context.add_init_script(UNTOUCHED)
    page = context.new_page()
    page.clock.install()
    page.goto(app_url)
    page.wait_for_selector("#vv-explorer [data-vv=root][data-state=ready]")
    page.locator("#vv-explorer [data-vv=stage]").hover()
    page.wait_for_function("document.querySelector('#vv-explorer [data-vv=stage]').matches(':hover')")
    assert visits_later(page) == 0
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("search", ["?q=3,4", "?q=class"])
def test_no_ghost_comes_where_a_link_named_a_query(
    visit: Callable[..., Any], app_url: str, search: str
) -> None:
    page = visit(app_url, script=UNTOUCHED)
    page.clock.install()
    page.goto(app_url + search)
    wait_until_ready(page)
    assert visits_later(page) == 0


@pytest.mark.slow
def test_no_ghost_comes_where_motion_is_unwelcome(browser: Any, app_url: str) -> None:
    context = browser.new_context(reduced_motion="reduce")
    context.add_init_script(UNTOUCHED)
    page = context.new_page()
    page.clock.install()
    page.goto(app_url)
    page.wait_for_selector("#vv-explorer [data-vv=root][data-state=ready]")
    assert visits_later(page) == 0
    context.close()


@pytest.mark.slow
def test_a_first_look_begins_where_the_map_says_most_and_a_link_keeps_its_place(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url)
    page.wait_for_function("location.search.includes('layer=')")
    expect_in_address(page, "layer=5&head=2")  # of the lion in the bundled model: its face
    linked = visit(f"{app_url}?layer=1&head=mean")
    linked.wait_for_function("location.search.includes('layer=1&head=mean')")
