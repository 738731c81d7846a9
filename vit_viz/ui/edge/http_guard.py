"""The guard that every HTTP request passes before Gradio sees it, and every answer before a visitor does.

Gradio is made for many kinds of apps and trusted visitors; this app needs little of it and is open to strangers. In this order the
guard
1. drops headers that no trusted proxy has set (`exposure`), and refuses host names under which the app is not served, addresses and
   methods that the page does not use, and pages of other sites (`addresses`);
2. gives each browser a random name, a cookie, to which pages, pictures, files and handles are bound;
3. reads what is sent, in a bounded time (`bodies`), and only then admits it: pages (`pages`) and questions (`admission`), a bounded
   number for each visitor, and whatever else is fetched as its turn comes (`answer_turns`);
4. answers heartbeats, uploads and files itself, because what Gradio does there costs too much or gives away too much (`passage`);
5. turns what fails into one sentence (`addresses`), gives every answer its security headers (`passage`), and sends it as fast as it
   is read (`bodies`).
Meanwhile it ends questions that nobody listens for, deletes expired files, and forgets pages that were closed long ago.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from vit_viz.memory import give_memory_back
from vit_viz.surface import Surface
from vit_viz.turns import Turns
from vit_viz.ui.edge.addresses import answer_fault
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.passage import Passage
from vit_viz.ui.edge.shared_limits import SharedLimits
from vit_viz.ui.edge.user_errors import NUMBER, REQUEST, GuardedBlocks, next_number

logger = logging.getLogger(__name__)

BEGIN_SECONDS = 0.1
"""After the app is up: the first page has left by then, and its browser is busy with its scripts while torch is imported."""

TEND_SECONDS = 0.5
REVIVE_SECONDS = 0.25


class HttpGuard(SharedLimits):
    """ASGI middleware around Gradio's app."""

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


def guarded(
    exposure: Exposure,
    surfaces: Sequence[Surface] = (),
    *,
    turns: Turns | None = None,
    begin: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Options of a Starlette app, for `launch(app_kwargs=...)`, that put it behind the guard.

    Args:
        surfaces: what is offered beside the page.
        turns: at the devices, where slow computations rest while quick questions are open.
        begin: called in a thread of its own once the app is up: what the first page need not wait for.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        """Outermost, so that nothing that Gradio adds stands before the guard."""
        guard = HttpGuard(app.middleware_stack, app, exposure, frozenset(one.kind for one in surfaces))
        app.middleware_stack = guard
        if turns is not None:
            turns.has_quick_questions = guard.has_quick_questions
        later = threading.Timer(BEGIN_SECONDS, begin)
        later.daemon = True
        later.start()
        tasks = [asyncio.create_task(work(guard.blocks)) for work in (tend, keep_queue_running)]
        try:
            async with AsyncExitStack() as running:
                for one in surfaces:
                    await running.enter_async_context(one.running())
                yield
        finally:
            later.cancel()
            for task in tasks:
                task.cancel()

    return {"lifespan": lifespan, "exception_handlers": {Exception: answer_fault}}


async def tend(blocks: GuardedBlocks) -> None:
    """Look after questions, files and pages, over and over."""
    while True:
        await asyncio.sleep(TEND_SECONDS)
        try:
            drop_abandoned(blocks)
            if await run_in_threadpool(blocks.files.sweep):
                await run_in_threadpool(give_memory_back)
            blocks.open_pages.forget_old()
        except Exception:
            logger.exception("tending the app failed")


async def keep_queue_running(blocks: GuardedBlocks) -> None:
    """Start the queue again where it has stopped; apart from all else, so that nothing else delays or ends it."""
    while True:
        await asyncio.sleep(REVIVE_SECONDS)
        try:
            if blocks.questions.has_failed:
                blocks.questions.revive()
        except Exception:
            logger.exception("the queue could not be started again")


def drop_abandoned(blocks: GuardedBlocks) -> None:
    """Take the questions of pages that do not listen out of the queue, and end what is computed for them."""
    questions, pages = blocks.questions, blocks.open_pages
    for page in pages.abandoned():
        if questions.pending_event_ids_session.get(page.name):
            questions.forget(page.name)
            if not pages.has_listener(page.owner):
                blocks.on_abandoned(page.owner)
