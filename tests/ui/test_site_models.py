"""A visitor opens a checkpoint of their own on a static site, in Chromium: it is looked through as the app would, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.model.inside import randomise
from tests.ui.sites import carry, row_of, served_site, site_opener, top_of, wait_for_picture
from tests.ui.waits import expect
from vit_viz import samples
from vit_viz.browser import as_stored
from vit_viz.capture import trace
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.site.file import engine_page

pytestmark = pytest.mark.browser
SIZES: dict[str, Any] = {
    "img_size": (96, 96),
    "embed_dim": 128,
    "depth": 3,
    "num_heads": 2,
    "num_classes": 1000,
}
FAMILIES = {
    "registers.safetensors": {"reg_tokens": 4, "no_embed_class": True, "layer_scale": True},
    "distilled.safetensors": {"dist_token": True, "dist_head": True},
}
PARITY = 1e-4


@pytest.fixture(scope="module")
def mini() -> LoadedModel:
    return load("mini", device="cpu")


@pytest.fixture(scope="module")
def site(mini: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from served_site([mini], tmp_path_factory.mktemp("root"))


@pytest.fixture
def open_site(visit: Callable[..., Any]) -> Callable[..., Any]:
    return site_opener(visit)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[[str], Path]:
    def written(name: str) -> Path:
        torch.manual_seed(3)
        model = randomise(VisionTransformer(ViTConfig(**SIZES, **FAMILIES[name])))
        save_file(dict(model.state_dict()), tmp_path / name)
        return tmp_path / name

    return written


def wait_for_model(page: Any, name: str, image: str) -> None:
    page.wait_for_function(
        "name => document.querySelector('#vv-explorer').explorer.trace?.model === name", arg=name
    )
    wait_for_picture(page, image)


def assert_is_the_apps(page: Any, path: Path, image: str) -> None:
    """The rows of every layer, the likeliest classes and the shape of the trace are what Python makes of the file."""
    loaded = load(path, device="cpu")
    recorded = trace(loaded, samples.sample(image))
    for layer in range(recorded.num_layers):
        own = recorded.attention(layer, queries=[0])[:, 0].numpy()
        apart = np.abs(row_of(page, layer, "class").reshape(own.shape) - own).max() / own.max()
        assert apart <= PARITY
    assert recorded.logits is not None
    assert loaded.labels is not None
    assert top_of(page) == [loaded.labels.names[i] for i in recorded.logits.topk(5).indices]
    prefix = page.evaluate("document.querySelector('#vv-explorer').explorer.trace.prefix")
    assert tuple(prefix) == loaded.config.prefix


@pytest.mark.parametrize(
    "name", ["distilled.safetensors", pytest.param("registers.safetensors", marks=pytest.mark.slow)]
)
def test_a_checkpoint_of_the_visitor_is_seen_as_the_app_sees_it(
    open_site: Callable[..., Any], site: str, checkpoint: Callable[[str], Path], name: str
) -> None:
    page, path = open_site(site), checkpoint(name)
    page.locator("[data-site=checkpoint]").set_input_files(path)
    wait_for_model(page, path.stem, "lion")
    assert_is_the_apps(page, path, "lion")
    page.get_by_role("button", name="Sample image runner").click()
    wait_for_picture(page, "runner")
    assert_is_the_apps(page, path, "runner")
    notes = page.locator("[data-site=notes]")
    expect(notes).to_contain_text("Recognised as timm ViT by the names of its parameters.")
    expect(notes).to_contain_text("2 heads of 64 numbers")
    page.locator("[data-site=model]").select_option("mini")
    wait_for_model(page, "mini", "runner")
    expect(notes).to_be_hidden()


@pytest.mark.slow
def test_a_file_that_is_no_checkpoint_is_one_sentence_and_the_former_model_stays(
    open_site: Callable[..., Any], site: str, mini: LoadedModel, checkpoint: Callable[[str], Path]
) -> None:
    page, path = open_site(site), checkpoint("distilled.safetensors")
    said, data = top_of(page), path.read_bytes()
    for name, mime, content, words in (
        ("short.safetensors", "", data[:-4000], "This safetensors file is cut short"),
        ("page.safetensors", "", b"<!DOCTYPE html><html></html>", "This is no safetensors file"),
        ("model.pth", "", b"PK", "model.pth is no safetensors file, which alone is read here"),
    ):
        carry(page, "dropped", [(name, mime, content)])
        expect(page.locator(".vv-bring-note")).to_contain_text(words)
        assert top_of(page) == said
    expect(page.locator("[data-site=model] option")).to_have_count(1)
    page.get_by_role("button", name="Sample image tower").click()
    wait_for_model(page, "mini", "tower")
    logits = trace(as_stored(mini, "int8"), samples.sample("tower")).logits
    assert logits is not None
    assert mini.labels is not None
    assert top_of(page) == [mini.labels.names[i] for i in logits.topk(5).indices]


@pytest.mark.slow
def test_a_file_from_a_disk_opens_checkpoints_too(
    browser: Any, mini: LoadedModel, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    page_file, path = tmp_path / "page.html", checkpoint("registers.safetensors")
    page_file.write_bytes(engine_page(mini, samples.sample("cheetah"), name="cheetah"))
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(page_file.as_uri())
    wait_for_picture(page, "cheetah")
    carry(page, "dropped", [(path.name, "", path.read_bytes())])
    wait_for_model(page, path.stem, "cheetah")
    assert_is_the_apps(page, path, "cheetah")
    context.close()
