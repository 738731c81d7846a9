"""The Positions tab in a browser: small maps that answer the pointer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect

pytestmark = pytest.mark.browser

PIXEL = """([row, col]) => {
  const canvas = document.querySelector('.vv-places-pair .vv-cells canvas');
  return [...canvas.getContext('2d').getImageData(col, row, 1, 1).data];
}"""


def opened(visit: Callable[..., Any], address: str, **screen: int) -> Any:
    page = visit(address, **screen)
    page.locator(".vv-tables[aria-busy=false]").wait_for()
    return page


def test_the_place_under_the_pointer_is_enlarged_and_a_click_makes_it_the_query(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = opened(visit, f"{app_url}?tab=positions&model=mini&image=lion")
    title = page.locator(".vv-places-title")
    expect(title).to_have_text(re.compile(r"neighbours are 0\.\d\d alike, places 7 steps apart 0\.\d\d$"))
    caption = page.locator(".vv-places-pair figcaption span").first
    expect(caption).to_have_text("position (8, 8) with all places")
    # alike is orange, unlike is blue
    (orange, _, low), (high, _, blue) = page.evaluate(PIXEL, [8, 8])[:3], page.evaluate(PIXEL, [0, 0])[:3]
    assert orange > low + 100
    assert blue > high + 100
    tiles = page.locator(".vv-places-tiles")
    box = tiles.bounding_box()
    tiles.hover(position={"x": box["width"] * 1.5 / 16, "y": box["height"] * 2.5 / 16})
    expect(caption).to_have_text("position (2, 1) with all places")
    assert page.evaluate(PIXEL, [2, 1])[2] < 100
    tiles.click(position={"x": box["width"] * 11.5 / 16, "y": box["height"] * 2.5 / 16})
    page.wait_for_function("new URLSearchParams(location.search).get('q') === '2,11'")
    title.hover()
    expect(caption).to_have_text("position (2, 11) with all places")
    page = opened(visit, f"{app_url}?tab=positions&image=cheetah&size=20&positions=resampled")
    expect(page.locator(".vv-tables-figure", has_text="this model's own way")).to_have_count(1)
    page.locator(".vv-tables-figure .vv-cells[tabindex]").first.press("ArrowDown")
    expect(page.locator(".vv-tables-cell")).to_contain_text("position (1, 0): differs by")


@pytest.mark.slow
def test_on_a_phone_map_and_photo_come_first_and_nothing_is_cut_off(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = opened(visit, f"{app_url}?tab=positions&model=mini&image=tower", width=390, height=844)
    parts = ("pair", "title", "tiles", "far")
    top = {name: page.locator(f".vv-places-{name}").bounding_box()["y"] for name in parts}
    assert sorted(top, key=lambda name: top[name]) == [*parts]
    one, photo = (page.locator(".vv-places-pair > figure").nth(i).bounding_box() for i in (0, 1))
    assert one["y"] == photo["y"]
    assert top["pair"] + photo["height"] < 844
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tiles = page.locator(".vv-places-tiles").bounding_box()
    assert tiles["width"] > 360 or tiles["height"] == pytest.approx(
        0.46 * 844, abs=2
    )  # a tall photo fills the height
