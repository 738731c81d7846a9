"""One way to save on every tab: the button called Save, or Ctrl+S; files, the page, the lines of Python and the link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DIALOG = ".vv-figure[open]"
TABS = ["Look", "Explain", "Heads", "Tokens", "Positions", "Patches"]


def test_ctrl_s_saves_what_each_tab_shows(visit: Callable[..., Any], app_url: str, tmp_path: Path) -> None:
    page = visit(app_url)
    saved = {}
    for label in TABS:
        page.get_by_role("tab", name=label).click()
        page.locator(f"#vv-tab-{label.lower()} [data-save]:visible:not([disabled])").first.wait_for()
        page.keyboard.press("Control+s")
        page.locator(DIALOG).wait_for()
        page.locator(".vv-figure input[value=csv]").check()
        with page.expect_download() as file:
            page.keyboard.press("Control+s")
        path = tmp_path / file.value.suggested_filename
        file.value.save_as(path)
        saved[label] = path.read_text("utf-8")
        expect(page.locator(".vv-figure-status")).to_contain_text("Saved")
        page.keyboard.press("Escape")
        page.locator(DIALOG).wait_for(state="hidden")
    assert len(set(saved.values())) == len(TABS)
    assert all(text.count("\n") > 3 for text in saved.values())


def test_the_page_and_the_link_of_what_is_seen(browser: Any, app_url: str, tmp_path: Path) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{app_url}?layer=3&head=1&q=4,9")
    page.wait_for_selector("#vv-explorer [data-vv=root][data-state=ready]")
    caption = page.locator("#vv-explorer [data-vv=caption]").text_content()
    page.get_by_role("button", name="Save").first.click()
    page.locator(".vv-figure-link").click()
    expect(page.locator(".vv-figure-status")).to_contain_text("Link copied")
    expect(page).to_have_url(page.evaluate("navigator.clipboard.readText()"))
    page.locator(".vv-figure input[value=html]").check()
    with page.expect_download() as file:
        page.locator(".vv-figure-save").click()
    file.value.save_as(tmp_path / "page.html")
    alone = context.new_page()
    alone.goto((tmp_path / "page.html").as_uri())
    expect(alone.locator("[data-vv=caption]")).to_have_text(str(caption))
    context.close()
