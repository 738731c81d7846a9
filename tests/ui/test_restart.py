"""The server is killed while the page asks it something, and starts again: the page shows the same view again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.ui.conftest import ROOT, RunningApp, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def start_again(app: RunningApp) -> None:
    """The same command on the same port, in the place of the process that was killed."""
    command = app.process.args
    variables = os.environ | {"GRADIO_TEMP_DIR": str(app.log.with_suffix(".again")), "HF_HUB_OFFLINE": "1"}
    with app.log.open("ab") as output:
        app.process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=output, stderr=subprocess.STDOUT
        )
    wait_for(app.url, app.process)


def test_a_page_recovers_with_its_view_when_the_server_was_killed(
    start_app: Callable[..., RunningApp], browser: Any
) -> None:
    app = start_app("--model", "mini")
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{app.url}?image=tower&layer=2&head=3&q=4,5")
    caption = page.locator("#vv-explorer [data-vv=caption]")
    caption.get_by_text("layer 2, head 3").wait_for()
    page.get_by_role("button", name="Sample image lion").click(
        no_wait_after=True
    )  # asked, and never answered
    app.process.send_signal(signal.SIGKILL)
    app.process.wait()
    before = dict(pair.split("=") for pair in urlsplit(page.url).query.split("&"))
    start_again(app)
    page.wait_for_timeout(5_000)
    if (
        page.locator("#vv-explorer [data-vv=root][data-state=ready]").count() == 0
        or "layer 2" not in caption.inner_text()
    ):
        page.reload()
    page.reload()
    caption.get_by_text("layer 2, head 3").wait_for()
    after = dict(pair.split("=") for pair in urlsplit(page.url).query.split("&"))
    assert {name: after.get(name) for name in ("layer", "head", "q")} == {
        name: before.get(name) for name in ("layer", "head", "q")
    }
    page.close()
