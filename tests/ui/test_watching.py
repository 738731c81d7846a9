"""Long computations end when their visitor says so or leaves, and a visitor leaves with the last of their pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from tests.ui.conftest import free_port
from vit_viz.errors import Cancelled
from vit_viz.session import Request, Result, Session
from vit_viz.turns import stop_if
from vit_viz.ui.app import build_app, launch_options, leaving
from vit_viz.ui.watching import Pages, steps


def endless(ended: threading.Event) -> Callable[..., None]:
    """A computation that goes on until it is told to stop."""

    def run(progress: Callable[[float], None], cancelled: Callable[[], bool]) -> None:
        share = 0.0
        try:
            while True:
                stop_if(cancelled)
                share = 1 - (1 - share) * 0.99
                progress(share)
                time.sleep(0.005)
        finally:
            ended.set()

    return run


def test_the_last_step_holds_what_was_found() -> None:
    *_, last = steps(lambda _progress, _cancelled: 7, threading.Event())
    assert (last.is_last, last.found) == (True, 7)


def test_a_computation_that_is_stopped_ends_as_cancelled() -> None:
    ended, stop = threading.Event(), threading.Event()
    running = steps(endless(ended), stop)
    next(running)
    stop.set()
    with pytest.raises(Cancelled):
        list(running)
    assert ended.is_set()


def test_a_computation_ends_when_its_handler_is_closed() -> None:
    ended = threading.Event()
    running: Any = steps(endless(ended), threading.Event())
    next(running)
    running.close()
    assert ended.wait(10)


def test_a_visitor_leaves_with_the_last_page() -> None:
    pages = Pages()
    pages.open("first", "ada")
    pages.open("second", "ada")
    pages.open("third", "bob")
    assert [pages.close(page) for page in ("first", "second", "second")] == ["", "ada", ""]


def test_a_page_that_is_loaded_again_before_it_is_closed_is_still_here() -> None:
    pages = Pages()
    pages.open("before", "ada")
    pages.open("after", "ada")
    assert pages.close("before") == ""


def test_of_too_many_pages_the_oldest_are_forgotten() -> None:
    pages = Pages(most=2)
    for number in range(5):
        pages.open(f"page {number}", f"owner {number}")
    assert [pages.close(f"page {number}") for number in range(5)] == ["", "", "", "owner 3", "owner 4"]


def test_closing_the_last_page_tells_the_session_once() -> None:
    left: list[str] = []
    page: Any = SimpleNamespace(pages=Pages(), session=SimpleNamespace(leave=left.append))
    page.pages.open("hash", "ada")
    for closed in ("unknown", "hash", "hash"):
        leaving(page)(SimpleNamespace(session_hash=closed))  # type: ignore[arg-type]
    assert left == ["ada"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")  # of the libraries that Gradio uses
def test_closing_a_tab_ends_its_slow_method_and_loading_it_again_keeps_its_picture(
    browser: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Image.linear_gradient("L").save(tmp_path / "photo.png")
    session, running, ended = Session(model="mini", device="cpu"), threading.Event(), threading.Event()
    run = session.run

    def watched(request: Request, **watch: Any) -> Result:
        is_slow = dict(request.parameters).get("method") == "kernel_shap"  # the last button of the gallery
        if is_slow:
            running.set()
        try:
            return run(request, **watch)
        except Cancelled:
            if is_slow:
                ended.set()
            raise

    monkeypatch.setattr(session, "run", watched)
    demo, port = build_app(session), free_port()
    demo.launch(prevent_thread_lock=True, quiet=True, server_port=port, **launch_options(session))
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{port}/?tab=explain")
        page.locator("#vv-upload input[type=file]").set_input_files(tmp_path / "photo.png")
        page.wait_for_function("/image=u/.test(location.search)")
        address = page.url
        page.reload()
        page.locator("#vv-gallery button:has-text('Compute')").last.wait_for()
        assert page.url == address
        page.locator("#vv-gallery button:has-text('Compute')").last.click()
        assert running.wait(60)
        assert not ended.is_set()
        page.close()
        assert ended.wait(20)
    finally:
        context.close()
        demo.close()
