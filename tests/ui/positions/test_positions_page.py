"""The Positions tab in a browser: small maps that answer the pointer, in the house's own canvas, and only what the model has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ui.conftest import served_here
from tests.ui.desk import odd_session
from tests.ui.waits import expect
from vit_viz.ui.app import build_app

pytestmark = pytest.mark.browser

READY = ".vv-tables[aria-busy=false]"
PIXEL = """([row, col]) => {
  const canvas = document.querySelector('.vv-places-pair .vv-cells canvas');
  return [...canvas.getContext('2d').getImageData(col, row, 1, 1).data];
}"""


def opened(visit: Callable[..., Any], address: str, **screen: int) -> Any:
    page = visit(address, **screen)
    page.locator(READY).wait_for()
    return page


def test_the_place_under_the_pointer_is_enlarged_and_a_click_makes_it_the_query(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = opened(visit, f"{app_url}?tab=positions&model=mini&image=lion")
    expect(page.locator(".vv-places-title")).to_have_text(
        re.compile(
            r"^Positions know rows and columns: neighbours are 0\.\d\d alike, places 7 steps apart 0\.\d\d$"
        )
    )
    caption = page.locator(".vv-places-pair figcaption span").first
    expect(caption).to_have_text("place (8, 8) with all places")
    assert (
        page.evaluate(PIXEL, [8, 8])[0] > 100 > page.evaluate(PIXEL, [0, 0])[0]
    )  # alike is red, unlike is blue
    tiles = page.locator(".vv-places-tiles")
    box = tiles.bounding_box()
    tiles.hover(position={"x": box["width"] * 1.5 / 16, "y": box["height"] * 2.5 / 16})
    expect(caption).to_have_text("place (2, 1) with all places")
    assert page.evaluate(PIXEL, [2, 1])[2] < 100
    page.locator(".vv-places-title").hover()
    expect(caption).to_have_text("place (8, 8) with all places")
    tiles.click(position={"x": box["width"] * 11.5 / 16, "y": box["height"] * 2.5 / 16})
    page.wait_for_function("new URLSearchParams(location.search).get('q') === '2,11'")
    page.locator(".vv-places-title").hover()
    expect(caption).to_have_text("place (2, 11) with all places")
    tiles.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("new URLSearchParams(location.search).get('q') === '3,11'")
    expect(caption).to_have_text("place (3, 11) with all places")
    page.locator(".vv-places-curve").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".vv-places-step")).to_have_text(
        re.compile(r"^1 step apart: 0\.\d\d on average of 930 pairs")
    )


@pytest.mark.slow
def test_on_a_phone_map_and_photo_come_first_and_nothing_is_cut_off(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = opened(visit, f"{app_url}?tab=positions&model=mini&image=tower", width=390, height=844)
    top = {
        name: page.locator(f".vv-places-{name}").bounding_box()["y"]
        for name in ("pair", "title", "tiles", "plot")
    }
    assert sorted(top, key=lambda name: top[name]) == ["pair", "title", "tiles", "plot"]
    one, photo = (page.locator(".vv-places-pair > figure").nth(i).bounding_box() for i in (0, 1))
    assert one["y"] == photo["y"]
    assert top["pair"] + photo["height"] < 844
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".vv-places-tiles").bounding_box()["width"] > 300


@pytest.fixture(params=["rotary", "relative"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The app in this process, on a model with other positions than learned ones."""
    kinds = {
        "rotary": {"position": "rotary"},
        "relative": {"position": "none", "relative_bias": True, "reg_tokens": 0},
    }
    session = odd_session(**kinds[request.param])
    with served_here(build_app(session), session) as url:
        yield request.param, url


@pytest.mark.slow
def test_what_the_model_does_not_have_is_not_there(
    visit: Callable[..., Any], served: tuple[str, str]
) -> None:
    kind, url = served
    page = opened(visit, f"{url}?tab=positions&image=tower")
    offered = page.locator(".vv-tables-parts button")
    grids = page.get_by_role("button", name="grid of the training")
    if kind == "rotary":
        expect(offered).to_have_text(["similarity", "rotary periods", "patch filters"], use_inner_text=True)
        grids.click()
        expect(page.locator(".vv-places-title")).to_contain_text("neighbours are", use_inner_text=True)
        expect(grids).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".vv-places-pair figcaption span").first).to_have_text(
            "place (2, 3) with all places"
        )
        offered.nth(1).click()
        page.locator(".vv-tables-figure").nth(1).wait_for()
        expect(page.locator(".vv-tables-words")).to_contain_text("short periods", use_inner_text=True)
    else:
        expect(offered).to_have_text(["patch filters"], use_inner_text=True)
        expect(page.locator(".vv-tables-note")).to_contain_text("no position embedding", use_inner_text=True)
        expect(grids).not_to_be_visible()
        offered.first.click()
        page.locator(".vv-tables-figure").nth(5).wait_for()
