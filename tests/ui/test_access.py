"""The page for everybody: what axe-core finds on each tab, with the contrast of colours, and how large text and targets are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ui.conftest import ROOT, open_tab, wait_until_ready
from vit_viz.ui.tabs import TABS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
LABELS = [tab.label for tab in TABS]

SMALL_TEXT = """() => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const owner = text.parentElement;
    if (!text.data.trim() || !owner.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (owner.closest('[aria-hidden=true], script, style, noscript, math, [data-vv=tip]')) continue;
    const box = owner.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const size = parseFloat(getComputedStyle(owner).fontSize);
    if (size < 11.99) found.add(`${size}px ${owner.className || owner.tagName}: ${text.data.trim().slice(0, 40)}`);
  }
  return [...found];
}"""

SMALL_TARGETS = """() => {
  const found = new Set();
  const wanted = 'button, a[href], input, select, summary, [role=tab], [role=button], [role=option], label:has(input)';
  for (const part of document.querySelectorAll(wanted)) {
    if (!part.checkVisibility({ opacityProperty: false, visibilityProperty: true })) continue;
    if (part.disabled || part.type === 'file' || part.closest('[aria-hidden=true], .js-plotly-plot, p, li > a')) continue;
    const label = part.closest('label') ?? (part.id && document.querySelector(`label[for="${CSS.escape(part.id)}"]`));
    const boxes = [part, label].filter(Boolean).map((one) => one.getBoundingClientRect());
    const [width, height] = ['width', 'height'].map((side) => Math.max(...boxes.map((box) => box[side])));
    if (width < 2 || height < 2) continue;
    if (height < 39.5 || width < 39.5)
      found.add(
        `${Math.round(width)}x${Math.round(height)} ${part.tagName}.${part.className}: ${part.textContent.trim().slice(0, 30)}`,
      );
  }
  return [...found];
}"""


def open_any(page: Any, label: str) -> None:
    """Open a tab of any kind and let it draw."""
    if label in ("Explain", "Positions", "Patches"):
        open_tab(page, label)
    else:
        page.get_by_role("tab", name=label).click()
    page.wait_for_timeout(2500)


def on_each_tab(page: Any, script: str) -> dict[str, list[str]]:
    """What a script finds on each tab, where it finds anything."""
    found = {}
    for label in LABELS:
        open_any(page, label)
        if small := page.evaluate(script):
            found[label] = small
    return found


def axe() -> str:
    """The script of axe-core."""
    if not AXE.is_file():
        assert not os.environ.get("CI"), "CI has to run axe-core: npm ci comes first"
        pytest.skip("axe-core is not installed: npm ci")
    return AXE.read_text("utf-8")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_serious_on_any_tab_with_the_contrast_of_colours(
    visit: Callable[..., Any], app_url: str, width: int, dark: bool
) -> None:
    script = axe()
    page = visit(f"{app_url}?__theme={'dark' if dark else 'light'}", width=width, dark=dark)
    page.evaluate(script)
    found = {}
    for label in LABELS:
        open_any(page, label)
        answer = page.evaluate("axe.run(document, { rules: { 'color-contrast': { enabled: true } } })")
        assert any(rule["id"] == "color-contrast" for rule in answer["passes"]), label
        serious = [v for v in answer["violations"] if v["impact"] in ("serious", "critical")]
        if serious:
            found[label] = [(v["id"], [node["html"][:160] for node in v["nodes"]][:4]) for v in serious]
    assert found == {}, json.dumps(found, indent=1)


SIDEWAYS = "() => document.documentElement.scrollWidth > innerWidth ? [`${document.documentElement.scrollWidth}px`] : []"

SIZES = """() => {
  const of = (part) => document.querySelector(part);
  return {
    body: parseFloat(getComputedStyle(of('#vv-explorer [data-vv=readout]')).fontSize),
    control: of('#vv-explorer .vv-toggle > label').getBoundingClientRect().height,
    photo: of('#vv-explorer [data-vv=stage]').getBoundingClientRect().width,
    mosaic: of('#vv-explorer [data-vv=cells]').getBoundingClientRect().width,
    column: of('#vv-tab-look .vv-words p').getBoundingClientRect().width,
  };
}"""


def test_no_text_is_smaller_than_twelve_pixels_and_no_tab_scrolls_sideways(
    visit: Callable[..., Any], app_url: str
) -> None:
    page, small, sideways = visit(app_url, width=390), {}, {}
    for label in LABELS:
        open_any(page, label)
        for width in (768, 1440, 2560, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(500)
            small[label, width] = page.evaluate(SMALL_TEXT)
            sideways[label, width] = page.evaluate(SIDEWAYS)
    assert {place: what for place, what in small.items() if what} == {}
    assert {place: what for place, what in sideways.items() if what} == {}


def test_text_controls_photo_and_mosaic_grow_on_a_wide_screen(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url, width=1440, height=900)
    usual = page.evaluate(SIZES)
    page.set_viewport_size({"width": 1800, "height": 900})
    assert page.evaluate(SIZES)["body"] == usual["body"] == 14
    page.set_viewport_size({"width": 2560, "height": 1440})
    page.wait_for_timeout(1000)
    wide = page.evaluate(SIZES)
    assert wide["body"] == pytest.approx(1.3 * 14, abs=0.1)
    assert wide["control"] == pytest.approx(1.3 * usual["control"], abs=3)
    assert wide["photo"] > 850
    assert wide["mosaic"] > 1.5 * usual["mosaic"]
    assert wide["column"] <= 80 * 0.6 * wide["body"]  # some 70 characters, however wide the page is


FIGURE = """() => {
  const graph = document.querySelector('#vv-position-tiles .js-plotly-plot');
  const text = graph.querySelector('.xtick text');
  const shown = text.getBoundingClientRect().width / text.getBBox().width;
  return {
    text: shown * parseFloat(getComputedStyle(text).fontSize),
    wide: graph.getBoundingClientRect().width - graph.parentElement.clientWidth,
    below: graph.getBoundingClientRect().bottom - graph.parentElement.getBoundingClientRect().bottom,
  };
}"""


@pytest.mark.parametrize(("width", "size"), [(1440, 12), (2560, 1.3 * 12)])
def test_figures_grow_on_a_wide_screen_and_answer_where_the_pointer_is(
    visit: Callable[..., Any], app_url: str, width: int, size: float
) -> None:
    page = visit(app_url, width=width, height=1440)
    open_any(page, "Positions")
    page.wait_for_timeout(1000)
    figure = page.evaluate(FIGURE)
    assert figure["text"] == pytest.approx(size, abs=0.2)
    assert figure["wide"] == pytest.approx(0, abs=2)
    assert figure["below"] <= 1
    area = page.locator("#vv-position-tiles .nsewdrag").bounding_box()
    rows = cols = 16  # of the bundled model
    row, col = 2, 11
    page.mouse.click(
        area["x"] + area["width"] * (col + 0.5) / cols, area["y"] + area["height"] * (row + 0.5) / rows
    )
    page.locator("#vv-position-tile .annotation-text", has_text=f"Position ({row}, {col})").wait_for()


@pytest.fixture
def touch_screen(browser: Any, app_url: str) -> Iterator[Any]:
    """The page on a phone, whose pointer is a finger."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(app_url)
    wait_until_ready(page)
    yield page
    context.close()


def test_whatever_a_finger_aims_at_is_forty_pixels_wide_and_high(touch_screen: Any) -> None:
    assert touch_screen.evaluate("matchMedia('(pointer: coarse)').matches")
    found = on_each_tab(touch_screen, SMALL_TARGETS)
    assert found == {}, json.dumps(found, indent=1)
