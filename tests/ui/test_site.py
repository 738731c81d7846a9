"""The explorer as a static site and as a file, in Chromium: the model runs in the page, on photos that the visitor brings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.ui.sites import (
    WORKERS,
    caption,
    carry,
    expected_top,
    file_of,
    row_of,
    served_site,
    site_opener,
    top_of,
    wait_for_picture,
)
from tests.ui.waits import click_at, expect, expect_in_address, point_of
from vit_viz import samples
from vit_viz.browser import as_stored
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.images import decode
from vit_viz.site.file import engine_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


@pytest.fixture(scope="module")
def stored(mini: LoadedModel) -> LoadedModel:
    """The model with the numbers that the page has of it."""
    return as_stored(mini, "int8")


@pytest.fixture(scope="module")
def site(mini: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a site under a path prefix of a plain file server."""
    yield from served_site([mini], tmp_path_factory.mktemp("root"))


@pytest.fixture
def open_site(visit: Callable[..., Any]) -> Callable[..., Any]:
    return site_opener(visit)


def test_the_site_says_and_shows_what_the_app_does(
    open_site: Callable[..., Any], site: str, mini: LoadedModel, stored: LoadedModel
) -> None:
    page = open_site(site)
    recorded = trace(mini, samples.sample("lion"))
    assert top_of(page) == expected_top(stored, samples.sample("lion"))
    look = samples.FIRST_LOOKS["lion"]
    expect(caption(page)).to_contain_text(
        f"Layer {look.layer}, head {look.head}: where the class token looks"
    )
    said = re.search(
        r"by at most ([\d.]+)% of the largest", page.locator("[data-site=storage]").text_content()
    )
    assert said is not None
    for layer in range(mini.config.depth):
        own = recorded.attention(layer, queries=[0])[:, 0].numpy()
        found = row_of(page, layer, "class").reshape(own.shape)
        assert (abs(found - own).max(-1) / own.max(-1)).max() <= 1.01 * float(said[1]) / 100


def test_pointing_shows_a_patch_and_a_click_keeps_it_in_the_link(
    open_site: Callable[..., Any], site: str
) -> None:
    page = open_site(site)
    page.mouse.move(*point_of(page.locator("[data-vv=stage]"), 0.53, 0.34))
    expect(caption(page)).to_contain_text("where patch")
    pointed = caption(page).text_content()
    click_at(page.locator("[data-vv=stage]"), 0.53, 0.34)
    page.wait_for_function("() => new URLSearchParams(location.search).get('q')?.includes(',')")
    again = open_site(page.url)
    expect(caption(again)).to_have_text(str(pointed))
    page.go_back()
    page.mouse.move(1, 1)
    expect(caption(page)).to_contain_text("where the class token looks")


@pytest.mark.slow
def test_a_link_opens_what_it_names(open_site: Callable[..., Any], site: str, stored: LoadedModel) -> None:
    page = open_site(f"{site}?model=mini&image=tower&mode=crop&layer=2&head=1&q=3,4", "tower")
    expect(caption(page)).to_contain_text("Layer 2, head 1: where patch (3, 4) looks")
    assert top_of(page) == expected_top(stored, samples.sample("tower"), "crop")
    page.get_by_role("button", name="Sample image twins").click()
    wait_for_picture(page, "twins")
    page.go_back()
    wait_for_picture(page, "tower")
    expect(caption(page)).to_contain_text("Layer 2, head 1: where patch (3, 4) looks")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "words"),
    [
        (
            "?image=own-0123456789abcdef&layer=1&head=0&q=2,2",
            "The picture of this link is on the machine of whoever",
        ),
        ("?model=other&image=lion", "This page does not have the model other"),
    ],
)
def test_what_a_link_asks_for_and_is_not_here_is_said(
    open_site: Callable[..., Any], site: str, search: str, words: str
) -> None:
    page = open_site(site + search, None)
    expect(page.locator("[data-vv=message]")).to_contain_text(words)
    page.get_by_role("button", name="Sample image runner").click()
    wait_for_picture(page, "runner")
    expect(page.locator("[data-vv=message]")).to_be_empty()


