"""A real app in a process of its own, and a real browser that looks at it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.serving import Server, free_port
from tests.ui.desk import OWNER, app_of, odd_picture, odd_session
from tests.waiting import PATIENCE
from vit_viz.session.session import Session
from vit_viz.ui.app import launch_options
from vit_viz.ui.routes import routes

LEAVING = (
    "AbortError",
    "BrokenConnectionError",
    "Unexpected error Connection errored out.",
)  # what Gradio's own client says when its page is left or reloaded
CHROMIUM_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@contextmanager
def served_here(demo: gr.Blocks, session: Session, **options: Any) -> Iterator[str]:
    """The address of an app in this process, on a free port: Gradio's own search for one leaves sockets open."""
    options = launch_options(session) | {"server_port": free_port()} | options
    _, url, _ = demo.launch(**options, prevent_thread_lock=True, quiet=True)
    try:
        yield url
    finally:
        demo.close()


@pytest.fixture(scope="module")
def session() -> Session:
    """The session of the odd model; a file of tests that needs another defines its own."""
    return odd_session()


@pytest.fixture(scope="module")
def demo(session: Session) -> gr.Blocks:
    """The app of that session, without a server."""
    return app_of(session)


@pytest.fixture(scope="module")
def client(session: Session) -> Iterator[TestClient]:
    """What asks the routes of that session, without a server."""
    with TestClient(Starlette(routes=routes(session)), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def image(session: Session) -> str:
    """The id of a picture that this browser has uploaded to that session."""
    return session.add_upload(odd_picture(), owner=OWNER)


@pytest.fixture(scope="session")
def app_url(app: Server) -> str:
    """Address of the app with the bundled model."""
    return f"{app.url}/"


def _no_browser(reason: str) -> None:
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"CI has to run the browser tests: {reason}")
    pytest.skip(reason)


def chromium_path() -> str | None:
    """Where Chromium is; None leaves it to Playwright."""
    return os.environ.get("VIT_VIZ_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium: the one named by VIT_VIZ_CHROMIUM, the system's, or Playwright's own.

    It ends with its file of tests, because Playwright's event loop runs in this thread until then, and no other can.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        _no_browser("playwright is not installed")
    with sync_playwright() as playwright:
        try:
            chromium = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        except Error as error:
            _no_browser(f"no Chromium could be started: {str(error).splitlines()[0]}")
        opened = chromium.new_context

        def patient(**options: Any) -> Any:
            """A context whose pages wait as long as every test does."""
            context = opened(**options)
            context.set_default_timeout(PATIENCE * 1000)
            return context

        chromium.new_context = patient
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """A page of one visitor, and everything that must not happen while it is open."""

    page: Any
    problems: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def listen(self, url: str) -> None:
        """Collect console errors, exceptions and requests to other hosts."""
        self.page.on("console", lambda m: self._complaint(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.page.on("request", lambda r: self._host(r.url, url))

    def _complaint(self, text: str) -> None:
        if not text.startswith(LEAVING):
            self.problems.append(text)

    def _host(self, requested: str, url: str) -> None:
        if not requested.startswith((url, "data:", "blob:", "about:")):
            self.foreign.append(requested)


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open an address as a new visitor and wait for the first pictures; at the end no page may have complained."""
    visits: list[Visit] = []

    def open_page(
        url: str,
        *,
        width: int = 1440,
        height: int = 900,
        dark: bool = False,
        ready: bool = True,
        script: str = "",
    ) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        if script:
            context.add_init_script(script)
        one = Visit(context.new_page())
        one.listen(url.split("?")[0])
        visits.append(one)
        one.page.goto(url)
        if ready:
            wait_until_ready(one.page)
        return one.page

    yield open_page
    problems = [problem for one in visits for problem in one.problems]
    foreign = [request for one in visits for request in one.foreign]
    for one in visits:
        one.page.context.close()
    assert problems == []
    assert foreign == []


@pytest.fixture
def page(visit: Callable[..., Any], app_url: str) -> Any:
    """A page of the app with its first pictures."""
    return visit(app_url)


def wait_until_ready(page: Any) -> None:
    """Wait for the facts in the header; on the Look tab also for the explorer."""
    page.wait_for_selector("#vv-facts .vv-model-facts:not(:empty)", state="attached")
    page.wait_for_function("!document.querySelector('#vv-facts .vv-busy, #vv-facts.vv-busy')")
    if page.get_by_role("tab", name="Look").get_attribute("aria-selected") == "true":
        page.wait_for_selector("#vv-explorer [data-vv=root][data-state=ready]")


def open_tab(page: Any, name: str) -> None:
    """Open a view and wait until its pictures are there."""
    page.get_by_role("tab", name=name).click()
    panel = page.locator(f"#vv-tab-{name.lower()}")
    if name == "Patches":
        panel.locator(".vv-columns[aria-busy=false]").wait_for()
    elif name == "Explain":
        panel.locator(".vv-part-picture:not(.vv-busy) .vv-image:not([hidden])").first.wait_for()
    elif name == "Positions":
        panel.locator(".vv-tables[aria-busy=false]").wait_for()
    else:
        panel.locator("[data-vv=root][data-state=ready]").wait_for()
