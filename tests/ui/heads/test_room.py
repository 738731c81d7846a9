"""The Heads tab in a real browser: its numbers and those of its matrix, the pointer, the keys, and fingers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.ui.waits import click_at, expect, expect_in_address, point_of
from vit_viz import samples

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOM, MATRIX = "#vv-heads", "#vv-head-matrix"

PLACE_OF = """([query, key]) => {
  const plot = document.querySelector('#vv-head-matrix .vv-matrix-plot').getBoundingClientRect();
  const [named, gap, prefix, patches] = [14, 6, 5, 256];
  const middle = (token) => token < prefix
    ? (token + 0.5) * named
    : prefix * named + gap + (token - prefix + 0.5) * (plot.width - prefix * named - gap) / patches;
  return [middle(key) / plot.width, middle(query) / plot.height];
}"""
"""Where a pair of tokens is in the plot, in shares of its width and height, as long as all of the matrix is in sight."""


def ready(page: Any, measure: str) -> None:
    page.wait_for_function(f"document.querySelector('{ROOM} .vv-heads')?.closest('[data-ready={measure}]')")


def matrix_ready(page: Any, what: str) -> None:
    page.wait_for_function(
        f"document.querySelector('{MATRIX} .vv-matrix')?.closest('[data-ready=\"{what}\"]')"
    )


def cell(page: Any, layer: int, head: int) -> Any:
    return page.locator(f"{ROOM} td[data-layer='{layer}'][data-head='{head}']")


def face(page: Any, name: str) -> None:
    page.locator(f"{ROOM} .vv-heads-faces [data-face={name}]").click()
    page.wait_for_function(f"document.querySelector('#vv-heads-faces').dataset.face === '{name}'")
    page.wait_for_function("document.documentElement.scrollHeight <= 1300")


def says(page: Any, part: str, words: str) -> None:
    expect(page.locator(part)).to_contain_text(words, use_inner_text=True)


def numbers_of(page: Any) -> list[float]:
    shown = page.locator(f"{ROOM} .vv-heads-number").all_inner_texts()
    return [float(text.replace("\u2212", "-")) for text in shown]


def test_the_atlas_has_the_numbers_of_the_library_and_answers_pointer_and_keys(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=heads&image=cheetah&layer=2&head=3")
    ready(page, "distance")
    trace = vv.trace("mini", samples.sample("cheetah"))
    distance = vv.head_table(trace, measure="distance").values
    np.testing.assert_allclose(numbers_of(page), distance.ravel(), atol=0.51)
    says(
        page,
        f"{ROOM} .vv-heads-found",
        "is largest in layer {}, head {}:".format(*divmod(int(distance.argmax()), 6)),
    )
    expect(cell(page, 2, 3)).to_have_attribute("aria-selected", "true")
    cell(page, 5, 1).hover()
    says(page, f"{ROOM} .vv-heads-caption", "Layer 5, head 1: the class token looks ")
    row = np.sort(trace.attention(layer=5, heads=[1], queries=[0])[0, 0, trace.layout.patch_slice].numpy())
    page.wait_for_function(
        """([part, lit, most]) => {
          const said = document.querySelector(part).textContent.match(/from ([\\d.]+)% .* at most ([\\d.]+)%/);
          return said && Math.abs(said[1] / lit - 1) < 0.01 && Math.abs(said[2] / most - 1) < 0.01;
        }""",
        arg=[f"{ROOM} .vv-heads-scale", 100 * float(row[round(0.99 * (len(row) - 1))]), 100 * float(row[-1])],
    )
    cell(page, 4, 0).focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(cell(page, 5, 1)).to_have_attribute("aria-selected", "true")
    expect_in_address(page, "layer=5", "head=1")
    page.locator(f"{ROOM} .vv-heads-stage").click(position={"x": 5, "y": 5})
    page.wait_for_url(re.compile("q=0(,|%2C)0"))
    says(page, f"{ROOM} .vv-heads-caption", "Layer 5, head 1: patch (0, 0) looks ")


def test_the_matrix_is_the_attention_that_was_recorded_and_zooms_by_wheel_and_keys(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?tab=heads&image=cheetah&layer=4&head=1&q=6,7")
    face(page, "matrix")
    matrix_ready(page, "4.1")
    trace = vv.trace("mini", samples.sample("cheetah"))
    layout, attention = trace.layout, trace.attention(4, heads=[1])[0]
    asked, plot = list[str](), page.locator(f"{MATRIX} .vv-matrix-plot")
    readout = page.locator(f"{MATRIX} .vv-matrix-readout")
    page.on("request", lambda request: asked.append(request.url))
    for query, key in [(0, 0), (2, 40), (30, 4), (101, 108), (77, 230)]:
        page.mouse.move(*point_of(plot, *page.evaluate(PLACE_OF, [query, key])))
        names = [layout.name(token) for token in (query, key)]
        first, second = [f"{name} token" if name == "class" else name for name in names]
        expect(readout).to_contain_text(f"{first} looks at {second}: ")
        weight = float(readout.get_attribute("data-weight"))
        assert abs(weight - float(attention[query, key])) <= 2e-3 * float(attention[query].max())
    pinned = "query=6%2C7"  # whose exact numbers the page asks for as it opens, however long that takes
    assert [url for url in asked if pinned not in url] == []
    page.locator(f"{MATRIX} .vv-matrix-count").select_option("5")
    strongest = vv.links(trace, layer=4, head=1, query="6,7", count=5).scores
    page.mouse.move(2, 2)
    page.wait_for_function(
        "([part, weight]) => Math.abs(parseFloat(document.querySelector(part).textContent) / 100 / weight - 1) < 0.06",
        arg=[f"{MATRIX} .vv-matrix-strong", float(strongest[0])],
    )
    expect(page.locator(f"{MATRIX} g.vv-link")).to_have_count(5)

    click_at(plot, *page.evaluate(PLACE_OF, [101, 108]))  # token 101 is patch (6, 0)
    page.wait_for_url(re.compile("q=6(,|%2C)0"))
    before = page.evaluate("scrollY")
    page.mouse.wheel(0, -400)
    page.wait_for_function(f"document.querySelector('{MATRIX} [data-zoomed]')")
    assert page.evaluate("scrollY") == before  # the page stays
    page.locator(f"{MATRIX} .vv-matrix-sheet").press("0")
    page.wait_for_function(f"!document.querySelector('{MATRIX} [data-zoomed]')")
    page.locator(f"{MATRIX} [data-zoom=in]").click()
    page.wait_for_url(re.compile(r"zoom=1\.5"))
    other = visit(page.url)
    matrix_ready(other, "4.1")
    other.wait_for_function(f"document.querySelector('{MATRIX} [data-zoomed]')")
    other.wait_for_function(
        f"document.querySelector('{MATRIX}').getBoundingClientRect().top < innerHeight / 2"
    )


def test_two_fingers_zoom_the_matrix_and_not_the_page(browser: Any, app_url: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{app_url}?tab=heads&face=matrix&image=cheetah&layer=4&head=1")
    matrix_ready(page, "4.1")
    x, y = point_of(page.locator(f"{MATRIX} .vv-matrix-plot"), *page.evaluate(PLACE_OF, [130, 130]))
    devtools = page.context.new_cdp_session(page)
    for step in range(7):
        kind = "touchStart" if step == 0 else "touchMove" if step < 6 else "touchEnd"
        apart = 20 + 8 * step
        fingers = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        touched = [] if kind == "touchEnd" else fingers
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})
    page.wait_for_url(lambda url: "zoom=" in url and 2 < float(re.findall(r"zoom=([\d.]+)", url)[0]) <= 3.01)
    assert page.evaluate("visualViewport.scale") == 1
    expect(page).not_to_have_url(re.compile("q="))  # no query was chosen
    context.close()
