"""An exception as one sentence for people; the traceback is for the log."""

from __future__ import annotations

import logging

from vit_viz.errors import VitVizError

logger = logging.getLogger(__name__)

GENERIC = "Something went wrong inside vit_viz; the log of the server says what. Please try again or reload the page."
_LONGEST = 400


def sentence(error: BaseException) -> str:
    """What to tell the user about an exception, as plain text: never a traceback, never empty, never long.

    A VitVizError speaks for itself. Running out of memory is explained. Anything else is a fault of ours: it is logged with
    its traceback and the user reads that something went wrong, without its details.
    """
    if isinstance(error, VitVizError):
        return one_line(str(error)) or GENERIC
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        logger.error("out of memory", exc_info=error)
        return "The machine ran out of memory; a smaller image, or the mode 'crop', needs less."
    logger.error("unexpected exception", exc_info=error)
    return GENERIC


def one_line(text: str) -> str:
    """Text without line breaks and control characters, cut at a readable length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
