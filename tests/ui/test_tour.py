"""The tour in a browser: its stops by the keyboard, what it frames and does there, and what it remembers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.test_access import axe
from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OPEN = ".vv-tour[data-state=open]"
AROUND = """about => {
  const rects = (one) => [...document.querySelectorAll(one)].map((node) => node.getBoundingClientRect());
  const [ring, part] = ['.vv-tour-ring', about].map((one) => rects(one).find(({ width }) => width));
  if (!ring || !part) return false;
  const apart = ['left', 'top', 'right', 'bottom'].map((side) => Math.abs(ring[side] - part[side]));
  return part.width > 0 && part.top < innerHeight && part.bottom > 0 && Math.max(...apart) < 1;
}"""
FAULTS = """axe.run(document).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, ...nodes.map(({ html, any }) => `${html.slice(0, 120)} ${any[0]?.message}`)]))"""
STILL = """() => !document.querySelector('#vv-tabs .vv-busy, #vv-tabs [aria-busy=true]')
  && !document.getAnimations().some((one) => one instanceof CSSTransition)"""
"""Nothing is dimmed because it is on its way."""
STOPS = {
    "One patch asks": "#vv-explorer [data-vv=stage]",
    "Every head of every layer answers": "#vv-explorer [data-vv=mosaic]",
    "What made it say this class?": "#vv-explain-picture input[type=range]",
    "What is each head for?": "#vv-heads",
    "Ask anything, and take it with you": "#vv-palette .vv-ask, #vv-menu .vv-opener",
}


def start(page: Any, width: int) -> None:
    """Press the button of the header, which a phone has in its menu."""
    if width < 500:
        page.locator("#vv-menu button").click()
    page.locator(".vv-start").click()


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_five_stops_by_the_keyboard(visit: Callable[..., Any], app_url: str, width: int, height: int) -> None:
    page = visit(app_url, width=width, height=height, dark=width < 500)
    start(page, width)
    for title, about in STOPS.items():
        expect(page.locator(OPEN)).to_contain_text(title)
        expect(page.locator(".vv-tour-title")).to_be_focused()
        page.wait_for_function(AROUND, arg=about)
        page.keyboard.press("Tab")
        if title != "One patch asks":
            page.keyboard.press("Tab")  # over Back
        if title == "What made it say this class?":
            expect(page.locator("#vv-explain-picture")).to_contain_text("51 of 256")
            page.wait_for_function(STILL)
            page.evaluate(axe())
            assert page.evaluate(FAULTS) == []
        page.keyboard.press("Enter")
    expect(page.locator(".vv-tour")).to_be_hidden()
    expect(page.locator(".vv-tour-ring")).to_be_hidden()
    page.reload()
    expect(page.locator(".vv-start")).to_have_text("Tour")
