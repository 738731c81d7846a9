"""The server is killed and starts again: the page says so in one sentence, loses nothing, and shows the same view again."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.serving import Server
from tests.ui.conftest import wait_until_ready
from tests.ui.waits import expect, expect_in_address

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COVERED = """(bar) => [...document.querySelectorAll('button, input, select, a, h1, .vv-caption')].filter((one) => {
  const box = one.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  return box.width && !bar.contains(one) && bar.contains(document.elementFromPoint(x, y));
}).map((one) => one.outerHTML)"""


def kill(app: Server) -> None:
    assert app.process is not None
    app.process.send_signal(signal.SIGKILL)
    app.process.wait()


def test_a_lost_server_is_one_sentence_that_covers_nothing_and_the_page_goes_on_where_it_was(
    start_app: Callable[..., Server], browser: Any
) -> None:
    app = start_app("--model", "mini")
    page = browser.new_page()
    page.set_default_timeout(180_000)
    page.goto(f"{app.url}?image=tower&layer=2&head=3")
    caption = page.locator("#vv-explorer [data-vv=caption]")
    caption.get_by_text("layer 2, head 3").wait_for()
    page.evaluate("window.isFromBefore = true")
    assert app.process is not None
    app.process.send_signal(signal.SIGSTOP)  # so that the request is under way when the server dies
    page.get_by_role("button", name="Sample image lion").click(no_wait_after=True)
    kill(app)
    app.start()
    page.wait_for_function(
        "() => window.isFromBefore === undefined"
    )  # the page finds the new server by itself
    caption.get_by_text("layer 2, head 3").wait_for()
    wait_until_ready(page)
    expect_in_address(page, "layer=2&head=3")
    page.evaluate("window.isFromBefore = true")
    kill(app)  # while the page asks nothing
    bar = page.locator(".vv-lost")
    expect(bar).to_contain_text("The server does not answer.")
    assert bar.evaluate(COVERED) == []
    assert page.evaluate("getComputedStyle(document.documentElement).scrollPaddingTop") == "96px"
    bar.get_by_role("button", name="Reload").click()
    expect(bar).to_contain_text("Still no answer")
    page.get_by_role("button", name="Sample image twins").click()
    page.locator("#vv-tab-positions-button").click()
    page.wait_for_function("location.search.includes('tab=positions')")
    expect(page.get_by_text("Connection to the server was lost").locator("visible=true")).to_have_count(0)
    assert page.evaluate("window.isFromBefore")
    app.start()
    page.wait_for_function("() => window.isFromBefore === undefined")
    wait_until_ready(page)
    expect(page.locator("#vv-tab-positions-button")).to_have_attribute("aria-selected", "true")
    chosen = page.locator('#vv-samples [aria-label="Sample image twins"]')  # meanwhile
    expect(chosen).to_have_attribute("aria-pressed", "true")
    expect(bar).to_have_count(0)
    page.close()
