"""Gradio's queue of questions, made to outlive whatever a page does while its questions wait.

Gradio looks up the page of each question that waits, and when one is gone, the search ends the processing for everybody, and for
good. Here a page that is gone has no messages and no questions, and that is all; a page takes its questions along when it is
forgotten, and not when one of its streams ends, after which it may have asked again; and what has ended all the same is started
again (`vit_viz.ui.edge.http_guard`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

from gradio.blocks import Blocks
from gradio.data_classes import PredictBodyInternal
from gradio.queueing import Event, Queue
from gradio.server_messages import EventMessage, ProcessCompletedMessage
from gradio.state_holder import SessionState
from gradio.utils import LRUCache

logger = logging.getLogger(__name__)


class Mailboxes(LRUCache[str, "asyncio.Queue[EventMessage]"]):
    """Messages by page. What is sent to a page that is gone reaches nobody."""

    def __missing__(self, name: str) -> asyncio.Queue[EventMessage]:
        return asyncio.Queue()

    def __delitem__(self, name: str) -> None:
        """Nothing: so Gradio ends a stream that is cut, while the page's next one may be on its way (see `forget`)."""

    def forget(self, name: str) -> None:
        """Let go of the messages of a page."""
        if name in self:
            super().__delitem__(name)


class EventIds(dict[str, set[str]]):
    """Questions whose answers have not been read, by page; a page that is gone has none."""

    def __missing__(self, name: str) -> set[str]:
        return set()


class PageSession(SessionState):
    """What Gradio keeps for a page, but how each component is configured and what it showed last.

    Only Gradio's own links to a view read that, which are not offered here; and to write it down when a page opens keeps everybody
    waiting for longer than several answers take.
    """

    def __init__(self, blocks: Blocks) -> None:
        super().__init__(cast(Any, SimpleNamespace(default_config=blocks.default_config, blocks={})))

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


class QuestionQueue(Queue):
    """Gradio's queue, for strangers."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pending_messages_per_session: Mailboxes = Mailboxes(self.pending_messages_per_session.max_size)
        self.pending_event_ids_session = EventIds()
        self.ANALYTICS_MAX_EVENTS = 1  # nobody reads them: see `compute_analytics_summary`
        self._is_closed = False
        self._loops: dict[str, asyncio.Task[None]] = {}

    @classmethod
    def like(cls, queue: Queue) -> QuestionQueue:
        """An empty queue with the options of another one."""
        return cls(
            live_updates=queue.live_updates,
            concurrency_count=queue.max_thread_count,
            update_intervals=queue.update_intervals,
            max_size=queue.max_size,
            blocks=queue.blocks,
            default_concurrency_limit=queue.default_concurrency_limit,
        )

    # --- whether it lives

    @property
    def is_alive(self) -> bool:
        """Whether questions are taken in and answered."""
        return (
            bool(self._loops) and not self.stopped and not any(loop.done() for loop in self._loops.values())
        )

    @property
    def has_failed(self) -> bool:
        """Whether it was started, and has ended though nobody closed it."""
        return bool(self._loops) and not self._is_closed and not self.is_alive

    def start(self) -> None:
        """Begin to answer questions."""
        self.active_jobs = [None] * self.max_thread_count
        self._is_closed = False
        self._run_loops()

    def close(self) -> None:
        """End for good."""
        self._is_closed = True
        super().close()  # type: ignore[no-untyped-call]  # Gradio's own

    def revive(self) -> None:
        """Start again what has ended; what waits is answered next, and what is being answered goes on."""
        for loop in self._loops.values():
            error = loop.exception() if loop.done() and not loop.cancelled() else None
            if error is not None:
                logger.error("the queue failed", exc_info=error)
        logger.error("the queue had stopped; it is started again")
        self._run_loops()

    # --- questions of one page

    def pages(self) -> set[str]:
        """The pages with questions that wait or are being answered."""
        return {event.session_hash for event in list(self.event_ids_to_events.values())}

    def forget(self, page: str) -> None:
        """Take the questions of a page out, send it nothing more, and let go of what it has not read.

        At one go, so that nothing sees a page without messages whose questions still wait.
        """
        for event in [one for one in self.event_ids_to_events.values() if one.session_hash == page]:
            self._drop(event)
        self.pending_event_ids_session.pop(page, None)
        self.pending_messages_per_session.forget(page)

    async def clean_events(self, **_which: Any) -> None:
        """Nothing: so Gradio ends the questions of a page whose stream ends; `drop_abandoned` finds who listens no more."""

    def cancel(self, event_id: str) -> None:
        """End a question: it is taken out, or answered to nobody; its page is told that it is over.

        Gradio cancels the task that answers it, which never gives its place back when it has not begun, and waits for a generator
        with a lock in hand that all others need.
        """
        event = self.event_ids_to_events.get(event_id)
        if event is not None:
            self.send_message(event, ProcessCompletedMessage(output={}, success=True))
            self._drop(event)

    # --- what Gradio does, mended

    async def push(self, body: PredictBodyInternal, *args: Any, **kwargs: Any) -> Any:
        """Take a question in; the first one of a page opens its session."""
        page, sessions = str(body.session_hash), self.blocks.state_holder
        if page not in sessions:
            sessions.session_data[page] = PageSession(self.blocks)
        return await super().push(body, *args, **kwargs)

    def compute_analytics_summary(self, _records: Any) -> dict[str, Any]:
        """Nothing: Gradio would compute statistics after each question, which takes long and which no address here shows."""
        return self.cached_event_analytics_summary

    async def process_events(self, events: list[Event], *args: Any, **kwargs: Any) -> None:
        """Answer questions; however that ends, they are no longer there. A failure of Gradio's is logged: nobody waits for it."""
        try:
            await super().process_events(events, *args, **kwargs)
        except Exception:
            logger.exception("a question was not answered")
        finally:
            for event in events:
                self.event_ids_to_events.pop(event._id, None)

    def _cancel_asyncio_tasks(self) -> None:
        """End what is being answered when the app ends; when processing fails, that goes on and is answered all the same."""
        if self._is_closed:
            super()._cancel_asyncio_tasks()  # type: ignore[no-untyped-call]  # Gradio's own

    def _drop(self, event: Event) -> None:
        event.alive = False  # where it is being answered: it ends at its next step, and nothing of it is sent
        waiting = self.event_queue_per_concurrency_id[event.concurrency_id].queue
        if event in waiting:
            waiting.remove(event)
            self.event_ids_to_events.pop(event._id, None)

    def _run_loops(self) -> None:
        self.stopped = False
        loops: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self.start_processing,
            self.start_progress_updates,
        ]
        if not self.live_updates:
            loops.append(self.notify_clients)
        for loop in loops:
            running = self._loops.get(loop.__name__)
            if running is None or running.done():
                self._loops[loop.__name__] = asyncio.get_running_loop().create_task(loop())
