"""The header of a narrow window: tabs directly below its one line, and the bar of a pass in at most two rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EMPTY = """() => {
  const [header, tabs] = ['#vv-header', '#vv-tabs > .tab-wrapper'].map((part) => document.querySelector(part));
  const { top } = tabs.getBoundingClientRect();
  const bottom = (part) => part.getBoundingClientRect().bottom;
  const inside = [...header.querySelectorAll('h1, button, li')].filter((part) => part.checkVisibility());
  return [top - bottom(header), top - Math.max(...inside.map(bottom))];
}"""
"""How many pixels lie between the header and the tabs, and between what is in the header and the tabs."""

BAR = """(job) => {
  const [words, amount, bar, stop] = job.children;
  for (const part of [job, bar, stop]) part.hidden = false;
  words.textContent = 'Running vit_small_patch14_reg4_dinov2.lvd142m …';
  amount.textContent = '42%, about 12 s left';
  bar.value = 0.42;
  const boxes = [...job.children].map((part) => part.getBoundingClientRect());
  const middles = boxes.map(({ top, bottom }) => (top + bottom) / 2);
  const rows = middles.filter((middle, i) => !middles.slice(0, i).some((other) => Math.abs(other - middle) < 8));
  return { rows: rows.length, right: Math.max(...boxes.map(({ right }) => right)), words: boxes[0].width, height: job.offsetHeight,
    isCut: amount.scrollWidth > amount.clientWidth + 1 };
}"""


@pytest.mark.parametrize("width", [600, 720, 900])
def test_the_tabs_follow_the_header_directly(visit: Callable[..., Any], app_url: str, width: int) -> None:
    page = visit(app_url, width=width, height=844)
    apart, empty = page.evaluate(EMPTY)
    assert abs(apart) < 1
    assert empty <= 16


@pytest.mark.parametrize("width", [360, 390])
def test_the_bar_of_a_pass_takes_two_rows_on_a_phone(
    visit: Callable[..., Any], app_url: str, width: int
) -> None:
    page = visit(app_url, width=width, height=740)
    found = page.locator("#vv-loading .vv-job").evaluate(BAR)
    assert found["rows"] <= 2
    assert found["right"] <= width
    assert found["height"] <= 80
    assert found["words"] > width / 2
    assert not found["isCut"]
