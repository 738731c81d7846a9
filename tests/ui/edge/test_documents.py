"""The page as HTML: one document for everybody, with the address of whoever asks and nothing else of theirs."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

import brotli
import pytest
from gradio.route_utils import get_root_url
from gradio.routes import toorjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from vit_viz.offline.stylesheet import stylesheet
from vit_viz.session.handles import cookie_name
from vit_viz.ui.edge.documents import (
    MOST_KEPT,
    PERMISSIONS,
    Documents,
    inline_scripts,
    page_policy,
    without_base,
)
from vit_viz.ui.edge.door import ALIVE, guarded
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.page_parts import LARGE, parted
from vit_viz.ui.scripts import modules

FRAME = "https://frame.example"
PAGE = (
    '<html><head><meta charset="utf-8" /><base href="./"></head><body>'
    '<script>window.gradio_config = {{"root":{root},"file":"{inside}/gradio_api/file=a",'
    '"components":{components}}};</script><script type="module" src="./a.js"></script>'
    "<p>{query}{cookie}{language}</body></html>"
)

COMPONENTS = [
    {"id": 7, "type": "html", "props": {"elem_id": "a", "html_template": "<p>'&</p>" * 99}},
    {"id": 4, "type": "slider", "props": {"value": list(range(200)), "label": "x" * (LARGE - 2)}},
    {"id": 9, "type": "state", "props": {}},
]  # fmt: skip


@dataclass
class Renderer:
    """Stands for Gradio: writes into the page whatever it is told about a visitor."""

    root_path: str = ""
    status: int = 200
    requests: list[Request] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        """The page."""
        self.requests.append(request)
        if self.status != 200:
            return PlainTextResponse("broken", self.status)
        root = toorjson(get_root_url(request, "/", self.root_path or request.scope.get("root_path")))
        words = {
            "components": toorjson(COMPONENTS),
            "root": root,
            "inside": str(root)[1:-1],
        }
        words |= {"query": request.url.query, "cookie": request.headers.get("cookie", "")}
        words |= {"language": request.headers.get("accept-language", "")}
        headers = {"set-cookie": "theirs=1", "content-security-policy": "default-src *"}
        return HTMLResponse(PAGE.format(**words), headers=headers)


class Behind(Starlette):
    """The guard in front of it."""

    def __init__(self, exposure: Exposure, root_path: str = "") -> None:
        self.root_path = root_path
        self.renderer = Renderer(root_path)
        super().__init__(routes=[Route("/", self.renderer.answer)], **guarded(exposure))


def opened(*, root_path: str = "", **environment: str) -> TestClient:
    app = Behind(Exposure.of("127.0.0.1", environment=environment), root_path)
    return TestClient(app, base_url="http://127.0.0.1:7860", raise_server_exceptions=False)


def requests_of(client: TestClient) -> list[Request]:
    """What Gradio was asked."""
    app: Any = client.app
    return list(app.renderer.requests)


def test_visitors_share_the_page_and_not_what_is_theirs() -> None:
    """Two with different links, cookies and languages; the second gets no trace of the first."""
    with opened() as client:
        ada = client.get("/?image=uAda&tab=heads&__theme=dark", headers={"accept-language": "de"})
        first = client.cookies.get(cookie_name())
        again = client.get("/?deep_link=x&page=y", headers={"accept-language": "fr"})
        client.cookies.clear()
        eve = client.get("/")
        assert ada.text == again.text == eve.text
        assert ada.headers["set-cookie"].startswith(f"{cookie_name()}={first};")
        assert "set-cookie" not in again.headers
        assert eve.headers["set-cookie"].startswith(f"{cookie_name()}=")
        assert client.cookies.get(cookie_name()) not in (None, first)
        assert all("theirs" not in one.headers.get("set-cookie", "") for one in (ada, again, eve))
        for word in ("uAda", "de", first, "deep_link"):
            assert word not in eve.text.partition("<p>")[2]
        (asked,) = requests_of(client)
        assert (asked.method, asked.url.query, list(asked.headers)) == ("GET", "", ["host"])
        assert asked.client is not None
        assert asked.client.host != "testclient"


@pytest.mark.parametrize("prefix", ["", "/tools/vit_viz"])
def test_each_address_has_its_own_page_of_one_rendering(prefix: str) -> None:
    with opened(root_path=prefix, VIT_VIZ_BEHIND_PROXY="1", VIT_VIZ_HOSTS="one.example") as client:
        headers = (
            {},
            {"host": "localhost:80"},
            {"host": "one.example:99"},
            {"x-forwarded-host": "two.example", "x-forwarded-proto": "https"},
            {"host": "127.0.0.1:7860"},
        )
        pages = [client.get("/", headers=one) for one in headers]
        bases = [f"{at}{prefix}" for at in ("http://127.0.0.1:7860", "http://localhost", "http://one.example:99",
                                            "https://two.example", "http://127.0.0.1:7860")]  # fmt: skip
        for page, base in zip(pages, bases, strict=True):
            assert f'"root":"{base}","file":"{base}/gradio_api/file=a"' in page.text
            assert f'<meta property="og:url" content="{base}/">' in page.text
            assert set(re.findall(r"https?://[\w.:]+", page.text)) == {base.removesuffix(prefix)}
            (script,) = re.findall("<script>(.*?)</script>", page.text)
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in page.headers["content-security-policy"]
        assert len(requests_of(client)) == 1


def test_the_page_gets_its_policy_and_no_base() -> None:
    with opened(SPACE_HOST="someone.hf.space") as client:
        page = client.get("/", headers={"accept-encoding": "identity"})
    exposure = Exposure.of("127.0.0.1", environment={"SPACE_HOST": "someone.hf.space"})
    policy = page_policy(page.content, frames=exposure.frames, connects=exposure.connects)
    assert page.headers.get_list("content-security-policy") == [policy]
    assert page.headers["permissions-policy"] == PERMISSIONS
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<base" not in page.text


def test_a_page_that_fails_is_not_kept() -> None:
    """And it is made before the app says that it has started: Gradio's launch gives the first answer three seconds."""
    with opened() as client:
        app: Any = client.app
        for status in (500, 503):
            app.renderer.status = status
            answer = client.get("/")
            assert (answer.status_code, "went wrong" in answer.text) == (500, True)
        app.renderer.status = 200
        before = len(requests_of(client))
        assert client.get("/gradio_api/startup-events").text == ALIVE
        assert len(requests_of(client)) == before + 1
        app.renderer.status = 500
        assert client.get("/").status_code == 200  # it was made once, for everybody


