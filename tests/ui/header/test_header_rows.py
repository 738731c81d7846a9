"""The header: one line whatever it holds; in a narrow window tabs directly below it, the answer read whole, a pass in two rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.ui.conftest import wait_until_ready
from tests.ui.waits import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

EMPTY = """() => {
  const [header, tabs] = ['#vv-header', '#vv-tabs > .tab-wrapper'].map((part) => document.querySelector(part));
  const { top } = tabs.getBoundingClientRect();
  const bottom = (part) => part.getBoundingClientRect().bottom;
  const inside = [...header.querySelectorAll('h1, button, li')].filter((part) => part.checkVisibility());
  return [top - bottom(header), top - Math.max(...inside.map(bottom))];
}"""
"""How many pixels lie between the header and the tabs, and between what is in the header and the tabs."""

SLOW = """
const own = window.fetch;
window.fetch = (address, ...how) => {
  if (!window.isSlow || !String(address).endsWith('/vit_viz/open')) return own(address, ...how);
  const told = [['progress', { share: 0.42, left: 'about 12 s left' }],
    ['preview', { words: 'Running vit_small_patch14_reg4_dinov2.lvd142m …' }]];
  const lines = told.map(([kind, far]) => `event: ${kind}\\ndata: ${JSON.stringify(far)}\\n\\n`).join('');
  const start = (stream) => stream.enqueue(new TextEncoder().encode(lines));
  return Promise.resolve(new Response(new ReadableStream({ start })));
};"""
"""A pass of which no more is heard than how far it is."""

BAR = """(job) => {
  const amount = job.querySelector('.vv-job-amount');
  const boxes = [...job.children].map((part) => part.getBoundingClientRect());
  const middles = boxes.map(({ top, bottom }) => (top + bottom) / 2);
  const rows = middles.filter((middle, i) => !middles.slice(0, i).some((other) => Math.abs(other - middle) < 8));
  return { rows: rows.length, right: Math.max(...boxes.map(({ right }) => right)), words: boxes[0].width, height: job.offsetHeight,
    isCut: amount.scrollWidth > amount.clientWidth + 1 };
}"""

CUT = """(top) => [...top.querySelectorAll('li:first-child > span')].filter((one) => {
  const [own, whole] = [one.getBoundingClientRect(), top.querySelector('.vv-answers').getBoundingClientRect()];
  return one.scrollWidth > one.clientWidth || own.top < whole.top || own.bottom > whole.bottom || own.right > innerWidth;
}).map((one) => one.textContent)"""
"""What of the first answer is not read whole."""


LINE = """(header) => {
  const [whole, sentence] = [header, header.querySelector('#vv-sentence')].map((part) => part.getBoundingClientRect());
  return whole.bottom - sentence.bottom;
}"""
"""How high the header is below the sentence that stands above it on a phone."""

LONG = {"model": "vit_small_patch14_reg4_dinov2.lvd142m", "class": "soft-coated wheaten terrier of the house"}

ROW = """() => {
  const whole = document.querySelector('#vv-header').getBoundingClientRect();
  const seen = [...document.querySelectorAll('#vv-header :is(h1, button)')].filter((part) => part.checkVisibility());
  const boxes = seen.map((part) => [part, part.getBoundingClientRect()]);
  const middle = ([, { top, bottom }]) => (top + bottom) / 2;
  const isUntitled = (part) => part.scrollWidth > part.clientWidth + 1 && !part.closest('[title]');
  const chosen = document.querySelector('.vv-sample[aria-pressed=true]').getBoundingClientRect();
  const tray = document.querySelector('.vv-samples').getBoundingClientRect();
  return {
    rows: new Set(boxes.map((box) => Math.round((middle(box) - middle(boxes[0])) / 8))).size,
    outside: boxes.filter(([part, { right }]) => !part.closest('.vv-samples') && right > innerWidth).length,
    lost: [...document.querySelectorAll('#vv-header .vv-class')].filter(isUntitled).map((part) => part.textContent),
    isChosenSeen: chosen.left >= tray.left && chosen.right <= tray.right,
    height: whole.height,
  };
}"""
"""How the header's line is laid out: its rows, what stands outside the window, and names that are cut and said nowhere."""

SHIFT = """() => new Promise((done) => {
  let [moved, frames] = [0, 0];
  new PerformanceObserver((list) => (moved += list.getEntries().length)).observe({ type: 'layout-shift' });
  document.querySelector('.vv-share').click();
  const seen = () => {
    if (document.querySelector('.vv-share[data-said]')) frames += 1;
    if (frames > 2) done(moved);
    else requestAnimationFrame(seen);
  };
  seen();
})"""
"""How many things move when the link is copied, and that is said."""


@pytest.mark.parametrize("width", [1024, 1440])
def test_the_header_is_one_line_with_uploads_and_long_names_and_a_copied_link_moves_nothing(
    visit: Callable[..., Any], app_url: str, tmp_path: Path, width: int
) -> None:
    page = visit(app_url, width=width)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    files = [tmp_path / f"IMG_2026 a holiday with a very long name, {i}.png" for i in range(3)]
    for i, file in enumerate(files):
        Image.linear_gradient("L").resize((401 + i, 211)).save(file)
    page.locator("#vv-upload input[type=file]").first.set_input_files(files)
    expect(page.locator(".vv-sample[aria-label*=IMG_2026]")).to_have_count(3)
    expect(page.locator(".vv-sample[aria-label*=IMG_2026][aria-pressed=true]")).to_have_count(1)
    wait_until_ready(page)
    page.evaluate(
        """({ model, class: name }) => {
      const [open, of] = ['.vv-model-open', '#vv-top li .vv-class'].map((part) => document.querySelector(part));
      open.querySelector('.vv-model-name').textContent = model;
      Object.assign(of, { textContent: name, title: name });
    }""",
        LONG,
    )
    assert page.evaluate(ROW) == {"rows": 1, "outside": 0, "lost": [], "isChosenSeen": True, "height": 111}
    assert page.evaluate(SHIFT) == 0


def test_the_tabs_follow_the_header_directly(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(app_url, width=600, height=844)
    for width in (600, 720, 900):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))")
        apart, empty = page.evaluate(EMPTY)
        assert abs(apart) < 1, width
        assert empty <= 16, width


@pytest.mark.parametrize(("image", "width", "name"), [("lion", 360, "lion"), ("twins", 390, "umbrella")])
def test_on_a_phone_the_answer_is_read_whole_and_a_pass_takes_two_rows(
    visit: Callable[..., Any], app_url: str, image: str, width: int, name: str
) -> None:
    page = visit(f"{app_url}?image={image}", width=width, height=800, script=SLOW)
    expect(page.locator("#vv-top li:first-child .vv-class")).to_have_text(name)
    assert page.locator("#vv-top").evaluate(CUT) == []
    assert page.locator("#vv-header").evaluate(LINE) < 70  # still one line
    page.evaluate("window.isSlow = true")
    page.locator("#vv-samples [aria-pressed=false]").first.click()
    expect(page.locator("#vv-loading .vv-job-amount")).to_have_text("42%, about 12 s left")
    bar = page.locator("#vv-loading .vv-job").evaluate(BAR)
    assert bar["rows"] <= 2
    assert bar["right"] <= width
    assert bar["height"] <= 80
    assert bar["words"] > width / 2
    assert not bar["isCut"]
