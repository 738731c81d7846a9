"""Where exceptions end: one plain, escaped sentence for the user, the traceback for the log.

Every handler and every route of the user interface passes through here and nowhere else.
"""

from __future__ import annotations

import functools
import html
import inspect
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import gradio as gr

from vit_viz.errors import VitVizError

logger = logging.getLogger(__name__)

GENERIC = "Something went wrong inside vit_viz; the log of the server says what. Please try again or reload the page."
_LONGEST = 400

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


def toast(text: str) -> gr.Error:
    """An error message that appears over the page; `text` is plain and is escaped here."""
    return gr.Error(html.escape(_one_line(text), quote=True), print_exception=False)


def _toast(error: BaseException) -> gr.Error:
    return toast(sentence(error))


def _one_line(text: str) -> str:
    """Text without line breaks and control characters, cut at a readable length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
