"""Long computations end when their visitor says so or leaves, and a visitor leaves with the last of their pages."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.ui.conftest import served_here, wait_until_ready
from tests.ui.waits import expect
from tests.waiting import PATIENCE
from vit_viz.errors import Cancelled
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.ui.app import build_app


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
        wait_until_ready(page)
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
