"""Addresses: what the page uses is let in, all else is not; and every route of the installed Gradio is one or the other."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from gradio.routes import App
from starlette.routing import BaseRoute

from tests.ui.loops import played
from vit_viz.session.session import Session
from vit_viz.ui.app import launch_options
from vit_viz.ui.edge.addresses import ADDRESSES, API, kind_of

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get", "")

OPEN = [
    ("GET", "/", "page"),
    ("HEAD", "/", "page"),
    ("GET", "/assets/index-D4.js", "static"),
    ("GET", "/static/fonts/a+b@2x.woff2", "static"),
    ("GET", "/assets/..name", "static"),  # two dots before a name lead nowhere
    ("GET", "/vit_viz/page/0123abcd/card.jpg", "static"),
    ("GET", "/theme.css", "static"),
    ("GET", f"{API}theme.css", "static"),
    ("GET", f"{API}app_id", "fact"),
    ("GET", f"{API}startup-events", "start"),
    ("GET", "/health", "health"),
    ("HEAD", "/health", "health"),
    ("GET", "/vit_viz/photo/handle", "ours"),
    ("DELETE", "/vit_viz/photo/handle", "ours"),  # our routes say themselves that they only answer GET
]

CLOSED_SHAPES = [
    *("", "//", "/..", "/index.html", "/%2e%2e/", "https://example.org/", "/vit_viz", "/vit_viz2/photo"),
    *("/assets", "/assets/", "/assets//index.js", "/assets/index.js/", "/ASSETS/index.js", "//assets/index.js"),
    *("/assets/./index.js", "/assets/../config", "/assets/x/../../config", "/assets/%2e%2e/config", "/assets/..\\config"),
    *("/assets/a\0.js", "/assets/index.js\n", "/assets/ünicode.js", "/themexcss", "/theme.css\n", "/favicon.ico/.."),
    *(f"{API}", f"/{API}app_id", f"{API}/app_id", f"{API}./app_id", f"{API}app_id\n", f"{API}app_id/"),
    *(f"{API}heartbeat", f"{API}heartbeat/abc123", f"{API}file=/folder/name.png", "/x/..//gradio_api/upload"),
    *("/vit_viz/page/", "/vit_viz/page//card.jpg", "/vit_viz/page/0123abcd/../../photo/handle"),
]  # fmt: skip

CLOSED = {
    "nobody logs in": ["POST /login", "POST /login/", "GET /logout"],
    "whoever hangs up ends the work, so that no page says how long it is open": [
        f"GET {API}heartbeat/{{session_hash}}",
    ],
    "nobody has a name or a token here": [
        *(f"GET {API}user", f"GET {API}user/", f"GET {API}login_check", f"GET {API}login_check/"),
        *(f"GET {API}token", f"GET {API}token/"),
    ],
    "one spelling of each address is enough": [f"GET {API}app_id/"],
    "the page is not stored under links of Gradio's; ours hold the view themselves": [
        f"GET {API}deep_link",
    ],
    "the page has its configuration in it": ["GET /config", "GET /config/"],
    "there is no interface for programs beside the page": [
        *(f"GET {API}info", f"GET {API}info/", f"GET {API}openapi.json"),
        *(f"POST {API}api/{{api_name}}", f"POST {API}api/{{api_name}}/"),
        *(f"POST {API}run/{{api_name}}", f"POST {API}run/{{api_name}}/"),
        *(f"POST {API}call/{{api_name}}", f"POST {API}call/{{api_name}}/"),
        *(f"POST {API}call/v2/{{api_name}}", f"POST {API}call/v2/{{api_name}}/"),
        *(f"GET {API}call/{{api_name}}/{{event_id}}", f"GET {API}call/v2/{{api_name}}/{{event_id}}"),
    ],
    "how full the queue is concerns nobody, and what runs is not monitored": [
        *(f"GET {API}queue/status", "GET /monitoring", "GET /monitoring/summary", "GET /monitoring/{key}"),
    ],
    "runs are not recorded": [
        *(f"GET {API}runs", f"GET {API}runs/", f"POST {API}run-history/connect"),
        *(f"GET {API}run-history/buckets", f"GET {API}run-history/records"),
        f"GET {API}run-history/records/{{endpoint}}/{{record_id}}/assets/{{asset_id}}",
    ],
    "the server fetches nothing for a visitor": [
        f"GET {API}proxy={{url_path:path}}",
        f"HEAD {API}proxy={{url_path:path}}",
    ],
    "no file is served, and none is uploaded as Gradio does it": [
        *(f"{method} {API}file={{path_or_url:path}}" for method in ("GET", "HEAD")),
        *(f"GET {API}file/{{path:path}}", f"POST {API}upload", f"GET {API}upload_progress"),
    ],
    "nothing is streamed or recorded": [
        *(f"POST {API}stream/{{event_id}}", f"POST {API}stream/{{event_id}}/close"),
        f"GET {API}stream/{{session_hash}}/{{run}}/{{component_id}}/playlist.m3u8",
        f"GET {API}stream/{{session_hash}}/{{run}}/{{component_id}}/{{segment_id}}.{{ext}}",
        f"GET {API}stream/{{session_hash}}/{{run}}/{{component_id}}/playlist-file",
        f"POST {API}process_recording",
    ],
    "the page asks by POST /vit_viz/NAME, and hangs up": [
        *(f"POST {API}queue/join", f"GET {API}queue/data", f"POST {API}cancel"),
        *(f"POST {API}reset", f"POST {API}reset/"),
    ],
    "no component has a server side or a front end of its own": [
        *(f"POST {API}component_server", f"POST {API}component_server/"),
        f"GET {API}custom_component/{{id}}/{{environment}}/{{type}}/{{file_name}}",
    ],
    "a file of the page is read, and nothing asked about it": ["HEAD /vit_viz/page/{digest}/{name}"],
    "the page cannot be installed": ["GET /pwa_icon", "GET /pwa_icon/{size}"],
    "the app is not developed while it is served": [
        *(f"GET {API}dev/reload", f"POST {API}vibe-edit", f"POST {API}vibe-edit/"),
        *(
            f"POST {API}undo-vibe-edit",
            f"POST {API}undo-vibe-edit/",
            f"GET {API}vibe-code",
            f"GET {API}vibe-code/",
        ),
        *(f"POST {API}vibe-code", f"POST {API}vibe-code/"),
        *(f"POST {API}vibe-starter-queries", f"POST {API}vibe-starter-queries/"),
    ],
}
"""Routes of Gradio, and two of ours, that the guard closes, by the reason."""


def closed_routes() -> set[tuple[str, str]]:
    """(method, path) of each route that is closed."""
    return {
        (method, path)
        for routes in CLOSED.values()
        for method, _, path in (route.partition(" ") for route in routes)
    }


def routes_below(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """(method, path) of every route, also of those in routers that were included; what cannot be told apart is an error."""
    for route in routes:
        router: Any = getattr(route, "original_router", None)
        if router is not None:
            prefix = getattr(getattr(route, "include_context", None), "prefix", "")
            yield from ((method, prefix + path) for method, path in routes_below(router.routes))
        else:
            methods, path = getattr(route, "methods", None), getattr(route, "path", None)
            assert methods, f"{route} answers any method or has routes of its own; teach this test to read it"
            assert path is not None
            yield from ((method, path) for method in methods)


def example(path: str) -> str:
    """An address that a route answers."""
    return re.sub(r"\{(\w+)(?::\w+)?\}", r"\1", path)


def unaccounted(routes: Iterable[tuple[str, str]]) -> list[str]:
    """Routes that are neither allowed nor closed, or both."""
    closed = closed_routes()
    return [
        f"{method} {path}"
        for method, path in sorted(set(routes))
        if (kind_of(method, example(path)) is not None) == ((method, path) in closed)
    ]


@pytest.fixture(scope="module")
def gradio_app() -> Iterator[Any]:
    """Gradio's app as `launch` makes it of a page with our options."""

    async def build() -> Any:  # in a running loop, or else Gradio makes loops that it never closes
        with gr.Blocks(analytics_enabled=False) as blocks:
            gr.Button()
        blocks.enable_monitoring = options["enable_monitoring"]
        return App.create_app(blocks, app_kwargs=options["app_kwargs"], mcp_server=False)

    logger = logging.getLogger("vit_viz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logger, "handlers", list(logger.handlers))
        patch.setenv("FORWARDED_ALLOW_IPS", "")  # what the options change is changed back
        options = launch_options(Session(model="mini", device="cpu"))
        yield played(build())


def test_every_route_of_gradio_is_allowed_or_closed(gradio_app: Any) -> None:
    routes = list(routes_below(gradio_app.routes))
    assert len(routes) > 80  # the walk arrived in the included router
    assert unaccounted(routes) == []


def test_every_closed_route_is_one_that_gradio_has(gradio_app: Any) -> None:
    assert closed_routes() - set(routes_below(gradio_app.routes)) == set()


def test_every_kind_of_address_but_the_page_s_own_files_is_answered_by_a_route(gradio_app: Any) -> None:
    answered = {kind_of(method, example(path)) for method, path in routes_below(gradio_app.routes)}
    unless_asked_for = {"mcp"}  # tests/surfaces has them
    by_the_guard_itself = {"health"}
    assert answered - {None} == {one.kind for one in ADDRESSES} - unless_asked_for - by_the_guard_itself


def test_a_route_that_gradio_adds_is_seen() -> None:
    for route in ("POST", f"{API}new"), ("POST", f"{API}app_id"), ("GET", "/assets2/{path:path}"):
        assert unaccounted([route]) == [" ".join(route)]


def test_a_route_that_is_allowed_and_closed_at_once_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLOSED, "a mistake", [f"GET {API}app_id"])
    assert unaccounted([("GET", f"{API}app_id")]) == [f"GET {API}app_id"]


