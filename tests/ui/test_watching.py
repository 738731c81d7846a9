"""Long computations end when their visitor says so or leaves, and a visitor leaves with the last of their pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.ui.conftest import served_here
from tests.ui.waits import expect
from tests.waiting import PATIENCE
from vit_viz.errors import Cancelled
from vit_viz.progress import stop_if
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.ui.app import build_app
from vit_viz.ui.jobs import steps


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
    *_, last = steps(lambda **_watch: 7, threading.Event())
    assert (last.is_last, last.result) == (True, 7)


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
    assert ended.wait(PATIENCE)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.filterwarnings("ignore")  # of the libraries that Gradio uses
def test_closing_a_tab_ends_its_slow_method_and_loading_it_again_keeps_its_picture(
    browser: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Image.linear_gradient("L").save(tmp_path / "photo.png")
    session, running, ended = Session(model="mini", device="cpu"), threading.Event(), threading.Event()
    run = session.run

    def watched(request: Request, **watch: Any) -> Any:
        is_slow = request.question == "kernel_shap"  # the last button of the gallery
        if is_slow:
            running.set()
        try:
            return run(request, **watch)
        except Cancelled:
            if is_slow:
                ended.set()
            raise

    monkeypatch.setattr(session, "run", watched)
    with served_here(build_app(session), session) as url, closing(browser.new_context()) as context:
        page = context.new_page()
        page.goto(f"{url}?tab=explain")
        page.locator("#vv-upload input[type=file]").set_input_files(tmp_path / "photo.png")
        page.wait_for_function("/image=u/.test(location.search)")
        address = page.url
        page.reload()
        page.locator("#vv-gallery button:has-text('Compute')").last.wait_for()
        expect(page).to_have_url(address)
        page.locator("#vv-gallery button:has-text('Compute')").last.click()
        assert running.wait(60)
        assert not ended.is_set()
        page.close()
        assert ended.wait(PATIENCE)
