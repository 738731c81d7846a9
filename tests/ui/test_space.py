"""The app as a Space runs it: with its variables, behind its proxy, from the files of the image; a visitor walks through it."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.serving import Server, free_port
from tests.test_docker import copy_to, health_command, variables
from tests.ui.conftest import open_tab
from tests.ui.waits import expect, point_of
from vit_viz.checkpoints import load
from vit_viz.errors import CheckpointError
from vit_viz.session.session import Session
from vit_viz.ui.app import launch_options

SPACE = {
    "SYSTEM": "spaces",
    "SPACE_ID": "someone/vit_viz",
    "SPACE_HOST": "someone-vit-viz.hf.space",
    "SPACE_AUTHOR_NAME": "someone",
    "SPACE_REPO_NAME": "vit_viz",
    "SPACE_TITLE": "vit_viz",
    "GRADIO_SERVER_NAME": "127.0.0.1",  # a Space says 0.0.0.0; a test must not be reachable from outside
    "GRADIO_NUM_PORTS": "1",
    "GRADIO_ALLOW_FLAGGING": "never",
    "GRADIO_THEME": "huggingface",
    "VIT_VIZ_OWN_HUB_IDS": "0",
}


def walk(page: Any) -> None:
    """What a visitor does first; the page's console and its requests to other hosts are checked when it is closed."""
    caption = page.locator("#vv-explorer [data-vv=caption]")
    expect(caption).to_contain_text("class token", use_inner_text=True)
    photo = page.locator("#vv-explorer [data-vv=photo]")
    page.mouse.move(*point_of(photo, (10 + 0.5) / 16, (2 + 0.5) / 16))
    page.wait_for_function(
        "() => document.querySelector('#vv-explorer [data-vv=caption]').textContent.includes('(2, 10)')"
    )
    open_tab(page, "Explain")
    page.wait_for_function(
        "() => document.querySelector('#vv-explain-picture canvas[data-drawn]')?.width > 100"
    )
    page.get_by_role("tab", name="Lesson").click()
    page.locator(".vv-lesson-stage[data-drawn]").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_a_visitor_walks_through_a_space_behind_a_path_prefix(
    start_app: Callable[..., Server], visit: Callable[..., Any], tmp_path: Path
) -> None:
    app = start_app(**SPACE, HF_HOME=str(tmp_path), GRADIO_ROOT_PATH="/tools/vit_viz")
    with proxy("/tools/vit_viz", app.url) as (url, strays):
        page = visit(url)
        walk(page)
        expect(page.get_by_text("or a Hub id: owner/name")).to_have_count(0)
    assert strays == []
    log = app.log.read_text()  # Gradio's reloading wants the package `spaces`, which every Space has
    assert log.count("Traceback") == log.count("`spaces` package is required to run hot-reloading")


@pytest.mark.slow
@pytest.mark.browser
def test_the_files_of_the_image_are_enough(
    start_app: Callable[..., Server], visit: Callable[..., Any], tmp_path: Path
) -> None:
    copy_to(tmp_path)
    app = start_app(root=tmp_path, **variables() | {"GRADIO_SERVER_NAME": "127.0.0.1"})
    walk(visit(app.url))


@pytest.mark.server
def test_the_health_check_of_the_image_says_how_the_app_is(app: Server) -> None:
    def healthy(port: int) -> bool:
        command = [sys.executable, *health_command()[1:]]
        environment = os.environ | {"GRADIO_SERVER_PORT": str(port)}
        return subprocess.run(command, env=environment, capture_output=True, timeout=30).returncode == 0

    assert healthy(urlsplit(app.url).port or 0)
    assert not healthy(free_port())


@pytest.mark.parametrize("name", [None, "0.0.0.0"])
def test_the_app_listens_where_the_space_says_and_else_on_this_machine(
    name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRADIO_SERVER_NAME", raising=False)
    if name is not None:
        monkeypatch.setenv("GRADIO_SERVER_NAME", name)
    assert launch_options(Session(model="mini", device="cpu"))["server_name"] == (name or "127.0.0.1")


def test_the_door_is_given_the_turns_of_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr("vit_viz.ui.app.guarded", lambda *_, **options: given.update(options) or {})
    session = Session(model="mini", device="cpu")
    launch_options(session)
    assert given["turns"] is session.turns is session.engine.turns


def test_the_guard_is_told_when_the_model_does_not_come_and_when_it_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    given: dict[str, Any] = {}
    monkeypatch.setattr("vit_viz.ui.app.guarded", lambda *_, **options: given.update(options) or {})
    session = Session(model="someone/their-vit", device="cpu")
    launch_options(session)
    assert given["has_model"]()  # it is on its way
    with monkeypatch.context() as gone:
        gone.setattr("vit_viz.session.models.load", failing)
        given["begin"]()
    assert not given["has_model"]()
    (said,) = [record for record in caplog.records if record.name == "vit_viz.ui.app"]
    assert said.getMessage().endswith("The Hub cannot be reached.")
    assert said.exc_info is None
    session.add_model(replace(load("mini", device="cpu"), name="someone/their-vit"))
    assert given["has_model"]()


def failing(*_: object, **__: object) -> None:
    raise CheckpointError("The Hub cannot be reached.")


@contextmanager
def proxy(prefix: str, target: str) -> Iterator[tuple[str, list[str]]]:
    """A reverse proxy that serves `target` under a path and forwards it without that path.

    Yields the address for visitors, and the list of what they asked for beside that path.
    """
    port = urlsplit(target).port
    strays: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not self.path.startswith(prefix):
                if self.path != "/favicon.ico":  # the browser's own idea: it is the host's icon
                    strays.append(self.path)
                self.send_response(204)
                self.end_headers()
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            upstream = http.client.HTTPConnection("127.0.0.1", port)
            try:
                upstream.request(self.command, self.path.removeprefix(prefix) or "/", body, headers)
                self.answer(upstream.getresponse())
            except OSError:
                pass  # a visitor who left
            finally:
                upstream.close()

        def do_POST(self) -> None:
            self.do_GET()

        def answer(self, answer: http.client.HTTPResponse) -> None:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(65536):  # as it comes: events are a stream
                self.wfile.write(part)
                self.wfile.flush()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{prefix}/", strays
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
