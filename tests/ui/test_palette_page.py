"""The palette and the panel in a browser: keys, focus, links and Back."""

from __future__ import annotations

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
