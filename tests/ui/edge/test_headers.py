"""Security headers: the policy of the page, and what every answer gets or loses."""

from __future__ import annotations

import base64
import hashlib

import pytest
from starlette.datastructures import MutableHeaders
from starlette.types import Message

from vit_viz.ui.edge.documents import inline_scripts, page_policy, without_base
from vit_viz.ui.edge.http_guard import add_headers

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
