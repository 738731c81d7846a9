"""The page for everybody: how large text and targets are, and that nothing is cut or covered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.serving import ROOT
from tests.ui.access.places import open_tab, settle, tabs
from tests.ui.conftest import wait_until_ready
from vit_viz.ui.app import TABS

pytestmark = [pytest.mark.browser, pytest.mark.slow]

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"

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


def axe() -> str:
    """The script of axe-core."""
    if not AXE.is_file():
        assert not os.environ.get("CI"), "CI has to run axe-core: npm ci comes first"
        pytest.skip("axe-core is not installed: npm ci")
    return AXE.read_text("utf-8")


LAID_OUT = "() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))"
"""Waits until what follows the size of the window has followed it: two frames."""

SIDEWAYS = "() => document.documentElement.scrollWidth > innerWidth ? [`${document.documentElement.scrollWidth}px`] : []"

OVERLAPS = """() => {
  const rectOf = (e) => {
    let { left, right, top, bottom } = e.getBoundingClientRect();
    for (let p = e.parentElement; p; p = p.parentElement) {  // what a row that scrolls cuts off is not to be seen
      if (getComputedStyle(p).overflowX === 'visible') continue;
      const b = p.getBoundingClientRect();
      [left, right] = [Math.max(left, b.left), Math.min(right, b.right)];
      [top, bottom] = [Math.max(top, b.top), Math.min(bottom, b.bottom)];
    }
    return { left, right, top, bottom };
  };
  const wanted = 'button, input, select, a, td[tabindex], .vv-caption, .vv-proof, .vv-sentence, li';
  const seen = [...document.querySelectorAll(wanted)].filter((e) => {
    const b = rectOf(e);
    return b.right - b.left > 1 && b.bottom - b.top > 1 && !e.closest('[aria-hidden=true]') && e.type !== 'file'
      && e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  });
  const scrolls = (e) => e.closest('.vv-scroll')?.scrollLeft !== 0;  // below the labels of a box that is not scrolled lies nothing
  const isFixed = (e) => /fixed|sticky/.test(getComputedStyle(e).position) && scrolls(e);
  const stays = (e) => Boolean(e) && (((innerWidth <= 640 || e.matches('th')) && isFixed(e)) || stays(e.parentElement));
  const bad = [];
  for (const [i, p] of seen.entries()) for (const q of seen.slice(i + 1)) {
    if (p.contains(q) || q.contains(p) || stays(p) !== stays(q)) continue;  // the page scrolls below what stays
    if (p.closest('label') && p.closest('label') === q.closest('label')) continue;
    const [a, b] = [rectOf(p), rectOf(q)];
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 2 && h > 2) bad.push([p, q].map((e) => e.outerHTML.slice(0, 120)).join(' over '));
  }
  return bad;
}"""

CUT = """() => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const owner = text.parentElement;
    if (!text.data.trim() || !owner.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (owner.closest('[aria-hidden=true], [title], .vv-unseen, script, style, noscript, math, svg, option')) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    const cuts = (part) => {  // what a row that scrolls cuts off is reached by a swipe
      if (!part || part === document.body) return box.right > innerWidth + 1 || box.left < -1;
      const { overflowX, overflowY, position } = getComputedStyle(part);
      const { left, right, top, bottom } = part.getBoundingClientRect();
      if (/auto|scroll/.test(overflowX + overflowY)) return false;
      if (overflowX !== 'visible' && (box.right > right + 2 || box.left < left - 2)) return true;
      if (overflowY !== 'visible' && (box.bottom > bottom + 2 || box.top < top - 2)) return true;
      return position !== 'fixed' && cuts(part.parentElement);
    };
    if (cuts(owner)) found.add(`${owner.className || owner.tagName}: ${text.data.trim().slice(0, 40)}`);
  }
  return [...found];
}"""
"""Text that is cut off, and that nothing says whole."""

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


def test_no_text_is_small_nothing_overlaps_and_no_tab_scrolls_sideways(
    visit: Callable[..., Any], app_url: str
) -> None:
    page, found = visit(app_url, width=390), {}
    for tab in TABS:
        open_tab(page, tab.name)
        for width in (768, 1440, 2560, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(LAID_OUT)
            settle(page)
            for fault in (SMALL_TEXT, SIDEWAYS, *([OVERLAPS] if width in (1440, 390) else [])):
                if faulty := page.evaluate(fault):
                    found[f"{tab.name}, {width} px"] = faulty
    assert found == {}, json.dumps(found, indent=1)


def test_text_controls_photo_and_mosaic_grow_on_a_wide_screen(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url, width=1440, height=900)
    usual = page.evaluate(SIZES)
    page.set_viewport_size({"width": 1800, "height": 900})
    assert page.evaluate(SIZES)["body"] == usual["body"] == 14
    page.set_viewport_size({"width": 2560, "height": 1440})
    page.wait_for_function(f"({SIZES})().photo > 850")
    page.evaluate(LAID_OUT)
    wide = page.evaluate(SIZES)
    assert wide["body"] == pytest.approx(1.3 * 14, abs=0.1)
    assert wide["control"] == pytest.approx(1.3 * usual["control"], abs=3)
    assert wide["photo"] > 850
    assert wide["mosaic"] > 1.5 * usual["mosaic"]
    assert wide["column"] <= 80 * 0.6 * wide["body"]  # some 70 characters, however wide the page is


PHOTO = "#vv-tab-{} :is(.vx-stage, .vv-stage, .vv-play-stage, .vv-patch-grid, #vv-w-photo .vv-frame)"


def photos(page: Any) -> dict[str, tuple[int, int]]:
    """Left edge and width of the large photo on each tab but the lesson, which leaves room for a row of all tokens."""
    found = {}
    for tab in (tab for tab in TABS if tab.name != "lesson"):
        open_tab(page, tab.name)
        box = page.locator(PHOTO.format(tab.name)).first.bounding_box()
        found[tab.name] = round(box["x"]), round(box["width"])
    return found


def test_the_photo_keeps_its_side_and_size_on_every_tab_and_a_panorama_has_the_whole_width(
    visit: Callable[..., Any], app_url: str, tmp_path: Path
) -> None:
    page = visit(app_url, width=1440, height=900)
    for width, height in ((1440, 900), (2560, 1440)):
        page.set_viewport_size({"width": width, "height": height})
        found = photos(page)
        assert set(found.values()) == {found["look"]}, width
        assert found["look"][1] == pytest.approx(0.62 * height, abs=1)
    Image.linear_gradient("L").resize((640, 64)).save(tmp_path / "panorama.png")
    page.locator("#vv-upload input[type=file]").first.set_input_files(tmp_path / "panorama.png")
    page.locator('.vv-sample[title*="panorama"][aria-pressed=true]').wait_for(state="attached")
    wait_until_ready(page)
    whole = page.locator("#vv-tab-patches").bounding_box()
    assert set(photos(page).values()) == {(round(whole["x"]), round(whole["width"]))}


def test_whatever_a_finger_aims_at_is_forty_pixels_wide_and_high_and_nothing_is_covered_or_cut(
    browser: Any, app_url: str
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, device_scale_factor=2
    )
    page = context.new_page()
    page.goto(app_url)
    wait_until_ready(page)
    found = {}
    for place in tabs(page):
        for width, height in ((360, 740), (844, 390), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate(LAID_OUT)
            settle(page)
            for fault in (SMALL_TARGETS, OVERLAPS, CUT):
                if faulty := page.evaluate(fault):
                    found[f"{place}, {width} x {height}"] = faulty
    context.close()
    assert found == {}, json.dumps(found, indent=1)
