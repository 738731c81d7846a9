"""The live explorer in a real browser: its numbers and pixels, what it asks the server for, and what it leaves behind."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.effort import effort
from tests.ui.waits import click_at, expect_in_address, point_of
from vit_viz.figures.colormaps import table
from vit_viz.figures.styles import TINT, Style, drawn

pytestmark = pytest.mark.browser

EXPLORER = "#vv-explorer"

PICTURES = """
() => ['atlas', 'map'].map((name) => {
  const canvas = document.querySelector(`#vv-explorer [data-vv=${name}]`);
  return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].join();
})
"""


IS_WHOLE = """
() => {
  const part = (name) => document.querySelector(`#vv-explorer [data-vv=${name}]`);
  const numbers = part('readout').textContent;
  return part('photo').complete && !part('progress').textContent.includes('Fetching')
    && numbers && !numbers.includes('\u2248');
}
"""


def part(page: Any, name: str) -> Any:
    """An element of the explorer by its name in the template."""
    return page.locator(f"{EXPLORER} [data-vv={name}]")


def pictures(page: Any) -> list[str]:
    """Every pixel of the mosaic and of the big map, once all layers are there and the numbers have come."""
    painted(page)
    page.wait_for_function(IS_WHOLE)
    painted(page)
    seen: list[str] = page.evaluate(PICTURES)
    return seen


def painted(page: Any) -> None:
    """Wait until what has happened is drawn: a change is drawn in the next frame."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_hovering_repaints_and_sends_nothing(page: Any) -> None:
    before = pictures(page)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    captions = set()
    for step in range(30):
        page.mouse.move(*point_of(part(page, "stage"), 0.03 + step / 32, 0.4))
        painted(page)
        captions.add(part(page, "caption").text_content())
    assert len(captions) >= 10
    assert page.evaluate(PICTURES) != before
    assert [
        url for url in requests if "/gradio_api/app_id" not in url
    ] == []  # Gradio asks whether it is still there
    page.mouse.move(2, 2)
    assert pictures(page) == before


LIT_CELL = """
([layer, column]) => {
  const one = (name) => document.querySelector(`#vv-explorer [data-vv=${name}]`);
  const [lit, atlas, photo] = ['lit', 'atlas', 'photo'].map(one);
  const css = (name) => parseFloat(one('mosaic').style.getPropertyValue(`--vx-cell-${name}`));
  const [width, height, gap] = ['width', 'height', 'gap'].map(css);
  const tile = new OffscreenCanvas(width - gap, height - gap).getContext('2d');
  tile.imageSmoothingQuality = 'high';
  tile.drawImage(photo, 0, 0, width - gap, height - gap);
  const read = (context, ...box) => ({ size: box.slice(2), data: [...context.getImageData(...box).data] });
  return {
    lit: read(lit.getContext('2d'), column * width, layer * height, width - gap, height - gap),
    layer: read(atlas.getContext('2d'), column * 16, layer * 16, 16, 16),
    photo: read(tile, 0, 0, width - gap, height - gap),
  };
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("style", ["light", "tint"])
def test_the_screen_has_the_pixels_of_the_formulas(
    visit: Callable[..., Any], app_url: str, style: Style
) -> None:
    """What Chromium puts together for one cell of the mosaic is what vit_viz/figures/styles.py draws."""
    page = visit(f"{app_url}?image=lion&style={style}&smooth=0")
    pictures(page)
    cell = {
        name: np.array(part["data"], np.uint8).reshape(*part["size"][::-1], 4)
        for name, part in page.evaluate(LIT_CELL, [4, 3]).items()
    }
    tall, wide = cell["photo"].shape[:2]
    inner = np.arange(2, 14)  # off the round corners
    at = np.ix_(((inner + 0.5) * tall / 16).astype(int), ((inner + 0.5) * wide / 16).astype(int))
    alpha = cell["layer"][2:14, 2:14, 3] / 255
    shares = 1 - alpha if style == "light" else alpha / TINT
    wanted = drawn(cell["photo"][at][..., :3], shares, style=style, strength=1, colours=table("gray"))
    assert np.ptp(shares) > 0.5
    assert abs(cell["lit"][at][..., :3].astype(int) - wanted).max() <= 3  # opacities have 8 bits


KEYS = ("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Enter", "Shift+Enter", "Space", "Escape")
WORDS = ("looks at", "looked at by", "light", "heat", "all alike", "each layer", "each head", "register 0")


@pytest.mark.slow
def test_random_actions_leave_no_trace(visit: Callable[..., Any], app_url: str) -> None:
    # few pixels: it is the memory that counts; and no header over the photo
    page = visit(app_url, width=920, height=640)
    pictures(page)
    pick = random.Random(7)
    heap = page.context.new_cdp_session(page)

    def used() -> float:
        heap.send("HeapProfiler.collectGarbage")
        return float(heap.send("Runtime.getHeapUsage")["usedSize"])

    def act() -> None:
        kind = pick.random()
        if kind < 0.5:
            page.mouse.move(*point_of(part(page, "stage"), pick.random(), pick.random()))
        elif kind < 0.65:
            click_at(
                part(page, "stage"), *(0.05 + 0.9 * pick.random() for _ in "xy")
            )  # its corners are round
        elif kind < 0.9:
            part(page, pick.choice(("stage", "mosaic"))).focus()
            page.keyboard.press(pick.choice(KEYS))
        else:
            page.locator(EXPLORER).get_by_text(pick.choice(WORDS), exact=True).click()

    for _ in range(100):
        act()
    pictures(page)
    start = used()
    for _ in range(effort(150)):
        act()
    click_at(part(page, "stage"), 0.51, 0.51)
    expect_in_address(page, "q=8,8")  # the link of this action has been written, and so have those before
    page.mouse.move(2, 2)
    pictures(page)
    assert used() <= 1.1 * start
    fresh = visit(page.url)
    fresh.mouse.move(2, 2)
    assert pictures(fresh) == pictures(page)
