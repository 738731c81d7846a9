"""The matrix of a head in a real browser: its numbers, zoom and keys, links on the photo, no request under the pointer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import vit_viz as vv
from tests.ui.waits import click_at, expect, expect_in_address, point_of
from vit_viz import samples

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROOM = "#vv-head-matrix"
LAYER, HEAD = 4, 1

PLACE_OF = """([query, key]) => {
  const plot = document.querySelector('#vv-head-matrix .vv-matrix-plot').getBoundingClientRect();
  const [named, gap, prefix, patches] = [14, 6, 5, 256];
  const middle = (token) => token < prefix
    ? (token + 0.5) * named
    : prefix * named + gap + (token - prefix + 0.5) * (plot.width - prefix * named - gap) / patches;
  return [middle(key) / plot.width, middle(query) / plot.height];
}"""
"""Where a pair of tokens is in the plot, in shares of its width and height, as long as all of the matrix is in sight."""


@pytest.fixture
def matrix(visit: Callable[..., Any], app_url: str) -> Any:
    page = visit(f"{app_url}?tab=heads&face=matrix&image=cheetah&layer={LAYER}&head={HEAD}&q=6,7")
    ready(page, f"{LAYER}.{HEAD}")
    page.locator(f"{ROOM} .vv-matrix-plot").scroll_into_view_if_needed()
    return page


def ready(page: Any, what: str) -> None:
    page.wait_for_function(f"document.querySelector('{ROOM} .vv-matrix')?.closest('[data-ready=\"{what}\"]')")


def said(page: Any, part: str, start: str) -> str:
    """The text of a part, once it starts with some words; "low", "high" and "unit" are those of the colour bar."""
    name = f"bar .vv-{part}" if part in ("low", "high", "unit") else part
    page.wait_for_function(
        "([part, start]) => document.querySelector(part).textContent.startsWith(start)",
        arg=[f"{ROOM} .vv-matrix-{name}", start],
    )
    text: str = page.locator(f"{ROOM} .vv-matrix-{name}").inner_text()
    return text


def test_cells_are_the_attention_that_was_recorded_and_nothing_is_asked_for_them(matrix: Any) -> None:
    trace = vv.trace("mini", samples.sample("cheetah"))
    layout = trace.layout
    attention = trace.attention(LAYER, heads=[HEAD])[0]
    asked, plot = list[str](), matrix.locator(f"{ROOM} .vv-matrix-plot")
    matrix.on("request", lambda request: asked.append(request.url))
    for query, key in [(0, 0), (2, 40), (30, 4), (101, 108), (260, 260), (77, 230)]:
        matrix.mouse.move(*point_of(plot, *matrix.evaluate(PLACE_OF, [query, key])))
        names = [layout.name(token) for token in (query, key)]
        first, second = [f"{name} token" if name == "class" else name for name in names]
        said(matrix, "readout", f"{first} looks at {second}: ")
        weight = float(matrix.locator(f"{ROOM} .vv-matrix-readout").get_attribute("data-weight"))
        assert abs(weight - float(attention[query, key])) <= 2e-3 * float(attention[query].max())
        rings = sum(layout.place(token) is not None for token in (query, key))
        expect(matrix.locator(f"{ROOM} .vv-ring")).to_have_count(rings)
    pinned = "query=6%2C7"  # whose exact numbers the page asks for as it opens, however long that takes
    assert [url for url in asked if pinned not in url] == []
    click_at(plot, *matrix.evaluate(PLACE_OF, [101, 108]))  # token 101 is patch (6, 0)
    matrix.wait_for_url(re.compile("q=6(,|%2C)0"))


def test_the_arrows_are_the_strongest_links(matrix: Any) -> None:
    trace = vv.trace("mini", samples.sample("cheetah"))
    of_query = vv.links(trace, layer=LAYER, head=HEAD, query="6,7", count=5)
    of_head = vv.links(trace, layer=LAYER, head=HEAD, count=5)
    matrix.mouse.move(2, 2)
    matrix.locator(f"{ROOM} .vv-matrix-count").select_option("5")
    said(matrix, "said", "The 5 strongest links of patch (6, 7)")
    for found, links in ((of_query, "query"), (of_head, "head")):
        matrix.locator(f"{ROOM} [data-links={links}]").click()
        matrix.wait_for_function(
            "([part, weight]) => Math.abs(document.querySelector(part).textContent / weight - 1) < 0.06",
            arg=[f"{ROOM} .vv-matrix-strong", float(found.scores[0])],
        )
        expect(matrix.locator(f"{ROOM} g.vv-link")).to_have_count(5)
        weakest = float(matrix.locator(f"{ROOM} .vv-matrix-weak").inner_text())
        assert weakest == pytest.approx(float(found.scores[-1]), rel=0.06)
    assert said(matrix, "said", "The 5 strongest of 65,280 links between patches")


def test_zoom_and_keys(matrix: Any) -> None:
    sheet = matrix.locator(f"{ROOM} .vv-matrix-sheet")
    plot = matrix.locator(f"{ROOM} .vv-matrix-plot")
    matrix.mouse.move(*point_of(plot, *matrix.evaluate(PLACE_OF, [140, 140])))  # patch (8, 7)
    name = "patch (8, 7) looks at patch (8, 7): "
    said(matrix, "readout", name)
    before = matrix.evaluate("scrollY")
    matrix.mouse.wheel(0, -400)
    matrix.wait_for_function(f"document.querySelector('{ROOM} [data-zoomed]')")
    said(matrix, "readout", name)
    assert matrix.evaluate("scrollY") == before  # the page stays
    sheet.focus()
    matrix.keyboard.press("0")
    matrix.wait_for_function(f"!document.querySelector('{ROOM} [data-zoomed]')")
    matrix.mouse.move(2, 2)
    said(matrix, "readout", "Point at")
    matrix.keyboard.press("ArrowRight")
    said(matrix, "readout", "patch (6, 7) looks at patch (6, 7): ")
    matrix.keyboard.press("ArrowRight")
    matrix.keyboard.press("Shift+ArrowDown")
    text = said(matrix, "readout", "patch (7, 1) looks at patch (6, 8): ")
    matrix.wait_for_function(
        "([part, text]) => document.querySelector(part).textContent === text",
        arg=[f"{ROOM} .vv-matrix-status", text],
    )
    matrix.keyboard.press("+")
    matrix.wait_for_function(f"document.querySelector('{ROOM} [data-zoomed]')")
    matrix.keyboard.press("Enter")
    matrix.wait_for_url(re.compile("q=7(,|%2C)1"))
    matrix.keyboard.press("Escape")
    said(matrix, "readout", "Point at")
    matrix.locator(f"{ROOM} .vv-matrix-stage").focus()
    matrix.keyboard.press("ArrowDown")
    matrix.wait_for_url(re.compile("q=8(,|%2C)1"))


def test_another_head_and_another_scale(matrix: Any) -> None:
    high = said(matrix, "high", "0.")
    matrix.locator(f"{ROOM} [data-scale=linear]").click()
    said(matrix, "low", "0")
    assert said(matrix, "unit", "attention weight") == "attention weight"
    assert said(matrix, "high", "0.") == high
    matrix.locator(f"{ROOM} .vv-matrix-head").select_option("max")
    ready(matrix, f"{LAYER}.max")
    said(matrix, "caption", "Layer 4, max over heads: ")
    matrix.wait_for_url(re.compile("head=max"))
    matrix.locator("#vv-heads [data-face=atlas]").click()
    matrix.locator("#vv-heads td[data-layer='2'][data-head='3']").click()
    matrix.locator("#vv-heads [data-face=matrix]").click()
    ready(matrix, "2.3")  # a head that is chosen on another face


def test_what_is_seen_is_in_the_address_and_a_link_opens_it(
    matrix: Any, visit: Callable[..., Any], app_url: str
) -> None:
    matrix.locator(f"{ROOM} [data-scale=linear]").click()
    matrix.locator(f"{ROOM} [data-links=head]").click()
    matrix.locator(f"{ROOM} .vv-matrix-count").select_option("20")
    for _ in range(3):
        matrix.locator(f"{ROOM} [data-zoom=in]").click()
    matrix.wait_for_url(re.compile(r"zoom=3\.38"))
    expect_in_address(matrix, "matrix_scale=linear", "links=head", "strongest=20")
    other = visit(matrix.url)
    ready(other, f"{LAYER}.{HEAD}")
    other.wait_for_function(f"document.querySelector('{ROOM} [data-zoomed]')")
    other.wait_for_function(f"document.querySelector('{ROOM}').getBoundingClientRect().top < innerHeight / 2")
    for part in ("scale=linear", "links=head"):
        expect(other.locator(f"{ROOM} [data-{part}]")).to_have_attribute("aria-pressed", "true")
    said(other, "said", "The 20 strongest of 65,280 links")
    other.locator(f"{ROOM} [data-zoom=whole]").click()
    other.wait_for_url(lambda url: "zoom=" not in url)


def test_two_fingers_zoom_the_matrix_and_not_the_page(browser: Any, app_url: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{app_url}?tab=heads&face=matrix&image=cheetah&layer={LAYER}&head={HEAD}")
    ready(page, f"{LAYER}.{HEAD}")
    x, y = point_of(page.locator(f"{ROOM} .vv-matrix-plot"), *page.evaluate(PLACE_OF, [130, 130]))
    devtools = page.context.new_cdp_session(page)
    for step in range(7):
        kind = "touchStart" if step == 0 else "touchMove" if step < 6 else "touchEnd"
        apart = 20 + 8 * step
        fingers = [{"x": x - apart, "y": y, "id": 0}, {"x": x + apart, "y": y, "id": 1}]
        touched = [] if kind == "touchEnd" else fingers
        devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touched})
    page.wait_for_url(lambda url: "zoom=" in url and float(re.findall(r"zoom=([\d.]+)", url)[0]) > 2)
    zoom = float(re.findall(r"zoom=([\d.]+)", page.url)[0])
    assert 2 < zoom <= 3.01  # the fingers are three times as far apart
    assert page.evaluate("visualViewport.scale") == 1
    expect(page).not_to_have_url(re.compile("q="))  # no query was chosen
    context.close()
