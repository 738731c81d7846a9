"""The palette and the panel in a browser: keys, focus, links and Back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DONE = ".vv-question[open][data-state=done][data-drawn]"


def test_keys_alone_find_a_question_answer_it_and_lead_back(page: Any) -> None:
    def find(words: str) -> None:
        page.keyboard.press("Control+k")
        page.locator(".vv-palette-row").first.wait_for()
        page.keyboard.type(words)

    page.locator("#vv-palette .vv-ask").focus()
    find("class")
    page.keyboard.press("Escape")
    expect(page.locator("#vv-palette .vv-ask")).to_be_focused()
    find("input x grad")
    page.keyboard.press("Enter")
    expect(page.locator(".vv-question-title")).to_be_focused()
    page.locator(".vv-question-go").press("Enter")
    page.wait_for_selector(DONE)
    page.wait_for_function("location.search.includes('run=1')")
    page.go_back()
    expect(page.locator(".vv-question[open]")).to_have_count(0)
    find("head importance")  # a question of a tab
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Heads")).to_have_attribute("aria-selected", "true")
    page.wait_for_function("location.search.includes('measure=estimate')")


def test_a_link_opens_its_options_and_a_bad_value_stays_where_it_was_typed(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?ask=resampling&ask.rows=9&ask.cols=12")
    page.wait_for_selector(DONE)
    rows = page.locator(".vv-question [data-option=rows]")
    expect(rows).to_have_value("9")
    rows.fill("many")
    rows.press("Tab")
    expect(page.locator("#vv-question-rows-refusal")).to_contain_text("whole number from 1 to 512")
    rows.fill("7")
    rows.press("Tab")
    page.wait_for_function("location.search.includes('ask.rows=7')")
    page.wait_for_selector(DONE)
    with page.expect_download() as saved:
        page.locator(".vv-question-save").click()
        page.locator(".vv-figure-formats label", has_text="JSON").click()
        page.locator(".vv-figure-save").click()
    assert json.loads(saved.value.path().read_text())["request"]["parameters"]["rows"] == 7
