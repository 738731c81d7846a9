"""Garbage through every address and question of the page: a 4xx or one sentence, never a fault, never a traceback, no leak."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest

from tests.http.visitor import PAGE_ANSWERS, Visitor, config_in
from tests.serving import ROOT, Server
from vit_viz.surface import EVENTS, QUESTION_BYTES

pytestmark = pytest.mark.server

GARBAGE = (
    *("x", "-1", "1e9", "nan", "9" * 3000, "ünï\u202e…", "\0", "[]", "1,2,3,4,5"),
    *("${7*7}", "<img src=x onerror=alert(1)>", "../../etc/passwd", "%00%0a", "' or 1=1 --", " "),
)
NEEDED = {  # parameters of which nothing in GARBAGE is possible, and an address that reads each
    "layer": "numbers/{h}",
    "head": "explorer/{h}.html?layer=1",
    "query": "rows/{h}/0",
    "direction": "rows/{h}/0",
    "at": "numbers/{h}?layer=1",
    "alpha": "explorer/{h}.html",
    "target": "explorer/{h}.html",
    "share": "explorer/{h}.html",
    "smooth": "explorer/{h}.html",
    "table": "explorer/{h}.html",
}


@pytest.fixture
def visitor(meet: Callable[..., Visitor]) -> Visitor:
    visitor = meet()
    visitor.arrive()
    return visitor


@pytest.fixture
def handle(visitor: Visitor) -> str:
    return str(visitor.opened()["trace"])


def refused(answer: httpx.Response) -> None:
    """One sentence of ours, which no browser guesses at or remembers."""
    assert 400 <= answer.status_code < 500, (answer.request.url, answer.status_code, answer.text[:200])
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert 10 < len(answer.text) <= 400
    assert answer.text.endswith(".")
    assert not any(word in answer.text for word in ("Traceback", "Error(", str(ROOT)))


def test_garbage_in_an_address_is_refused(visitor: Visitor, handle: str) -> None:
    for text in GARBAGE:
        for path in ("layer/{h}/{}", "layer/{}/0", "photo/{}", "explorer/{}.html", "{}"):
            refused(visitor.http.get("/vit_viz/" + path.format(quote(text, safe=""), h=handle)))
        for name, path in NEEDED.items():
            address = f"/vit_viz/{path.replace('{h}', handle)}"
            refused(visitor.http.get(f"{address}{'&' if '?' in address else '?'}{name}={quote(text)}"))


def test_a_handle_is_worthless_in_another_browser(
    meet: Callable[..., Visitor], handle: str, visitor: Visitor
) -> None:
    stranger, nobody = meet(), meet()
    stranger.arrive()
    for path in (
        f"layer/{handle}/0",
        f"rows/{handle}/0",
        f"numbers/{handle}",
        f"explorer/{handle}.html",
    ):
        assert visitor.http.get(f"/vit_viz/{path}").status_code == 200
        refused(stranger.http.get(f"/vit_viz/{path}"))
        refused(nobody.http.get(f"/vit_viz/{path}"))


BODIES = (
    b"", b"{", b"[]", b"null", b'{"view": 5}', b'{"view": ["image=lion"]}', b'{"data": [], "fn_index": 9, "session_hash": "x"}',
    b'{"view": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"view": "\xff\xfe"}', b"\x00" * 100,
)  # fmt: skip


def test_a_body_that_is_no_question_is_refused(visitor: Visitor) -> None:
    for name in PAGE_ANSWERS:
        for body in BODIES:
            answer = visitor.http.post(f"/vit_viz/{name}", content=body, headers={"accept": EVENTS})
            status = 400 if len(body) <= QUESTION_BYTES else 413
            assert answer.status_code == status, (name, body[:60], answer.text[:200])
            assert 10 < len(answer.json()["error"]) <= 400
            assert "Traceback" not in answer.text


def test_what_the_page_is_made_of_leaks_nothing(visitor: Visitor, app: Server) -> None:
    visitor.bring("my-secret-name.png", b"no picture")
    for path in ("/", "/theme.css", "/manifest.json", "/gradio_api/app_id"):
        text = visitor.http.get(path).text
        found = [
            word
            for word in ("my-secret-name", str(ROOT), str(app.files), "site-packages", " object at 0x")
            if word in text
        ]
        assert found == [], path


def test_gradio_has_no_event_and_says_nothing_of_one(visitor: Visitor) -> None:
    page = visitor.http.get("/").text
    assert config_in(page)["dependencies"] == []
    start = page.index("window.gradio_api_info = ") + len("window.gradio_api_info = ")
    info, _end = json.JSONDecoder().raw_decode(page, start)
    assert info == {"named_endpoints": {}, "unnamed_endpoints": {}}
    for path in (
        "/config",
        "/gradio_api/info",
        "/gradio_api/deep_link?session_hash=x",
        "/gradio_api/dev/reload",
    ):
        assert visitor.http.get(path).status_code == 404
    for path in ("queue/join", "call/nothing", "cancel", "component_server", "upload"):
        assert visitor.http.post(f"/gradio_api/{path}", json={}).status_code == 404
