"""The page under its policy, in a browser: plots and pictures, inside the frame of a Space's host, by HTTPS."""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trustme

from tests.http.hostile import encoded, photo
from tests.serving import Server
from tests.ui.conftest import CHROMIUM_FLAGS, LEAVING, chromium_path
from tests.ui.test_space import SPACE
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
HOST = SPACE["SPACE_HOST"]
RUNNING = '{"id": "someone/vit_viz", "runtime": {"stage": "RUNNING"}}'
AROUND = f"""<!doctype html><title>Space</title><script>
addEventListener('message', ({{ data, source, ports }}) => {{
  if (data === 'supports-zerogpu-headers') source.postMessage(data, 'https://{HOST}');
  if (data === 'zerogpu-headers') ports[0].postMessage({{ 'x-ip-token': 'of Ada' }});
}});
</script><iframe src="https://{HOST}/" allow="camera" width=1300 height=800></iframe>"""
"""The Hub's page around the app's, which says where GPUs are lent who asks."""


def test_every_tab_works_inside_the_frame_of_a_space(
    start_app: Callable[..., Server], browser_with: Callable[..., Any], tmp_path: Path
) -> None:
    app = start_app(**SPACE, HF_HOME=str(tmp_path))
    with_tls = secure_front(app.url)
    port, asked = next(with_tls)
    chromium = browser_with(
        f"--host-resolver-rules=MAP {HOST} 127.0.0.1:{port}, MAP huggingface.co 127.0.0.1:{port}, MAP evil.example 127.0.0.1:{port}"
    )
    context = chromium.new_context(
        ignore_https_errors=True,
        viewport={"width": 1400, "height": 900},
    )
    page, problems = context.new_page(), []
    page.set_default_timeout(PATIENCE * 1000)
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.goto("https://huggingface.co/around")
    frame = page.frame_locator("iframe")
    frame.locator("#vv-explorer [data-vv=root][data-state=ready]").wait_for()
    picture = tmp_path / "mine.png"
    picture.write_bytes(encoded(photo(31, width=90, height=70), "PNG"))
    frame.locator("#vv-upload input[type=file]").set_input_files(picture)
    inner = next(one for one in page.frames if HOST in one.url)
    inner.wait_for_function("() => /image=u/.test(location.search)")
    assert ("/vit_viz/bring", "of Ada") in asked  # whose quota a lent GPU counts against
    for name, ready in (
        ("Explain", "#vv-explain-picture .vv-image"),
        ("Positions", ".vv-tables[aria-busy=false]"),
        ("Lesson", ".vv-lesson-stage[data-drawn]"),
    ):
        frame.get_by_role("tab", name=name).click()
        frame.locator(ready).first.wait_for()
    cookies = [cookie for cookie in context.cookies() if cookie["name"].startswith("vit_viz")]
    assert [(cookie["secure"], cookie["sameSite"]) for cookie in cookies] == [(True, "None")]
    assert [text for text in problems if not text.startswith(LEAVING)] == []
    with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
        page.goto("https://evil.example/around")  # nobody else may show it
    context.close()
    with_tls.close()


@pytest.fixture
def browser_with(browser: Any) -> Iterator[Callable[..., Any]]:
    """Another Chromium, with more flags."""
    started: list[Any] = []

    def start(*flags: str) -> Any:
        chromium = browser.browser_type.launch(
            executable_path=chromium_path(), args=[*CHROMIUM_FLAGS, *flags]
        )
        started.append(chromium)
        return chromium

    yield start
    for chromium in started:
        chromium.close()


def secure_front(target: str) -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
    """What stands before a Space: HTTPS for its host name, with the headers of a proxy, and a page around it.

    Yields its port, and the address and the token of whatever is posted.
    """
    upstream_port = urlsplit(target).port
    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers["Host"] != HOST:
                self.answer_around()
            else:
                self.forward()

        def do_POST(self) -> None:
            asked.append((self.path, self.headers.get("x-ip-token")))
            self.forward()

        def answer_around(self) -> None:
            """The Space's host: the page around the frame, and what it says about the Space."""
            body = AROUND.encode() if self.path == "/around" else RUNNING.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html" if self.path == "/around" else "application/json")
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            upstream = http.client.HTTPConnection("127.0.0.1", upstream_port)
            try:
                upstream.request(
                    self.command,
                    self.path,
                    body,
                    headers | {"X-Forwarded-Proto": "https", "X-Forwarded-Host": HOST},
                )
                answer = upstream.getresponse()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("transfer-encoding", "connection", "date", "server"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                while part := answer.read1(65536):
                    self.wfile.write(part)
                    self.wfile.flush()
            except (OSError, http.client.HTTPException):
                pass  # a visitor who left, or a stream that ended with the app
            finally:
                upstream.close()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(HOST, "huggingface.co", "evil.example").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
