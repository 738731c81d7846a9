"""The page as HTML: made by Gradio once, and sent to everybody.

Nothing in it is a visitor's. What a link says is read by the page's script, in the browser; a visitor's cookie is set beside the
page (`passage`). So Gradio is asked for it without a query, a cookie or any header of a visitor's, at an address that stands for
any; then only the address under which a visitor reaches the app is put in, which anybody can make up, so it has to cost little.
"""

from __future__ import annotations

import gzip
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import brotli
from cachetools import LRUCache
from gradio.route_utils import get_root_url
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Scope

from vit_viz.ui.edge import page_parts
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.headers import PERMISSIONS, page_policy, without_base
from vit_viz.ui.preview.head import with_head
from vit_viz.ui.scripts import FOR_GOOD

MOST_KEPT = 32
"""Documents that are kept: of each address and of the script, one for each encoding."""

_ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda html: brotli.compress(html, mode=brotli.MODE_TEXT, quality=5),
    "gzip": lambda html: gzip.compress(html, 6, mtime=0),
    "": bytes,
}
"""How a document is sent, the best first; "" is as it is."""

_SERVER = ("type", "asgi", "http_version", "root_path", "app")
"""What of a request is the server's, and not a visitor's."""


@dataclass(frozen=True)
class Rendering:
    """What Gradio made of the page: `html` at the address `stand_in`, and the script of what is large in it."""

    html: bytes
    stand_in: str
    script: bytes


@dataclass(frozen=True)
class Document:
    """What is sent to everybody: the page at one address or its script, in one encoding."""

    content: bytes
    encoding: str
    headers: Mapping[str, str]

    def answer(self, method: str) -> Response:
        """The answer to whoever asks for it."""
        headers = {**self.headers, "Content-Length": str(len(self.content)), "Vary": "Accept-Encoding"}
        if self.encoding:
            headers["Content-Encoding"] = self.encoding
        return Response(b"" if method == "HEAD" else self.content, 200, headers)


class NotRendered(Exception):  # noqa: N818
    """Gradio answers something else than the page."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


class Documents:
    """The page of one app, for every address at which it is reached.

    Args:
        exposure: how the app is reached.
    """

    def __init__(self, exposure: Exposure) -> None:
        self.exposure = exposure
        self._version: object = None
        self._rendering: Rendering | None = None
        self._kept: LRUCache[tuple[str, str], Document] = LRUCache(MOST_KEPT)

    async def answer(self, app: ASGIApp, scope: Scope, version: object) -> Response | None:
        """The page, or its script, for whoever asks; None where the path is neither's.

        Where the page cannot be rendered, this is what Gradio says.

        Args:
            app: what renders it.
            version: of the page; another object where it was built anew.
        """
        is_page = scope["path"] == "/"
        if not is_page and not page_parts.is_script(scope["path"]):
            return None
        try:
            rendering = await self._rendered(app, scope, version)
        except NotRendered as error:
            return error.answer if is_page else None
        if not is_page and scope["path"] != page_parts.address(rendering.script):
            return None
        encoding = _encoding(Headers(scope=scope).get("accept-encoding", ""))
        key = _address_of(scope) if is_page else "", encoding
        if key not in self._kept:
            self._kept[key] = await run_in_threadpool(self._document, rendering, *key)
        return self._kept[key].answer(scope["method"])

    async def _rendered(self, app: ASGIApp, scope: Scope, version: object) -> Rendering:
        if version is not self._version:
            self._version, self._rendering = version, None
            self._kept.clear()
        if self._rendering is None:
            stand_in = _without_visitor(scope)
            answer, address = await _asked(app, stand_in), _address_of(stand_in)
            if answer.status_code != 200:
                raise NotRendered(answer)
            html, script = await run_in_threadpool(page_parts.parted, bytes(answer.body), address)
            self._rendering = Rendering(html, address, script)
        return self._rendering

    def _document(self, rendering: Rendering, address: str, encoding: str) -> Document:
        """The page with an address in place of the one that stands for any; its script, where there is no address."""
        if not address:
            headers = {**FOR_GOOD, "Content-Type": "text/javascript; charset=utf-8"}
            return Document(_ENCODINGS[encoding](rendering.script), encoding, headers)
        stand_in, mine = (page_parts.inside(one)[1:-1] for one in (rendering.stand_in, address))
        html = rendering.html.replace(stand_in, mine)
        html = with_head(without_base(html), address)
        policy = page_policy(html, frames=self.exposure.frames, connects=self.exposure.connects)
        headers = {"Content-Security-Policy": policy, "Permissions-Policy": PERMISSIONS}
        return Document(
            _ENCODINGS[encoding](html), encoding, {**headers, "Content-Type": "text/html; charset=utf-8"}
        )


def _without_visitor(scope: Scope) -> Scope:
    """A request for the page at an address that stands for any, with nothing of a visitor's."""
    host = f"{secrets.token_hex(16)}.invalid".encode()
    request = {"method": "GET", "scheme": "http", "headers": [(b"host", host)], "client": None}
    where = {"server": None, "path": "/", "raw_path": b"/", "query_string": b""}
    return {name: scope[name] for name in _SERVER if name in scope} | request | where


async def _asked(app: ASGIApp, scope: Scope) -> Response:
    """What an app answers, whole."""
    start: Message = {}
    body = bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        start.update(message if message["type"] == "http.response.start" else {})
        body.extend(message.get("body", b""))

    await app(scope, receive, send)
    return Response(
        bytes(body), start["status"], media_type=Headers(raw=start["headers"]).get("content-type")
    )


def _address_of(scope: Scope) -> str:
    """Where the app is for the one who asks: host and scheme as `Exposure.believed` left them, and the prefix of a proxy."""
    prefix = getattr(scope.get("app"), "root_path", "") or scope.get("root_path", "")
    return get_root_url(Request(scope), "/", prefix)


def _encoding(accepted: str) -> str:
    """The best of the encodings that a request accepts."""
    offers = (one.replace(" ", "").lower().partition(";q=") for one in accepted.split(","))
    names = {name for name, _, weight in offers if not weight or weight.strip("0.")}
    return next(name for name in _ENCODINGS if name in names or not name)
