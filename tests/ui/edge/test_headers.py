"""Security headers: the policy of the page, and what every answer gets or loses."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from tests.ui.loops import played
from vit_viz.ui.edge.headers import (
    PERMISSIONS,
    PagePolicy,
    add_headers,
    inline_scripts,
    page_policy,
    without_base,
)

HTML = (
    b'<html><head><base href="./"><script>let a = "1 < 2";\n</script>'
    b'<script type="module" src="/assets/index.js"></script>'
    b'<SCRIPT type="module">\n  b()\n</SCRIPT></head><body onload="c()">\xc3\xa9</body></html>'
)
INLINE = [b'let a = "1 < 2";\n', b"\n  b()\n"]


def hash_of(text: bytes) -> str:
    """As browsers compute it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"


def rules(policy: str) -> dict[str, list[str]]:
    """The sources of each directive."""
    parts = [rule.split() for rule in policy.split(";")]
    assert len({part[0] for part in parts}) == len(parts)  # a browser would ignore the second
    return {part[0]: part[1:] for part in parts}


# --- the policy


def test_every_inline_script_is_named_by_its_hash_and_none_other() -> None:
    sources = rules(page_policy(HTML))["script-src"]
    assert [source for source in sources if source.startswith("'sha256-")] == [hash_of(t) for t in INLINE]
    assert set(sources) - {hash_of(t) for t in INLINE} == {"'self'", "'unsafe-eval'"}


def test_a_page_without_scripts_names_no_hash() -> None:
    assert rules(page_policy(b"<p>no script, only the word</p>"))["script-src"] == ["'self'", "'unsafe-eval'"]


def test_scripts_with_a_source_are_not_inline() -> None:
    assert inline_scripts(HTML) == INLINE
    assert inline_scripts(b"<script async src='a.js' defer></script><script\nsrc=a.js></script>") == []


def test_the_page_may_load_nothing_that_is_not_its_own() -> None:
    allowed = rules(page_policy(HTML))
    for nothing in ("default-src", "base-uri", "object-src", "form-action"):
        assert allowed[nothing] == ["'none'"]
    sources = {source for directive in allowed.values() for source in directive}
    hosts = {source for source in sources if not source.startswith("'")}
    assert hosts == {"data:", "blob:", "mediastream:"}
    assert "'unsafe-inline'" not in allowed["script-src"]


@pytest.mark.parametrize("frames", [(), ("https://huggingface.co", "https://*.hf.space")])
def test_frames_are_the_page_s_own_and_those_told(frames: tuple[str, ...]) -> None:
    assert rules(page_policy(HTML, frames=frames))["frame-ancestors"] == ["'self'", *frames]


def test_base_is_removed_once() -> None:
    assert without_base(b'a<BASE\nhref="./" >b<base href="/x">c') == b'ab<base href="/x">c'
    for html in (b"<basefont>", b"base", b"", b"< base>"):
        assert without_base(html) == html


# --- every answer


def answer_start(*headers: tuple[str, str]) -> Message:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return {"type": "http.response.start", "status": 200, "headers": raw}


@pytest.mark.parametrize("is_static", [False, True])
def test_every_answer_is_dressed(is_static: bool) -> None:
    message = answer_start(("content-type", "text/plain"), ("referrer-policy", "unsafe-url"))
    add_headers(message, is_static=is_static)
    headers = MutableHeaders(raw=message["headers"])
    assert headers.getlist("x-content-type-options") == ["nosniff"]
    assert headers.getlist("referrer-policy") == ["same-origin"]
    assert headers.getlist("cross-origin-resource-policy") == ["same-origin"]
    assert headers["content-type"] == "text/plain"


def test_no_other_origin_is_let_read_an_answer() -> None:
    message = answer_start(
        ("access-control-allow-origin", "https://evil.example"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "*"),
        ("vary", "Origin"),
    )
    add_headers(message, is_static=True)
    names = [name for name, _ in message["headers"]]
    assert not any(name.startswith(b"access-control") for name in names)
    assert b"vary" in names


