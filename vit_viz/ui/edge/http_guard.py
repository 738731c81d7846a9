"""What every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many kinds of apps and trusted visitors; this app needs little of it and is open to strangers. In this order the
guard 1. refuses host names under which the app is not served, and drops headers that no trusted proxy has set (`exposure`); 2.
refuses every address that the page does not use (`addresses`); 3. gives each browser a random name, a cookie, to which pages,
pictures, files and handles are bound; 4. admits pages (`pages`) and questions (`admission`), a bounded number for each visitor, and
answers heartbeats, uploads and files
   itself, because what Gradio does there costs too much or gives away too much;
5. turns what fails into one sentence and gives every answer its security headers (`headers`).
Meanwhile it ends questions that nobody listens for, deletes expired files, and forgets pages that were closed long ago.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_viz.errors import BusyError, ParameterError
from vit_viz.images.signatures import readable_format
from vit_viz.session.handles import COOKIE, new_visitor, owner_of, visitor_in
from vit_viz.ui.edge.addresses import API, OPTIONAL, Kind, kind_of
from vit_viz.ui.edge.admission import LANES, SLOW, lane_of
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.headers import NOTHING_INSIDE, add_headers
from vit_viz.ui.edge.pages import Page
from vit_viz.ui.edge.refusals import failure, refusal
from vit_viz.ui.edge.request_log import NUMBER, REQUEST, next_number
from vit_viz.ui.edge.surfaces import BODY_BYTES, OWNER, read_body, replayed
from vit_viz.ui.edge.tending import keep_alive
from vit_viz.ui.edge.uploading import TOO_LARGE, Progresses, TooLarge, progress_events, receive_upload
from vit_viz.ui.edge.user_errors import NOT_READABLE

if TYPE_CHECKING:
    from vit_viz.ui.edge.user_errors import GuardedBlocks

logger = logging.getLogger(__name__)

REQUEST_BYTES = 2 * 2**20  # of a request that is no upload: the values of a few controls
MOST_STREAMS = 4  # of messages, for one page: it needs one, and for a moment two while it reconnects

NOTHING_HERE = "There is nothing at this address; please reload the page."
NOT_YOURS = "This file is not here any more; please choose the picture again."
NO_SUCH_HOST = (
    "The app is not served under this host name; whoever runs it can allow the name in VIT_VIZ_HOSTS."
)
FOREIGN_PAGE = "A page of another site cannot use this app; please open it in a window of its own."

_PAGE_NAME = re.compile(r"[a-z0-9]{4,32}")
_FOR_EVERY_PAGE: tuple[Kind, ...] = ("page", "static", "fact")
"""Kinds of addresses that a page of another site may request: a link to the page, and what reveals nothing about any visitor."""
_QUICK: tuple[Kind, ...] = ("page", "static", "fact", "file", "ours")
"""Kinds of addresses that are answered at once, so that who asks waits for the processor alone."""


class HttpGuard:
    """ASGI middleware around Gradio's app.

    Args:
        app: what stands behind it.
        gradio_app: the app of Gradio itself, with its blocks and their queue.
        exposure: how the app is reached.
        offered: kinds of addresses beside those of the page.
    """

    def __init__(
        self, app: ASGIApp, gradio_app: Any, exposure: Exposure, offered: frozenset[Kind] = frozenset()
    ) -> None:
        self.app = app
        self.gradio_app = gradio_app
        self.exposure = exposure
        self.offered = offered
        self.progresses = Progresses()
        self.quick_requests = 0  # that are open now
        self._joining: list[tuple[str, Page]] = []  # let in, and not yet in Gradio's queue

    @property
    def blocks(self) -> GuardedBlocks:
        """The page, with its files, its pages and its queue."""
        blocks: GuardedBlocks = self.gradio_app.get_blocks()
        return blocks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            number = next_number()
            REQUEST.set(number)
            believed = {**self.exposure.believed(scope), NUMBER: number}
            await Passage(self, believed, receive, send).serve()
        else:
            await self.app(scope, receive, send)

    def has_quick_questions(self) -> bool:
        """Whether a visitor waits for a page, a file, a number or another quick answer; asked from any thread."""
        events = list(self.blocks._queue.event_ids_to_events.values())
        return self.quick_requests > 0 or any(lane_of(event.fn) != SLOW for event in events)

    def _questions(self, lane: str) -> list[Page]:
        """The page of each question that waits in a lane or is being answered."""
        events = list(self.blocks._queue.event_ids_to_events.values())
        pages = [
            self.blocks.open_pages.find(event.session_hash) for event in events if lane_of(event.fn) == lane
        ]
        return [page for page in pages if page] + [page for kind, page in self._joining if kind == lane]

    @contextmanager
    def place(self, lane: str, page: Page) -> Iterator[None]:
        """Let one more question in; inside it counts, though it is not in Gradio's queue, or not yet.

        Raises:
            BusyError: too many wait already.
        """
        waiting = self._questions(lane)
        LANES[lane].check(
            waiting=len(waiting),
            mine=sum(other.visitor == page.visitor for other in waiting),
            of_address=sum(bool(page.address) and other.address == page.address for other in waiting),
        )
        self._joining.append((lane, page))
        try:
            yield
        finally:
            self._joining.remove((lane, page))


class Passage:
    """One request on its way through the guard, and its answer on the way back."""

    def __init__(self, guard: HttpGuard, scope: Scope, receive: Receive, send: Send) -> None:
        self.guard = guard
        self.scope = scope
        self.connection = HTTPConnection(scope)
        self.cookie = visitor_in(self.connection.cookies)
        self.address = guard.exposure.address(scope)
        self.visitor = self.cookie or f"no cookie {self.address or (scope.get('client') or ('',))[0]}"
        self.path = str(scope["path"])
        kind = kind_of(scope["method"], self.path)
        self.kind: Kind | None = None if kind in OPTIONAL and kind not in guard.offered else kind
        self._receive, self._send = receive, send
        self._taken = 0
        self._is_too_large = False
        self._status = 0  # of the answer, once it has begun
        self._is_over = False

    async def serve(self) -> None:
        """Answer, or let it be answered."""
        try:
            refused = self._refusal()
            if refused is not None:
                await self._reply(refused)
                return
            is_quick = self.kind in _QUICK
            self.guard.quick_requests += is_quick
            try:
                await _ANSWERS.get(self.kind or "page", Passage._pass_on)(self)
            finally:
                self.guard.quick_requests -= is_quick
        except Exception as error:
            await self._fail(error)

    # --- what is let in

    def _refusal(self) -> Response | None:
        headers = self.connection.headers
        if not self.guard.exposure.serves(headers.get("host", "")):
            return PlainTextResponse(NO_SUCH_HOST, 421)
        if self.kind is None:
            return self._sentence(404, NOTHING_HERE)
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return self._sentence(400, NOT_READABLE)
        most = BODY_BYTES if self.kind in OPTIONAL else REQUEST_BYTES
        if self.kind != "upload" and int(length) > most:
            return self._sentence(413, TOO_LARGE)
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if is_foreign and self.kind not in _FOR_EVERY_PAGE:
            return self._sentence(403, FOREIGN_PAGE)
        return None

    def _page(self, name: str) -> Page:
        """The page of a name, as far as it is this visitor's."""
        if not _PAGE_NAME.fullmatch(name):
            raise ParameterError(NOT_READABLE)
        return self.guard.blocks.open_pages.admit(
            name, self.visitor, owner_of(self.cookie, name), self.address
        )

    def _parameter(self, name: str) -> str:
        query: bytes = self.scope.get("query_string", b"")
        return dict(parse_qsl(query.decode("latin-1"))).get(name, "")

    async def _body(self) -> bytes:
        """The whole of a small request."""
        parts = []
        while True:
            message = await self._take()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                return b"".join(parts)

    async def _take(self) -> Message:
        """The next part of the request, as long as it is not too large."""
        message = await self._receive()
        self._taken += len(message.get("body", b""))
        if self._taken > REQUEST_BYTES:
            self._is_too_large = True
            raise TooLarge
        return message

    # --- answers

    async def _pass_on(self) -> None:
        """Let Gradio answer."""
        await self.guard.app(self.scope, self._take, self._answer)

    async def _join(self) -> None:
        """A question: its page is this visitor's, and there is a place for it."""
        body, asked, page = await self._asked()
        number = asked.get("fn_index")
        if not isinstance(number, int) or isinstance(number, bool):
            raise ParameterError(NOT_READABLE)
        lane = lane_of(self.guard.blocks.fns.get(number))
        with self.guard.place(lane, page), self.guard.blocks.open_pages.asking(page):
            await self.guard.app(self.scope, replayed(body, self._receive), self._answer)

    async def _ask(self) -> None:
        """A question by its name, from somebody without a page."""
        owner = f"{self.kind} {self.visitor}"
        self.scope = {**self.scope, OWNER: owner}
        if self.scope["method"] != "POST":
            await self._pass_on()
            return
        with self.guard.place(SLOW, Page("", self.visitor, owner, self.address)):
            is_small = 0 < int(self.connection.headers.get("content-length", "0")) <= REQUEST_BYTES
            files = self.guard.blocks.files
            body = await (self._body() if is_small else read_body(self._receive, files, self.visitor))
            await self.guard.app(self.scope, replayed(body, self._receive), self._answer)

    async def _cancel(self) -> None:
        """The end of a question, by the page that asked it."""
        body, asked, page = await self._asked()
        event = self.guard.blocks._queue.event_ids_to_events.get(str(asked.get("event_id")))
        if event is not None and event.session_hash != page.name:
            raise ParameterError(NOT_READABLE)
        await self.guard.app(self.scope, replayed(body, self._receive), self._answer)

    async def _asked(self) -> tuple[bytes, dict[str, Any], Page]:
        """What a page of this visitor sends as JSON: as it came, as it reads, and from which page."""
        body = await self._body()
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        name = asked.get("session_hash") if isinstance(asked, dict) else None
        if not isinstance(name, str):
            raise ParameterError(NOT_READABLE)
        return body, asked, self._page(name)

    async def _messages(self) -> None:
        """The stream on which a page hears the answers to its questions."""
        page = self._page(self._parameter("session_hash"))
        if page.listeners >= MOST_STREAMS:
            raise BusyError("This page is already connected; please reload it.")
        with self.guard.blocks.open_pages.listening(page):
            await self._pass_on()

    async def _heartbeat(self) -> None:
        """The connection by which a page says that it is open. Gradio's own creates and destroys a whole session for any name."""
        page = self._page(self.path.rpartition("/")[2])
        if page.heartbeats >= MOST_STREAMS:
            raise BusyError("This page is open already; please reload it.")
        with self.guard.blocks.open_pages.heartbeat(page):
            await self._stream(keep_alive(self.guard.gradio_app.stop_event))

    async def _upload(self) -> None:
        """A picture that arrives."""
        progress = self.guard.progresses.of(self.visitor, self._parameter("upload_id"))
        paths = await receive_upload(
            self.scope, self._receive, self.guard.blocks.files, visitor=self.cookie, progress=progress
        )
        await self._reply(JSONResponse(paths))

    async def _upload_progress(self) -> None:
        """How far an upload is."""
        upload_id = self._parameter("upload_id")
        try:
            await self._stream(progress_events(self.guard.progresses.of(self.visitor, upload_id)))
        finally:
            self.guard.progresses.forget(self.visitor, upload_id)

    async def _file(self) -> None:
        """The preview of a picture that this visitor has just uploaded, whole: no ranges, no other form of its path."""
        path = self.path.removeprefix(f"{API}file=")
        content = await run_in_threadpool(self.guard.blocks.files.read, path, self.cookie)
        if content is None:
            await self._reply(self._sentence(404, NOT_YOURS))
            return
        kind = readable_format(content)
        await self._reply(
            Response(
                content,
                headers={"Content-Disposition": "inline" if kind else "attachment"},
                media_type=f"image/{kind.lower()}" if kind else "application/octet-stream",
            )
        )

    async def _stream(self, events: AsyncIterator[bytes]) -> None:
        await self._reply(StreamingResponse(events, media_type="text/event-stream"))

    async def _reply(self, response: Response) -> None:
        await response(self.scope, self._receive, self._answer)

    async def _answer(self, message: Message) -> None:
        """Send a part of the answer on, with our headers."""
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            if self._is_too_large:  # whatever Gradio made of it
                await self._fail(TooLarge())
                return
            self._status = message["status"]
            self._add_headers(message)
        self._is_over = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    def _add_headers(self, message: Message) -> None:
        """Our headers; and a page that opens gives its browser a name."""
        headers = add_headers(message, is_static=self.kind == "static" and self._status == 200)
        is_page = self.kind == "page" and "content-security-policy" in headers
        if self.kind != "static" and not is_page:
            headers["Content-Security-Policy"] = NOTHING_INSIDE
        if is_page and not self.cookie:
            headers.append("Set-Cookie", f"{COOKIE}={new_visitor()}; Path=/; HttpOnly; {self._reach()}")

    def _reach(self) -> str:
        """Where the cookie travels: a Space shows the page inside another site's, and there HTTPS is the rule."""
        proto = self.connection.headers.get("x-forwarded-proto", self.scope["scheme"])
        return "SameSite=None; Secure; Partitioned" if proto.startswith("https") else "SameSite=Lax"

    # --- failures

    async def _fail(self, error: Exception) -> None:
        """End the answer: with one sentence where nothing has been sent yet, else by cutting it short."""
        if self._status:
            logger.info("an answer was cut short: %s", type(error).__name__)
            await self._answer({"type": "http.response.body", "body": b"", "more_body": False})
            return
        self._is_too_large = False
        await self._reply(failure(error, self.kind, self.path))

    def _sentence(self, status: int, text: str) -> Response:
        return refusal(status, text, self.kind, self.path)


_ANSWERS: dict[Kind, Callable[[Passage], Awaitable[None]]] = {
    "join": Passage._join,
    "cancel": Passage._cancel,
    "messages": Passage._messages,
    "heartbeat": Passage._heartbeat,
    "upload": Passage._upload,
    "upload progress": Passage._upload_progress,
    "file": Passage._file,
    "api": Passage._ask,
    "mcp": Passage._ask,
}
