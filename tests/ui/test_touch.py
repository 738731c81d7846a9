"""Fingers on a phone: a swipe scrolls wherever it starts, a tap asks, and a finger that rests draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui.conftest import open_tab, wait_until_ready
from tests.ui.waits import expect

pytestmark = pytest.mark.browser

PHOTO = "#vv-explorer [data-vv=stage]"
MOSAIC = "#vv-explorer [data-vv=cells]"
PLAYGROUND = ".vv-play-marks"
GONE = ".vv-gone"
REST = 700  # milliseconds, more than a long press needs


class Finger:
    """One finger on a page, moved as a hand moves it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.devtools = page.context.new_cdp_session(page)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """Send one event of the touch screen: touchStart, touchMove or touchEnd."""
        places = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        self.devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    def stroke(
        self, start: tuple[float, float], end: tuple[float, float], *, rest: int = 0, steps: int = 10
    ) -> None:
        """Come down, rest for milliseconds, move to the end and lift."""
        self.touch("touchStart", start)
        self.page.wait_for_timeout(rest)
        for i in range(1, steps + 1):
            share = i / steps
            point = tuple(a + (b - a) * share for a, b in zip(start, end, strict=True))
            self.touch("touchMove", point)  # type: ignore[arg-type]
            self.page.wait_for_timeout(16)
        self.touch("touchEnd")
        self.page.wait_for_timeout(400)  # whatever a finger has set going


@pytest.fixture
def phone(browser: Any, app_url: str) -> Iterator[Any]:
    """The page on a phone with a touch screen."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = context.new_page()
    page.goto(app_url)
    wait_until_ready(page)
    yield page
    context.close()


def scrolled(page: Any) -> float:
    return float(page.evaluate("window.scrollY"))


def place(page: Any, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
    """A place in an element that is brought to the middle of the screen."""
    part = page.locator(selector).first
    part.evaluate("(e) => e.scrollIntoView({ block: 'center', behavior: 'instant' })")
    page.wait_for_timeout(300)
    box = part.bounding_box()
    return box["x"] + box["width"] * across, box["y"] + box["height"] * down


def search(page: Any) -> str:
    return str(page.evaluate("location.search"))


def asks(page: Any, query: str) -> None:
    page.wait_for_function("query => new URLSearchParams(location.search).get('q') === query", arg=query)


@pytest.mark.slow
@pytest.mark.parametrize("up", [200, -200], ids=["up", "down"])
@pytest.mark.parametrize("start", [PHOTO, MOSAIC], ids=["photo", "mosaic"])
def test_a_swipe_over_the_pictures_scrolls_the_page_and_asks_nothing(
    phone: Any, start: str, up: float
) -> None:
    x, y = place(phone, start)
    if up < 0:  # there has to be something above to scroll back to
        phone.evaluate("window.scrollTo(0, Math.max(window.scrollY, 220))")
        box = phone.locator(start).first.bounding_box()
        y = min(max(box["y"] + box["height"] / 2, 110), 700)
    before, link = scrolled(phone), search(phone)
    Finger(phone).stroke((x, y + up / 2), (x, y - up / 2))
    assert (scrolled(phone) - before) * (up / 200) >= 150
    assert search(phone) == link
    expect(phone.locator("#vv-explorer [data-vv=hovered]")).to_have_attribute("d", "")


def test_a_tap_on_the_photo_asks(phone: Any) -> None:
    x, y = place(phone, PHOTO, (3 + 0.5) / 16, (5 + 0.5) / 16)
    phone.touchscreen.tap(x, y)
    asks(phone, "5,3")


@pytest.mark.slow
def test_a_tap_on_the_mosaic_chooses_layer_and_head(phone: Any) -> None:
    x, y = place(phone, MOSAIC, (1 + 0.5) / 9, (2 + 0.5) / 6)
    phone.touchscreen.tap(x, y)
    phone.wait_for_function("location.search.includes('layer=2&head=1')")


@pytest.mark.slow
def test_a_finger_that_rests_on_the_photo_takes_a_region_and_does_not_scroll(phone: Any) -> None:
    start = place(phone, PHOTO, (3 + 0.5) / 16, (5 + 0.5) / 16)
    end = place(phone, PHOTO, (4 + 0.5) / 16, (7 + 0.5) / 16)
    before = scrolled(phone)
    Finger(phone).stroke(start, end, rest=REST)
    assert scrolled(phone) == before
    asks(phone, "5,3;5,4;6,3;6,4;7,3;7,4")


@pytest.fixture
def playground(phone: Any) -> Any:
    """The Explain tab on a phone, with its playground."""
    open_tab(phone, "Explain")
    phone.locator(PLAYGROUND).wait_for()
    return phone


def gone(page: Any) -> int:
    return int(page.locator(GONE).count())


@pytest.mark.slow
def test_a_swipe_over_the_playground_scrolls_the_page_and_takes_no_patch(playground: Any) -> None:
    x, y = place(playground, PLAYGROUND)
    before = scrolled(playground)
    Finger(playground).stroke((x, y + 100), (x, y - 100))
    assert scrolled(playground) - before >= 150
    assert gone(playground) == 0


@pytest.mark.slow
def test_a_finger_that_rests_on_the_playground_brushes_and_does_not_scroll(playground: Any) -> None:
    start, end = (
        place(playground, PLAYGROUND, 0.5, 0.3),
        place(playground, PLAYGROUND, 0.5, 0.7),
    )
    before = scrolled(playground)
    Finger(playground).stroke(start, end, rest=REST)
    assert scrolled(playground) == before
    assert gone(playground) >= 5


@pytest.mark.slow
def test_a_tap_on_the_playground_takes_one_patch(playground: Any) -> None:
    x, y = place(playground, PLAYGROUND, 0.41, 0.41)
    playground.touchscreen.tap(x, y)
    playground.wait_for_function("gone => document.querySelectorAll(gone).length === 1", arg=GONE)
