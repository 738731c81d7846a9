"""Garbage through every address and question of the page: a 4xx or one sentence, never a fault, never a traceback, no leak."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest

from tests.http.hostile import HOSTILE_TEXT
from tests.http.visitor import PAGE_ANSWERS, Told, Visitor, config_in
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
VALUES = (
    "x" * 3000,
    -1,
    [[[]]],
    {"a": {"b": []}},
    FILE,
    REMOTE,
    [FILE, REMOTE],
    HOSTILE_TEXT,
    1e308,
    True,
    None,
)
READ = (
    "name",
    "find",
    "methods",
    "method",
    "gone",
    "options",
    "edits",
    "role",
    "foreground",
    "second",
    "kept",
)
"""What the page sends beside its link."""
LINKS = (
    *(
        "",
        "x",
        "&&==",
        "\0",
        "a=" * 3000,
        f"image={HOSTILE_TEXT}",
        "image=../../etc/passwd",
        "image=u" + "A" * 24,
    ),
    *(
        "model=/etc/passwd",
        "model=http://127.0.0.1:9/x",
        "model=" + "9" * 3000,
        "mode=x&size=nan&part=1,2,3,4,5",
    ),
    *(
        "edits=;;;&layer=1e9&head=-1",
        "query=99,99&target=99999999999999999999",
        "tab=nowhere&ask=trust&o.method=x",
    ),
    *("method=${7*7}&explain_face=nan&step=-1", "ask=nothing&run=1", "ask=occlusion&o.window=1e300"),
)

MOST = 12  # of the answers to one name that are waited for: some compute for seconds


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
    assert answer.json()["error"] == "There is nothing at this address; please reload the page."


@pytest.mark.parametrize("path", ["process_recording", "component_server", "vibe-edit"])
def test_services_that_the_page_never_uses_are_closed(visitor: Visitor, path: str) -> None:
    assert visitor.http.post(f"/gradio_api/{path}", json={}).status_code == 404


BODIES = (
    b"", b"{", b"[]", b"null", b'"x"', b"5", b'{"data": 5}', b'{"view": 5}', b'{"view": null}', b'{"view": ["image=lion"]}',
    b'{"view": {"image": "lion"}}', b'{"View": ""}', b'{"data": [], "fn_index": 99999, "session_hash": "x"}',
    b'{"view": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"view": "\xff\xfe"}', b"\x00" * 100, b"<xml/>",
)  # fmt: skip


@pytest.mark.parametrize("name", PAGE_ANSWERS)
def test_a_body_that_is_no_question_is_refused(visitor: Visitor, name: str) -> None:
    for body in BODIES:
        for accept in ("application/json", "text/event-stream"):
            headers = {"content-type": "application/json", "accept": accept}
            answer = visitor.http.post(f"/vit_viz/{name}", content=body, headers=headers)
            assert answer.status_code == 400, (body[:60], answer.text[:200])
            assert 10 < len(answer.json()["error"]) <= 400
            assert "Traceback" not in answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"


def test_the_addresses_of_a_queue_refuse_what_is_no_event(visitor: Visitor) -> None:
    for path in ("queue/join", "call/nothing", "run/predict", "cancel", "reset", "api/handle"):
        for body in BODIES:
            answer = visitor.http.post(f"/gradio_api/{path}", content=body)
            assert 400 <= answer.status_code < 500, (path, body[:60], answer.status_code, answer.text[:200])
            assert "Traceback" not in answer.text
            assert answer.headers["x-content-type-options"] == "nosniff"


def asked(visitor: Visitor, name: str) -> list[Told]:
    """All that is said to garbage beside a good link, and to links that are garbage."""
    told = [visitor.ask(name, view=link) for link in LINKS]
    odd = [{field: value} for field in READ for value in VALUES]
    start = PAGE_ANSWERS.index(name)  # so that each name is told other parts of it
    told += [visitor.ask(name, **body) for body in odd[start :: len(odd) // MOST]]
    return [*told, visitor.ask(name, **{field: [FILE] for field in READ})]


@pytest.fixture(scope="module")
def alone(start_app: Callable[..., Server]) -> Server:
    """An app whose log is read."""
    return start_app("--model", "mini")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGE_ANSWERS)
def test_garbage_for_a_question_of_the_page_is_answered_in_one_sentence(
    alone: Server, meet: Callable[..., Visitor], name: str
) -> None:
    visitor, before = meet(alone), len(alone.said())
    visitor.arrive()
    for told in asked(visitor, name):
        assert told.status < 500, told.text[:300]
        assert not any(word in told.text for word in ("Traceback", "root:", str(ROOT), str(alone.files)))
        for text in told.refusals:
            assert 10 < len(text) <= 400, text
            assert text.endswith((".", "…"))
    assert "Traceback" not in alone.said()[before:]
    assert alone.is_alive()


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
    for path in ("/config", "/gradio_api/info"):
        assert visitor.http.get(path).status_code == 404
