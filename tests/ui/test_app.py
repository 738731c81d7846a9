"""The app as a visitor meets it, in a real browser: every view, uploads, links, errors, and what it looks like on a phone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.conftest import open_tab, wait_until_ready
from tests.ui.waits import click_at, expect, expect_in_address, point_of

pytestmark = pytest.mark.browser
VIEWS = ("Look", "Explain", "Positions", "Patches")


def photo(path: Path, *, seed: int = 0, width: int = 900, height: int = 300) -> Path:
    """A picture of soft blobs, three times as wide as high, different for every seed."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (4, 12, 3), dtype=np.uint8))
    small.resize((width, height), Image.Resampling.BICUBIC).save(path)
    return path


def upload(page: Any, path: Path) -> None:
    page.locator("#vv-upload input[type=file]").first.set_input_files(str(path))


def upload_and_wait(page: Any, path: Path) -> None:
    """Upload a picture and wait until the header speaks of it."""
    before = page.evaluate("new URLSearchParams(location.search).get('image')")
    upload(page, path)
    page.wait_for_function(
        "before => { const now = new URLSearchParams(location.search).get('image'); return now && now !== before; }",
        arg=before,
    )
    wait_until_ready(page)


def shown(page: Any, selector: str) -> str:
    """A fingerprint of what an element shows."""
    return hashlib.sha256(page.locator(selector).screenshot()).hexdigest()


PIXELS = "() => document.querySelector('#vv-explorer [data-vv=atlas]').toDataURL()"
"""Of the explorer's mosaic."""


def repainted(page: Any, before: str) -> None:
    """Wait until the mosaic is another one: the explorer begins to load a moment after the header has answered."""
    page.wait_for_function(f"before => ({PIXELS})() !== before", arg=before, polling=100)


def picture_loaded(page: Any, selector: str) -> None:
    page.wait_for_function(
        """selector => { const part = document.querySelector(selector); const image = part && part.querySelector('.vv-image');
        const busy = part && (part.classList.contains('vv-busy') || part.querySelector('.vv-busy'));
        return image && image.complete && image.naturalWidth > 0 && !busy; }""",
        arg=selector,
    )


@pytest.mark.slow
def test_the_first_screen_has_a_traced_sample(page: Any) -> None:
    expect(page.locator("#vv-top li")).to_have_count(5)
    expect(page.locator("#vv-facts .vv-model-facts")).to_contain_text("6 layers x 6 heads")
    expect(page.locator("#vv-facts .vv-proof")).to_have_attribute("data-state", "proven")
    expect(page.locator("#vv-explorer [data-vv=caption]")).to_contain_text("class token", use_inner_text=True)
    page.wait_for_function(  # painted when the first layer has come
        """() => { const c = document.querySelector('#vv-explorer [data-vv=atlas]');
        return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(Boolean); }"""
    )


@pytest.mark.slow
def test_a_wide_photo_walks_through_all_views_and_a_click_changes_the_picture(
    page: Any, tmp_path: Path
) -> None:
    upload_and_wait(page, photo(tmp_path / "wide.png"))
    for name in VIEWS:
        open_tab(page, name)
    open_tab(page, "Explain")
    page.locator("#vv-gallery [data-method=rollout] .vv-open").click()
    page.get_by_role("button", name="choose the query").click()
    picture_loaded(page, "#vv-explain-picture")
    drawn = page.locator("#vv-explain-picture .vv-image").bounding_box()
    assert drawn["width"] / drawn["height"] == pytest.approx(3, rel=0.02)
    before, caption = (
        shown(page, "#vv-explain-picture .vv-frame"),
        page.locator("#vv-explain-picture .vv-caption").inner_text(),
    )
    click_at(page.locator("#vv-explain-picture .vv-frame"), 0.9, 0.5)
    page.wait_for_function(
        "old => document.querySelector('#vv-explain-picture .vv-caption').textContent !== old", arg=caption
    )
    picture_loaded(page, "#vv-explain-picture")
    expect(page.locator("#vv-explain-picture .vv-caption")).to_contain_text("patch (", use_inner_text=True)
    assert shown(page, "#vv-explain-picture .vv-frame") != before


