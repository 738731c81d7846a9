"""The faces of the Explain tab in a browser: what the answer is made of, and two classes against each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.test_access import axe
from tests.ui.waits import expect
from vit_viz.analyses.methods import METHODS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READY = ".vv-parts[data-state=ready]"
CAPTION = ".vv-parts-caption"


def test_pointing_shows_a_head_and_a_click_switches_it_off(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=explain&image=lion", ready=False)
    page.locator("#vv-target").get_by_role("button", name="What it is made of").click()
    page.locator(READY).wait_for()
    page.wait_for_function("location.search.includes('explain=parts')")
    expect(page.locator("#vv-gallery")).to_be_hidden()
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

    cell.click()
    effect = page.locator(".vv-parts-effect")
    expect(effect.locator(".vv-number").first).to_have_text(promised)
    page.wait_for_function("location.search.includes('edits=off+4.3')")
    words = effect.locator(".vv-effect-words").inner_text()
    assert f"the logit of lion falls from {total:.2f} to" in words
    other = visit(page.url, ready=False)
    expect(other.locator(".vv-effect-words")).to_have_text(words, use_inner_text=True)
    other.evaluate(axe())
    run = "axe.run('#vv-parts, #vv-target').then(({ violations }) => violations.map(({ id }) => id))"
    assert other.evaluate(run) == []


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
    context.close()


def test_one_class_is_set_against_another_and_the_lead_is_measured(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=explain&image=lion", width=390, height=844)
    photo, gallery = page.locator("#vv-explain-picture"), page.locator("#vv-gallery")
    page.locator("#vv-target .vv-more-classes").click()
    page.locator("#vv-target .vv-unlike .vv-chip").first.click()
    photo.locator("[data-side=difference]").click()
    expect(photo.locator(".vv-sides-words")).to_contain_text("of the map lies elsewhere.")
    part = photo.locator(".vv-belief")
    expect(part.locator(".vv-job-words")).to_contain_text("some hundred passes")
    part.locator(".vv-test").press("Enter")
    expect(part.locator(".vv-fall-title")).to_contain_text("orange patches go", timeout=120_000)
    expect(part.locator(".vv-said")).to_contain_text(
        "In the mean over the curve the lead is ", timeout=120_000
    )
    part.locator("[data-test=reverse]").press("Enter")
    expect(part.locator(".vv-fall-title")).to_contain_text("blue patches go")
    photo.locator("[data-side=other]").click()
    expect(photo.locator(".vv-sides-words")).to_contain_text("Half of the map")
    gallery.locator("[data-map-scale=only]").click()
    expect(gallery.locator(".vv-rule-words")).to_contain_text("less the mean of the quick maps")
    expect(gallery.locator(".vv-agree-table tbody tr")).to_have_count(len(METHODS.quick))
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
