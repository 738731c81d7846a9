"""Tabs, steps and dialogs are entries of the browser's history: Back leads to what was there before, and no further."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = pytest.mark.browser

AT = """([tab, words]) =>
  document.querySelector('#vv-tabs [role=tab][aria-selected=true]')?.id === `vv-tab-${tab}-button`
  && words.every((word) => location.search.includes(word))"""


def at(page: Any, tab: str, *words: str) -> None:
    """Wait until this tab is open and the address says so, with these words."""
    page.wait_for_function(AT, arg=[tab, words if tab == "look" else [f"tab={tab}", *words]])


def choose(page: Any, tab: str) -> None:
    page.locator(f"#vv-tab-{tab}-button").click()
    at(page, tab)


def entries(page: Any) -> int:
    return int(page.evaluate("history.length"))


def test_back_leads_through_tabs_pictures_and_dialogs_also_after_a_reload(page: Any) -> None:
    start = entries(page)
    choose(page, "patches")
    choose(page, "positions")
    page.get_by_role("button", name="Sample image tower").click()
    at(page, "positions", "image=tower")
    choose(page, "heads")
    assert entries(page) == start + 4
    page.reload()
    at(page, "heads", "image=tower")
    page.evaluate("history.go(-2)")
    lion = page.locator('#vv-samples [aria-label="Sample image lion"]')
    expect(lion).to_have_attribute("aria-pressed", "true")
    at(page, "positions", "image=lion")
    page.evaluate("history.back(); history.back()")  # the second sooner than the first is answered
    at(page, "look")
    expect(page.locator("#vv-explorer [data-vv=root]")).to_have_attribute("data-state", "ready")
    page.evaluate("history.go(4)")
    at(page, "heads", "image=tower")
    page.evaluate("history.go(-3)")
    at(page, "patches", "image=lion")
    assert entries(page) == start + 4

    figure, palette = page.locator("dialog.vv-figure"), page.locator("dialog.vv-palette")
    page.locator("#vv-grid-picture .vv-save").click()
    expect(figure).to_be_visible()
    page.go_back()
    expect(figure).to_be_hidden()
    at(page, "patches")
    page.go_forward()
    expect(figure).to_be_visible()
    page.keyboard.press("Escape")
    expect(figure).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    page.reload()
    at(page, "patches")
    expect(palette).to_be_hidden()
    page.wait_for_function("!history.state?.vvDialogs")
    page.go_back()
    at(page, "look")
