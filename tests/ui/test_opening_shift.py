"""Pages of wide and of tall photos stand still while they open: every stage begins with the shape of its photo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.conftest import wait_until_ready

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MOST_SHIFT = 0.02
SHAPES = {"wide": (720, 240), "panorama": (1300, 130), "tall": (190, 610)}
WINDOWS = [(390, 844), (844, 390), (1024, 768), (2560, 1440)]
STAGES = {
    "look": "#vv-explorer .vx-stage",
    "lesson": ".vv-lesson-photo",
    "explain": "#vv-explain-picture .vv-image",
    "heads": "#vv-heads .vv-heads-stage",
    "tokens": "#vv-tokens .vv-tokens-main-stage",
    "patches": "#vv-grid-picture .vv-patch-grid",
}
WATCH = """
window.told = { shift: 0, moved: [], sizes: new Set() };
new PerformanceObserver((list) => {
  for (const { value, sources } of list.getEntries()) {
    told.shift += value;
    told.moved.push(...sources.map(({ node }) => `${value.toFixed(3)} ${node?.id || node?.className || node?.nodeName}`));
  }
}).observe({ type: 'layout-shift', buffered: true });
const look = () => {
  const stage = document.querySelector(STAGE);
  if (stage?.checkVisibility({ visibilityProperty: true }))
    told.sizes.add(`${stage.offsetWidth} x ${stage.offsetHeight}`);
  requestAnimationFrame(look);
};
look();
"""
STANDS = """() => !document.querySelector('#vv-tabs [aria-busy=true], #vv-tabs .vv-busy, [data-state=loading]')
  && [...document.querySelectorAll('#vv-tabs img')].every((image) => !image.checkVisibility() || image.complete)"""

NEW_IMAGE = """(known) => {
  const image = new URLSearchParams(location.search).get('image') ?? '';
  return image.startsWith('u') && !known.includes(image) && image;
}"""


@pytest.fixture(scope="module")
def visitor(
    browser: Any, app_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, dict[str, str]]]:
    """A visitor who has brought photos of odd shapes: the browser, and the ids of the photos."""
    folder: Path = tmp_path_factory.mktemp("photos")
    context = browser.new_context()
    page, ids = context.new_page(), {}
    page.goto(app_url)
    wait_until_ready(page)
    for name, (width, height) in SHAPES.items():
        down, across = np.mgrid[:height, :width]
        pixels = np.stack([down % 251, across % 241, (down + across) % 239], axis=-1).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
        page.locator("#vv-upload input[type=file]").first.set_input_files(str(folder / f"{name}.png"))
        page.locator(f'.vv-sample[title*="{name}"][aria-pressed=true]').wait_for(state="attached")
        ids[name] = page.wait_for_function(NEW_IMAGE, arg=list(ids.values())).json_value()
    page.close()
    yield context, ids
    context.close()


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: "x".join(map(str, window)))
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("tab", STAGES)
def test_a_stage_begins_with_the_shape_of_its_photo(
    visitor: tuple[Any, dict[str, str]], app_url: str, tab: str, name: str, window: tuple[int, int]
) -> None:
    context, ids = visitor
    page = context.new_page()
    page.set_viewport_size({"width": window[0], "height": window[1]})
    page.add_init_script(WATCH.replace("STAGE", repr(STAGES[tab])))
    page.goto(f"{app_url}?image={ids[name]}&tab={tab}")
    wait_until_ready(page)
    page.locator(STAGES[tab]).wait_for()
    page.wait_for_function(STANDS)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    shift, moved, sizes = page.evaluate("[told.shift, told.moved, [...told.sizes]]")
    page.close()
    assert len(sizes) == 1, sizes
    width, height = SHAPES[name]
    across, down = map(int, sizes[0].split(" x "))
    assert across / down == pytest.approx(width / height, rel=0.02)
    assert shift <= MOST_SHIFT, moved
