"""The Tokens tab in a real browser: the table under the pointer without a request, its numbers, its place on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.ui.waits import click_at, expect, point_of
from vit_viz import samples

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOM = "#vv-tokens"


def ready(page: Any, measure: str) -> None:
    page.wait_for_function(f"document.querySelector('{ROOM} .vv-room')?.closest('[data-ready={measure}]')")


def says(page: Any, part: str, words: str) -> None:
    expect(page.locator(f"{ROOM} .vv-tokens-{part}")).to_contain_text(words, use_inner_text=True)


def centre_of(page: Any, row: int, col: int) -> tuple[Any, float, float]:
    """Of a patch: the photo, and the shares of its width and height."""
    return page.locator(f"{ROOM} .vv-tokens-main-stage"), (col + 0.5) / 16, (row + 0.5) / 16


def cell(page: Any, measure: str, state: int) -> Any:
    return page.locator(f"{ROOM} [data-cell='{measure} {state}']")


def box_of(page: Any, selector: str) -> dict[str, float]:
    box: dict[str, float] = page.locator(f"{ROOM} {selector}").first.bounding_box()
    return box


def test_the_table_follows_the_pointer_and_each_question_has_its_numbers(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=tokens&image=cheetah&style=light")
    ready(page, "similarity")
    trace = vv.trace("mini", samples.sample("cheetah"), keep_residual=True)
    norms = vv.token_norms(trace, factor=5)
    caption = box_of(page, ".vv-tokens-caption")
    assert caption["y"] + caption["height"] < 900
    places = [".vv-tokens-readout", ".vv-roles", "[data-cell='layers 2']", ".vv-tokens-table"]
    before = [box_of(page, place) for place in places]

    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for row, col in ((2, 3), (8, 7)):
        page.mouse.move(*point_of(*centre_of(page, row, col)))
        similar = vv.token_similarity(trace, query=(row, col)).values[4].copy()
        similar[row, col] = -1  # of the patch itself
        count = int((similar >= np.sqrt(0.5)).sum())
        says(page, "caption", f"Patch ({row}, {col}) after layer 3: {count or 'no other'} patch")
        best = np.unravel_index(similar.argmax(), similar.shape)
        cosine = float(f"{similar.max():.3g}")
        says(page, "readout", f"Most alike is patch ({best[0]}, {best[1]}), cosine {cosine:g}")
        times = float(norms.maps.values[3][row, col] * 5 / norms.thresholds[3])
        expect(cell(page, "norms", 3)).to_have_text(f"{times:.1f}x")
        assert [box_of(page, place) for place in places] == before, "something jumps under the pointer"
    assert asked == []  # nothing is asked while the pointer moves

    click_at(*centre_of(page, 5, 6))
    page.wait_for_url(re.compile("q=5(,|%2C)6"))
    cell(page, "similarity", 4).focus()
    for key in ("ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("tokens=components&state=3"))
    ready(page, "components")
    share = vv.token_components(trace).explained[3].sum()
    says(page, "caption", f"Three directions hold {round(100 * share)}% of what differs")
    page.locator(f"{ROOM} [data-option=token_second]").select_option("lion")
    page.wait_for_url(re.compile("second=lion"))
    page.locator(f"{ROOM} .vv-tokens-second-stage canvas").wait_for()
    drawn = "canvas => canvas.width > 1 && canvas.getContext('2d').getImageData(0, 0, 1, 1).data[3] > 0"
    page.wait_for_function(f"({drawn})(document.querySelector('{ROOM} .vv-tokens-second-stage canvas'))")


def test_a_box_is_drawn_on_the_photo_and_pins_nothing(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?tab=tokens&image=cheetah&tokens=segments&q=6,6")
    ready(page, "segments")
    page.locator(f"{ROOM} .vv-tokens-draw").click()
    page.locator(f"{ROOM} .vv-tokens-main-stage").evaluate("one => one.scrollIntoView({block: 'center'})")
    page.mouse.move(*point_of(*centre_of(page, 2, 2)))
    page.mouse.down()
    page.mouse.move(*point_of(*centre_of(page, 9, 12)))
    page.mouse.up()
    page.wait_for_url(lambda url: "box=" in url)
    page.locator(f"{ROOM} .vv-tokens-legend").get_by_text("overlap").first.wait_for()
    expect(page).to_have_url(re.compile("q=6(,|%2C)6"))


def test_on_a_phone_the_photo_comes_first_and_the_table_scrolls_in_its_box(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=tokens&image=lion&state=6", width=390, height=844)
    ready(page, "similarity")
    photo = box_of(page, ".vv-tokens-main-stage")
    controls = page.locator(f"{ROOM} button:visible, {ROOM} select:visible, {ROOM} input:visible")
    tops = controls.evaluate_all("nodes => nodes.map((node) => node.getBoundingClientRect().top)")
    assert min(tops) >= photo["y"] + photo["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    chosen = box_of(page, "[data-cell='similarity 6'] .vv-tokens-small")
    assert chosen["x"] + chosen["width"] <= 390  # the chosen layer is in sight
    label = box_of(page, "tr[data-row=similarity] th")
    page.locator(f"{ROOM} .vv-tokens-scroll").evaluate("box => { box.scrollLeft = 0; }")
    page.wait_for_function(f"document.querySelector('{ROOM} .vv-tokens-scroll').scrollLeft === 0")
    assert box_of(page, "tr[data-row=similarity] th") == label
    first = box_of(page, "[data-cell='similarity 0'] .vv-tokens-small")
    assert first["x"] >= label["x"] + label["width"]
