"""The page's script in a browser: that it is kept, and components that are made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ui.conftest import wait_until_ready
from vit_viz.ui import scripts

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
