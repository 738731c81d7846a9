"""An exception as one sentence for people; the traceback is for the log."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable

from vit_viz.errors import VitVizError

logger = logging.getLogger(__name__)

GENERIC = "Something went wrong inside vit_viz; the log of the server says what. Please try again or reload the page."
_LONGEST = 360


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


def did_you_mean(word: str, candidates: Iterable[str], otherwise: str = "") -> str:
    """How a sentence about an unknown name ends: with the known one most like it, with all, or with `otherwise` for many."""
    names = list(candidates)
    near = difflib.get_close_matches(word, names, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; {otherwise or 'there are: ' + ', '.join(names)}."


def spelled(name: str) -> str:
    """The name of an option or a choice as people write it: "head fusion" for head_fusion."""
    return name.replace("_", " ")


def counted(count: int, thing: str) -> str:
    """A number of things, one or several: "1 head", "15 heads"; patches and the like take -es."""
    ending = "es" if thing.endswith(("ch", "s", "x")) else "s"
    return f"{count} {thing}{'' if count == 1 else ending}"


def formatted(value: float, form: str) -> str:
    """A number in one of Python's formats; of what it rounds to zero the sign is left away: "0.0%", not "-0.0%" or "+0.0%"."""
    text = format(value, form)
    return text if text.strip("+-0.,%e") else text.lstrip("+-")


def percent(share: float) -> str:
    """A probability for people, with a decimal where it is small or almost certain: 96%, 2.5%, <0.1%."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return formatted(share, ".0%" if 0.0995 <= share <= 0.99 else ".1%")


def one_line(text: str) -> str:
    """Text without line breaks and control characters, cut at a readable length."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
