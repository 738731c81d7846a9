"""A model that has to be downloaded first, as a visitor meets it: how far it is, how to end it, and a Hub that goes away."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints.fake_hub import REPO, Hub, remains, running_hub, weights
from tests.ui.conftest import wait_until_ready
from tests.ui.waits import expect, expect_in_address
from tests.waiting import until
from vit_viz.model import ViTConfig

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CARD = "#vv-facts .vv-model-facts"
BIG = weights(ViTConfig(img_size=24, patch_size=6, embed_dim=128, depth=6, num_heads=2, num_classes=7))


@pytest.fixture(scope="module")
def server() -> Iterator[Hub]:
    with running_hub() as served:
        yield served


@pytest.fixture
def hub(server: Hub) -> Iterator[Hub]:
    """The Hub without faults; every test offers a model of its own."""
    server.fault.clear()
    server.asked.clear()
    yield server
    server.fault.clear()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hub cache")


@pytest.fixture(scope="module")
def url(start_app: Callable[..., Any], server: Hub, cache: Path) -> str:
    """Address of an app that reaches the Hub of this test."""
    environment = {
        "HF_ENDPOINT": server.endpoint,
        "HF_HUB_CACHE": str(cache),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DOWNLOAD_TIMEOUT": "3",
        "HF_TOKEN": "hf_secret",
        "VIT_VIZ_OWN_HUB_IDS": "1",
    }
    address: str = start_app("--model", "mini", **environment).url
    return address


def choose(page: Any, name: str) -> None:
    """Type the id of a model into the picker, and agree to its download."""
    page.locator("#vv-model .vv-model-open").click()
    box = page.locator("#vv-model .vv-model-text")
    box.fill(name)
    box.press("Enter")
    page.locator(".vv-model-question[open] dd").get_by_text(name, exact=True).wait_for()
    page.locator(".vv-model-download").click()


def test_a_download_says_how_far_it_is_and_another_choice_or_cancel_ends_it(
    visit: Callable[..., Any], url: str, hub: Hub, cache: Path
) -> None:
    hub.offer(content=BIG)
    hub.offer("someone/unwanted", content=BIG)
    hub.offer("someone/quick", num_features=1)
    hub.fault["pace"] = 0.3
    page = visit(url)
    before, kept = page.url, remains(cache)
    choose(page, "someone/unwanted")
    job = page.locator("#vv-loading .vv-job")
    job.get_by_text("Downloading someone/unwanted").wait_for()
    page.locator("#vv-loading .vv-job-amount", has_text=re.compile("^[1-4] of 5 MB$")).wait_for()
    expect(page.locator(CARD)).to_contain_text("6 layers x 6 heads")  # still the one before
    page.locator("#vv-loading .vv-stop").click()
    error = page.locator("#vv-loading .vv-error")
    error.get_by_text("The download of someone/unwanted was cancelled; nothing of it was kept.").wait_for()
    expect(job).to_be_hidden()
    expect(page.locator("#vv-model .vv-model-open")).to_have_attribute("data-model", "mini")
    expect(page).to_have_url(before)
    wait_until_ready(page)
    until(lambda: remains(cache) == kept)  # once the download has noticed
    choose(page, REPO)
    page.locator("#vv-loading .vv-job-amount").get_by_text("MB").wait_for()
    hub.fault.clear()
    choose(page, "someone/quick")
    expect(page.locator(CARD)).to_contain_text("someone/quick")
    wait_until_ready(page)
    expect(error).to_be_hidden()
    expect_in_address(page, "model=someone%2Fquick")
    assert not list(cache.rglob("*.incomplete"))
    assert {token for _, _, token in hub.asked} == {None}


def test_a_page_that_is_closed_ends_its_download(
    visit: Callable[..., Any], url: str, hub: Hub, cache: Path
) -> None:
    hub.offer("someone/left", content=BIG)
    hub.fault["pace"] = 2.0  # more than a minute for all of it
    page = visit(url)
    choose(page, "someone/left")
    page.locator("#vv-loading .vv-job-amount").get_by_text("MB").wait_for()
    assert list(cache.rglob("*.incomplete"))
    page.close()
    until(lambda: not list(cache.rglob("*.incomplete")))
