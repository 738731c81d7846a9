"""The list of models: opened from any corner of its button, by keyboard and by touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect, point_of

pytestmark = pytest.mark.browser

BUTTON = "#vv-model .vv-model-open"
PANEL = "#vv-model .vv-model-panel"
TEXT = "#vv-model .vv-model-text"
ACTIVE = "#vv-model [role=option][aria-selected=true]"


def test_the_list_opens_at_a_corner_and_is_driven_by_keys(page: Any) -> None:
    page.mouse.move(*point_of(page.locator(BUTTON), 0.98, 0.92))
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(TEXT)).to_be_focused()
    assert page.locator(PANEL).bounding_box()["width"] >= 320
    expect(page.locator(ACTIVE)).to_contain_text("on this disk")
    expect(page.locator("#vv-model [data-name=dino-s16]")).to_contain_text("87 MB · apache-2.0 · to download")
    for name in ("mini-clip", "dino-s16"):
        page.keyboard.press("ArrowDown")
        expect(page.locator(ACTIVE)).to_have_attribute("data-name", name)
    page.keyboard.type("registers")
    expect(page.locator(ACTIVE)).to_have_attribute("data-name", "dinov2-s14-reg")
    page.keyboard.press("Enter")
    question = page.locator("#vv-model .vv-model-question[open]")
    expect(question).to_contain_text("timm/vit_small_patch14_reg4_dinov2.lvd142m")
    expect(question).to_contain_text("88 MB")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    page.locator(BUTTON).click()
    page.keyboard.press("Escape")
    expect(page.locator(PANEL)).to_be_hidden()
    expect(page.locator(BUTTON)).to_be_focused()
    expect(page.locator(BUTTON)).to_have_attribute("data-model", "mini")


@pytest.mark.slow
def test_on_a_phone_the_list_is_as_wide_as_the_screen(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(app_url, width=390, height=844)
    if not page.locator(BUTTON).is_visible():
        page.locator("#vv-menu button").click()
    page.locator(BUTTON).click()
    expect(page.locator(PANEL)).to_be_visible()
    assert page.locator(PANEL).bounding_box()["width"] >= 360
    page.locator("#vv-model .vv-model-close").click()
    expect(page.locator(PANEL)).to_be_hidden()