def test_a_patch_clicked_in_one_view_is_the_query_of_all(page: Any) -> None:
    open_tab(page, "Patches")
    click_at(page.locator("#vv-grid-picture .vv-patch-grid"), (3 + 0.5) / 16, (5 + 0.5) / 16)
    page.locator("#vv-grid-picture .vv-pinned").wait_for()
    open_tab(page, "Explain")
    page.locator("#vv-explain-picture .vv-caption").get_by_text("patch (5, 3)").wait_for()
    open_tab(page, "Look")
    page.wait_for_function(
        "() => document.querySelector('#vv-explorer [data-vv=caption]').textContent.includes('(5, 3)')"
    )
    expect_in_address(page, "q=5,3")


@pytest.mark.slow
def test_a_query_pinned_in_the_explorer_reaches_the_other_views(page: Any) -> None:
    click_at(page.locator("#vv-explorer [data-vv=stage]"), (10 + 0.5) / 16, (2 + 0.5) / 16)
    page.wait_for_function("() => location.search.includes('q=2,10')")
    open_tab(page, "Explain")
    page.locator("#vv-explain-picture .vv-caption").get_by_text("patch (2, 10)").wait_for()


@pytest.mark.slow
def test_arrow_keys_move_the_query_in_a_picture(page: Any) -> None:
    open_tab(page, "Explain")
    page.locator("#vv-gallery [data-method=rollout] .vv-open").click()
    page.get_by_role("button", name="choose the query").click()
    picture_loaded(page, "#vv-explain-picture")
    page.locator("#vv-explain-picture .vv-frame").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#vv-explain-picture .vv-caption").get_by_text("patch (8, 8)").wait_for()
    page.keyboard.press("ArrowUp")
    page.locator("#vv-explain-picture .vv-caption").get_by_text("patch (7, 8)").wait_for()


