"""Assertions about a page that wait until they hold: what a press or a pointer causes follows a moment later."""

from __future__ import annotations

import re
from typing import Any

from tests.waiting import PATIENCE


def expect(locator: Any) -> Any:
    """Playwright's assertions about what a locator finds."""
    from playwright.sync_api import expect as awaited

    awaited.set_options(timeout=PATIENCE * 1000)
    return awaited(locator)


def expect_in_address(page: Any, *parts: str) -> None:
    """The address of a page comes to hold these parts of a link."""
    for part in parts:
        expect(page).to_have_url(re.compile(re.escape(part)))


def click_at(locator: Any, across: float, down: float) -> None:
    """Click at these shares of its width and height, once it stands still; it may have moved since its box was looked up."""
    box = locator.bounding_box()
    locator.click(position={"x": across * box["width"], "y": down * box["height"]})


def point_of(locator: Any, across: float, down: float) -> tuple[float, float]:
    """Where these shares of its width and height are in the window, once it stands still: for a pointer that hovers or drags."""
    locator.scroll_into_view_if_needed()
    stands_still(locator)
    box = locator.bounding_box()
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def stands_still(locator: Any) -> None:
    """It keeps its place for some frames: a page that still grows or scrolls would move it from under a pointer."""
    locator.evaluate(STILL)


STILL = """async (part) => {
  for (let last = '', kept = 0; kept < 5; ) {
    const now = JSON.stringify(part.getBoundingClientRect());
    kept = now === last ? kept + 1 : 0;
    last = now;
    await new Promise(requestAnimationFrame);
  }
}"""
