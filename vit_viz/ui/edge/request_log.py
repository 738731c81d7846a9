"""The app's own log: time, level, the number of the request that is being handled, and the message; nothing of a visitor's."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from itertools import count

REQUEST: ContextVar[int] = ContextVar("request", default=0)
"""Number of the request that is being handled, counted from 1 since the app started; 0 outside of any."""
NUMBERS = count(1)


class _Numbered(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
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