def test_a_page_is_sent_in_the_best_encoding_that_is_accepted() -> None:
    with opened() as client:
        plain = client.get("/", headers={"accept-encoding": "identity"}).content
        for accepted, encoding, undo in (
            ("gzip, deflate, br, zstd", "br", brotli.decompress),
            ("gzip;q=1.0, br;q=0", "gzip", gzip.decompress),
            ("BR;q=0.001", "br", brotli.decompress),
            ("br;q=0.0, gzip ; q=0.", None, bytes),
            ("x-br, brotli", None, bytes),
        ):
            with client.stream("GET", "/", headers={"accept-encoding": accepted}) as answer:
                sent = b"".join(answer.iter_raw())
            assert answer.headers.get("content-encoding") == encoding
            assert answer.headers["content-length"] == str(len(sent))
            assert "accept-encoding" in answer.headers["vary"].lower()
            assert undo(sent) == plain
            head = client.head("/", headers={"accept-encoding": accepted})
            assert head.content == b""
            for name in ("content-length", "content-encoding", "content-security-policy"):
                assert head.headers.get(name) == answer.headers.get(name)
        assert len(requests_of(client)) == 1


def test_made_up_addresses_cost_no_rendering_and_no_memory() -> None:
    with opened() as client:
        for port in range(1, 2 * MOST_KEPT):
            assert f"http://localhost:{port}/" in client.get("/", headers={"host": f"localhost:{port}"}).text
        app: Any = client.app
        documents: Documents = app.middleware_stack.documents
        assert len(requests_of(client)) == 1
        assert len(documents._kept) == MOST_KEPT


# --- what is large in it


