"""The page's protocol by a grammar, with odd parts now and then: no 5xx, no traceback, nothing that leaks.

VIT_VIZ_TEST_EFFORT says how many exchanges; 1 takes about half a minute, 10 five minutes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from tests.effort import EFFORT, effort
from tests.http.hostile import HOSTILE_TEXT, encoded, photo
from tests.http.visitor import PAGE_ANSWERS, Visitor
from tests.serving import ROOT, Server
from vit_viz.surface import BRING, FILE_HEADER

pytestmark = [pytest.mark.server, pytest.mark.slow]
EXAMPLES = effort(1750)
LEAKS = re.compile(rf"Traceback \(most|object at 0x|site-packages|{re.escape(str(ROOT))}")

odd_text = st.one_of(
    st.sampled_from(
        ["", " ", "..", "\0", "%00", "nan", "-1", "9" * 400, HOSTILE_TEXT, "${7*7}", "ünï\u202e", "None"]
    ),
    st.text(max_size=40),
)
odd_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), odd_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(odd_text, inner, max_size=4)),
    max_leaves=8,
)
file_value = st.fixed_dictionaries(
    {"path": st.one_of(odd_text, st.sampled_from(["/etc/passwd", "http://127.0.0.1:9/x.png"]))},
    optional={"meta": odd_value, "url": odd_text, "orig_name": odd_text},
)
query = st.dictionaries(
    st.sampled_from(["layer", "head", "query", "direction", "kind", "at", "target", "method", "x"]),
    odd_text,
    max_size=4,
)
headers = st.dictionaries(
    st.sampled_from(
        [
            *("range", "accept", "content-type", "x-forwarded-host", "x-forwarded-proto"),
            *("if-none-match", "origin", "te"),
        ]
    ),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=30),
    max_size=2,
)
path = st.one_of(
    st.sampled_from(
        ["/", "/config", "/theme.css", "/assets/x.js", "/static/img/logo.svg", "/gradio_api/queue/data", "/docs", "/login",
         "/gradio_api/upload_progress", "/gradio_api/app_id", "/gradio_api/info", "/monitoring", "/gradio_api/call/x"]
    ),
    st.builds("/gradio_api/heartbeat/{}".format, odd_text),
    st.builds("/gradio_api/file={}".format, odd_text),
    st.builds("/vit_viz/{}/{}/{}".format, st.sampled_from(["layer", "rows", "numbers", "photo", "picture"]), odd_text, odd_text),
    st.builds("/{}".format, odd_text),
)  # fmt: skip
method = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
LINKS = (
    *("&&==", "\0", "a=" * 3000, f"image={HOSTILE_TEXT}", "image=../../etc/passwd", "image=u" + "A" * 24),
    *(
        "model=/etc/passwd",
        "model=http://127.0.0.1:9/x",
        "model=" + "9" * 3000,
        "mode=x&size=nan&part=1,2,3,4,5",
    ),
    *(
        "edits=;;;&layer=1e9&head=-1",
        "query=99,99&target=99999999999999999999",
        "ask=occlusion&o.window=1e300",
    ),
)
link = st.sampled_from(LINKS) | st.dictionaries(
    st.sampled_from(
        [
            *("image", "model", "mode", "size", "part", "edits", "tab", "layer", "head", "query"),
            *("method", "target", "ask", "x"),
        ]
    ),
    odd_text,
    max_size=4,
).map(urlencode)
said = st.dictionaries(
    st.sampled_from(
        [
            *("name", "find", "methods", "method", "gone", "options", "edits", "role"),
            *("foreground", "second", "kept", "view"),
        ]
    ),
    st.one_of(odd_value, st.lists(st.one_of(odd_value, file_value), max_size=5)),
    max_size=3,
)
closed = st.sampled_from(["queue/join", "cancel", "upload", "reset"])
exchange = st.one_of(
    st.tuples(st.just("get"), method, path, query, headers),
    st.tuples(st.just("ask"), st.sampled_from(PAGE_ANSWERS), link, said, st.booleans()),
    st.tuples(st.just("raw"), closed, st.binary(max_size=60), headers, st.none()),
    st.tuples(st.just("bring"), odd_text, st.binary(max_size=300), headers, st.none()),
)


@pytest.fixture(scope="module")
def fuzzed(start_app: Callable[..., Server]) -> Server:
    """An app of its own."""
    return start_app("--model", "mini")


def quoted(address: str) -> str:
    """An address that the HTTP client sends as it is."""
    return (
        httpx.URL("http://x")
        .copy_with(raw_path=address.encode("utf-8", "replace")[:3000])
        .raw_path.decode("latin-1")
    )


def answer(visitor: Visitor, one: tuple[Any, ...]) -> httpx.Response | None:
    """What the app says to one exchange; None for a stream that would not end, or for what the client itself refuses to send."""
    kind, first, second, third, fourth = one
    try:
        if kind == "get":
            url = visitor.http.base_url.join(quoted(second))
            with visitor.http.stream(first, url, params=third, headers=fourth) as said:
                if not said.headers.get("content-type", "").startswith("text/event-stream"):
                    said.read()
                return said
        if kind == "ask":
            headers = {"accept": "text/event-stream" if fourth else "application/json"}
            content = json.dumps({"view": second} | third)
            return visitor.http.post(f"/vit_viz/{first}", content=content, headers=headers)
        if kind == "raw":
            return visitor.http.post(f"/gradio_api/{first}", content=second, headers=third)
        return visitor.http.post(BRING, content=second, headers=third | {FILE_HEADER: quote(first)})
    except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError, ValueError):
        return None


def test_no_exchange_of_the_protocol_ends_in_a_fault(fuzzed: Server) -> None:
    visitor = Visitor(fuzzed, timeout=60)
    visitor.arrive()
    seen: list[int] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=EFFORT == 1,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(exchange)
    def talk(one: tuple[Any, ...]) -> None:
        said = answer(visitor, one)
        if said is None:
            return
        seen.append(said.status_code)
        assert said.status_code < 500, one
        text = said.text if said.is_stream_consumed else ""
        assert not LEAKS.search(text), (one, text[:300])
        if one[0] == "ask" and said.status_code >= 400:
            sentence = said.json()["error"]
            assert 10 < len(sentence) <= 400, (one, sentence)
            assert sentence.endswith((".", "…")), (one, sentence)

    talk()
    visitor.close()
    with Visitor(fuzzed) as after:  # and somebody else is served as ever
        after.arrive()
        assert after.bring("photo.png", encoded(photo(41), "PNG")).refusals == []
        assert after.ask("open").refusals == []
    assert len(seen) > EXAMPLES // 2
    assert {200, 400, 404} <= set(seen)
    assert "Traceback" not in fuzzed.said()
