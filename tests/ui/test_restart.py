"""The server is killed while the page asks it something, and starts again: the page shows the same view again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.ui.conftest import ROOT, RunningApp, wait_for, wait_until_ready

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


def options(page: Any) -> dict[str, str]:
    """What the address bar says about how the picture is looked at."""
    said = dict(parse_qsl(urlsplit(page.url).query))
    return {name: said.get(name, "") for name in ("layer", "head", "tab")}


def test_a_page_recovers_with_its_view_when_the_server_was_killed(
    start_app: Callable[..., RunningApp], browser: Any
) -> None:
    app = start_app("--model", "mini")
    page = browser.new_page()
    page.set_default_timeout(180_000)
    page.goto(f"{app.url}?image=tower&layer=2&head=3")
    caption = page.locator("#vv-explorer [data-vv=caption]")
    caption.get_by_text("layer 2, head 3").wait_for()
    before = options(page)
    page.evaluate("window.isFromBefore = true")
    app.process.send_signal(signal.SIGSTOP)  # so that the request is under way when the server dies
    page.get_by_role("button", name="Sample image lion").click(no_wait_after=True)
    app.process.send_signal(signal.SIGKILL)
    app.process.wait()
    start_again(app)
    page.wait_for_function(
        "() => window.isFromBefore === undefined"
    )  # the page found the new server by itself
    caption.get_by_text("layer 2, head 3").wait_for()
    wait_until_ready(page)
    assert options(page) == before
    page.close()