@pytest.mark.parametrize(("method", "path", "kind"), OPEN)
def test_what_the_page_uses_is_let_in_by_its_methods_at_its_address(
    method: str, path: str, kind: str
) -> None:
    assert kind_of(method, path) == kind
    allowed = {m for address in ADDRESSES if address.kind == kind for m in address.methods}
    assert {kind_of(other, path) for other in set(METHODS) - allowed} == {None}
    if kind not in ("page", "health", "ours"):
        assert allowed == {"GET"}
    if kind not in ("static", "heartbeat", "ours"):  # where a name follows, which is judged elsewhere
        others = [
            *(path + more for more in ("2", "/x", ".json", ";x", "?x", "\0", " ")),
            f"/x{path}",
            f" {path}",
        ]
        assert {kind_of(method, other) for other in others} == {None}


def test_other_forms_of_an_address_are_not_let_in() -> None:
    assert [path for path in CLOSED_SHAPES if {kind_of(one, path) for one in METHODS} != {None}] == []


def test_the_static_files_of_gradio_have_names_that_are_let_in() -> None:
    folder = Path(gr.__file__).parent / "templates" / "frontend"
    files = [path.relative_to(folder) for part in ("assets", "static") for path in (folder / part).rglob("*")]
    names = [f"/{path.as_posix()}" for path in files if (folder / path).is_file()]
    assert len(names) > 100
    assert [name for name in names if kind_of("GET", name) != "static"] == []
