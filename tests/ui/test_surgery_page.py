"""Surgery in a browser: a head is switched off by a click and by a key, the badge follows, another browser opens the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.conftest import wait_until_ready
from tests.ui.test_access import AXE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EDITED = "words => document.querySelector('.vv-edited-words').textContent === words && !document.querySelector('.vv-edited').hidden"
TOP = "[...document.querySelectorAll('#vv-top li')].map((line) => line.textContent)"


def test_a_head_is_switched_off_and_on_again(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=heads&image=cheetah", ready=False)
    wait_until_ready(page)
    page.wait_for_selector(".vv-surgery-cell")
    before = page.evaluate(TOP)
    cell = page.locator('.vv-surgery-cell[data-place="5.0"]')
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
    other.evaluate(AXE.read_text("utf-8"))
    found = other.evaluate(
        "axe.run('#vv-header, #vv-surgery').then(({ violations }) => violations.map(({ id }) => id))"
    )
    assert found == []

    page.locator(".vv-edited-undo").click()
    page.wait_for_function("document.querySelector('.vv-edited').hidden")
    page.wait_for_function(
        f"before => JSON.stringify({TOP}) === before",
        arg=json.dumps(before, separators=(",", ":"), ensure_ascii=False),
    )
    assert "edits" not in page.url
