"""The explorer as a static site and as a file, in Chromium: the model runs in the page, on photos and checkpoints of visitors."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.model.inside import randomise
from tests.ui.waits import click_at, expect, point_of
from vit_viz import samples
from vit_viz.browser import as_stored
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.images import decode
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.site import stored as stored_model, write_site
from vit_viz.site.file import engine_page

pytestmark = pytest.mark.browser

KEPT = "The page itself, with the model, is kept by your browser, so that it opens without a network."


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""


class _Isolating(_Silent):
    """A plain file server whose pages are isolated: threads may share memory there."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


class _Caching(_Silent):
    """One that lets browsers hold on to all files, the page included, for an hour."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()


@contextmanager
def served(folder: Path, handler: type[SimpleHTTPRequestHandler]) -> Iterator[str]:
    """The address of a folder while it is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


@pytest.fixture(scope="module")
def stored(mini: LoadedModel) -> LoadedModel:
    """The model with the numbers that the page has of it."""
    return as_stored(mini, "int8")


@pytest.fixture(scope="module")
def site(mini: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a site under a path prefix of a file server."""
    root = tmp_path_factory.mktemp("root")
    write_site([mini], root / "under" / "prefix")
    with served(root, _Isolating) as address:
        yield f"{address}under/prefix/"


@pytest.fixture
def open_site(visit: Callable[..., Any]) -> Callable[..., Any]:
    """Opens an address and waits for a picture, unless none is to come."""

    def opened(url: str, image: str | None = "lion") -> Any:
        page = visit(url, ready=False)
        if image is not None:
            wait_for_picture(page, image)
        return page

    return opened


@pytest.fixture
def open_file(browser: Any, mini: LoadedModel, tmp_path: Path) -> Iterator[Any]:
    """The page of one file, from a disk and without a network; it may complain of nothing."""
    file = tmp_path / "page.html"
    file.write_bytes(engine_page(mini, samples.sample("cheetah"), name="cheetah", mode="crop"))
    context = browser.new_context(offline=True)
    page, problems = context.new_page(), []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(file.as_uri())
    wait_for_picture(page, "cheetah")
    yield page
    context.close()
    assert problems == []


def wait_for_picture(page: Any, image: str) -> None:
    """Wait until the explorer shows a picture, with all layers, and the header what the model says of it."""
    page.wait_for_function(
        """(image) => {
          const { trace, store } = document.querySelector('#vv-explorer')?.explorer ?? {};
          return trace && (trace.image === image || trace.name === image) && store?.next() === null &&
            document.querySelector('.vv-samples [aria-pressed=true]') && !document.querySelector('.vv-part-top.vv-busy');
        }""",
        arg=image,
    )


def wait_for_model(page: Any, name: str, image: str) -> None:
    page.wait_for_function(
        "name => document.querySelector('#vv-explorer')?.explorer?.trace?.model === name", arg=name
    )
    wait_for_picture(page, image)


def assert_is_seen(
    page: Any, model: LoadedModel, photo: Image.Image, *, apart: float, mode: Any = "fit"
) -> None:
    """The page shows the classes, the grid and, up to a share of the largest, the rows that Python makes of a photo."""
    recorded = trace(model, photo, mode=mode)
    assert recorded.logits is not None
    assert model.labels is not None
    top = page.locator(".vv-top .vv-class").all_text_contents()
    assert top == [model.labels.names[i] for i in recorded.logits.topk(5).indices]
    grid, prefix = page.evaluate(
        "(({ grid, prefix }) => [grid, prefix])(document.querySelector('#vv-explorer').explorer.trace)"
    )
    assert (tuple(grid), tuple(prefix)) == (recorded.layout.grid, recorded.layout.prefix)
    for layer in range(recorded.num_layers):
        own = recorded.attention(layer, queries=[0])[:, 0].numpy()
        shown = row_of(page, layer, "class").reshape(own.shape)
        assert (abs(shown - own).max(-1) / own.max(-1)).max() <= apart


def row_of(page: Any, layer: int, query: str) -> np.ndarray[Any, Any]:
    """A row of attention as the page has it, [heads, tokens]."""
    numbers = page.evaluate(
        """async ([layer, query]) => {
          const { source, trace } = document.querySelector('#vv-explorer').explorer;
          const rows = await source.rows(trace, layer, { query, direction: 'row' }, new AbortController().signal);
          return [...rows];
        }""",
        [layer, query],
    )
    return np.array(numbers)


def file_of(photo: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    photo.save(file, kind, **options)
    return file.getvalue()


def caption(page: Any) -> Any:
    return page.locator("[data-vv=caption]")


def carry(page: Any, way: str, name: str, data: bytes) -> None:
    """Drop a file on the page, or paste it."""
    page.evaluate(
        """([way, name, type, text]) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(atob(text), (one) => one.charCodeAt(0))], name, { type }));
          const event = way === 'dropped' ? new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })
            : new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
          document.body.dispatchEvent(event);
        }""",
        [way, name, Image.MIME.get(name.split(".")[-1].upper(), ""), base64.b64encode(data).decode()],
    )


def test_the_site_says_and_shows_what_the_app_does_in_threads(
    open_site: Callable[..., Any], site: str, mini: LoadedModel, stored: LoadedModel
) -> None:
    page = open_site(site)
    assert page.evaluate("crossOriginIsolated")
    look = samples.FIRST_LOOKS["lion"]
    expect(caption(page)).to_contain_text(f"Layer {look.layer}, head {look.head}: the class token looks ")
    assert_is_seen(page, stored, samples.sample("lion"), apart=0.01)
    words = page.locator(".vv-proof-words").text_content()
    said = re.search(r"by at most ([\d.]+)% of the largest", words)
    assert said is not None
    own = trace(mini, samples.sample("lion")).attention(3, queries=[0])[:, 0].numpy()
    shown = row_of(page, 3, "class").reshape(own.shape)
    assert (abs(shown - own).max(-1) / own.max(-1)).max() <= 1.01 * float(said[1]) / 100


def test_pointing_shows_a_patch_and_a_click_keeps_it_in_the_link(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    page = open_site(f"{site}?model=mini&image=tower&mode=crop&layer=2&head=1&q=3,4", "tower")
    expect(caption(page)).to_contain_text("Layer 2, head 1: patch (3, 4) looks")
    assert_is_seen(page, stored, samples.sample("tower"), apart=0.01, mode="crop")
    stage = page.locator("[data-vv=stage]")
    page.mouse.move(*point_of(stage, 0.53, 0.34))
    expect(caption(page)).not_to_contain_text("(3, 4)")
    pointed = caption(page).text_content()
    click_at(stage, 0.53, 0.34)
    page.wait_for_function("!location.search.includes('q=3,4')")
    again = open_site(page.url, "tower")
    expect(caption(again)).to_have_text(str(pointed))
    page.get_by_role("button", name="Sample image twins").click()
    wait_for_picture(page, "twins")
    page.evaluate("history.go(-2)")
    wait_for_picture(page, "tower")
    page.mouse.move(1, 1)
    expect(caption(page)).to_contain_text("Layer 2, head 1: patch (3, 4) looks")


def test_photos_of_the_visitor_are_seen_as_the_app_sees_them(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    """Chosen, dropped and pasted: one turned by its EXIF, one with a hole, one wide and gray; what is none is one sentence."""
    exif, hole = Image.Exif(), samples.sample("cheetah").convert("RGBA")
    exif[0x0112] = 6
    hole.paste((0, 0, 0, 0), (0, hole.height // 4, hole.width, hole.height // 2))
    wide = samples.sample("runner").convert("L").resize((600, 150))
    page = open_site(site)
    for way, name, data in (
        ("chosen", "turned.jpeg", file_of(samples.sample("tower"), "JPEG", quality=95, exif=exif)),
        ("dropped", "clear.png", file_of(hole, "PNG")),
        ("pasted", "wide.webp", file_of(wide, "WEBP", lossless=True)),
    ):
        if way == "chosen":
            files = page.locator(".vv-files")
            files.set_input_files({"name": name, "mimeType": "image/jpeg", "buffer": data})
        else:
            carry(page, way, name, data)
        wait_for_picture(page, name)
        assert_is_seen(page, stored, decode(data), apart=0.01)
        tray = page.get_by_role("button", name=f"Your picture {name}")
        expect(tray).to_have_attribute("aria-pressed", "true")
    link = page.evaluate("location.search")
    thin = file_of(Image.new("RGB", (400, 10), "red"), "PNG")
    for name, data, words in (
        (
            "broken.png",
            b"\x89PNG no picture",
            "broken.png is no picture that this browser can read; please save it as JPEG or PNG",
        ),
        ("thin.png", thin, "thin.png is too narrow"),
    ):
        carry(page, "dropped", name, data)
        expect(page.locator(".vv-bring-note")).to_contain_text(words)
        expect(page.get_by_role("button", name=f"Your picture {name}")).to_have_count(0)
    wait_for_picture(page, "wide.webp")
    page.wait_for_function("link => location.search === link", arg=link)


ROOMS = {
    "lesson": ".vv-lesson-stage[data-drawn] canvas",
    "explain": ".vv-gallery canvas, #vv-explain-picture canvas",
    "heads": ".vv-heads[data-ready=distance]",
    "tokens": ".vv-tokens-main canvas",
    "positions": ".vv-places-tiles",
    "patches": "#vv-grid-picture image",
}
"""What each tab shows once its numbers are there."""


def test_every_tab_is_filled_by_the_model_in_the_page(open_site: Callable[..., Any], site: str) -> None:
    page = open_site(site)
    for tab, there in ROOMS.items():
        page.locator(f"#vv-tab-{tab}-button").click()
        expect(page.locator(f"#vv-tab-{tab} :is({there})").first).to_be_visible()
        for problem in page.locator(f"#vv-tab-{tab} :is(.vv-error, .vv-notice)").all():
            expect(problem).to_be_hidden()
    page.set_viewport_size({"width": 390, "height": 844})
    for tab in ("look", *ROOMS):
        page.locator(f"#vv-tab-{tab}-button").click()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.goto(f"{site}?tab=lesson&beat=ask-take")
    expect(page.locator("[data-numbers=ask-take] [data-number^=weight]")).not_to_have_count(0)
    page.goto(f"{site}?tab=heads&face=surgery&edits=off 3.1")
    expect(page.locator(".vv-edited-words")).to_have_text("1 head off")
    expect(page.locator(".vv-surgery-maps-words")).to_contain_text("share one scale")
    page.goto(f"{site}?tab=heads&measure=estimate")
    expect(page.locator(".vv-heads-measure option[value=estimate]")).to_have_text(
        "gradient importance (in the app)"
    )


def test_every_tab_saves_figures_and_numbers(open_site: Callable[..., Any], site: str) -> None:
    page = open_site(site)
    for tab, question in (
        ("heads", "lion_heads"),
        ("tokens", "lion_token-similarity"),
        ("patches", "lion_patches"),
    ):
        page.locator(f"#vv-tab-{tab}-button").click()
        expect(page.locator(f"#vv-tab-{tab} :is({ROOMS[tab]})").first).to_be_visible()
        page.locator(f"#vv-tab-{tab} [data-save]").filter(visible=True).first.click()
        for form, start in (("png", b"\x89PNG"), ("svg", b"<svg"), ("csv", b"# "), ("npz", b"PK")):
            page.locator(f".vv-figure[open] input[value={form}]").check()
            with page.expect_download() as saving:
                page.locator(".vv-figure-save").click()
            assert saving.value.suggested_filename == f"vit_viz_{question}_mini.{form}"
            assert Path(saving.value.path()).read_bytes().startswith(start)
        expect(page.locator(".vv-figure[open] .vv-in-app")).to_contain_text("In the app: PDF")
        page.locator(".vv-figure-close").click()


def test_the_panel_answers_what_the_engine_answers_and_the_palette_names_the_rest(
    open_site: Callable[..., Any], site: str
) -> None:
    page = open_site(f"{site}?ask=layer_similarity")
    expect(page.locator(".vv-question[data-state=done] .vv-question-picture")).to_be_visible()
    page.locator(".vv-question [data-option=role]").get_by_text("keys").click()
    page.wait_for_function("() => location.search.includes('ask.role=keys')")
    expect(page.locator(".vv-question[data-drawn]")).to_be_visible()
    page.locator(".vv-question-close").click()
    page.keyboard.press("Control+k")
    page.locator(".vv-palette-text").fill("integrated gradients")
    row = page.locator(".vv-palette-row").first
    expect(row).to_contain_text("in the app")
    row.click()
    expect(page.locator(".vv-palette-words")).to_contain_text("the app does")


@pytest.mark.slow
def test_a_link_of_a_photo_of_others_is_followed_once_it_is_brought(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    data = file_of(samples.sample("tower"), "PNG")
    name = f"own-{hashlib.sha256(data).hexdigest()[:16]}"
    page = open_site(f"{site}?model=mini&image={name}&mode=crop&layer=1&head=4&q=2,5", None)
    expect(page.locator(".vv-status")).to_contain_text("bring it, and the link is followed")
    expect(page.locator(".vv-nothing")).to_be_hidden()  # the model has a head, whatever is shown
    carry(page, "dropped", "mine.png", data)
    wait_for_picture(page, "mine.png")
    expect(caption(page)).to_contain_text("Layer 1, head 4: patch (2, 5) looks")


def test_the_site_opens_without_a_network(
    open_site: Callable[..., Any], site: str, stored: LoadedModel
) -> None:
    page = open_site(site)
    expect(page.locator("[data-site=keeping]")).to_have_text(KEPT)
    page.context.set_offline(True)
    page.reload()
    wait_for_picture(page, "lion")
    page.get_by_role("button", name="Sample image tower").click()
    wait_for_picture(page, "tower")
    assert_is_seen(page, stored, samples.sample("tower"), apart=0.01)


def test_a_new_version_opens_without_a_network_after_one_visit_of_a_host_that_caches(
    open_site: Callable[..., Any],
    mini: LoadedModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_model, "storage_error", lambda *_: (0.01, 0.01, 7))
    with served(tmp_path, _Caching) as address:
        write_site([mini], tmp_path)
        os.utime(tmp_path / "index.html", (1e9, 1e9))  # dates of files are whole seconds
        page = open_site(address)
        keeping = page.locator("[data-site=keeping]")
        expect(keeping).to_have_text(KEPT)
        write_site([replace(mini, name="newer")], tmp_path)
        page.goto(address)
        wait_for_model(page, "newer", "lion")
        assert page.evaluate("crossOriginIsolated")  # by the service worker, as this host cannot say it
        expect(keeping).to_have_text(KEPT)
        page.context.set_offline(True)
        page.goto(address)
        wait_for_model(page, "newer", "lion")
        page.get_by_role("button", name="Sample image tower").click()
        wait_for_picture(page, "tower")


@pytest.mark.slow
def test_a_file_takes_other_photos_from_a_disk_without_a_network(open_file: Any, stored: LoadedModel) -> None:
    assert_is_seen(open_file, stored, samples.sample("cheetah"), apart=0.01, mode="crop")
    open_file.locator("#vv-size-opener button").click()
    open_file.locator("#vv-mode").select_option("fit")
    open_file.wait_for_function("() => document.querySelector('#vv-explorer').explorer.trace.mode === 'fit'")
    carry(open_file, "dropped", "runner.png", file_of(samples.sample("runner"), "PNG"))
    wait_for_picture(open_file, "runner.png")
    assert_is_seen(open_file, stored, samples.sample("runner"), apart=0.01)


# --- checkpoints of the visitor

FAMILIES: dict[str, dict[str, Any]] = {
    "registers": {"reg_tokens": 4, "no_embed_class": True, "layer_scale": True},
    "distilled": {"dist_token": True, "dist_head": True},
}
PARITY = 1e-4


def checkpoint(folder: Path, family: str) -> Path:
    """A file of random weights, with a thousand classes."""
    torch.manual_seed(3)
    config = ViTConfig(
        img_size=(96, 96), embed_dim=128, depth=3, num_heads=2, num_classes=1000, **FAMILIES[family]
    )
    model = randomise(VisionTransformer(config))
    save_file(dict(model.state_dict()), folder / f"{family}.safetensors")
    return folder / f"{family}.safetensors"


def test_a_checkpoint_of_the_visitor_is_seen_as_the_app_sees_it_and_what_is_none_is_one_sentence(
    open_site: Callable[..., Any], site: str, stored: LoadedModel, tmp_path: Path
) -> None:
    page, path = open_site(site), checkpoint(tmp_path, "distilled")
    page.locator(".vv-files").set_input_files(path)
    wait_for_model(page, "distilled", "lion")
    page.get_by_role("button", name="Sample image runner").click()
    wait_for_picture(page, "runner")
    assert_is_seen(page, load(path, device="cpu"), samples.sample("runner"), apart=PARITY)
    notes = page.locator(".vv-status")
    expect(notes).to_contain_text("Recognised as timm ViT by the names of its parameters.")
    expect(notes).to_contain_text("2 heads of 64 numbers")
    beside = path.with_name("preprocessor_config.json")
    beside.write_text(
        '{"image_processor_type": "ViTImageProcessor", "image_mean": [0.1, 0.4, 0.7], "size": 96}'
    )
    page.locator(".vv-files").set_input_files([path, beside])
    wait_for_model(page, "distilled (2)", "runner")
    expect(notes).to_contain_text("as its preprocessor_config.json says (channels less 0.1")
    # of a folder, with which Python reads what lies beside it
    path = path.rename(path.with_name("model.safetensors"))
    assert_is_seen(page, load(path, device="cpu"), samples.sample("runner"), apart=PARITY)
    page.locator(".vv-model-open").click()
    page.locator(".vv-model-option[data-name=mini]").click()
    wait_for_model(page, "mini", "runner")
    expect(notes).to_have_text("")
    for name, content, words in (
        ("short.safetensors", path.read_bytes()[:-4000], "This safetensors file is cut short"),
        ("page.safetensors", b"<!DOCTYPE html><html></html>", "This is no safetensors file"),
        ("model.pth", b"PK", "model.pth is no safetensors file, which alone is read here"),
        ("config.json", b"{}", "config.json only describes a model: please bring it together with"),
    ):
        carry(page, "dropped", name, content)
        said = page.locator(".vv-bring-note, #vv-loading")
        expect(said.filter(has_text=words)).to_be_visible()
    page.locator(".vv-model-open").click()
    expect(page.locator(".vv-model-option")).to_have_count(3)
    assert_is_seen(page, stored, samples.sample("runner"), apart=0.01)


@pytest.mark.slow
def test_a_file_from_a_disk_opens_checkpoints_too(open_file: Any, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, "registers")
    carry(open_file, "dropped", path.name, path.read_bytes())
    wait_for_model(open_file, "registers", "cheetah")
    assert_is_seen(open_file, load(path, device="cpu"), samples.sample("cheetah"), apart=PARITY, mode="crop")
