"""Exceptions as the user reads them, one plain, escaped sentence; the traceback goes to the log, with the number of its request.

`GuardedBlocks` stands around every handler and what Gradio does before and after it, because Gradio would show the bare word
"Error" and log what was sent.
"""

from __future__ import annotations

import html
import itertools
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Self, cast

import gradio as gr
from gradio.context import LocalContext
from starlette.requests import HTTPConnection

from vit_viz.sentences import GENERIC as GENERIC, one_line, sentence as sentence
from vit_viz.session.handles import OWNER, PAGE, VISITOR, owner_of, visitor_in
from vit_viz.ui.edge.pages import Pages
from vit_viz.ui.edge.question_queue import QuestionQueue
from vit_viz.ui.edge.uploads import UploadFiles

logger = logging.getLogger(__name__)


NOT_READABLE = "The page sent something that cannot be read; please reload it and try again."
NOT_OFFERED = "This choice is not offered here; please reload the page and choose another one."
NO_FILES_HERE = "The page sent a file where none belongs; please reload it and try again."

REQUEST: ContextVar[int] = ContextVar("request", default=0)
"""Number of the request that is being handled, counted from 1 since the app started; 0 outside of any."""
NUMBER = "vit_viz.request"
"""Where the number stands in the scope of a request."""
_counter = itertools.count(1)


def escaped(error: BaseException) -> str:
    """The sentence with every character that HTML gives a meaning to replaced."""
    return html.escape(sentence(error), quote=True)


