"""The answer in the header of a narrow phone is read whole: its name and its share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CUT = """(top) => [...top.querySelectorAll('li:first-child > span')].filter((one) => {
  const [own, whole] = [one.getBoundingClientRect(), top.querySelector('.vv-answers').getBoundingClientRect()];
  return one.scrollWidth > one.clientWidth || own.top < whole.top || own.bottom > whole.bottom || own.right > innerWidth;
}).map((one) => one.textContent)"""


@pytest.mark.parametrize(("image", "width", "name"), [("lion", 360, "lion"), ("twins", 390, "umbrella")])
def test_name_and_share_of_the_answer_are_read_whole(
    visit: Callable[..., Any], app_url: str, image: str, width: int, name: str
) -> None:
    page = visit(f"{app_url}?image={image}", width=width, height=800)
    expect(page.locator("#vv-top li:first-child .vv-class")).to_have_text(name)
    assert page.locator("#vv-top").evaluate(CUT) == []
    assert page.locator("#vv-header").bounding_box()["height"] < 70  # still one line
