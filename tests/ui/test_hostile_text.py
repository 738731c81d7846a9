"""Text of strangers reaches the page as text: no script runs and no template is evaluated, wherever it comes in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

from tests.ui.conftest import open_tab, wait_until_ready
from tests.ui.waits import expect

pytestmark = pytest.mark.browser
HOSTILE = "<img src=x onerror=\"window.owned='markup'\">${window.owned='template'}`{{7*7}}"
PLACES = ("model", "image", "mode", "tab", "layer", "head", "q", "dir", "method", "target", "alpha", "step")


def test_hostile_text_stays_text_wherever_it_comes_in(
    visit: Callable[..., Any], app_url: str, tmp_path: Path
) -> None:
    """In an address, the names of files, a Hub id and a search: nothing of it becomes an element or a script."""
    search = "&".join(f"{name}={quote(HOSTILE)}" for name in PLACES)
    page = visit(f"{app_url}?{search}")
    expect(page.locator("#vv-top .vv-status")).to_contain_text("<img src=x", use_inner_text=True)
    good, bad = (tmp_path / f"{kind} {HOSTILE.replace('/', '')}.png" for kind in ("good", "bad"))
    Image.linear_gradient("L").resize((60, 40)).save(good)
    bad.write_bytes(HOSTILE.encode())
    files = page.locator("#vv-upload input[type=file]").first
    files.set_input_files(str(bad))
    expect(page.locator(".vv-bring-note")).to_contain_text("text file", use_inner_text=True)
    files.set_input_files(str(good))
    page.wait_for_function("() => (new URLSearchParams(location.search).get('image') || '').startsWith('u')")
    wait_until_ready(page)
    page.locator("#vv-model .vv-model-open").click()
    box = page.locator("#vv-model .vv-model-text")
    box.fill(HOSTILE)
    box.press("Enter")
    said = page.locator("#vv-model .vv-model-words")
    said.get_by_text("No model here is found by").wait_for()
    expect(said).to_contain_text("<img src=x", use_inner_text=True)
    page.keyboard.press("Escape")
    open_tab(page, "Explain")
    page.locator("#vv-target input").first.fill(HOSTILE)
    page.locator("#vv-target").get_by_text("No class has this name.").wait_for()
    assert page.evaluate("window.owned") is None
    expect(page.locator("img[src='x']")).to_have_count(0)
