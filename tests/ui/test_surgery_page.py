"""Surgery in a browser: a head is switched off by a click and by a key, the badge follows, another browser opens the same."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.conftest import wait_until_ready
from tests.ui.test_access import AXE
from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EDITED = "words => document.querySelector('.vv-edited-words').textContent === words && !document.querySelector('.vv-edited').hidden"
READY = '#vv-heads [data-ready]:not([data-ready=""])'
TOP = "[...document.querySelectorAll('#vv-top li')].map((line) => line.textContent)"


def test_a_head_is_switched_off_and_on_again(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=heads&face=surgery&image=cheetah", ready=False)
    wait_until_ready(page)
    page.wait_for_selector(READY)
    before = page.evaluate(TOP)
    cell = page.locator('#vv-heads td[data-layer="5"][data-head="0"]')
    cell.click()
    page.wait_for_function(EDITED, arg="1 head off")
    cell.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function(EDITED, arg="2 heads off")
    page.wait_for_function("location.search.includes('edits=off+5.0+5.1')")

    other = visit(page.url, ready=False)
    wait_until_ready(other)
    other.wait_for_function(EDITED, arg="2 heads off")
    after = other.evaluate(TOP)
    assert after != before
    page.wait_for_function(  # before it there was the answer with one head off
        f"after => JSON.stringify({TOP}) === after",
        arg=json.dumps(after, separators=(",", ":"), ensure_ascii=False),
    )
    other.locator(".vv-edited-badge").click()
    answers = "name => document.querySelectorAll(`.vv-edited-${name} li`).length === 5"
    for name in ("before", "after"):
        other.wait_for_function(answers, arg=name)
    other.wait_for_selector(READY)
    for part in ("maps-part", "answers"):
        other.wait_for_selector(f".vv-surgery-{part}[aria-busy=false]")
    other.evaluate(AXE.read_text("utf-8"))
    found = other.evaluate(
        "axe.run('#vv-header, #vv-heads').then(({ violations }) => violations.map(({ id }) => id))"
    )
    assert found == []

    page.locator(".vv-edited-undo").click()
    page.wait_for_function("document.querySelector('.vv-edited').hidden")
    page.wait_for_function(
        f"before => JSON.stringify({TOP}) === before",
        arg=json.dumps(before, separators=(",", ":"), ensure_ascii=False),
    )
    expect(page).not_to_have_url(re.compile("edits"))


BEFORE_AND_NOW = """() => {
  const answers = document.querySelector('.vv-surgery-answers');
  const maps = document.querySelector('.vv-surgery-maps-part');
  return answers.getAttribute('aria-busy') === 'false' && maps.getAttribute('aria-busy') === 'false';
}"""


def test_before_and_after_stand_beside_the_switches_and_ctrl_z_takes_steps_back(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=heads&face=surgery&image=cheetah", ready=False)
    wait_until_ready(page)
    page.wait_for_selector(READY)
    cell = "#vv-heads td[data-layer='{}'][data-head='{}']"
    page.wait_for_function(BEFORE_AND_NOW)
    words = page.locator(".vv-surgery-maps-words")
    expect(words).to_contain_text("The map is the same", use_inner_text=True)
    start, end = (page.locator(cell.format(5, head)) for head in (0, 2))
    start.hover()
    page.mouse.down()
    page.locator(cell.format(5, 1)).hover()
    end.hover()
    page.mouse.up()
    page.wait_for_function(EDITED, arg="3 heads off")
    page.wait_for_function(BEFORE_AND_NOW)
    expect(page.locator("#vv-heads .vv-heads-found")).to_contain_text("3 heads off: ", use_inner_text=True)
    expect(words).to_contain_text("Red: more attention now", use_inner_text=True)
    expect(page.locator(".vv-surgery-maps-title")).to_contain_text(
        "the 3 heads that are on", use_inner_text=True
    )
    page.locator("#vv-heads [data-all='0']").click()
    page.wait_for_function(EDITED, arg="9 heads off")
    page.keyboard.press("Control+z")
    page.wait_for_function(EDITED, arg="3 heads off")
    page.wait_for_function("location.search.includes('edits=off+5.0+5.1+5.2')")
    page.locator(".vv-surgery-undo").click()
    page.wait_for_function("document.querySelector('.vv-edited').hidden")
    expect(page.locator(".vv-surgery-undo")).to_be_disabled()


def test_on_a_phone_the_answer_comes_first_and_the_switches_fit(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=heads&face=surgery&image=cheetah", ready=False)
    page.set_viewport_size({"width": 390, "height": 844})
    wait_until_ready(page)
    page.wait_for_selector(READY)
    page.wait_for_function(
        """() => {
          const [table, first] = ['.vv-heads-scroll', '.vv-surgery-first'].map((part) => document.querySelector(part));
          const [grid, answer] = [table, first].map((part) => part.getBoundingClientRect());
          return table.scrollWidth <= table.clientWidth && grid.width > 200 && grid.right <= 390 && answer.bottom <= grid.top;
        }"""
    )
