"""Where exceptions end: one plain, escaped sentence for the user, the traceback for the log.

Every handler and every route of the user interface passes through here and nowhere else. What comes before and after a handler is
Gradio's own: `GuardedBlocks` stands around it, because Gradio would show the bare word "Error" and log what was sent.
"""

from __future__ import annotations

import functools
import html
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import gradio as gr
from gradio.context import LocalContext
from starlette.requests import HTTPConnection

from vit_viz.errors import VitVizError
from vit_viz.handles import VISITOR, visitor_in
from vit_viz.ui.tray import Tray

logger = logging.getLogger(__name__)

GENERIC = "Something went wrong inside vit_viz; the log of the server says what. Please try again or reload the page."
_LONGEST = 400

NOT_READABLE = "The page sent something that cannot be read; please reload it and try again."
NOT_OFFERED = "This choice is not offered here; please reload the page and choose another one."
NO_FILES_HERE = "The page sent a file where none belongs; please reload it and try again."

Handler = TypeVar("Handler", bound=Callable[..., Any])


def sentence(error: BaseException) -> str:
    """What to tell the user about an exception, as plain text: never a traceback, never empty, never long.

    A VitVizError speaks for itself. Running out of memory is explained. Anything else is a fault of ours: it is logged with
    its traceback and the user reads that something went wrong, without its details.
    """
    if isinstance(error, VitVizError):
        return _one_line(str(error)) or GENERIC
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        logger.error("out of memory", exc_info=error)
        return "The machine ran out of memory; a smaller image, or the mode 'crop', needs less."
    logger.error("unexpected exception", exc_info=error)
    return GENERIC


def escaped(error: BaseException) -> str:
    """The sentence with every character that HTML gives a meaning to replaced."""
    return html.escape(sentence(error), quote=True)


def guarded(handler: Handler) -> Handler:
    """Make a Gradio handler, plain or generator, end in one escaped sentence instead of an exception."""
    if inspect.isgeneratorfunction(handler):

        @functools.wraps(handler)
        def steps(*args: Any, **kwargs: Any) -> Iterator[Any]:
            try:
                yield from handler(*args, **kwargs)
            except gr.Error:
                raise
            except Exception as error:
                raise _toast(error) from None

        return cast(Handler, steps)

    @functools.wraps(handler)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return handler(*args, **kwargs)
        except gr.Error:
            raise
        except Exception as error:
            raise _toast(error) from None

    return cast(Handler, call)


class GuardedBlocks(gr.Blocks):
    """Blocks that let no file in but through a component that admits it, and end every failure in one escaped sentence.

    Gradio fetches addresses and looks at paths that stand anywhere in a request, before any component or handler is asked. So
    files are judged here first: by `admit(value, tray)` of the component that receives the value, or else refused. What a request
    holds that Gradio cannot read is refused in one sentence, and not logged, because it is the visitor's.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.tray = Tray()

    async def preprocess_data(self, block_fn: Any, inputs: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        """Turn what arrived into what the handler takes.

        Raises:
            gr.Error: it cannot be read, or holds a file that is not admitted.
        """
        try:
            for block, value in zip(block_fn.inputs, inputs, strict=False):
                if hasattr(block, "admit"):
                    block.admit(value, self.tray)
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

    async def process_api(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Read the request, run the handler, write the answer.

        Raises:
            gr.Error: any of this failed.
        """
        before = VISITOR.set(_visitor(kwargs.get("request")))
        try:
            if not isinstance(getattr(kwargs.get("event_data"), "_data", None), dict | None):
                raise toast(NOT_READABLE)
            return await super().process_api(*args, **kwargs)
        except gr.Error as error:
            raise _quiet(error) from None
        except Exception as error:
            raise _toast(error) from None
        finally:
            VISITOR.reset(before)


def toast(text: str) -> gr.Error:
    """An error message that appears over the page; `text` is plain and is escaped here."""
    return gr.Error(html.escape(_one_line(text), quote=True), print_exception=False)


def notice(text: str) -> None:
    """Tell whoever waits what takes longer than it should; the log, where nobody waits."""
    logger.warning(text)
    if LocalContext.event_id.get(None) is not None:
        gr.Warning(html.escape(_one_line(text), quote=True), title="This takes longer")


def _toast(error: BaseException) -> gr.Error:
    return toast(sentence(error))


def _quiet(error: gr.Error) -> gr.Error:
    """Our own message as it is; one of Gradio's components escaped, and out of the log."""
    return error if not error.print_exception else toast(str(error.message))


def _visitor(request: Any) -> str:
    """The name of the browser that asks; "" where there is no request, or no name."""
    asking = getattr(request, "request", None)
    return visitor_in(asking.cookies) if isinstance(asking, HTTPConnection) else ""


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


def _one_line(text: str) -> str:
    """Text without line breaks and control characters, cut at a readable length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
