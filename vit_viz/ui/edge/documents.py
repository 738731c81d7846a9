"""The page as HTML: made by Gradio once, and sent to everybody.

Nothing in it is a visitor's. What a link says is read by the page's script, in the browser; a visitor's cookie is set beside the
page (`door`). So Gradio is asked for it without a query, a cookie or any header of a visitor's, at an address that stands for
any; then only the address under which a visitor reaches the app is put in, which anybody can make up, so it has to cost little.

What of it is large stands in a script of its own, which browsers keep: styles, templates and texts of components, and our modules.
Without those the page is a third as large. The script runs before Gradio's own and puts everything back where that looks for it.

The page loads nothing from other hosts (on a Space its script may ask the Space's host how the Space is), runs no plugins and no
script that is not its own: each script that stands in the page is named in the policy by its hash, so that a handler in an image
that slipped through is not run. `unsafe-eval` stays, because Gradio makes functions of the text of gr.HTML; `unsafe-inline` stays
for styles, because Gradio and plotly set them.

Source: Content Security Policy Level 3, section 2.3.1 (source lists) and 6.7 (hashes).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import secrets
import threading
from collections.abc import Callable

import brotli
import httpx
from cachetools import LRUCache
from gradio.route_utils import get_root_url
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Scope

from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.page_parts import PARTS, inside, parted
from vit_viz.ui.preview import with_head
from vit_viz.ui.scripts import FILES, FOR_GOOD, file_address

_FORBIDDEN = (
    "microphone geolocation payment usb serial hid midi display-capture accelerometer gyroscope magnetometer"
)
PERMISSIONS = ", ".join(["camera=(self)", *(f"{name}=()" for name in _FORBIDDEN.split())])

MOST_KEPT = 32
"""Documents that are kept: of each address and of the script, one for each encoding."""

_ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda html: brotli.compress(html, mode=brotli.MODE_TEXT, quality=5),
    "gzip": lambda html: gzip.compress(html, 6, mtime=0),
    "": bytes,
}
"""How a document is sent, the best first; "" is as it is."""

_INLINE = re.compile(rb"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL | re.IGNORECASE)
_BASE = re.compile(rb"<base\b[^>]*>", re.IGNORECASE)


class Documents:
    """The page of one app, for every address at which it is reached.

    Args:
        begin: called once, in a thread of its own, when the first page is made: the import of torch would make that wait, and while
            it goes on the browser is busy with the page's scripts.
    """

    def __init__(self, exposure: Exposure, begin: Callable[[], object] = lambda: None) -> None:
        self.exposure, self._later = exposure, threading.Thread(target=begin, daemon=True)
        self.stand_in, self.html, self.script, self.where = "", b"", b"", ""
        self._kept: LRUCache[tuple[str, str], Response] = LRUCache(MOST_KEPT)

    async def render(self, app: ASGIApp, scope: Scope) -> None:
        """Have the page made by Gradio, unless it was: at an address that stands for any, with its large parts in the script."""
        if self.html:
            return
        ours = {name: scope[name] for name in ("app", "root_path") if name in scope}
        host = f"{secrets.token_hex(16)}.invalid"
        transport = httpx.ASGITransport(lambda asked, *ways: app(asked | ours, *ways))
        answer = await transport.handle_async_request(httpx.Request("GET", f"http://{host}/"))
        if answer.status_code != 200:
            raise RuntimeError(f"Gradio's page answers {answer.status_code}.")
        headers = [(b"host", host.encode())]
        asked = {"type": "http", "scheme": "http", "path": "/", "query_string": b"", "headers": headers}
        stand_in = _address_of(asked | ours)
        html, script = await run_in_threadpool(parted, await answer.aread(), stand_in)
        self.stand_in, self.html, self.script, self.where = (
            stand_in,
            html,
            script,
            file_address(PARTS, script),
        )

    async def answer(self, app: ASGIApp, scope: Scope) -> Response | None:
        """The page, or its script, for whoever asks; None where the path is neither's."""
        path = scope["path"]
        if path != "/" and not (path.startswith(f"{FILES}/") and path.endswith(f"/{PARTS}")):
            return None
        await self.render(app, scope)
        if path not in ("/", self.where):
            return None
        encoding = _encoding(Headers(scope=scope).get("accept-encoding", ""))
        key = _address_of(scope) if path == "/" else "", encoding
        if key not in self._kept:
            self._kept[key] = await run_in_threadpool(self._document, *key)
            if self._later.ident is None:
                self._later.start()
        return self._kept[key]

    def _document(self, address: str, encoding: str) -> Response:
        """The page with an address in place of the one that stands for any; its script, where there is no address."""
        content, headers, kind = self.script, dict(FOR_GOOD), "text/javascript"
        if address:
            stand_in, mine = (inside(one)[1:-1] for one in (self.stand_in, address))
            content = with_head(without_base(self.html.replace(stand_in, mine)), address)
            policy = page_policy(content, frames=self.exposure.frames, connects=self.exposure.connects)
            headers = {"Content-Security-Policy": policy, "Permissions-Policy": PERMISSIONS}
            kind = "text/html"
        headers |= {"Vary": "Accept-Encoding"} | ({"Content-Encoding": encoding} if encoding else {})
        return Response(_ENCODINGS[encoding](content), 200, headers, kind)


def _address_of(scope: Scope) -> str:
    """Where the app is for the one who asks: host and scheme as `Exposure.believed` left them, and the prefix of a proxy."""
    prefix = getattr(scope.get("app"), "root_path", "") or scope.get("root_path", "")
    return get_root_url(Request(scope), "/", prefix)


def _encoding(accepted: str) -> str:
    """The best of the encodings that a request accepts."""
    offers = (one.replace(" ", "").lower().partition(";q=") for one in accepted.split(","))
    names = {name for name, _, weight in offers if not weight or weight.strip("0.")}
    return next(name for name in _ENCODINGS if name in names or not name)


def page_policy(html: bytes, *, frames: tuple[str, ...] = (), connects: tuple[str, ...] = ()) -> str:
    """The Content-Security-Policy of a page with these scripts in it.

    Args:
        frames: sources beside the page's own whose pages may show it in a frame.
        connects: sources beside the page's own that its scripts may ask.
    """
    digests = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in inline_scripts(html))
    own = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = (
        f"default-src 'none'; script-src 'self' 'unsafe-eval' {own}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "media-src 'self' blob: mediastream:; font-src 'self' data:; worker-src 'self' blob:; manifest-src 'self'; "
        f"connect-src 'self' data: blob: {' '.join(connects)}; form-action 'none'; base-uri 'none'; object-src 'none'; "
        f"frame-ancestors 'self' {' '.join(frames)}"
    )
    return policy.strip()


def inline_scripts(html: bytes) -> list[bytes]:
    """The text of each script that stands in a page itself."""
    return [match["text"] for match in _INLINE.finditer(html) if b"src=" not in match["attributes"]]


def without_base(html: bytes) -> bytes:
    """A page without <base>: Gradio's says "./", which is where the page is anyway, and the policy allows none."""
    return _BASE.sub(b"", html, count=1)
