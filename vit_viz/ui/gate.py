"""What every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many apps, and this one needs little of it. The gate closes the addresses that the page never uses and that would
write files, fetch from other hosts or keep a visitor's view (`CLOSED`); it bounds the body of a request; it gives each browser a
random name (a cookie), to which uploads and handles are bound; it keeps the upload folder small; and it turns a failure of
Gradio's own code into one sentence.
"""

from __future__ import annotations

import json
import logging
import secrets
from pathlib import Path
from urllib.parse import unquote

from gradio.utils import get_upload_folder
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_viz.handles import COOKIE, visitor_in
from vit_viz.ui.boundary import NOT_READABLE, sentence
from vit_viz.ui.tray import Tray

logger = logging.getLogger(__name__)

API = "/gradio_api/"
CLOSED = (
    *("component_server", "custom_component", "deep_link", "dev/", "openapi.json", "process_recording"),
    *("proxy=", "run-history", "runs", "stream/", "undo-vibe-edit", "vibe-"),
)
REQUEST_BYTES = 2 * 2**20  # of a request that is no upload: the values of a few controls
UPLOAD_BYTES = 20 * 2**20  # of an upload: a little more than the largest picture that is read

NOTHING_HERE = "There is nothing at this address; please reload the page."
NOT_YOURS = "This file is not here any more; please choose the picture again."
TOO_LARGE = "This is more than 20 MB; please send a smaller picture, a JPEG for example."
NO_ROOM = (
    "The server cannot keep this picture now, because its disk is full or locked; please try again later."
)


class Gate:
    """ASGI middleware around Gradio; `launch(app_kwargs={"middleware": [Middleware(Gate)]})`."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        passage = Passage(scope, receive, send)
        refused = passage.refusal()
        if refused is not None:
            await refused(scope, receive, passage.answer)
            return
        try:
            await self.app(scope, passage.take, passage.answer)
        except Exception as error:
            await passage.fail(error)
        finally:
            if passage.is_upload:
                passage.tray.sweep(Path(get_upload_folder()), everything=passage.cannot_write)


class Passage:
    """One request on its way through the gate, and its answer on the way back."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers = Headers(scope=scope)
        self.visitor = visitor_in(HTTPConnection(scope).cookies)
        path = str(scope["path"])
        self.api = path.split(API, 1)[1] if API in path else ""
        self.is_upload = self.api.rstrip("/") == "upload"
        self.cannot_write = False
        self._limit = UPLOAD_BYTES if self.is_upload else REQUEST_BYTES
        self._receive, self._send = receive, send
        self._taken = 0
        self._is_too_large = False
        self._status = 0  # of the answer, once it has begun
        self._is_over = False
        self._listed = bytearray()

    @property
    def tray(self) -> Tray:
        """The files that wait to be read."""
        tray: Tray = self.scope["app"].get_blocks().tray
        return tray

    def refusal(self) -> Response | None:
        """The answer to a request that is not let in."""
        if self.api.startswith(CLOSED):
            return self._sentence(404, NOTHING_HERE)
        length = self.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self._limit:
            return self._sentence(413, TOO_LARGE)
        if self.api.startswith("file="):
            path = unquote(self.api.removeprefix("file="))
            if self.tray.knows(path) and not self.tray.belongs_to(path, self.visitor):
                return self._sentence(404, NOT_YOURS)
        return None

    async def take(self) -> Message:
        """The next part of the request, as long as it is not too large."""
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken > self._limit:
            self._is_too_large = True
            raise _TooLarge
        return message

    async def answer(self, message: Message) -> None:
        """Send a part of the answer on, with our headers."""
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            if self._is_too_large:  # whatever Gradio made of it
                await self.fail(_TooLarge())
                return
            self._status = message["status"]
            self._dress(message)
        elif self.is_upload and self._status == 200:
            self._note(message)
        self._is_over = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def fail(self, error: Exception) -> None:
        """End the answer: in one sentence where nothing was said yet, else where it stands."""
        if self._status:
            logger.info("an answer was cut short: %s", type(error).__name__)
            await self.answer({"type": "http.response.body", "body": b"", "more_body": False})
            return
        response = self._failure(error)
        self._is_too_large = False
        await response(self.scope, self._receive, self.answer)

    def _failure(self, error: Exception) -> Response:
        if isinstance(error, _TooLarge):
            return self._sentence(413, TOO_LARGE)
        if isinstance(error, ClientDisconnect):
            return self._sentence(400, NOTHING_HERE)  # nobody reads it
        if self.is_upload and isinstance(error, OSError):
            self.cannot_write = True
            logger.error("the upload folder cannot be written: %s", error.strerror)
            return self._sentence(507, NO_ROOM)
        if self.api:  # handlers end in `GuardedBlocks`; what fails here is Gradio reading the request
            logger.info("refused a request: %s", type(error).__name__)
            return self._sentence(400, NOT_READABLE)
        return self._sentence(500, sentence(error))

    def _sentence(self, status: int, text: str) -> Response:
        """A refusal as Gradio's own script reads it: plain for uploads, JSON elsewhere in the API."""
        headers = {"Cache-Control": "no-store"}
        if self.api and not self.is_upload:
            return JSONResponse({"error": text, "detail": text}, status, headers)
        return PlainTextResponse(text, status, headers)

    def _dress(self, message: Message) -> None:
        """Our headers: nothing is sniffed, and a page that opens gives its browser a name."""
        headers = MutableHeaders(raw=message["headers"])
        message["headers"] = headers.raw
        headers["X-Content-Type-Options"] = "nosniff"
        is_page = headers.get("content-type", "").startswith("text/html") and not self.api
        if is_page and not self.visitor:
            headers.append(
                "Set-Cookie", f"{COOKIE}={secrets.token_urlsafe(24)}; Path=/; HttpOnly; {self._reach()}"
            )

    def _reach(self) -> str:
        """Where the cookie travels: a Space shows the page inside another site's, and there HTTPS is the rule."""
        proto = self.headers.get("x-forwarded-proto", self.scope["scheme"])
        return "SameSite=None; Secure; Partitioned" if proto.startswith("https") else "SameSite=Lax"

    def _note(self, message: Message) -> None:
        """Remember whose files these are; the answer to an upload is the list of their paths."""
        self._listed += message.get("body", b"")
        if not message.get("more_body"):
            self.tray.note([str(path) for path in json.loads(self._listed or b"[]")], self.visitor)


class _TooLarge(Exception):  # noqa: N818
    """The body of a request is larger than it may be."""
