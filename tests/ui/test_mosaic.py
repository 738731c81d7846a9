"""The mosaic of heads on the screen: it fits models and photos of every shape, and draws as the switches say."""

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
  const rings = document.querySelector('#vv-explorer [data-vv=pick]').getBoundingClientRect();
  return {
    mosaic: box('mosaic'), scroll: box('scroll'), stage: box('stage'), pick: rings.toJSON(),
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


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens a page without a server: a model of so many layers and heads on a photo of this height and width."""
    contexts = []

    def open_page(
        layers: int, heads: int, photo: tuple[int, int], *, width: int = 1440, height: int = 900
    ) -> Any:
        loaded = odd_session(depth=layers, num_heads=heads, embed_dim=8 * heads).model("odd")
        noise = np.random.default_rng(3).integers(0, 256, (*photo, 3), dtype=np.uint8)
        file = tmp_path / f"{layers}-{heads}.html"
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
    page = opened(12, 3, (300, 300))
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
    expect(page.locator(PART.format("caption"))).to_contain_text("Layer 5, head 1")
    moved = page.evaluate(MEASURES)["pick"]
    assert moved["x"] < place["x"] - 200
    assert moved["y"] > place["y"] + 200


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "heads"), [(3, 5), (6, 7)])
def test_a_model_whose_heads_fill_the_width_has_its_layers_below_each_other(
    opened: Open, layers: int, heads: int
) -> None:
    page = opened(layers, heads, (300, 300))
    names = page.locator(PART.format("heads")).locator("span")
    expect(names).to_have_text([*map(str, range(heads)), "all"], use_inner_text=True)
    assert page.evaluate(MEASURES)["mosaic"]["width"] > 300


@pytest.mark.slow
@pytest.mark.parametrize("photo", [(40, 400), (400, 40)], ids=["panorama", "upright"])
@pytest.mark.parametrize("width", [1440, 390])
def test_photos_far_from_square_leave_the_mosaic_usable(
    opened: Open, photo: tuple[int, int], width: int
) -> None:
    page = opened(6, 5, photo, width=width)
    found = page.evaluate(MEASURES)
    assert found["page"] <= width
    assert found["scroll"]["width"] <= width
    assert found["scroll"]["height"] < 0.8 * 900
    assert min(found["pick"]["width"], found["pick"]["height"]) >= 24
    assert max(found["pick"]["width"], found["pick"]["height"]) <= 240
    if width == 1440:
        assert found["hidden"] == [0, 0]
    tall, wide = photo
    cell = page.evaluate("document.querySelector('#vv-explorer').explorer.pictures.mosaic.cell")
    assert cell["width"] / cell["height"] == pytest.approx(wide / tall, rel=0.15)
    assert found["stage"]["width"] / found["stage"]["height"] == pytest.approx(wide / tall, rel=0.02)
    if wide > tall:
        assert found["stage"]["width"] > 0.85 * width
    chosen(page, 1, 3, "Layer 1, head 3")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (390, 844)])
def test_a_deep_model_scrolls_in_its_own_box_with_its_names_in_sight(
    opened: Open, width: int, height: int
) -> None:
    page = opened(40, 16, (90, 90), width=width, height=height)
    found = page.evaluate(MEASURES)
    assert found["page"] <= width
    assert found["hidden"][1] > 300
    assert (found["hidden"][0] > 50) == (width == 390)
    assert min(found["pick"]["width"], found["pick"]["height"]) >= 24
    inside = found["scroll"]
    assert inside["top"] <= found["pick"]["y"]
    assert found["pick"]["bottom"] <= inside["bottom"] + 1
    page.locator(PART.format("scroll")).scroll_into_view_if_needed()
    page.evaluate(
        "(part) => { const box = document.querySelector(part); box.scrollTo(box.scrollWidth, box.scrollHeight); }",
        PART.format("scroll"),
    )
    labels, box = page.evaluate(LABELS, [39, 16]), page.evaluate(MEASURES)["scroll"]
    assert labels["seen"] == ["39", "all"]
    assert labels["head"][1] - box["top"] < 30
    assert labels["layer"][0] - box["left"] < 40
    chosen(page, 39, 16, "Layer 39, all heads")


def headings(page: Any) -> Any:
    """The names above the columns."""
    return page.locator(PART.format("heads")).locator("span")


def test_the_largest_and_the_smallest_of_all_heads_come_by_a_switch_that_links_hold(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?image=lion&layer=4&head=2")
    expect(headings(page)).to_have_text(["0", "1", "2", "3", "4", "5", "all"])
    page.get_by_text("More ways to read it").click()
    switch = page.get_by_label("max and min over heads")
    expect(switch).not_to_be_checked()
    switch.check()
    expect(headings(page)).to_have_text(["0", "1", "2", "3", "4", "5", "all", "max", "min"])
    page.wait_for_function("new URLSearchParams(location.search).get('extremes') === '1'")
    chosen(page, 3, 8, "Layer 3, min over heads")
    page.wait_for_function("new URLSearchParams(location.search).get('head') === 'min'")
    again = visit(page.url)
    expect(headings(again)).to_have_count(9)
    expect(again.locator(PART.format("caption"))).to_contain_text("Layer 3, min over heads")
    again.get_by_text("More ways to read it").click()
    again.get_by_label("max and min over heads").uncheck()
    expect(headings(again)).to_have_count(7)
    expect(again.locator(PART.format("caption"))).to_contain_text("Layer 3, all heads")


@pytest.mark.slow
def test_a_link_of_before_that_names_the_largest_of_all_heads_opens_it(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(f"{app_url}?image=lion&layer=1&head=max&q=2,3")
    expect(headings(page)).to_have_text(["0", "1", "2", "3", "4", "5", "all", "max", "min"])
    expect(page.locator(PART.format("caption"))).to_contain_text("Layer 1, max over heads")
    expect(page.locator(f"{PART.format('heads')} [data-on]")).to_have_text(["max"], use_inner_text=True)


CELL = """() => {
  const one = (name) => document.querySelector(`#vv-explorer [data-vv=${name}]`);
  const css = (name) => parseFloat(one('mosaic').style.getPropertyValue(`--vx-cell-${name}`));
  const [width, height, gap] = ['width', 'height', 'gap'].map(css);
  const size = [height - gap, width - gap];
  const context = one('lit').getContext('2d');
  return { size, data: [...context.getImageData(2 * width, 5 * height, width - gap, height - gap).data] };
}"""


@pytest.mark.slow
@pytest.mark.parametrize("smooth", [True, False])
def test_cells_are_smooth_or_patches_as_the_large_photo_is(
    visit: Callable[..., Any], app_url: str, smooth: bool
) -> None:
    """In heat, which covers the photo: patches have one colour each, and what is smooth has many."""
    page = visit(f"{app_url}?image=lion&style=heat&smooth={int(smooth)}&layer=5&head=2")
    words = "smooth" if smooth else "patches"
    expect(page.locator(PART.format("details"))).to_contain_text(f"Heat, {words}")
    page.wait_for_function(
        "!document.querySelector('#vv-explorer [data-vv=progress]').textContent"
        " && document.querySelector('#vv-explorer [data-vv=photo]').complete"
    )
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = page.evaluate(CELL)
    tall, wide = found["size"]
    pixels = np.array(found["data"], int).reshape(tall, wide, 4)
    assert min(tall, wide) > 5 * 16  # several pixels a patch, of 16 x 16
    row = (np.arange(16) + 0.5) * tall / 16
    column = (np.arange(16) + 0.5) * wide / 16
    inner = slice(2, 14)  # off the round corners
    patches = [
        pixels[int(r) - 1 : int(r) + 2, int(c) - 1 : int(c) + 2] for r in row[inner] for c in column[inner]
    ]
    spread = max(int(np.ptp(patch, axis=(0, 1)).max()) for patch in patches)
    assert (spread > 8) == smooth
    if not smooth:
        assert spread == 0
