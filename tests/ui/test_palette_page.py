"""The palette and the panel in a browser: keys, focus, links, Back, and what axe-core says, on a screen and on a phone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.effort import WINDOWS
from tests.ui.conftest import wait_until_ready
from tests.ui.test_access import axe
from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

DONE = ".vv-question[open][data-state=done][data-drawn]"


def find(page: Any, words: str) -> None:
    """Open the palette and type."""
    page.keyboard.press("Control+k")
    page.locator(".vv-palette-row").first.wait_for()
    page.keyboard.type(words)


def test_keys_alone_find_a_question_answer_it_and_lead_back(page: Any) -> None:
    page.locator("#vv-palette .vv-ask").focus()
    find(page, "class")
    page.keyboard.press("Escape")
    expect(page.locator("#vv-palette .vv-ask")).to_be_focused()
    find(page, "input x grad")
    page.keyboard.press("Enter")
    expect(page.locator(".vv-question-title")).to_be_focused()
    page.locator(".vv-question-go").press("Enter")
    page.wait_for_selector(DONE)
    expect(page.locator(".vv-question-picture")).to_be_visible()
    page.wait_for_function(
        "location.search.includes('ask=input_x_gradient') && location.search.includes('run=1')"
    )
    page.go_back()
    expect(page.locator(".vv-question[open]")).to_have_count(0)
    page.go_forward()
    page.wait_for_selector(DONE)
    page.keyboard.press("Escape")
    page.wait_for_function("!location.search.includes('ask=')")


def test_a_question_of_a_tab_opens_that_tab(page: Any) -> None:
    find(page, "head importance")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Heads")).to_have_attribute("aria-selected", "true")
    page.wait_for_function("location.search.includes('measure=estimate')")
    expect(page.locator(".vv-question[open]")).to_have_count(0)


def test_a_link_opens_the_same_options_and_a_bad_value_stays_where_it_was_typed(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?ask=resampling&ask.rows=9&ask.cols=12")
    page.wait_for_selector(DONE)
    rows = page.locator(".vv-question [data-option=rows]")
    expect(rows).to_have_value("9")
    rows.fill("many")
    rows.press("Tab")
    page.wait_for_selector(".vv-question[data-settled]")
    expect(rows).to_have_value("many")
    expect(page.locator("#vv-question-rows-refusal")).to_contain_text("whole number from 1 to 512")
    before = page.locator(".vv-question").get_attribute("data-drawn")
    rows.fill("7")
    rows.press("Tab")
    page.wait_for_function("location.search.includes('ask.rows=7')")
    page.wait_for_function(
        "before => document.querySelector('.vv-question').dataset.drawn !== before", arg=before
    )
    page.wait_for_selector(DONE)
    with page.expect_download() as saved:
        page.locator(".vv-question-save").click()
        page.locator(".vv-figure-formats label", has_text="JSON").click()
        page.locator(".vv-figure-save").click()
    assert json.loads(saved.value.path().read_text())["request"]["parameters"]["rows"] == 7


@pytest.mark.parametrize(("width", "dark"), WINDOWS)
def test_axe_finds_nothing_serious_in_the_palette_and_the_panel(
    visit: Callable[..., Any], app_url: str, width: int, dark: bool
) -> None:
    script = axe()
    page = visit(f"{app_url}?__theme={'dark' if dark else 'light'}", width=width, dark=dark)
    page.evaluate(script)
    page.locator("#vv-palette .vv-ask").click()
    page.locator(".vv-palette-row").first.wait_for()
    found = serious(page, "#vv-palette dialog")
    page.goto(f"{app_url}?__theme={'dark' if dark else 'light'}&ask=links&ask.tokens=all")
    wait_until_ready(page)
    page.wait_for_selector(DONE)
    page.evaluate(script)
    found += serious(page, "#vv-panel dialog")
    assert found == [], json.dumps(found, indent=1)
    assert page.evaluate("document.querySelector('.vv-question').scrollWidth <= innerWidth")


def serious(page: Any, part: str) -> list[Any]:
    """What axe-core finds in a part of the page."""
    answer = page.evaluate(
        "(part) => axe.run(part, { rules: { 'color-contrast': { enabled: true } } })", part
    )
    assert answer["passes"]
    worst = [rule for rule in answer["violations"] if rule["impact"] in ("serious", "critical")]
    return [(rule["id"], [node["html"][:160] for node in rule["nodes"]][:4]) for rule in worst]
