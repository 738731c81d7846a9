"""Text of strangers reaches the page as text: no script runs and no template is evaluated, wherever it comes in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from tests.ui.conftest import open_tab, wait_until_ready
from tests.ui.waits import expect

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=\"window.owned='markup'\">${window.owned='template'}`{{7*7}}"
PLACES = ("model", "image", "mode", "tab", "layer", "head", "q", "dir", "method", "target", "alpha", "step")


def nothing_ran(page: Any) -> None:
    """No script of a stranger ran, nothing of theirs became an element, and 7 * 7 stayed as it was written."""
    assert page.evaluate("window.owned") is None
    expect(page.locator("img[src='x']")).to_have_count(0)


def test_hostile_parameters_of_an_address_stay_text(visit: Callable[..., Any], app_url: str) -> None:
    search = "&".join(f"{name}={quote(HOSTILE)}" for name in PLACES)
    page = visit(f"{app_url}?{search}")
    expect(page.locator("#vv-top .vv-status")).to_contain_text("<img src=x", use_inner_text=True)
    nothing_ran(page)


def test_a_hostile_file_name_stays_text(page: Any, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    good = tmp_path / f"{HOSTILE.replace('/', '')}.png"
    Image.fromarray(pixels).save(good)
    bad = tmp_path / f"bad {HOSTILE.replace('/', '')}.png"
    bad.write_bytes(HOSTILE.encode())
    for file in (bad, good):
        page.locator("#vv-upload input[type=file]").first.set_input_files(str(file))
        if file is bad:
            expect(page.locator(".vv-bring-note")).to_contain_text("text file", use_inner_text=True)
    page.wait_for_function("() => (new URLSearchParams(location.search).get('image') || '').startsWith('u')")
    wait_until_ready(page)
    nothing_ran(page)


@pytest.mark.slow
def test_a_hostile_hub_id_stays_text(page: Any) -> None:
    page.locator("#vv-model .vv-model-open").click()
    box = page.locator("#vv-model .vv-model-text")
    box.fill(HOSTILE)
    box.press("Enter")
    said = page.locator("#vv-model .vv-model-words")
    said.get_by_text("No model here is found by").wait_for()
    expect(said).to_contain_text("<img src=x", use_inner_text=True)
    wait_until_ready(page)
    nothing_ran(page)


@pytest.mark.slow
def test_a_hostile_search_for_a_class_stays_text(page: Any) -> None:
    open_tab(page, "Explain")
    box = page.locator("#vv-target input").first
    box.fill(HOSTILE)
    page.locator("#vv-target").get_by_text("No class has this name.").wait_for()
    box.fill("cat")
    page.locator("#vv-target").get_by_text("cat").first.wait_for()
    nothing_ran(page)
