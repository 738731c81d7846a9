"""The guard that every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many kinds of apps and trusted visitors; this app needs little of it and is open to strangers. In this order the
guard
1. drops headers that no trusted proxy has set (`exposure`), and refuses host names under which the app is not served, addresses and
   methods that the page does not use, and pages of other sites (`addresses`);
2. gives each browser a random name, a cookie, to which pages, pictures, files and handles are bound;
3. reads what is sent, in a bounded time and up to a bounded size (`bodies`), and only then admits it: pages (`pages`) and questions
   (`admission`), a bounded number for each visitor, and whatever else is fetched as its turn comes (`answer_turns`);
4. answers heartbeats itself, because what Gradio does there costs too much;
5. turns what fails into one sentence (`addresses`), gives every answer its security headers, and sends it as fast as it
   is read (`bodies`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, nullcontext
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import ParameterError
from vit_viz.session.handles import COOKIE, new_visitor, owner_of, visitor_in
from vit_viz.surface import EVENTS, KEPT, OWNER, PAGE_HEADER, Surface
from vit_viz.turns import Turns
from vit_viz.ui.edge.addresses import (
    NOT_READABLE,
    OPTIONAL,
    Kind,
    answer_fault,
    failure,
    kind_of,
    most_bytes,
    refused_entry,
)
from vit_viz.ui.edge.admission import QUICK, SLOW, SLOW_OF_PAGE, STREAMS, Admission, Buckets
from vit_viz.ui.edge.answer_turns import AnswerTurns, Passing
from vit_viz.ui.edge.bodies import Arrivals, TooLarge, discard, paced, replayed
from vit_viz.ui.edge.documents import Documents
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.pages import Pages
from vit_viz.ui.edge.request_log import REQUEST, next_number

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 5.0
"""How long whoever is refused again and again waits to hear it: a refusal costs little, but thousands a second cost time."""

ALIVE = "Questions are answered."
NO_MODEL = "The model could not be loaded; the log of the server says why."

NOTHING_INSIDE = "default-src 'none'; frame-ancestors 'none'"
"""The policy of everything but pages: a picture or a number that is opened by itself can load nothing and run nothing."""

_PAGE_NAME = re.compile(r"[a-z0-9]{4,32}")
_FETCHED: tuple[Kind, ...] = ("page", "static", "fact", "ours")
"""Kinds of addresses whose answers are made when their turn comes."""

BEGIN_SECONDS = 0.1
"""After the app is up: the first page has left by then, and its browser is busy with its scripts while torch is imported."""

REFUSALS_AT_ONCE = 32
REFUSALS_PER_SECOND = 8
"""How many refusals one visitor hears at full speed, and how many a second after that."""


class HttpGuard:
    """ASGI middleware around Gradio's app: how one app is reached, and what its visitors share.

    Args:
        app: what stands behind it.
        gradio_app: the app of Gradio itself.
        exposure: how the app is reached.
        offered: kinds of addresses beside those of the page.
        on_left: called with the owner when the last page of a visitor was closed.
        has_model: whether the app's model is loaded or on its way.
    """

    def __init__(
        self,
        app: ASGIApp,
        gradio_app: Any,
        exposure: Exposure,
        offered: frozenset[Kind] = frozenset(),
        on_left: Callable[[str], object] = lambda _owner: None,
        has_model: Callable[[], bool] = lambda: True,
    ) -> None:
        self.app = app
        self.gradio_app = gradio_app
        self.exposure = exposure
        self.offered = offered
        self.has_model = has_model
        self.documents = Documents(exposure)
        self.pages = Pages(on_left=on_left)
        self.arrivals = Arrivals()
        self.admission = Admission()
        self.answer_turns = AnswerTurns(self.admission)
        self.refusals = Buckets(burst=REFUSALS_AT_ONCE, per_second=REFUSALS_PER_SECOND)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request in, or answer it here."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            REQUEST.set(next_number())
            believed = self.exposure.believed(scope)
            LocalContext.request.set(gr.Request(Request(believed)))  # whose quota a lent GPU counts against
            await Passage(self, believed, receive, send).serve()
        else:
            await self.app(scope, receive, send)

    def has_quick_questions(self) -> bool:
        """Whether a visitor waits for a page, a number or another quick answer; asked from any thread."""
        return self.answer_turns.is_busy or self.admission.holds(QUICK)


def guarded(
    exposure: Exposure,
    surfaces: Sequence[Surface] = (),
    *,
    turns: Turns | None = None,
    begin: Callable[[], object] = lambda: None,
    on_left: Callable[[str], object] = lambda _owner: None,
    has_model: Callable[[], bool] = lambda: True,
) -> dict[str, Any]:
    """Options of a Starlette app, for `launch(app_kwargs=...)`, that put it behind the guard.

    Args:
        surfaces: what is offered beside the page.
        turns: at the devices, where slow computations rest while quick questions are open.
        begin: called in a thread of its own once the app is up: what the first page need not wait for.
        on_left: called with the owner when the last page of a visitor was closed.
        has_model: whether the app's model is loaded or on its way, which /health says.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        """Outermost, so that nothing that Gradio adds stands before the guard."""
        offered = frozenset(one.kind for one in surfaces)
        guard = HttpGuard(app.middleware_stack, app, exposure, offered, on_left, has_model)
        app.middleware_stack = guard
        if turns is not None:
            turns.has_quick_questions = guard.has_quick_questions
        later = threading.Timer(BEGIN_SECONDS, begin)
        later.daemon = True
        later.start()
        try:
            async with AsyncExitStack() as running:
                for one in surfaces:
                    await running.enter_async_context(one.running())
                yield
        finally:
            later.cancel()

    return {"lifespan": lifespan, "exception_handlers": {Exception: answer_fault}}


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
        self.opened = self._opened_page()
        mine: frozenset[Kind] = frozenset({"api"} if self.cookie or self.opened else ())
        self._offered = guard.offered | mine
        self.kind: Kind | None = None if kind in OPTIONAL and kind not in self._offered else kind
        self._receive, self._send = receive, paced(send)
        headers = self.connection.headers
        self._is_read = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
        self._taken = 0
        self._passing: Passing | None = None  # the answer, where it counts for `AnswerTurns`
        self._places = ExitStack()  # which the question holds until its answer is made
        self._status = 0  # of the answer, once it has begun
        self._is_told = False  # how far it is, while it is computed
        self._is_over = False

    async def serve(self) -> None:
        """Answer, or let it be answered."""
        guard = self.guard
        try:
            refused = refused_entry(
                self.connection, self.kind, exposure=guard.exposure, offered=self._offered
            )
            if refused is not None:
                await self._refuse(refused)
            elif self.kind in _FETCHED or (self.kind == "api" and self.scope["method"] != "POST"):
                await self._fetch()
            else:
                await _ANSWERS[self.kind or "page"](self)
        except Exception as error:
            await self._fail(error)

    # --- what is let in

    def _opened_page(self) -> str:
        """The name of the page that asks, of a browser that keeps no cookies; "" where it is none that this visitor has opened."""
        name = self.connection.headers.get(PAGE_HEADER, "")
        page = None if self.cookie else self.guard.pages.find(name)
        return "" if page is None or page.visitor != self.visitor else name

    async def _take(self) -> Message:
        """The next part of the request, as long as it is not too large."""
        message = await self._receive()
        self._is_read = not message.get("more_body")
        self._taken += len(message.get("body", b""))
        if self._taken > most_bytes(self.kind, self.path):
            raise TooLarge
        return message

    async def _hung_up(self) -> None:
        """Wait until the visitor hangs up."""
        while (await self._take())["type"] != "http.disconnect":
            pass

    # --- answers

    async def _pass_on(self, body: bytes = b"") -> None:
        """Let Gradio answer, or a route of ours."""
        await self.guard.app(self.scope, replayed(body, self._take), self._answer)

    async def _fetch(self) -> None:
        """What is made when its turn comes: pages apart from the rest, because whoever opens the first one has no cookie yet."""
        visitor = f"page {self.visitor}" if self.kind == "page" else self.visitor
        async with self.guard.answer_turns.turn(visitor, self.address, self._hung_up) as self._passing:
            await _ANSWERS.get(self.kind or "page", Passage._pass_on)(self)

    async def _document(self) -> None:
        """The page itself, and what is the same for every visitor."""
        answer = await self.guard.documents.answer(self.guard.app, self.scope)
        await (self._pass_on() if answer is None else self._reply(answer))

    async def _ask(self) -> None:
        """A question by its name: of a browser that has opened the page, or of somebody without one."""
        is_page_s = self.kind == "api" and bool(self.cookie or self.opened)
        owner = owner_of(self.cookie, self.opened) if is_page_s else f"{self.kind} {self.visitor}"
        waits = is_slow(self.path) and KEPT not in self.connection.headers.get("cache-control", "")
        lane = QUICK if is_page_s and not waits else SLOW
        self.scope = {**self.scope, OWNER: owner}
        # pages without a cookie share what one visitor may
        who = self.cookie or (self.visitor if self.opened else owner)
        if self.scope["method"] != "POST":
            is_stream = self.kind == "mcp"
            with self.guard.admission.place(STREAMS, who, self.address) if is_stream else nullcontext():
                await self._pass_on()
            return
        async with (
            self.guard.arrivals.body(self._take, self.visitor) as body,
            self.guard.answer_turns.beside(self.visitor, self.address) as self._passing,
        ):
            with self._places:
                self._places.enter_context(self.guard.admission.place(lane, who, self.address))
                await self._pass_on(body)

    async def _start(self) -> None:
        """The app is there once its page is made: Gradio's launch then asks for that, and gives up after three seconds.

        Gradio would start its queue here, which has nothing to do.
        """
        await self.guard.documents.rendered(self.guard.app, self.scope)
        await self._reply(PlainTextResponse(ALIVE))

    async def _health(self) -> None:
        """That the app answers, or that its model is missing; nothing else is said, because anybody may ask."""
        is_well = self.guard.has_model()
        await self._reply(PlainTextResponse(ALIVE) if is_well else PlainTextResponse(NO_MODEL, 503))

    async def _heartbeat(self) -> None:
        """The connection by which a page says that it is open. Gradio's own creates and destroys a whole session for any name."""
        name = self.path.rpartition("/")[2]
        if not _PAGE_NAME.fullmatch(name):
            raise ParameterError(NOT_READABLE)
        owner = owner_of(self.cookie, name)
        with self.guard.pages.heartbeat(name, self.visitor, owner, self.address):
            alive = _keep_alive(self.guard.gradio_app.stop_event)
            await self._reply(StreamingResponse(alive, media_type=EVENTS))

    async def _reply(self, response: Response) -> None:
        await response(self.scope, self._receive, self._answer)

    async def _answer(self, message: Message) -> None:
        """Send a part of the answer on, with our headers."""
        if self._is_over:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = self._add_headers(message)
            self._is_told = self.kind == "api" and headers.get("content-type", "").startswith(EVENTS)
            if self._status >= 400:
                self._made(0)
                await self._pause()
        else:
            self._is_over = not message.get("more_body")
            self._made(len(message.get("body", b"")), is_computed=self._is_over or not self._is_told)
        try:
            await self._send(message)
        except TimeoutError:
            self._is_over = True
            raise ClientDisconnect from None  # who does not read any more has left

    def _made(self, size: int, *, is_computed: bool = True) -> None:
        """The answer, or a part of it, was made: what it took to compute it is free again."""
        if is_computed:
            self._places.close()
        if self._passing is not None:
            self.guard.answer_turns.made(self._passing, size)

    async def _pause(self) -> None:
        """Let whoever is refused again and again wait."""
        seconds = self.guard.refusals.pour(self.address or self.visitor, 1)
        await asyncio.sleep(min(seconds, LONGEST_PAUSE_SECONDS))

    def _add_headers(self, message: Message) -> MutableHeaders:
        """The headers that every answer has; and a page that opens gives its browser a name."""
        raw = [(name, value) for name, value in message["headers"] if not name.startswith(b"access-control-")]
        message["headers"] = raw  # a new list: that of a page belongs to everybody
        headers = MutableHeaders(raw=raw)
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "same-origin"
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        is_everybody_s = self.kind == "static" and self._status == 200
        if not is_everybody_s:
            headers["Cache-Control"] = "no-store"
        is_page = self.kind == "page" and "content-security-policy" in headers
        if self.kind != "static" and not is_page:
            headers["Content-Security-Policy"] = NOTHING_INSIDE
        if is_page and not self.cookie:
            # a Space shows the page inside another site's, and there HTTPS is the rule
            proto = self.connection.headers.get("x-forwarded-proto", self.scope["scheme"])
            reach = "SameSite=None; Secure; Partitioned" if proto.startswith("https") else "SameSite=Lax"
            headers.append("Set-Cookie", f"{COOKIE}={new_visitor()}; Path=/; HttpOnly; {reach}")
        return headers

    # --- failures

    async def _fail(self, error: Exception) -> None:
        """End the answer: with one sentence where nothing has been sent yet, else by cutting it short."""
        if self._status:
            logger.info("an answer was cut short: %s", type(error).__name__)
            await self._answer({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await self._refuse(failure(error, self.kind, self.path))

    async def _refuse(self, response: Response) -> None:
        """Say no. Who is still sending reads it when all is sent; to hang up before that would lose the sentence."""
        if self._is_read or "expect" in self.connection.headers:
            await self._reply(response)
            return

        async def linger(message: Message) -> None:
            if message["type"] == "http.response.body":
                await self._answer({**message, "more_body": True})
                await discard(self._receive)
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await self._answer(message)

        await response(self.scope, self._receive, linger)


def is_slow(path: str) -> bool:
    """Whether the question at an address costs many passes."""
    name = path.rpartition("/")[2]
    question = QUESTIONS.get(name)
    return name in SLOW_OF_PAGE or (question is not None and question.is_slow)


async def _keep_alive(stopped: asyncio.Event) -> AsyncIterator[bytes]:
    """Keep-alive messages until the server stops."""
    while not stopped.is_set():
        yield b"data: ALIVE\n\n"
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(stopped.wait(), HEARTBEAT_SECONDS)


_ANSWERS: dict[Kind, Callable[[Passage], Awaitable[None]]] = {
    "page": Passage._document,
    "static": Passage._document,
    "heartbeat": Passage._heartbeat,
    "start": Passage._start,
    "health": Passage._health,
    "api": Passage._ask,
    "mcp": Passage._ask,
}
