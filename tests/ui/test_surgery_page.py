"""Surgery in a browser: heads are switched off by a click, keys and a stroke, the answer and the badge follow."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READY = '#vv-heads [data-ready]:not([data-ready=""])'
CELL = "#vv-heads td[data-layer='5'][data-head='{}']"


def test_heads_are_switched_off_by_hand_and_on_again(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=heads&face=surgery&image=cheetah")
    page.wait_for_selector(READY)
    top, edited = page.locator("#vv-top"), page.locator(".vv-edited-words")
    words = page.locator(".vv-surgery-maps-words")
    expect(words).to_contain_text("An edit changes where later layers look", use_inner_text=True)
    before = top.inner_text()
    page.locator(CELL.format(0)).click()
    expect(edited).to_have_text("1 head off")
    page.locator(CELL.format(0)).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(edited).to_have_text("2 heads off")
    page.wait_for_function("location.search.includes('edits=off+5.0+5.1')")
    expect(words).to_contain_text("Orange: more attention now", use_inner_text=True)
    expect(top).not_to_have_text(before, use_inner_text=True)
    page.locator(".vv-edited-undo").click()
    expect(page.locator(".vv-edited")).to_be_hidden()
    expect(top).to_have_text(before, use_inner_text=True)
    expect(page).not_to_have_url(re.compile("edits"))
    page.locator(CELL.format(2)).hover()
    page.mouse.down()
    for head in (3, 4):
        page.locator(CELL.format(head)).hover()
    page.mouse.up()
    expect(edited).to_have_text("3 heads off")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(  # the answer comes first and the switches fit
        """() => {
          const [table, first] = ['.vv-heads-scroll', '.vv-surgery-first'].map((part) => document.querySelector(part));
          const [grid, answer] = [table, first].map((part) => part.getBoundingClientRect());
          return table.scrollWidth <= table.clientWidth && grid.width > 200 && grid.right <= 390 && answer.bottom <= grid.top;
        }"""
    )
