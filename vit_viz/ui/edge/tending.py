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
REVIVE_SECONDS = 0.25
HEARTBEAT_SECONDS = 15.0


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


async def keep_alive(stopped: asyncio.Event) -> AsyncIterator[bytes]:
    """Keep-alive messages until the server stops."""
    while not stopped.is_set():
        yield b"data: ALIVE\n\n"
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(stopped.wait(), HEARTBEAT_SECONDS)
