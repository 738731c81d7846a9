"""What the answer is made of, on the Explain tab: no map is made for it, pointing shows a head, and a click switches it off."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.test_access import AXE
from tests.ui.waits import expect

READY = ".vv-parts[data-state=ready]"
CAPTION = ".vv-parts-caption"


@pytest.mark.slow
@pytest.mark.browser
def test_pointing_shows_a_head_and_a_click_switches_it_off(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=explain&image=lion", ready=False)
    page.locator("#vv-target").get_by_role("button", name="What it is made of").click()
    page.locator(READY).wait_for()
    page.wait_for_function("location.search.includes('explain=parts')")
    expect(page.locator("#vv-gallery")).to_be_hidden()
    expect(page.locator(CAPTION)).to_contain_text("all heads together", use_inner_text=True)
    total = float(re.search(r"Exactly ([\d.]+):", page.locator(".vv-sum-title").inner_text()).group(1))

    cell = page.locator('[data-place="4.3"]')
    gave = cell.locator(".vv-number").inner_text()
    painted = "() => document.querySelector('.vv-parts-photo .vv-map').toDataURL()"
    everything = page.evaluate(painted)
    cell.hover()
    expect(page.locator(CAPTION)).to_contain_text(f"4 · 3, {gave} in all", use_inner_text=True)
    assert page.evaluate(painted) != everything
    promised = gave.replace("+", "−")
    expect(page.locator(".vv-parts-switch")).to_have_text(f"switch off 4 · 3 (promised {promised})")
    page.locator(".vv-parts-photo .vv-stage").hover()
    expect(page.locator(CAPTION)).to_contain_text("Patch (", use_inner_text=True)
    expect(cell.locator(".vv-number")).not_to_have_text(gave, use_inner_text=True)

    cell.click()
    effect = page.locator(".vv-parts-effect")
    expect(effect).to_be_visible()
    expect(cell).to_have_attribute("aria-pressed", "true")
    expect(effect.locator(".vv-number").first).to_have_text(promised)
    page.wait_for_function("location.search.includes('edits=off+4.3')")
    words = effect.locator(".vv-effect-words").inner_text()
    assert f"the logit of lion falls from {total:.2f} to" in words

    other = visit(page.url, ready=False)
    expect(other.locator(".vv-effect-words")).to_have_text(words, use_inner_text=True)
    other.evaluate(AXE.read_text("utf-8"))
    found = other.evaluate(
        "axe.run('#vv-parts, #vv-target').then(({ violations }) => violations.map(({ id }) => id))"
    )
    assert found == []
    other.locator("#vv-target").get_by_role("button", name="Why", exact=True).click()
    other.locator("#vv-explain-picture .vv-image:not([hidden])").wait_for()
    expect(other.locator("#vv-parts")).to_be_hidden()

    cell.focus()
    page.keyboard.press("Enter")
    expect(effect).to_be_hidden()
    page.keyboard.press("ArrowUp")
    expect(page.locator('[data-place="3.3"]')).to_be_focused()
    page.locator(".vv-parts-save").click()
    page.locator("dialog[open]").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_on_a_phone_the_first_tap_shows_a_head_and_the_second_switches_it(browser: Any, app_url: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(f"{app_url}?tab=explain&image=cheetah&explain=parts&target=102")
    page.locator(READY).wait_for()
    cell = page.locator('[data-place="5.2"]')
    cell.tap()
    expect(page.locator(CAPTION)).to_contain_text("through 5 · 2", use_inner_text=True)
    expect(cell).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    cell.tap()
    expect(cell).to_have_attribute("aria-pressed", "true")
    page.wait_for_function("location.search.includes('edits=off+5.2')")
    context.close()
