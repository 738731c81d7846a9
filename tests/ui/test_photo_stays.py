"""On a phone the photo of a tab stays in sight over what belongs to it, small and alone; it covers no other words and no focus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.effort import EFFORT
from tests.ui.conftest import wait_until_ready
from tests.ui.test_touch import DRAWN, opened

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PHOTOS = {"walkthrough": "#vv-w-photo .vv-frame", "positions": ".vv-places-pair"}

STAYS = """([photo, words]) => {
  const box = (part) => part.getBoundingClientRect();
  const [one, tabs, told] = [photo, '#vv-tabs > .tab-wrapper', words].map((part) => document.querySelector(part));
  const apart = Math.round(box(told).top - innerHeight * 0.85); // the words of the tab are about to come
  if (Math.abs(apart) > 2 && innerHeight + Math.ceil(scrollY) < document.documentElement.scrollHeight) {
    scrollBy({ top: apart, behavior: 'instant' });
    return null;
  }
  const { left, top, width, height } = box(one);
  const seen = document.elementFromPoint(left + width / 4, top + height / 3);
  const beside = document.elementFromPoint(2, top + height / 2);
  return {
    top: top - box(tabs).bottom,
    share: height / innerHeight,
    isSeen: one.contains(seen),
    isAlone: !beside.closest('.form, .vv-w, .vv-cells'),
  };
}"""

FOLLOW = """(panel) => {
  const ofPage = (part) => !part.parentElement?.closest('.vv-scroll, table, dialog, .vv-panel');
  const parts = document.querySelectorAll(`#vv-header, #vv-header *, #vv-tabs > .tab-wrapper, ${panel} *`);
  const stays = [...parts].filter((part) => ['sticky', 'fixed'].includes(getComputedStyle(part).position) && ofPage(part));
  const covers = (part, control) => {
    const [one, other] = [part, control].map((each) => each.getBoundingClientRect());
    const [top, bottom] = [Math.max(one.top, other.top), Math.min(one.bottom, other.bottom)];
    return bottom - top > 1 && part.contains(document.elementFromPoint(one.left + one.width / 2, (top + bottom) / 2));
  };
  window.followed = { controls: new Set(), covered: [] };
  addEventListener('keyup', () => {
    const control = document.activeElement;
    if (!control.closest(panel)) return;
    followed.controls.add(control);
    if (stays.some((part) => part.contains(control))) return;
    const over = stays.filter((part) => !control.contains(part) && covers(part, control));
    followed.covered.push(...over.map((part) => `${control.id || control.className} below ${part.id || part.className}`));
  });
}"""
"""Writes down each control that lies below something that stays, when a key has moved the focus to it."""

READ = """([words]) => {
  scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
  const lines = [...document.querySelectorAll(`${words} p`)].map((line) => [line, line.getBoundingClientRect()]);
  return lines.every(([line, { left, top }]) => top < 150 || line.contains(document.elementFromPoint(left + 20, top + 8)));
}"""


PHONES = [pytest.param((390, 844), id="390"), pytest.param((360, 740), id="360")]


@pytest.fixture(params=PHONES)
def phone(browser: Any, app_url: str, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page on a phone."""
    width, height = request.param
    context = browser.new_context(
        viewport={"width": width, "height": height}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = context.new_page()
    page.goto(app_url)
    wait_until_ready(page)
    yield page
    context.close()


def test_the_photo_stays_over_what_belongs_to_it_and_covers_nothing_else(phone: Any) -> None:
    for name, photo in PHOTOS.items():
        opened(phone, name)
        panel = f"#vv-tab-{name}"
        found = phone.wait_for_function(STAYS, arg=[photo, f"{panel} .vv-words"]).json_value()
        assert abs(found.pop("top")) < 2, name
        assert found.pop("share") <= 0.35, name
        assert found == {"isSeen": True, "isAlone": True}, name
        phone.wait_for_function(READ, arg=[f"{panel} .vv-words"])


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("phone", PHONES if EFFORT >= 2 else PHONES[:1], indirect=True)
def test_what_has_the_focus_is_never_covered(phone: Any, name: str) -> None:
    opened(phone, name)
    panel = f"#vv-tab-{name}"
    phone.evaluate(FOLLOW, panel)
    phone.locator(panel).evaluate("(panel) => { panel.tabIndex = -1; panel.focus(); }")
    for key in ("Tab", "Shift+Tab"):
        phone.keyboard.press(key)
        while phone.evaluate("(panel) => Boolean(document.activeElement.closest(panel))", panel):
            phone.keyboard.press(key)
    controls, covered = phone.evaluate("[followed.controls.size, followed.covered]")
    assert controls >= 5
    assert covered == []
