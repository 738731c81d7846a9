"""The mosaic of heads on the screen: it fits models of every shape, and its names stay in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.desk import odd_session
from tests.ui.waits import expect
from vit_viz.offline.explored import Explored

pytestmark = pytest.mark.browser

PART = "#vv-explorer [data-vv={}]"
READY = f"{PART.format('root')}[data-state=ready]"
Open = Callable[..., Any]

MEASURES = """() => {
  const box = (name) => document.querySelector(`#vv-explorer [data-vv=${name}]`).getBoundingClientRect().toJSON();
  const scroll = document.querySelector('#vv-explorer [data-vv=scroll]');
  return {
    mosaic: box('mosaic'), scroll: box('scroll'), pick: box('pick'),
    column: scroll.parentElement.getBoundingClientRect().width,
    hidden: [scroll.scrollWidth - scroll.clientWidth, scroll.scrollHeight - scroll.clientHeight],
    page: document.documentElement.scrollWidth,
  };
}"""

LABELS = """([layer, column]) => {
  const middle = (axis, at) => {
    const box = document.querySelector(`#vv-explorer [data-vv=${axis}]`).children[at].getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };
  const top = (place) => document.elementFromPoint(...place)?.textContent;
  const [left, above] = [middle('layers', layer), middle('heads', column)];
  const mosaic = document.querySelector('#vv-explorer [data-vv=mosaic]').getBoundingClientRect();
  const crossing = { x: above[0] - mosaic.x, y: left[1] - mosaic.y };
  return { layer: left, head: above, crossing, seen: [top(left), top(above)] };
}"""

SEEN = f"""([layer, column, which, name]) => {{
  const labels = ({LABELS})([layer, column]);
  return labels.seen[which] === name && labels;
}}"""
"""Where the names stand once one of them is in sight: the photo above grows smaller with the page that moves."""


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page without a server: a model of so many layers and heads."""
    contexts = []

    def open_page(layers: int, heads: int, *, width: int = 1440, height: int = 900) -> Any:
        loaded = odd_session(depth=layers, num_heads=heads, embed_dim=8 * heads).model("odd")
        file = tmp_path / f"{layers}-{heads}.html"
        noise = np.random.default_rng(3).integers(0, 256, (90, 90, 3), dtype=np.uint8)
        explored = Explored.of(loaded, Image.fromarray(noise))
        file.write_bytes(explored.page(explored.opening))
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.goto(file.as_uri())
        page.locator(READY).wait_for()
        page.locator(f"{PART.format('layers')} span").nth(layers - 1).wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()


def chosen(page: Any, layer: int, column: int, words: str) -> None:
    """Click where the row of a layer and the column under a name cross, and wait for the title; column: place among all names."""
    page.locator(f"{PART.format('layers')} span").nth(layer).scroll_into_view_if_needed()
    labels = page.evaluate(LABELS, [layer, column])
    page.locator(PART.format("mosaic")).click(position=labels["crossing"])
    expect(page.locator(PART.format("caption"))).to_contain_text(words)


@pytest.mark.slow
def test_few_heads_of_many_layers_fill_the_width_and_are_all_in_sight(opened: Open) -> None:
    page = opened(12, 3)
    found = page.evaluate(MEASURES)
    assert 0.9 * found["column"] <= found["mosaic"]["width"] <= found["column"]
    assert found["hidden"] == [0, 0]
    assert found["mosaic"]["height"] < 0.75 * 900
    assert found["pick"]["width"] > 60
    second = 4 + 1  # the first name above the second band
    chosen(page, 11, second + 2, "Layer 11, head 2")
    chosen(page, 4, 3, "Layer 4, all heads")
    chosen(page, 7, second + 1, "Layer 7, head 1")
    place, labels = page.evaluate(MEASURES)["pick"], page.evaluate(LABELS, [7, second + 1])
    assert place["x"] < labels["head"][0] < place["right"]
    assert place["y"] < labels["layer"][1] < place["bottom"]
    assert labels["seen"] == ["7", "1"]
    expect(page.locator(f"{PART.format('heads')} [data-on]")).to_have_text(["1"], use_inner_text=True)
    expect(page.locator(f"{PART.format('layers')} [data-on]")).to_have_text(["7"], use_inner_text=True)
    page.locator(PART.format("mosaic")).focus()
    for _ in range(2):
        page.keyboard.press("ArrowUp")  # into the first band
    page.keyboard.press("Enter")
    expect(page.locator(PART.format("caption"))).to_contain_text("Layer 5, head 1")
    moved = page.evaluate(MEASURES)["pick"]
    assert moved["x"] < place["x"] - 200
    assert moved["y"] > place["y"] + 200


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_a_deep_model_scrolls_in_its_own_box_with_its_names_in_sight(
    opened: Open, width: int, height: int
) -> None:
    page = opened(40, 16, width=width, height=height)
    found = page.evaluate(MEASURES)
    assert found["page"] <= width
    assert found["hidden"][1] > 300
    assert (found["hidden"][0] > 50) == (width == 390)
    assert min(found["pick"]["width"], found["pick"]["height"]) >= 24
    inside = found["scroll"]
    assert inside["top"] <= found["pick"]["y"]
    assert found["pick"]["bottom"] <= inside["bottom"] + 1
    for block, axis, name in (
        ("start", "head", "all"),
        ("end", "layer", "39"),
    ):  # on a phone the photo stays above
        page.evaluate(
            """([part, block]) => {
              const box = document.querySelector(part);
              box.scrollTo(box.scrollWidth, box.scrollHeight);
              box.scrollIntoView({ block });
            }""",
            [PART.format("scroll"), block],
        )
        labels = page.wait_for_function(SEEN, arg=[39, 16, int(axis == "head"), name]).json_value()
        box = page.evaluate(MEASURES)["scroll"]
        assert labels["head"][1] - box["top"] < 30
        assert labels["layer"][0] - box["left"] < 40
    chosen(page, 39, 16, "Layer 39, all heads")
