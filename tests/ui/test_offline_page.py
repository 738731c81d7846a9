"""Tabs of the app in a file, opened from the disk by a browser that has no network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vit_viz as vv
from tests.ui.test_access import axe
from tests.ui.waits import expect, point_of
from tests.waiting import until
from vit_viz.explorer.packing import packed_error
from vit_viz.offline import page
from vit_viz.offline.explored import Explored
from vit_viz.samples import sample

pytestmark = [pytest.mark.slow, pytest.mark.browser]

READY = "#vv-explorer [data-vv=root][data-state=ready]"
VALUES = """() => {
  const { explorer } = document.getElementById('vv-explorer');
  const { frame, store, version, computed } = explorer;
  return { layers: store.layers.size, computed, arrivals: version,
           busy: Boolean(explorer.frameRequest), values: Array.from(frame.values) };
}"""


@dataclass
class Opened:
    """A page that was opened, what it is of, and what went wrong in it."""

    page: Any
    explored: Explored
    said: list[str]

    def values(self, query: str, direction: str = "row") -> np.ndarray[Any, Any]:
        """What the explorer shows for a query once it has every layer, [layers, heads, tokens]."""
        trace, shown = self.explored.trace, dict[str, Any]()

        def is_drawn() -> bool:
            shown.update(self.page.evaluate(VALUES))
            key = shown["computed"].split("|")  # query, direction, norm, arrivals of data
            is_all = shown["layers"] == trace.num_layers and key[-1] == str(shown["arrivals"])
            return is_all and not shown["busy"] and key[:2] == [query, direction]

        until(is_drawn, what=f"the map of {query}")
        shape = (trace.num_layers, trace.num_heads + 3, trace.num_tokens)
        return np.array(shown["values"]).reshape(shape)[:, : trace.num_heads]

    def point(self, row: int, col: int) -> None:
        """Put the pointer on a patch."""
        rows, cols = self.explored.trace.layout.grid
        box = self.page.locator("#vv-explorer [data-vv=box]")
        self.page.mouse.move(*point_of(box, (col + 0.5) / cols, (row + 0.5) / rows))


@pytest.fixture(params=["fp16", "int8"])
def opened(
    request: pytest.FixtureRequest, browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Opened]:
    if request.param == "int8":
        monkeypatch.setattr(page, "FP16_BYTES", 0)
    explored = Explored.of(vv.load("mini"), sample("lion"))
    file = tmp_path / "page.html"
    file.write_bytes(explored.page(explored.selection(layer=3, head=1, query=(2, 5))))
    context = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    said: list[str] = []
    tab = context.new_page()
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on(
        "request", lambda asked: asked.url.startswith(("file:", "data:", "blob:")) or said.append(asked.url)
    )
    tab.goto(file.as_uri())
    tab.locator(READY).wait_for()
    yield Opened(tab, explored, said)
    context.close()


def furthest(shown: np.ndarray[Any, Any], own: np.ndarray[Any, Any]) -> float:
    """The largest difference of a row, as a share of its largest weight."""
    return float((np.abs(shown - own).max(-1) / own.max(-1)).max())


def test_the_page_answers_as_the_server_does_and_needs_nothing_else(opened: Opened) -> None:
    trace, tab = opened.explored.trace, opened.page
    storage = "int8" if page.FP16_BYTES == 0 else "fp16"
    bound = 0.005 if storage == "fp16" else 2 * packed_error(trace, storage="int8")
    layers = range(trace.num_layers)

    def rows(token: int) -> np.ndarray[Any, Any]:
        return np.stack([trace.attention(layer, queries=[token])[:, 0].numpy() for layer in layers])

    assert furthest(opened.values("2,5"), rows(trace.layout.token((2, 5)))) < bound
    expect(tab.locator("[data-vv=caption]")).to_contain_text("Layer 3, head 1", use_inner_text=True)
    opened.point(7, 9)
    assert furthest(opened.values("7,9"), rows(trace.layout.token((7, 9)))) < bound
    tab.mouse.move(1, 1)

    tab.get_by_text("looked at by", exact=True).click()
    own = np.stack([trace.received(layer, [trace.layout.token((2, 5))])[..., 0].numpy() for layer in layers])
    assert furthest(opened.values("2,5", "column"), own) < 2 * bound

    for style in ("tint", "heat", "light"):
        tab.get_by_text(style, exact=True).click()
        tab.locator("[data-vv=details]", has_text=style.capitalize()).wait_for()
    for part, key, caption in (
        ("mosaic", "ArrowUp", "Layer 2, head 1"),
        ("mosaic", "ArrowRight", "Layer 2, head 2"),
        ("mosaic", "Enter", "Layer 2, head 2"),
        ("stage", "ArrowRight", "patch (2, 6)"),
        ("stage", "Escape", "patch (2, 5)"),
        ("stage", "ArrowRight", "patch (2, 6)"),
        ("stage", "Enter", "patch (2, 6)"),
    ):
        tab.locator(f"[data-vv={part}]").focus()
        tab.keyboard.press(key)
        tab.locator("[data-vv=caption]", has_text=caption).wait_for()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Save").click()
    assert saved.value.suggested_filename.startswith("vit_viz-mini-photo-layer2-head2-2,6-column")
    expect(tab.locator("[data-vv=closer]")).to_be_hidden()
    assert opened.said == []


FAULTS = """axe.run(document, { rules: { 'color-contrast': { enabled: true } } }).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, ...nodes.map(({ target }) => String(target))]))"""


def test_heads_and_tokens_have_their_answers_in_the_file(opened: Opened) -> None:
    tab, trace = opened.page, opened.explored.trace
    tab.get_by_role("tab", name="Heads").click()
    expect(tab.locator(".vv-heads[data-ready=distance]")).to_be_visible()
    distance = opened.explored.run(opened.explored.opening, "heads", measure="distance").values
    layer, head = divmod(int(distance.argmax()), trace.num_heads)
    expect(tab.locator(".vv-heads-found")).to_contain_text(f"largest in layer {layer}, head {head}")
    expect(tab.locator(".vv-heads-measure option[value=effect]")).to_contain_text("in the app")
    expect(tab.get_by_role("button", name="surgery")).to_have_count(0)
    tab.get_by_role("button", name="matrix", exact=True).click()
    expect(tab.locator("#vv-head-matrix")).to_contain_text("of the attention falls on")
    tab.get_by_role("tab", name="Tokens").click()
    expect(tab.locator(".vv-tokens[data-ready=similarity]")).to_be_visible()
    expect(tab.locator("#vv-tokens")).to_contain_text("by the keys of layer")
    expect(tab.locator(".vv-tokens-error")).to_be_hidden()
    expect(tab).to_have_url(re.compile("tab=tokens"))
    assert opened.said == []


def test_each_tab_fits_a_phone_and_has_no_fault_that_axe_finds(opened: Opened) -> None:
    tab = opened.page
    for width, dark in ((390, "dark"), (1440, "light")):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(color_scheme=dark)
        for name, ready in (
            ("Look", READY),
            ("Heads", ".vv-heads[data-ready=distance]"),
            ("Tokens", ".vv-tokens[data-ready]"),
        ):
            tab.get_by_role("tab", name=name).click()
            expect(tab.locator(ready)).to_be_visible()
            assert tab.evaluate("document.documentElement.scrollWidth") == width
            saves = tab.locator("[data-save]").filter(visible=True)
            expect(saves).to_have_count(1 if name == "Look" else 0)
            tab.evaluate(axe())
            assert tab.evaluate(FAULTS) == [], (width, name)
