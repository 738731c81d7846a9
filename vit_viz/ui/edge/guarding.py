"""How an app comes behind the guard: outermost, with what the guard looks after while the app runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from vit_viz.surface import Surface
from vit_viz.turns import Turns
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.http_guard import HttpGuard
from vit_viz.ui.edge.refusals import answer_fault
from vit_viz.ui.edge.tending import keep_queue_running, tend

BEGIN_SECONDS = 0.5
"""After the app is up: the first page has left by then, and its browser is busy with its scripts."""


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

    return {
        "lifespan": lifespan,
        "exception_handlers": {Exception: answer_fault},
    }
