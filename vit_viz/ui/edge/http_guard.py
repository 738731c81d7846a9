"""The guard that every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many kinds of apps and trusted visitors; this app needs little of it and is open to strangers. In this order the
guard
1. drops headers that no trusted proxy has set (`exposure`), and refuses host names under which the app is not served, addresses and
   methods that the page does not use, and pages of other sites (`addresses`);
2. gives each browser a random name, a cookie, to which pages, pictures, files and handles are bound;
3. reads what is sent, in a bounded time (`bodies`) and up to a bounded size (`arrivals`), and only then admits it: pages (`pages`)
   and questions (`admission`), a bounded number for each visitor, and whatever else is fetched as its turn comes (`answer_turns`);
4. answers heartbeats itself, because what Gradio does there costs too much (`passage`);
5. turns what fails into one sentence (`addresses`), gives every answer its security headers (`passage`), and sends it as fast as it
   is read (`bodies`).
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from vit_viz.surface import Surface
from vit_viz.turns import Turns
from vit_viz.ui.edge.addresses import answer_fault
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.passage import Passage
from vit_viz.ui.edge.request_log import REQUEST, next_number
from vit_viz.ui.edge.shared_limits import SharedLimits

BEGIN_SECONDS = 0.1
"""After the app is up: the first page has left by then, and its browser is busy with its scripts while torch is imported."""


class HttpGuard(SharedLimits):
    """ASGI middleware around Gradio's app."""

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


def guarded(
    exposure: Exposure,
    surfaces: Sequence[Surface] = (),
    *,
    turns: Turns | None = None,
    begin: Callable[[], object] = lambda: None,
    on_left: Callable[[str], object] = lambda _owner: None,
) -> dict[str, Any]:
    """Options of a Starlette app, for `launch(app_kwargs=...)`, that put it behind the guard.

    Args:
        surfaces: what is offered beside the page.
        turns: at the devices, where slow computations rest while quick questions are open.
        begin: called in a thread of its own once the app is up: what the first page need not wait for.
        on_left: called with the owner when the last page of a visitor was closed.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        """Outermost, so that nothing that Gradio adds stands before the guard."""
        offered = frozenset(one.kind for one in surfaces)
        guard = HttpGuard(app.middleware_stack, app, exposure, offered, on_left)
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