@pytest.mark.slow
def test_options_of_rollout_change_its_picture_and_its_link(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(app_url + "?method=rollout")
    open_tab(page, "Explain")
    picture_loaded(page, "#vv-explain-picture")
    before = page.locator("#vv-explain-picture .vv-image").get_attribute("src")
    page.locator("summary", has_text="Options and formula of this map").click()
    page.get_by_role("button", name="max", exact=True).click()
    page.wait_for_function(
        "old => document.querySelector('#vv-explain-picture .vv-image').getAttribute('src') !== old",
        arg=before,
    )
    expect_in_address(page, "fusion=max")


def test_another_sample_changes_the_picture_and_back_returns(page: Any) -> None:
    before = page.evaluate(PIXELS)
    page.get_by_role("button", name="Sample image tower").click()
    page.wait_for_function("() => location.search.includes('image=tower')")
    page.wait_for_function(
        "() => document.querySelector('#vv-samples [aria-label=\"Sample image tower\"]').getAttribute('aria-pressed') === 'true'"
    )
    wait_until_ready(page)
    repainted(page, before)
    page.go_back()
    page.wait_for_function("() => location.search.includes('image=lion')")
    page.wait_for_function(
        "() => document.querySelector('#vv-samples [aria-label=\"Sample image lion\"]').getAttribute('aria-pressed') === 'true'"
    )


@pytest.mark.slow
def test_two_visitors_at_once_get_their_own_pictures(
    visit: Callable[..., Any], app_url: str, tmp_path: Path
) -> None:
    pages = [visit(app_url) for _ in range(2)]
    files = [photo(tmp_path / f"{i}.png", seed=i, width=600 + 300 * i) for i in range(2)]
    for page, file in zip(pages, files, strict=True):
        upload(page, file)
    sizes = []
    for page in pages:
        page.wait_for_function(
            "() => (new URLSearchParams(location.search).get('image') || '').startsWith('u')"
        )
        page.wait_for_function(
            "() => ![0, 256].includes(document.querySelector('#vv-explorer [data-vv=photo]').naturalWidth)"
        )
        sizes.append(page.evaluate("document.querySelector('#vv-explorer [data-vv=photo]').naturalWidth"))
    assert sizes == [600, 900]
    ids = [page.evaluate("new URLSearchParams(location.search).get('image')") for page in pages]
    stranger = visit(f"{app_url}?image={ids[0]}")
    expect(stranger.locator("#vv-top .vv-status")).to_contain_text("uploaded elsewhere", use_inner_text=True)


def test_a_link_restores_the_view(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?image=tower&layer=2&head=3&q=4,5&dir=column&tab=explain&share=0.8", ready=False)
    page.locator("#vv-explain-picture .vv-caption").get_by_text("patch (4, 5)").wait_for()
    expect(page.get_by_role("tab", name="Explain")).to_have_attribute("aria-selected", "true")
    open_tab(page, "Look")
    caption = page.locator("#vv-explorer [data-vv=caption]")
    caption.get_by_text("layer 2, head 3").wait_for()
    expect(caption).to_contain_text("where patch (4, 5) is looked at from", use_inner_text=True)


@pytest.mark.slow
def test_a_reload_keeps_an_upload_in_its_own_tab(page: Any, tmp_path: Path) -> None:
    upload_and_wait(page, photo(tmp_path / "mine.png", seed=5))
    image = page.evaluate("new URLSearchParams(location.search).get('image')")
    page.reload()
    wait_until_ready(page)
    assert page.evaluate("new URLSearchParams(location.search).get('image')") == image
    expect(page.locator("#vv-top .vv-status")).to_be_hidden()


@pytest.mark.slow
def test_what_a_link_asks_in_vain_is_said(visit: Callable[..., Any], app_url: str) -> None:
    page = visit(f"{app_url}?layer=77&model=%3Cimg%20src=x%20onerror=alert(1)%3E")
    said = page.locator("#vv-top .vv-status")
    expect(said).to_contain_text("Layer 77 does not exist", use_inner_text=True)
    expect(said).to_contain_text("not offered here", use_inner_text=True)
    expect(page.locator("#vv-top .vv-status img")).to_have_count(0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.png", b"this is no picture"),
        pytest.param("empty.jpg", b"", marks=pytest.mark.slow),
        pytest.param("cut.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", marks=pytest.mark.slow),
    ],
)
def test_a_bad_upload_gives_one_sentence_and_keeps_the_picture(
    page: Any, tmp_path: Path, name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    before = page.locator("#vv-top li").first.inner_text()
    upload(page, tmp_path / name)
    words = page.locator(".vv-bring-note")
    words.wait_for()
    expect(words).to_have_text(re.compile(r"\S[\s\S]{19,}\S"), use_inner_text=True)
    expect(words).not_to_contain_text("Traceback", use_inner_text=True)
    expect(page.locator("#vv-top li").first).to_have_text(before, use_inner_text=True)


def test_every_picture_has_a_caption_and_can_be_saved(page: Any) -> None:
    for name, pictures in (("Explain", "#vv-explain-picture"), ("Patches", "figure")):
        open_tab(page, name)
        parts = page.locator(f"#vv-tab-{name.lower()} {pictures}").all()
        assert parts
        for part in parts:
            expect(part.locator(".vv-caption")).to_contain_text("mini", use_inner_text=True)
            expect(part.locator(".vv-save")).to_have_attribute("href", re.compile("."))
    for word in ("mini", "relevance", "layers 0-5", "for ", "scale"):
        expect(page.locator("#vv-explain-picture .vv-caption")).to_contain_text(word)
    assert save_figure(page, "#vv-grid-picture .vv-save", "svg") == "vit_viz_lion_patches_mini.svg"
    assert save_figure(page, "#vv-sequence-picture .vv-save", "pdf") == "vit_viz_lion_sequence_mini.pdf"
    open_tab(page, "Positions")
    assert save_figure(page, ".vv-places [data-save='0']", "png") == "vit_viz_positions_mini.png"
    expect(page.locator("#vv-figure-dialog input[value=gif]")).to_be_disabled()


def save_figure(page: Any, button: str, form: str) -> str:
    """The name of the file that the dialog saves for a figure."""
    page.locator(button).click()
    dialog = page.locator("#vv-figure-dialog")
    dialog.locator(f"label:has(input[value={form}])").click()
    with page.expect_download() as download:
        dialog.locator(".vv-figure-save").click()
    dialog.locator(".vv-figure-close").click()
    return str(download.value.suggested_filename)


SEEN = """(e) => {
  let { left, right, top, bottom } = e.getBoundingClientRect();
  for (let p = e.parentElement; p; p = p.parentElement) {  // what a row that scrolls cuts off is not to be seen
    if (getComputedStyle(p).overflowX === 'visible') continue;
    const b = p.getBoundingClientRect();
    [left, right] = [Math.max(left, b.left), Math.min(right, b.right)];
    [top, bottom] = [Math.max(top, b.top), Math.min(bottom, b.bottom)];
  }
  return { left, right, top, bottom, width: right - left, height: bottom - top };
}"""
OVERLAPS = (
    f"""() => {{ const rectOf = {SEEN};"""
    + """
  const seen = [...document.querySelectorAll('button, input, select, a, .vv-caption, .vv-proof, .vv-sentence, li')].filter((e) => {
    const b = rectOf(e), s = getComputedStyle(e);
    return b.width > 1 && b.height > 1 && s.visibility !== 'hidden' && s.opacity !== '0' && !e.closest('[aria-hidden=true]')
      && e.type !== 'file' && e.checkVisibility();
  });
  const isFixed = (e) => /fixed|sticky/.test(getComputedStyle(e).position);
  const stays = (e) => innerWidth <= 640 && Boolean(e) && (isFixed(e) || stays(e.parentElement));
  const bad = [];
  for (let i = 0; i < seen.length; i++) for (let j = i + 1; j < seen.length; j++) {
    const [p, q] = [seen[i], seen[j]];
    if (p.contains(q) || q.contains(p) || stays(p) !== stays(q)) continue;  // the page scrolls below what stays
    if (p.closest('label') && p.closest('label') === q.closest('label')) continue;
    const a = rectOf(p), b = rectOf(q);
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 2 && h > 2) bad.push([p.outerHTML.slice(0, 120), q.outerHTML.slice(0, 120)]);
  }
  return bad;
}"""
)


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_overlaps_and_the_page_never_scrolls_sideways(
    visit: Callable[..., Any], app_url: str, width: int, dark: bool
) -> None:
    page = visit(app_url, width=width, dark=dark)
    assert page.evaluate("document.body.classList.contains('dark')") == dark
    for name in VIEWS:
        open_tab(page, name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.evaluate(OVERLAPS) == [], name
        outside = page.evaluate(
            f"width => {{ const rectOf = {SEEN}; return "
            "[...document.querySelectorAll('button, img, canvas, p')].filter(e => e.checkVisibility() && "
            "!e.closest('[data-vv=scroll]') && !e.closest('[aria-hidden=true]') && rectOf(e).right > width + 1)"
            ".map(e => e.outerHTML.slice(0, 120)) }",
            width,
        )
        assert outside == [], name


@pytest.mark.slow
def test_hovering_the_map_tells_the_number_under_the_pointer(page: Any) -> None:
    open_tab(page, "Explain")
    picture_loaded(page, "#vv-explain-picture")
    image = page.locator("#vv-explain-picture .vv-image")
    page.mouse.move(*point_of(image, (2 + 0.5) / 16, (9 + 0.5) / 16))
    tip = page.locator("#vv-explain-picture .vv-tip")
    tip.wait_for()
    expect(tip).to_have_text(re.compile(r"^row 9, column 2: 0\.0"), use_inner_text=True)
    expect(tip).to_contain_text("%", use_inner_text=True)
