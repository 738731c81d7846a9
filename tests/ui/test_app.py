"""The app as a visitor meets it, in a browser: the first screen, a photo of their own, a patch that all tabs follow, a link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.conftest import open_tab, wait_until_ready
from tests.ui.waits import click_at, expect, expect_in_address, point_of

pytestmark = pytest.mark.browser

PAINTED = """() => {
  const atlas = document.querySelector('#vv-explorer [data-vv=atlas]');
  return atlas.getContext('2d').getImageData(0, 0, atlas.width, atlas.height).data.some(Boolean);
}"""
PIXELS = "() => document.querySelector('#vv-explorer [data-vv=atlas]').toDataURL()"
"""Of the explorer's mosaic."""


def test_a_patch_of_the_first_screen_is_followed_by_all_tabs_and_stands_in_a_link(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url)
    expect(page.locator("#vv-top li")).to_have_count(5)
    expect(page.locator("#vv-facts .vv-model-facts")).to_contain_text("6 layers x 6 heads")
    expect(page.locator("#vv-facts .vv-proof")).to_have_attribute("data-state", "proven")
    expect(page.locator("#vv-explorer [data-vv=caption]")).to_contain_text("class token", use_inner_text=True)
    page.wait_for_function(PAINTED)  # when the first layer has come
    open_tab(page, "Patches")
    click_at(page.locator("#vv-grid-picture .vv-patch-grid"), (3 + 0.5) / 16, (5 + 0.5) / 16)
    page.locator("#vv-grid-picture .vv-pinned").wait_for()
    open_tab(page, "Explain")
    page.locator("#vv-explain-picture .vv-caption").get_by_text("patch (5, 3)").wait_for()
    open_tab(page, "Look")
    expect(page.locator("#vv-explorer [data-vv=caption]")).to_contain_text("(5, 3)")
    expect_in_address(page, "q=5,3")
    link = f"{app_url}?image=tower&layer=2&head=3&q=4,5&dir=column&tab=explain&share=0.8"
    linked = visit(link, ready=False)
    linked.locator("#vv-explain-picture .vv-caption").get_by_text("patch (4, 5)").wait_for()
    expect(linked.get_by_role("tab", name="Explain")).to_have_attribute("aria-selected", "true")
    open_tab(linked, "Look")
    caption = linked.locator("#vv-explorer [data-vv=caption]")
    caption.get_by_text("layer 2, head 3").wait_for()
    expect(caption).to_contain_text("patch (4, 5) is looked at mostly from", use_inner_text=True)


def test_a_wide_photo_is_looked_at_and_back_leads_to_the_sample(page: Any, tmp_path: Path) -> None:
    before = page.evaluate(PIXELS)
    noise = np.random.default_rng(0).integers(0, 256, (4, 12, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((900, 300), Image.Resampling.BICUBIC).save(tmp_path / "wide.png")
    page.locator("#vv-upload input[type=file]").first.set_input_files(tmp_path / "wide.png")
    page.wait_for_function("location.search.includes('image=u')")
    wait_until_ready(page)
    page.wait_for_function(f"before => ({PIXELS})() !== before", arg=before, polling=100)
    open_tab(page, "Explain")
    image = page.locator("#vv-explain-picture .vv-image")
    drawn = image.bounding_box()
    assert drawn["width"] / drawn["height"] == pytest.approx(3, rel=0.02)
    page.mouse.move(*point_of(image, 0.5, 0.5))
    expect(page.locator("#vv-explain-picture .vv-tip")).to_contain_text("patch (", use_inner_text=True)
    page.evaluate("history.go(-2)")
    page.wait_for_function("location.search.includes('image=lion')")
    expect(page.locator('#vv-samples [aria-label="Sample image lion"]')).to_have_attribute(
        "aria-pressed", "true"
    )
