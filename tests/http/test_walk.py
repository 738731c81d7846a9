"""Garbage through every address and every event: a 4xx or one sentence, never a fault, never a traceback, nothing that leaks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.http.hostile import HOSTILE_TEXT
from tests.http.visitor import Told, Visitor
from tests.serving import ROOT, Server

pytestmark = pytest.mark.server

GARBAGE = (
    *(
        "x",
        "-1",
        "1e9",
        "nan",
        "9" * 3000,
        "99999999999999999999",
        "ünï\u202e…",
        "\0",
        "[]",
        "{}",
        "1,2,3,4,5",
    ),
    *("${7*7}", "`id`", "<img src=x onerror=alert(1)>", "../../etc/passwd", "%00%0a", "' or 1=1 --", " "),
)
NEEDED = {  # parameters of which nothing in GARBAGE is possible, and the addresses that read them
    "layer": ("numbers/{h}", "picture/{h}.png?kind=map"),
    "head": ("numbers/{h}?layer=1", "picture/{h}.png?kind=mosaic&layer=1"),
    "query": ("rows/{h}/0", "numbers/{h}?layer=1"),
    "direction": ("rows/{h}/0",),
    "at": ("numbers/{h}?layer=1",),
    "kind": ("picture/{h}.png",),
    "alpha": ("picture/{h}.png?kind=map",),
    "target": ("picture/{h}.png?kind=explain",),
    "share": ("picture/{h}.png?kind=explain&method=rollout",),
    "method": ("picture/{h}.png?kind=explain",),
    "smooth": ("picture/{h}.png?kind=map",),
    "table": ("picture/{h}.png?kind=map",),
}
FILE = {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}
REMOTE = {"path": "http://127.0.0.1:9/x.png", "meta": {"_type": "gradio.FileData"}}
EVENT_DATA = (None, "x", [], 5, {"a": 1}, {"x": "nan", "y": None}, {"name": HOSTILE_TEXT, "data": [[[]]]})
LONG = (
    "trust",
    "curves",
    "start",
    "measure",
)  # what these are told hardly matters: they would run for minutes


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


@pytest.mark.parametrize("name", NEEDED)
def test_garbage_in_a_parameter_is_refused(visitor: Visitor, handle: str, name: str) -> None:
    for path in NEEDED[name]:
        for text in GARBAGE:
            address = f"/vit_viz/{path.replace('{h}', handle)}"
            refused(visitor.http.get(f"{address}{'&' if '?' in address else '?'}{name}={quote(text)}"))


@pytest.mark.slow
def test_garbage_in_a_path_is_refused(visitor: Visitor, handle: str) -> None:
    for text in GARBAGE:
        part = quote(text, safe="")
        for path in (
            f"layer/{handle}/{part}",
            f"rows/{handle}/{part}",
            f"layer/{part}/0",
            f"photo/{part}",
            part,
        ):
            refused(visitor.http.get(f"/vit_viz/{path}"))
        refused(visitor.http.get(f"/vit_viz/picture/{part}.png"))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(visitor: Visitor, handle: str, method: str) -> None:
    for path in (f"layer/{handle}/0", f"rows/{handle}/0", f"numbers/{handle}", f"photo/{handle}", "x"):
        answer = visitor.http.request(method, f"/vit_viz/{path}")
        refused(answer)
        assert answer.status_code == 405


def test_a_handle_is_worthless_in_another_browser(
    meet: Callable[..., Visitor], handle: str, visitor: Visitor
) -> None:
    stranger, nobody = meet(), meet()
    stranger.arrive()
    for path in (f"layer/{handle}/0", f"rows/{handle}/0", f"numbers/{handle}", f"picture/{handle}.png"):
        assert visitor.http.get(f"/vit_viz/{path}").status_code == 200
        refused(stranger.http.get(f"/vit_viz/{path}"))
        refused(nobody.http.get(f"/vit_viz/{path}"))


CLOSED = (
    *(
        "deep_link?session_hash=x",
        "proxy=http://127.0.0.1/",
        "dev/reload",
        "openapi.json",
        "run-history/records",
    ),
    *("stream/a/1/2/playlist.m3u8", "custom_component/a/client/c/d.js", "vibe-code", "runs"),
)


@pytest.mark.parametrize("path", CLOSED)
def test_addresses_that_the_page_never_uses_are_closed(visitor: Visitor, path: str) -> None:
    answer = visitor.http.get(f"/gradio_api/{path}")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "There is nothing at this address; please reload the page."


@pytest.mark.parametrize("path", ["process_recording", "component_server", "vibe-edit"])
def test_services_that_the_page_never_uses_are_closed(visitor: Visitor, path: str) -> None:
    assert visitor.http.post(f"/gradio_api/{path}", json={}).status_code == 404


BODIES = (
    b"", b"{", b"[]", b"null", b'"x"', b'{"data": 5}', b'{"data": [], "fn_index": 99999, "session_hash": "x"}',
    b'{"data": [], "fn_index": -1, "session_hash": "x"}', b'{"data": [], "fn_index": "x", "session_hash": "x"}',
    b'{"data": [], "fn_index": 1e300, "session_hash": "x"}', b'{"data": [], "fn_index": 0, "session_hash": 5}',
    b'{"data": [], "session_hash": "x"}', b'{"data": [], "fn_index": 0}',
    b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b', "fn_index": 0, "session_hash": "x"}',
    b'{"data": "\xff\xfe", "fn_index": 0}', b"\x00" * 100, b"<xml/>",
)  # fmt: skip


def test_a_body_that_is_no_event_is_refused(visitor: Visitor) -> None:
    headers = {"content-type": "application/json"}
    for path in ("queue/join", "call/nothing", "run/predict", "cancel", "reset", "api/handle"):
        for body in BODIES:
            answer = visitor.http.post(f"/gradio_api/{path}", content=body, headers=headers)
            assert 400 <= answer.status_code < 500, (path, body[:60], answer.status_code, answer.text[:200])
            assert "Traceback" not in answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"


def lists_for(event: dict[str, Any]) -> Iterator[list[Any]]:
    """Values that no page sends, for one event."""
    count = len(event["inputs"])
    yield []
    for value in ("x" * 3000, -1, [[[]]], {"a": {"b": []}}, FILE, REMOTE, HOSTILE_TEXT, 1e308, True):
        yield [value] * count
    yield [{"path": [FILE], "meta": [REMOTE]}] * (count + 3)


def answers(visitor: Visitor, event: dict[str, Any]) -> Told:
    """Everything that is said to all garbage for one event."""
    told = Told()
    is_long = any(name in LONG for _, name in event["targets"])
    asked = [(values, "x" if is_long else {"x": 1}) for values in lists_for(event)]
    asked += [([None] * len(event["inputs"]), data) for data in (EVENT_DATA[1:4] if is_long else EVENT_DATA)]
    for some in batched(asked, 4):  # fewer than may wait of one visitor, however slow the machine is
        for values, data in some:
            assert visitor.join(event["id"], values, data).status_code == 200
        for message in visitor.messages():
            if message["msg"] == "process_completed" and not message["success"]:
                told.failures.append(message["output"])
            elif message["msg"] == "log":
                told.toasts.append(message["log"])
    return told


def batched(items: list[Any], count: int) -> Iterator[list[Any]]:
    """Lists of `count` items, the last of which may be shorter."""
    return (items[i : i + count] for i in range(0, len(items), count))


@pytest.mark.slow
def test_garbage_for_an_event_is_answered_in_one_sentence(meet: Callable[..., Visitor], app: Server) -> None:
    visitor = meet(timeout=60)
    visitor.arrive()
    said = {text for event in visitor.events for text in answers(visitor, event).refusals}
    print(*sorted(said), sep="\n")
    assert len(said) > 3
    for text in said:
        assert 10 < len(text) <= 400, text
        assert text.endswith((".", "…"))
        assert not any(word in text for word in ("Traceback", "<img", "/etc/passwd", str(ROOT), "127.0.0.1"))
    assert "Traceback" not in app.said()
    assert app.is_alive()


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


def test_no_event_has_a_public_name(visitor: Visitor) -> None:
    page = visitor.http.get("/").text
    start = page.index("window.gradio_api_info = ") + len("window.gradio_api_info = ")
    info, _end = json.JSONDecoder().raw_decode(page, start)
    assert info == {"named_endpoints": {}, "unnamed_endpoints": {}}
    for path in ("/config", "/gradio_api/info"):
        assert visitor.http.get(path).status_code == 404