class GuardedBlocks(gr.Blocks):
    """Blocks that let no file in but through a component that admits it, and end every failure in one escaped sentence.

    Gradio fetches addresses and looks at paths that stand anywhere in a request, before any component or handler is asked. So
    files are checked here first: by `admit(value, files)` of the component that receives the value, or else refused. What a request
    holds that Gradio cannot read is refused in one sentence, and not logged, because it is the visitor's.

    Args:
        on_left: called with the owner whose last page was closed.
        on_abandoned: called with the owner of whom no page listens any more.
    """

    def __init__(
        self,
        *args: Any,
        on_left: Callable[[str], object] = lambda _owner: None,
        on_abandoned: Callable[[str], object] = lambda _owner: None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.files = UploadFiles()
        self.open_pages = Pages(
            on_left=on_left,
            on_forgotten=self._forget_session,
            with_questions=lambda: self.questions.pages(),  # of the queue at that time: `queue` makes another
        )
        self.on_abandoned = on_abandoned

    @property
    def questions(self) -> QuestionQueue:
        """Gradio's queue, as `queue` made it."""
        return cast(QuestionQueue, self._queue)

    def queue(self, *args: Any, **kwargs: Any) -> Self:
        """As Gradio's, with a queue that no page can stop."""
        super().queue(*args, **kwargs)
        self._queue = QuestionQueue.like(self._queue)
        return self

    def poll_queue(self, *, every: float) -> None:
        """Let Gradio look at its queue, and at what there is to tell of progress, after so many seconds."""
        self.questions.sleep_when_free = every
        self.questions.progress_update_sleep_when_free = 5 * every

    async def preprocess_data(self, block_fn: Any, inputs: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        """Turn what arrived into what the handler takes.

        Raises:
            gr.Error: it cannot be read, or holds a file that is not admitted.
        """
        try:
            for block, value in zip(block_fn.inputs, inputs, strict=False):
                if hasattr(block, "admit"):
                    block.admit(value, self.files)
                elif _holds_file(value):
                    raise toast(NO_FILES_HERE)
            return await super().preprocess_data(block_fn, inputs, state, *args, **kwargs)
        except gr.Error as error:
            offered = "list of choices" not in str(
                error.message
            )  # Gradio repeats what was sent and all that there is
            raise (_quiet(error) if offered else toast(NOT_OFFERED)) from None
        except Exception as error:
            logger.info("refused a request: %s", type(error).__name__)
            raise toast(NOT_READABLE) from None

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any) -> list[Any]:
        """Turn what the handler returned into what is sent."""
        output = await super().postprocess_data(block_fn, predictions, state)
        _keep_names(block_fn.outputs, state)
        return output

    def handle_streaming_diffs(
        self,
        block_fn: Any,
        data: list[Any],
        session_hash: str | None,
        run: str | None,
        final: bool,
        simple_format: bool = False,
    ) -> list[Any]:
        """What is sent of a handler's answers, one after the other: each value whole.

        Gradio sends what differs from the answer before, and its page changes that one in place. Where both wait to be shown, since
        they came before the receipt of their question, a value that the second leaves as it is (`gr.skip`) would be lost.
        """
        is_later = session_hash is not None and run in self.pending_diff_streams[session_hash] and not final
        whole = super().handle_streaming_diffs(block_fn, data, session_hash, run, final, simple_format=True)
        return whole if simple_format or not is_later else [[["replace", [], value]] for value in whole]

    async def process_api(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Read the request, run the handler, write the answer.

        Raises:
            gr.Error: any of this failed.
        """
        visitor, page, number = _who(kwargs.get("request"))
        before = VISITOR.set(visitor), OWNER.set(owner_of(visitor, page)), PAGE.set(page)
        numbered = REQUEST.set(number)  # Gradio's queue runs in the context of whichever request came first
        try:
            if not isinstance(getattr(kwargs.get("event_data"), "_data", None), dict | None):
                raise toast(NOT_READABLE)
            return await super().process_api(*args, **kwargs)
        except gr.Error as error:
            raise _quiet(error) from None
        except Exception as error:
            raise toast(sentence(error)) from None
        finally:
            VISITOR.reset(before[0])
            OWNER.reset(before[1])
            PAGE.reset(before[2])
            REQUEST.reset(numbered)

    def _forget_session(self, name: str) -> None:
        """Free what Gradio keeps for a page."""
        holder = getattr(self, "state_holder", None)
        if holder is not None:
            with holder.lock:
                holder.session_data.pop(name, None)
                holder.time_last_used.pop(name, None)
        self.questions.forget(name)


def toast(text: str) -> gr.Error:
    """An error message that appears over the page; `text` is plain and is escaped here."""
    return gr.Error(html.escape(one_line(text), quote=True), print_exception=False)


def notice(text: str) -> None:
    """Tell the visitor who waits what takes longer than it should; the log, where there is none."""
    logger.warning(text)
    if LocalContext.event_id.get(None) is not None:
        gr.Warning(html.escape(one_line(text), quote=True), title="This takes longer")


def _quiet(error: gr.Error) -> gr.Error:
    """An error as a message: our own as it is, one of Gradio's components escaped and kept out of the log."""
    return error if not error.print_exception else toast(str(error.message))


def _who(request: Any) -> tuple[str, str, int]:
    """The names of the browser and the page that sent a request, "" where there are none, and the number of the request."""
    asking = getattr(request, "request", None)
    page = str(getattr(request, "session_hash", None) or "")
    if not isinstance(asking, HTTPConnection):
        return "", page, 0
    return visitor_in(asking.cookies), page, int(asking.scope.get(NUMBER, 0))


def _keep_names(blocks: Any, state: Any) -> None:
    """Let components that an update has just replaced keep the ids of those before them.

    Gradio gives each a new id and, when it is next used, files it under that id too: a session would never let go of any.
    """
    for block in blocks:
        if state is not None and not block.stateful and block._id in state:
            state[block._id]._id = block._id


def _holds_file(value: Any) -> bool:
    """Whether a value holds, at any depth, what Gradio would take for a file."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if {"path", "url", "meta"} & part.keys():
                return True
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False


def next_number() -> int:
    """The number of a request that has just arrived."""
    return next(_counter)


class _Numbered(logging.Formatter):
    """Time, level, request and message."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of the log."""
        number = REQUEST.get()
        record.request = f" [request {number}]" if number else ""
        return super().format(record)


def log_with_request_numbers() -> None:
    """Let the app's own log lines go to stderr with the number of their request; for the start of the app."""
    logger = logging.getLogger("vit_viz")
    if any(isinstance(handler.formatter, _Numbered) for handler in logger.handlers):
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_Numbered("%(asctime)s %(levelname)s%(request)s %(name)s: %(message)s"))
    handler.setLevel(logging.WARNING)
    logger.addHandler(handler)
