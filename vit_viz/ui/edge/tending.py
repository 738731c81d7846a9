"""Housekeeping while the app runs: ending what nobody waits for, and deleting expired files."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from vit_viz.memory import give_memory_back

if TYPE_CHECKING:
    from vit_viz.ui.edge.user_errors import GuardedBlocks

logger = logging.getLogger(__name__)

TEND_SECONDS = 0.5
HEARTBEAT_SECONDS = 15.0


async def tend(blocks: GuardedBlocks) -> None:
    """Look after questions, files and pages, over and over."""
    while True:
        await asyncio.sleep(TEND_SECONDS)
        try:
            await drop_abandoned(blocks)
            if await run_in_threadpool(blocks.files.sweep):
                await run_in_threadpool(give_memory_back)
            blocks.open_pages.forget_old()
        except Exception:
            logger.exception("tending the app failed")


async def drop_abandoned(blocks: GuardedBlocks) -> None:
    """Take the questions of pages that do not listen out of Gradio's queue, and end what is computed for them."""
    queue, pages = blocks._queue, blocks.open_pages
    for page in pages.abandoned():
        if queue.pending_event_ids_session.get(page.name) and not page.listeners:
            await queue.clean_events(session_hash=page.name)
            queue.pending_event_ids_session.pop(page.name, None)
            queue.pending_messages_per_session.pop(page.name, None)
            if not pages.has_listener(page.owner):
                blocks.on_abandoned(page.owner)


async def keep_alive(stopped: asyncio.Event) -> AsyncIterator[bytes]:
    """Keep-alive messages until the server stops."""
    while not stopped.is_set():
        yield b"data: ALIVE\n\n"
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(stopped.wait(), HEARTBEAT_SECONDS)
