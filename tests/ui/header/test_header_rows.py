"""The header of a narrow window: tabs directly below its one line, the answer read whole, the bar of a pass in at most two rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EMPTY = """() => {
  const [header, tabs] = ['#vv-header', '#vv-tabs > .tab-wrapper'].map((part) => document.querySelector(part));
  const { top } = tabs.getBoundingClientRect();
  const bottom = (part) => part.getBoundingClientRect().bottom;
  const inside = [...header.querySelectorAll('h1, button, li')].filter((part) => part.checkVisibility());
  return [top - bottom(header), top - Math.max(...inside.map(bottom))];
}"""
"""How many pixels lie between the header and the tabs, and between what is in the header and the tabs."""

SLOW = """
const own = window.fetch;
window.fetch = (address, ...how) => {
  if (!window.isSlow || !String(address).endsWith('/vit_viz/open')) return own(address, ...how);
  const told = [['progress', { share: 0.42, left: 'about 12 s left' }],
    ['preview', { words: 'Running vit_small_patch14_reg4_dinov2.lvd142m …' }]];
  const lines = told.map(([kind, far]) => `event: ${kind}\\ndata: ${JSON.stringify(far)}\\n\\n`).join('');
  const start = (stream) => stream.enqueue(new TextEncoder().encode(lines));
  return Promise.resolve(new Response(new ReadableStream({ start })));
};"""
"""A pass of which no more is heard than how far it is."""

BAR = """(job) => {
  const amount = job.querySelector('.vv-job-amount');
  const boxes = [...job.children].map((part) => part.getBoundingClientRect());
  const middles = boxes.map(({ top, bottom }) => (top + bottom) / 2);
  const rows = middles.filter((middle, i) => !middles.slice(0, i).some((other) => Math.abs(other - middle) < 8));
  return { rows: rows.length, right: Math.max(...boxes.map(({ right }) => right)), words: boxes[0].width, height: job.offsetHeight,
    isCut: amount.scrollWidth > amount.clientWidth + 1 };
}"""

CUT = """(top) => [...top.querySelectorAll('li:first-child > span')].filter((one) => {
  const [own, whole] = [one.getBoundingClientRect(), top.querySelector('.vv-answers').getBoundingClientRect()];
  return one.scrollWidth > one.clientWidth || own.top < whole.top || own.bottom > whole.bottom || own.right > innerWidth;
}).map((one) => one.textContent)"""
"""What of the first answer is not read whole."""


def test_the_tabs_follow_the_header_directly(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(app_url, width=600, height=844)
    for width in (600, 720, 900):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")
        apart, empty = page.evaluate(EMPTY)
        assert abs(apart) < 1, width
        assert empty <= 16, width


@pytest.mark.parametrize(("image", "width", "name"), [("lion", 360, "lion"), ("twins", 390, "umbrella")])
def test_on_a_phone_the_answer_is_read_whole_and_a_pass_takes_two_rows(
    visit: Callable[..., Any], app_url: str, image: str, width: int, name: str
) -> None:
    page = visit(f"{app_url}?image={image}", width=width, height=800, script=SLOW)
    expect(page.locator("#vv-top li:first-child .vv-class")).to_have_text(name)
    assert page.locator("#vv-top").evaluate(CUT) == []
    assert page.locator("#vv-header").bounding_box()["height"] < 70  # still one line
    page.evaluate("window.isSlow = true")
    page.locator("#vv-samples [aria-pressed=false]").first.click()
    expect(page.locator("#vv-loading .vv-job-amount")).to_have_text("42%, about 12 s left")
    bar = page.locator("#vv-loading .vv-job").evaluate(BAR)
    assert bar["rows"] <= 2
    assert bar["right"] <= width
    assert bar["height"] <= 80
    assert bar["words"] > width / 2
    assert not bar["isCut"]
