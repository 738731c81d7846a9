"""The pass that all tabs wait for: how far it is is seen where it takes a while, and ending it keeps the view before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.ui.conftest import served_here
from tests.ui.waits import expect
from vit_viz.capture import trace
from vit_viz.session import engine
from vit_viz.session.session import Session
from vit_viz.ui.app import build_app

pytestmark = pytest.mark.browser

BAR = "#vv-loading .vv-job"
READY = "#vv-explorer [data-vv=root][data-state=ready]"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """While it is not set, a pass waits after its first layer, until it is cancelled."""
    released = threading.Event()

    def held(
        *args: Any, progress: Callable[[float], None], cancelled: Callable[[], bool], **options: Any
    ) -> Any:
        def wait(share: float) -> None:
            progress(share)
            while not (released.is_set() or cancelled()):
                time.sleep(0.01)

        return trace(*args, progress=wait, cancelled=cancelled, **options)

    monkeypatch.setattr(engine, "trace", held)
    released.set()
    return released


@pytest.fixture
def url(opened: threading.Event) -> Iterator[str]:
    session = Session(model="mini", device="cpu")
    with served_here(build_app(session), session) as url:
        yield url


@pytest.mark.slow
def test_a_pass_is_seen_where_it_takes_a_while_and_ending_it_keeps_the_view_before(
    visit: Callable[..., Any], url: str, opened: threading.Event
) -> None:
    page = visit(f"{url}?image=twins&q=2,3")
    before = parse_qs(urlsplit(page.url).query)
    shapes = page.locator("#vv-samples button[title=shapes]")
    expect(page.locator(BAR)).to_be_hidden()  # nothing is said of what is quick
    tabs = page.locator("#vv-tabs").bounding_box()
    opened.clear()
    shapes.click()
    page.locator(BAR).get_by_text("Running mini").wait_for()
    assert page.locator("#vv-tabs").bounding_box() == tabs  # nothing moves when the bar comes
    expect(page.locator(BAR)).to_contain_text("17%")
    page.wait_for_function("/image=shapes/.test(location.search)")
    page.locator(BAR).get_by_role("button", name="Cancel").click()
    page.wait_for_url(lambda url: parse_qs(urlsplit(url).query) == before)
    expect(page.locator(BAR)).to_be_hidden()
    page.locator(READY).wait_for()
    expect(page.locator("#vv-samples button[title=twins]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#vv-explorer")).to_contain_text("patch (2, 3)")
    shapes.click()
    page.locator(BAR).get_by_text("17%").wait_for()
    opened.set()  # it is not ended, and shows what was chosen
    expect(page.locator(BAR)).to_be_hidden()
    expect(shapes).to_have_attribute("aria-pressed", "true")
    page.locator(READY).wait_for()
