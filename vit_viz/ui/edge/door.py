"""The door that every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many kinds of apps and trusted visitors; this app needs little of it and is open to strangers. In this order
1. headers that no trusted proxy has set are dropped, and hosts, addresses, methods and pages of other sites refused (`addresses`);
2. each browser is given a random name, a cookie, to which pictures and handles are bound;
3. what is sent is read, in a bounded time and up to a bounded size, and waits for its turn to be answered (`turns`);
4. what fails becomes one sentence, and every answer gets its security headers and leaves in parts, in a bounded time.
Whatever is full, the largest, slowest or most demanding holder ends and never a newcomer (`pool`, `turns`): names cost nothing, so
nothing is counted by name.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_viz.errors import BusyError
from vit_viz.session.handles import cookie_name, new_visitor, visitor_in
from vit_viz.surface import BRING, EVENTS, KEPT, OWNER, PAGE_HEADER, Surface
from vit_viz.turns import GONE, WHO, Turns
from vit_viz.ui.edge.addresses import (
    OPTIONAL,
    Kind,
    TooLarge,
    endpoint_at,
    failure,
    is_large_head,
    is_slow,
    most_bytes,
    refused_entry,
)
from vit_viz.ui.edge.documents import Documents
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.pool import Hold, Pool
from vit_viz.ui.edge.request_log import NUMBERS, REQUEST

logger = logging.getLogger(__name__)

BODY_BYTES, ANSWER_BYTES = 160 * 2**20, 128 * 2**20
"""Of all bodies that arrive or wait, and of all answers that are being read."""

QUESTION_SECONDS, PICTURE_SECONDS, ANSWER_SECONDS = 30.0, 300.0, 300.0
"""From the first byte to the last, whatever trickles."""

SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter while others wait for it. An answer waits for it several times on its way, each time
behind whatever is being computed; with Python's usual 5 ms that took longer than to make the answer."""

PART_BYTES = 64 * 2**10
MOST_DISCARDED = 64 * 2**20
"""Of a refused body that are still taken, so that its sender comes to read why."""

ALIVE = "Questions are answered."
NO_MODEL = "The model could not be loaded; the log of the server says why."
NO_ROOM = "So much is on its way to the server that this had to make room; please send it again."
GAVE_WAY = "This took long while others waited for their turn, so it was ended; please ask again later."