PHOTOS: dict[str, Callable[[], tuple[str, str, bytes]]] = {
    "turned by its EXIF": lambda: (
        "turned.jpg", "image/jpeg",
        file_of(samples.sample("tower"), "JPEG", quality=95, exif=_exif(6)),
    ),
    "transparent": lambda: (
        "clear.png", "image/png",
        file_of(_with_hole(samples.sample("cheetah")), "PNG"),
    ),
    "wide and gray": lambda: (
        "wide.webp", "image/webp",
        file_of(samples.sample("runner").convert("L").resize((600, 150)), "WEBP", lossless=True),
    ),
}  # fmt: skip


def _exif(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def _with_hole(photo: Image.Image) -> Image.Image:
    alpha = np.full((photo.height, photo.width), 255, np.uint8)
    alpha[photo.height // 4 : photo.height // 2] = 0
    return Image.merge("RGBA", (*photo.split(), Image.fromarray(alpha)))


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("chosen", "turned by its EXIF"),
        pytest.param("dropped", "transparent", marks=pytest.mark.slow),
        pytest.param("pasted", "wide and gray", marks=pytest.mark.slow),
    ],
)
def test_a_photo_of_the_visitor_is_seen_as_the_app_sees_it(
    open_site: Callable[..., Any], site: str, stored: LoadedModel, way: str, kind: str
) -> None:
    name, mime, data = PHOTOS[kind]()
    page = open_site(site)
    if way == "chosen":
        page.locator("[data-site=file]").set_input_files({"name": name, "mimeType": mime, "buffer": data})
    else:
        carry(page, way, [(name, mime, data)])
    wait_for_picture(page, name)
    photo = decode(data)
    assert top_of(page) == expected_top(stored, photo)
    expect(page.get_by_role("button", name=f"Your picture {name}")).to_have_attribute("aria-pressed", "true")
    recorded = trace(stored, photo)
    own = recorded.attention(5, queries=[0])[:, 0].numpy()
    assert (abs(row_of(page, 5, "class").reshape(own.shape) - own).max(-1) / own.max(-1)).max() < 0.01
    rows, cols = recorded.layout.grid
    assert page.evaluate("document.querySelector('#vv-explorer').explorer.trace.grid") == [rows, cols]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("broken.png", b"\x89PNG no picture", "broken.png is no picture that this browser can read."),
        ("thin.png", file_of(Image.new("RGB", (400, 10), "red"), "PNG"), "thin.png is too narrow"),
    ],
)
def test_a_photo_that_cannot_be_seen_is_one_sentence_and_nothing_is_lost(
    open_site: Callable[..., Any], site: str, name: str, data: bytes, words: str
) -> None:
    page = open_site(f"{site}?image=shapes&layer=1&head=2&model=mini&q=class", "shapes")
    address, said = page.url, top_of(page)
    page.locator("[data-site=file]").set_input_files({"name": name, "mimeType": "image/png", "buffer": data})
    expect(page.locator(".vv-bring-note")).to_contain_text(words)
    wait_for_picture(page, "shapes")
    expect(page).to_have_url(address)
    assert top_of(page) == said
    expect(page.get_by_role("button", name=f"Your picture {name}")).to_have_count(0)