@pytest.mark.parametrize("kept", [(), (("cache-control", "public, max-age=31536000"),)])
def test_only_static_files_may_be_kept(kept: tuple[tuple[str, str], ...]) -> None:
    for is_static in (False, True):
        message = answer_start(*kept)
        headers = add_headers(message, is_static=is_static)
        assert headers.getlist("cache-control") == (
            [value for _, value in kept] if is_static else ["no-store"]
        )


def test_what_is_added_to_the_returned_headers_is_sent() -> None:
    message = answer_start()
    add_headers(message, is_static=False).append("set-cookie", "a=b")
    assert (b"set-cookie", b"a=b") in message["headers"]


# --- the middleware


def answered(*sent: Message, path: str = "/", method: str = "GET", kind: str = "http") -> list[Message]:
    """What leaves the middleware when the app behind it sends this."""
    left: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in sent:
            await send(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def send(message: Message) -> None:
        left.append(message)

    scope: dict[str, Any] = {
        "type": kind,
        "path": path,
        "method": method,
        "query_string": b"",
        "scheme": "http",
    }
    scope["headers"] = [(b"host", b"app.example")]
    played(PagePolicy(app, frames=("https://frame.example",))(scope, receive, send))
    return left


def submodules_of(body: bytes, size: int = 0) -> list[Message]:
    """A body in one part, or in parts of a size."""
    size = size or max(len(body), 1)
    cut = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
    parts: list[Message] = [{"type": "http.response.body", "body": part, "more_body": True} for part in cut]
    return [*parts[:-1], {**parts[-1], "more_body": False}]


def headers_of(left: list[Message]) -> MutableHeaders:
    assert left[0]["type"] == "http.response.start"
    assert not left[-1].get("more_body")
    return MutableHeaders(raw=left[0]["headers"])


@pytest.mark.parametrize("size", [0, 1, 7, len(HTML) - 1])
def test_a_page_in_any_number_of_parts_gets_its_policy_and_its_length(size: int) -> None:
    start = answer_start(("content-type", "text/html; charset=utf-8"), ("content-length", str(len(HTML))))
    left = answered(start, *submodules_of(HTML, size))
    body = b"".join(message.get("body", b"") for message in left[1:])
    assert body == HTML.replace(b'<base href="./">', b"")
    headers = headers_of(left)
    assert headers.getlist("content-length") == [str(len(body))]
    assert headers.getlist("content-security-policy") == [
        page_policy(body, frames=("https://frame.example",))
    ]
    assert headers["permissions-policy"] == PERMISSIONS


def test_a_page_without_a_length_gets_none() -> None:
    left = answered(answer_start(("content-type", "text/html")), *submodules_of(HTML, 9))
    assert "content-length" not in headers_of(left)
    assert "content-security-policy" in headers_of(left)


def test_an_answer_to_head_keeps_the_length_that_it_was_given() -> None:
    start = answer_start(("content-type", "text/html"), ("content-length", "4711"))
    left = answered(start, *submodules_of(b""), method="HEAD")
    assert headers_of(left)["content-length"] == "4711"
    assert "content-security-policy" in headers_of(left)
    assert left[1]["body"] == b""


def test_an_empty_last_part_ends_the_page() -> None:
    last: Message = {"type": "http.response.body"}
    first: Message = {"type": "http.response.body", "body": HTML, "more_body": True}
    left = answered(answer_start(("content-type", "text/html")), first, last)
    assert len(left) == 2
    assert left[1]["body"] == without_base(HTML)


@pytest.mark.parametrize("path", ["/assets/a.html", "//", "", "/vit_viz/", "/."])
def test_other_addresses_are_passed_on_as_they_are(path: str) -> None:
    sent = [answer_start(("content-type", "text/html"), ("content-length", "5")), *submodules_of(HTML, 5)]
    assert answered(*sent, path=path) == sent


def test_what_is_no_request_is_passed_on() -> None:
    sent: list[Message] = [{"type": "lifespan.startup.complete"}]
    assert answered(*sent, kind="lifespan") == sent


def test_an_answer_that_is_no_page_is_untouched() -> None:
    body = b'{"error": "<base href=./>"}'
    start = answer_start(("content-type", "application/json"), ("content-length", str(len(body))))
    left = answered(start, *submodules_of(body, 4))
    assert b"".join(message.get("body", b"") for message in left[1:]) == body
    assert left[0] == start