NOTHING_INSIDE = "default-src 'none'; frame-ancestors 'none'"
"""The policy of everything but pages: a picture or a number that is opened by itself can load nothing and run nothing."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PAGE_NAME = re.compile(r"[a-z0-9]{16,64}")


class Door:
    """ASGI middleware around Gradio's app: how one app is reached, and what its visitors share; see `guarded`."""

    def __init__(
        self,
        app: ASGIApp,
        exposure: Exposure,
        offered: frozenset[Kind] = frozenset(),
        has_model: Callable[[], bool] = lambda: True,
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        self.app, self.exposure, self.offered, self.has_model = app, exposure, offered, has_model
        self.documents = Documents(exposure, begin)
        self.bodies, self.answers = Pool(BODY_BYTES), Pool(ANSWER_BYTES)
        self.quick = Turns(places=12, each=2, each_waiting=24)
        self.slow = Turns(places=32, each=4, each_waiting=8)
        # of their own, few and not for long: pictures that take seconds to decode would hold all places of quick answers
        self.pictures = Turns(places=2, each=1, each_waiting=8, held_seconds=3.0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            REQUEST.set(next(NUMBERS))
            believed = self.exposure.believed(scope)
            LocalContext.request.set(gr.Request(Request(believed)))  # whose quota a lent GPU counts against
            await Passage(self, believed, receive, send).serve()
        else:
            await self.app(scope, receive, send)

    def has_quick_questions(self) -> bool:
        """Whether a visitor waits for a number or another quick answer; asked from any thread."""
        return self.quick.is_held("answers") or self.pictures.is_held("answers")


def guarded(
    exposure: Exposure,
    surfaces: Sequence[Surface] = (),
    *,
    turns: Turns | None = None,
    begin: Callable[[], object] = lambda: None,
    has_model: Callable[[], bool] = lambda: True,
) -> dict[str, Any]:
    """Options of a Starlette app, for `launch(app_kwargs=...)`, that put it behind the door.

    Args:
        surfaces: what is offered beside the page.
        turns: at the devices, where slow computations rest while quick questions are open.
        begin: called in a thread of its own once the first page is made: what that need not wait for.
        has_model: whether the app's model is loaded or on its way, which /health says.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        """Outermost, so that nothing that Gradio adds stands before the door; faults are answered here, too."""
        offered = frozenset(one.kind for one in surfaces)
        app.middleware_stack = door = Door(app.middleware_stack.app, exposure, offered, has_model, begin)
        if turns is not None:
            turns.has_quick_questions = door.has_quick_questions
        sys.setswitchinterval(SWITCH_SECONDS)
        async with AsyncExitStack() as running:
            for one in surfaces:
                await running.enter_async_context(one.running())
            yield

    return {"lifespan": lifespan}


class Passage:
    """One request on its way in, and its answer on the way out."""

    def __init__(self, door: Door, scope: Scope, receive: Receive, send: Send) -> None:
        self.door, self.scope, self.receive, self.send = door, scope, receive, send
        self.connection, self.path = HTTPConnection(scope), str(scope["path"])
        headers = self.connection.headers
        cookies = {} if is_large_head(headers) else self.connection.cookies  # thousands take long to read
        self.cookie, page = visitor_in(cookies), headers.get(PAGE_HEADER, "")
        opened = f"page {page}" if _PAGE_NAME.fullmatch(page) else ""
        address = door.exposure.address(scope)
        self.owner = self.cookie or opened or f"program {address or (scope.get('client') or ('',))[0]}"
        WHO.set((address, self.owner))
        may_ask = bool(self.cookie or opened or (self.path == BRING and door.offered))
        offered = door.offered | {"api"} if may_ask else door.offered
        one = endpoint_at(self.path, scope["method"])
        self.endpoint = one if one is None or one.kind not in OPTIONAL or one.kind in offered else None
        self.kind = self.endpoint and self.endpoint.kind
        length, is_in_parts = headers.get("content-length", "0"), "transfer-encoding" in headers
        self.is_read = length == "0" and not is_in_parts
        self.is_bounded = not is_in_parts and length.isdecimal() and int(length) <= MOST_DISCARDED
        self.until = _now() + (PICTURE_SECONDS if self.path == BRING else QUESTION_SECONDS)
        self.task = asyncio.current_task()
        self.why: Exception | None = None  # it was ended
        self.held = ExitStack()  # until the answer is made
        self.gone = asyncio.Event()  # nobody waits for it any more
        GONE.set(self.gone.is_set)
        self.status = 0  # of the answer, once it has begun
        self.is_told = False  # how far it is, while it is computed
        self.length, self.deadline = 0, 0.0
        self.is_over = self.is_sent = False
        self.is_waiting = True  # for its turn

    async def serve(self) -> None:
        """Answer, or let it be answered."""
        try:
            with self.held, self.door.answers.hold(partial(self._end, ClientDisconnect())) as self.unread:
                refused = refused_entry(self.connection, self.endpoint, self.door.exposure)
                if refused is not None:
                    await self._refuse(refused)
                else:
                    await (self._ask() if self.kind in ("ours", *OPTIONAL) else self._tell())
        except asyncio.CancelledError:
            if self.why is None or self.task is None:
                raise
            self.task.uncancel()
            await self._fail(self.why)
        except Exception as error:
            await self._fail(error)

    def _end(self, why: Exception) -> None:
        """End this for a reason, wherever it is."""
        if self.why is None and self.task is not None:
            self.why = why
            self.gone.set()
            self.task.cancel()

    async def _hold(self, hold: Hold, size: int) -> None:
        """Hold so many bytes now, for which this may be the one that makes room."""
        hold.set(size)
        if self.why is not None:
            await asyncio.sleep(0)  # it ends here

    # --- on its way in

    async def _tell(self) -> None:
        """What costs next to nothing, or a file."""
        door = self.door
        answer: ASGIApp | None = None
        if self.kind == "start":  # Gradio's launch then asks for the page, and gives up after three seconds
            await door.documents.render(door.app, self.scope)
            answer = PlainTextResponse(ALIVE)
        elif self.kind == "health":  # nothing else is said, because anybody may ask
            answer = PlainTextResponse(ALIVE) if door.has_model() else PlainTextResponse(NO_MODEL, 503)
        else:
            answer = await door.documents.answer(door.app, self.scope)
        await (answer or door.app)(self.scope, self.receive, self._answer)

    async def _ask(self) -> None:
        """What is made when its turn comes; whoever hangs up ends it."""
        body = await self._body() if self.scope["method"] == "POST" else b""
        door, watch = self.door, asyncio.create_task(self._watch())
        try:
            only_kept = KEPT in self.connection.headers.get("cache-control", "")
            takes_long = self.kind == "mcp" or (is_slow(self.path) and not only_kept)
            lane = door.slow if takes_long else door.pictures if self.path == BRING else door.quick
            await lane.enter(self.held, "answers", partial(self._end, BusyError(GAVE_WAY)))
            sent = [{"type": "http.request", "body": body, "more_body": False}]
            del body

            async def given() -> Message:
                if sent:
                    return sent.pop()
                await self.gone.wait()
                return {"type": "http.disconnect"}

            if self.gone.is_set():
                await asyncio.sleep(0)  # where it gave way it ends here, unless `wait_for` lost its end
                raise self.why or ClientDisconnect()
            self.is_waiting = False
            await door.app({**self.scope, OWNER: self.owner}, given, self._answer)
        finally:
            watch.cancel()

    async def _watch(self) -> None:
        """Wait until the visitor hangs up."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.gone.set()
        if self.is_waiting:
            self._end(ClientDisconnect())

    async def _take(self) -> bytes:
        """The next part of what is sent."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        self.is_read = not message.get("more_body")
        return bytes(message.get("body", b""))

    async def _body(self) -> bytes:
        """The whole of what is sent. What has come of it counts, not what was announced, a picture until it was answered."""
        hold = self.held.enter_context(self.door.bodies.hold(partial(self._end, BusyError(NO_ROOM))))
        body = bytearray()
        async with asyncio.timeout_at(self.until):
            while not self.is_read:
                body += await self._take()
                if len(body) > most_bytes(self.path):
                    raise TooLarge
                await self._hold(hold, len(body))
        if self.path != BRING:
            hold.set(0)
        return bytes(body)

    # --- on its way out

    async def _answer(self, message: Message) -> None:
        """Send a part of the answer on, with our headers; what it took to make it is free before it leaves."""
        if self.is_over:
            return
        is_start, body, more = message["type"] == "http.response.start", message.get("body", b""), True
        if is_start:
            self.status = message["status"]
            headers = self._add_headers(message)
            self.is_told = headers.get("content-type", "").startswith(EVENTS)
            self.length = int(headers.get("content-length", "0"))
        else:
            more = message.get("more_body", False)
            self.is_over = not more
        if not self.is_told or self.is_over:
            self.held.close()
        await self._hold(self.unread, max(self.length, len(body)))
        if is_start or self.is_told:
            self.deadline = _now() + ANSWER_SECONDS
        try:
            async with asyncio.timeout_at(self.deadline):
                if is_start:
                    await self.send(message)
                for start in range(0, 0 if is_start else max(1, len(body)), PART_BYTES):
                    part = body[start : start + PART_BYTES]
                    left = more or start + PART_BYTES < len(body)
                    await self.send({"type": "http.response.body", "body": part, "more_body": left})
        except TimeoutError:
            raise ClientDisconnect from None  # who does not read any more has left
        self.is_sent = self.is_over
        if self.is_told:
            self.unread.set(0)

    def _add_headers(self, message: Message) -> MutableHeaders:
        """The headers that every answer has; and a page that opens gives its browser a name."""
        raw = [(name, value) for name, value in message["headers"] if not name.startswith(b"access-control-")]
        message["headers"] = raw  # a new list: that of a page belongs to everybody
        headers = MutableHeaders(raw=raw)
        headers.update(_HEADERS)
        if self.kind != "static" or self.status != 200:
            headers["Cache-Control"] = "no-store"
        if not self.is_bounded:
            headers["Connection"] = "close"
        is_page = self.kind == "page" and "content-security-policy" in headers
        if not is_page:
            headers["Content-Security-Policy"] = NOTHING_INSIDE
        elif not self.cookie:
            # a Space shows the page inside another site's, and there HTTPS is the rule
            proto = self.connection.headers.get("x-forwarded-proto", self.scope["scheme"])
            reach = "SameSite=None; Secure; Partitioned" if proto.startswith("https") else "SameSite=Lax"
            headers.append("Set-Cookie", f"{cookie_name()}={new_visitor()}; Path=/; HttpOnly; {reach}")
        return headers

    # --- failures

    async def _fail(self, error: Exception) -> None:
        """End the answer: with one sentence where nothing has been sent yet, else by cutting the line."""
        if not self.status:
            await self._refuse(failure(error, self.path))
            return
        logger.info("an answer was cut short: %s", type(error).__name__)
        transport = getattr(getattr(self.send, "__self__", None), "transport", None)  # uvicorn's
        if transport is not None and not self.is_sent:
            transport.abort()  # to close it would wait for whoever does not read
            await asyncio.sleep(0)

    async def _refuse(self, response: Response) -> None:
        """Say no. Who is still sending reads it when all is sent; to hang up before that would lose the sentence.

        Where no end is near, or known, that is done nevertheless: parts of one byte take the web server a second for every 500 kB.
        """

        async def linger(message: Message) -> None:
            if message["type"] == "http.response.body":
                await self._answer({**message, "more_body": True})
                with suppress(TimeoutError, ClientDisconnect):
                    async with asyncio.timeout_at(self.until):
                        while not self.is_read:
                            await self._take()
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await self._answer(message)

        is_over = self.is_read or not self.is_bounded or "expect" in self.connection.headers
        await response(self.scope, self.receive, self._answer if is_over else linger)


def _now() -> float:
    return asyncio.get_running_loop().time()