@pytest.mark.slow
def test_several_pictures_at_once_all_come_to_the_tray(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    page = open_site(site)
    files = [
        ("one.png", "image/png", file_of(samples.sample("twins"), "PNG")),
        ("bad.png", "image/png", b"no picture"),
        ("two.png", "image/png", file_of(samples.sample("runner"), "PNG")),
    ]
    carry(page, "dropped", files)
    wait_for_picture(page, "one.png")
    expect(page.locator(".vv-bring-note")).to_have_text("bad.png is no picture that this browser can read.")
    expect(page.get_by_role("button", name="Your picture bad.png")).to_have_count(0)
    page.get_by_role("button", name="Your picture two.png").click()
    wait_for_picture(page, "two.png")
    assert top_of(page) == expected_top(stored, samples.sample("runner"))


@pytest.mark.slow
def test_a_refusal_leaves_what_is_seen_and_not_what_was_on_its_way(
    open_site: Callable[..., Any], site: str
) -> None:
    page = open_site(f"{site}?image=shapes&layer=1&head=2&model=mini&q=class", "shapes")
    page.evaluate("() => document.querySelector('[aria-label=\"Sample image tower\"]').click()")
    carry(page, "pasted", [("bad.png", "image/png", b"no picture")])
    expect(page.locator(".vv-bring-note")).to_contain_text("bad.png is no picture")
    expect(page.get_by_role("button", name="Sample image shapes")).to_have_attribute("aria-pressed", "true")
    expect_in_address(page, "image=shapes")


@pytest.mark.slow
def test_a_link_of_a_photo_of_others_is_followed_once_it_is_brought(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    data = file_of(samples.sample("tower"), "PNG")
    name = f"own-{hashlib.sha256(data).hexdigest()[:16]}"
    page = open_site(f"{site}?model=mini&image={name}&mode=crop&layer=1&head=4&q=2,5", None)
    expect(page.locator("[data-vv=message]")).to_contain_text("bring it, and the link is followed")
    carry(page, "dropped", [("mine.png", "image/png", data)])
    wait_for_picture(page, "mine.png")
    expect(caption(page)).to_contain_text("Layer 1, head 4: where patch (2, 5) looks")
    assert top_of(page) == expected_top(stored, samples.sample("tower"), "crop")


@pytest.mark.slow
def test_of_two_quick_choices_the_later_is_shown(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    page = open_site(site)
    for name in ("tower", "runner", "textures"):
        page.get_by_role("button", name=f"Sample image {name}").click()
    wait_for_picture(page, "textures")
    assert top_of(page) == expected_top(stored, samples.sample("textures"))
    expect_in_address(page, "image=textures")


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    page = open_site(site, script=WORKERS)
    page.evaluate("workers[0].terminate(); workers[0].dispatchEvent(new Event('error'))")
    page.get_by_role("button", name="Sample image twins").click()
    wait_for_picture(page, "twins")
    assert top_of(page) == expected_top(stored, samples.sample("twins"))
    page.evaluate(
        "workers[1].postMessage = () => {}"
    )  # so that the next pass is surely under way when it dies
    page.locator("[data-site=mode]").select_option("stretch")
    page.evaluate("workers[1].terminate(); workers[1].dispatchEvent(new Event('error'))")
    page.wait_for_function("() => document.querySelector('#vv-explorer').explorer.trace.mode === 'stretch'")
    assert page.evaluate("workers.length") == 3


def test_the_site_opens_without_a_network(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    page = open_site(site)
    page.locator("html[data-kept]").wait_for(state="attached")
    page.context.set_offline(True)
    page.reload()
    wait_for_picture(page, "lion")
    page.get_by_role("button", name="Sample image tower").click()
    wait_for_picture(page, "tower")
    assert top_of(page) == expected_top(stored, samples.sample("tower"))


@pytest.mark.slow
def test_a_finger_asks_a_patch_on_a_phone(browser: Any, site: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(site)
    wait_for_picture(page, "lion")
    page.locator("[data-vv=stage]").tap(position={"x": 60, "y": 60})
    expect(caption(page)).to_contain_text("where patch")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    expect(page.get_by_role("button", name="Camera")).to_be_visible()
    context.close()


@pytest.mark.slow
def test_a_file_takes_other_photos_from_a_disk_without_a_network(
    browser: Any, mini: LoadedModel, stored: LoadedModel, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(engine_page(mini, samples.sample("cheetah"), name="cheetah", mode="crop"))
    context = browser.new_context(offline=True)
    page, problems = context.new_page(), []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    wait_for_picture(page, "cheetah")
    assert top_of(page) == expected_top(stored, samples.sample("cheetah"), "crop")
    page.locator("[data-site=mode]").select_option("fit")
    page.wait_for_function("() => document.querySelector('#vv-explorer').explorer.trace.mode === 'fit'")
    carry(page, "dropped", [("runner.png", "image/png", file_of(samples.sample("runner"), "PNG"))])
    wait_for_picture(page, "runner.png")
    assert top_of(page) == expected_top(stored, samples.sample("runner"))
    page.mouse.move(*point_of(page.locator("[data-vv=stage]"), 0.53, 0.34))
    expect(caption(page)).to_contain_text("where patch")
    assert problems == []
    context.close()