def test_what_is_large_stands_in_a_script_that_puts_it_back() -> None:
    with opened() as client:
        page = client.get("/").text
        (where,) = re.findall('<script src="[.]([^"]*)">', page)
        answer = client.get(where)
        config, end = json.JSONDecoder().raw_decode(page, page.index("gradio_config = ") + 16)
        assert page[end:].startswith(f';</script><script src=".{where}"></script>')
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        assert "immutable" in answer.headers["cache-control"]
        assert [one["props"] for one in config["components"]] == [
            {"elem_id": "a"},
            {"label": "x" * (LARGE - 2)},
            {},
        ]
        css, end = json.JSONDecoder().raw_decode(answer.text, answer.text.index("})(") + 3)
        parts, _ = json.JSONDecoder().raw_decode(answer.text, end + len(", "))
        for one in config["components"]:
            one["props"] |= parts.get(str(one["id"]), {})
        assert css == stylesheet()
        assert config["components"] == COMPONENTS
        assert len(requests_of(client)) == 1


def test_the_script_is_served_at_its_own_address_only_and_before_any_page() -> None:
    """As another process of the same app may have sent the page."""
    with opened() as client:
        (where,) = re.findall('<script src="[.]([^"]*)">', client.get("/").text)
    with opened() as later:
        assert later.get(where, headers={"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"
        for other in (where.replace(where[-12], "_"), where.replace("/parts", "/x/parts"), where[:-1]):
            assert later.get(other).status_code == 404
    COMPONENTS.append({"id": 11, "props": {"value": "y" * LARGE}})
    try:
        with opened() as another_version:
            assert another_version.get(where).status_code == 404
    finally:
        COMPONENTS.pop()


def test_what_depends_on_the_address_stays_in_the_page() -> None:
    long = "http://any.invalid/" + "z" * LARGE
    config = {"components": [{"id": 1, "props": {"url": long, "text": "t" * LARGE}}]}
    page = f"<script>window.gradio_config = {json.dumps(config)};</script><p>"
    html, script = parted(page.encode(), "http://any.invalid")
    assert (long in html.decode(), "ttt" in html.decode()) == (True, False)
    assert (long in script.decode(), "ttt" in script.decode()) == (False, True)
    assert parted(b"<p>another page", "http://any.invalid") == (b"<p>another page", b"")


def test_the_script_has_every_module_and_opens_the_view_once_the_configuration_is_whole() -> None:
    html, script = parted(
        b'<script>window.gradio_config = {"components": []};</script><p>', "http://any.invalid"
    )
    text = script.decode()
    assert b"modulepreload" not in html
    assert [text.count(f"\n{json.dumps(name)}: () => {{") for name in modules()] == [1] * len(modules())
    begins = 'window.vit_viz("web/look/room.js").begin(window.vit_viz("web/kit/server.js").SERVER);'
    assert text.index("config.components") < text.index("window.vit_viz = ") < text.index(begins)
    assert text.rstrip().endswith(begins)


# --- the policy of the page

HTML = (
    b'<html><head><base href="./"><script>let a = "1 < 2";\n</script>'
    b'<script type="module" src="/assets/index.js"></script><script\nsrc=a.js></script>'
    b'<SCRIPT type="module">\n  b()\n</SCRIPT></head><body onload="c()">\xc3\xa9</body></html>'
)


def test_the_page_may_run_its_own_scripts_and_load_nothing_from_elsewhere() -> None:
    inline = [b'let a = "1 < 2";\n', b"\n  b()\n"]
    assert inline_scripts(HTML) == inline
    digests = [base64.b64encode(hashlib.sha256(text).digest()).decode() for text in inline]
    parts = [rule.split() for rule in page_policy(HTML, frames=("https://huggingface.co",)).split(";")]
    allowed = {name: sources for name, *sources in parts}
    assert len(allowed) == len(parts)  # a browser would ignore the second of a name
    assert set(allowed["script-src"]) == {"'self'", "'unsafe-eval'", *(f"'sha256-{one}'" for one in digests)}
    for nothing in ("default-src", "base-uri", "object-src", "form-action"):
        assert allowed[nothing] == ["'none'"]
    assert allowed.pop("frame-ancestors") == ["'self'", "https://huggingface.co"]
    sources = {source for directive in allowed.values() for source in directive}
    assert {source for source in sources if not source.startswith("'")} == {"data:", "blob:", "mediastream:"}


def test_base_is_removed_once() -> None:
    assert without_base(b'a<BASE\nhref="./" >b<base href="/x">c') == b'ab<base href="/x">c'
    assert without_base(b"<basefont>") == b"<basefont>"
