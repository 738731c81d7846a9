"""The Tokens tab stands where it stays while it opens on a phone: what comes late has its place from the beginning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser

WATCH = """
window.moved = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    for (const { node, previousRect, currentRect } of entry.sources)
      if (node?.parentElement?.closest?.('#vv-tab-tokens') && previousRect.height)
        moved.push([node.className || node.nodeName, Math.round(currentRect.y - previousRect.y)]);
}).observe({ type: 'layout-shift', buffered: true });
"""
READY = """() => document.querySelector('#vv-tab-tokens .vv-tokens-caption:not([hidden])')
  && document.querySelector('#vv-tab-tokens .vv-tokens-readout:not(:empty)')
  && document.querySelector('#vv-tab-tokens .vv-tokens-bar:not([data-none])')
  && !document.querySelector('[aria-busy=true], [data-state=loading]')"""


@pytest.mark.parametrize("width", [390, pytest.param(430, marks=pytest.mark.slow)])
def test_nothing_moves_up_or_down_while_it_opens_on_a_phone(
    visit: Callable[..., Any], app_url: str, width: int
) -> None:
    page = visit(f"{app_url}?image=lion&tab=tokens", width=width, height=844, script=WATCH)
    page.wait_for_function(READY)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    moved = page.evaluate("moved")
    assert [one for one in moved if one[1]] == []
