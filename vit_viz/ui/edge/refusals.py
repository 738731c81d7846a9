"""What goes wrong behind the guard, as one sentence and a status that says whose fault it is."""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response

from vit_viz.errors import BusyError, ParameterError
from vit_viz.ui.edge.addresses import API, OPTIONAL, Kind, kind_of
from vit_viz.ui.edge.bodies import TooLarge
from vit_viz.ui.edge.uploading import STOPPED, TOO_LARGE
from vit_viz.ui.edge.user_errors import NOT_READABLE, sentence

logger = logging.getLogger(__name__)

NO_ROOM = (
    "The server cannot keep this picture now, because its disk is full or locked; please try again later."
)


async def answer_fault(request: HTTPConnection, error: Exception) -> Response:
    """What a visitor reads where Gradio, or a route of ours, fails."""
    path = str(request.scope["path"])
    return failure(error, kind_of(request.scope["method"], path), path)


def failure(error: Exception, kind: Kind | None, path: str) -> Response:
    """The answer to a request that failed: one sentence, and a status that says whose fault it is."""
    answers: tuple[tuple[type[Exception], int, str], ...] = (
        (TooLarge, 413, TOO_LARGE),
        (ClientDisconnect, 408, STOPPED),  # the client has hung up
        (TimeoutError, 408, STOPPED),
        (BusyError, 429, str(error)),
        (ParameterError, 400, str(error)),
    )
    for expected, status, text in answers:
        if isinstance(error, expected):
            return refusal(status, text, kind, path)
    if kind == "upload" and isinstance(error, OSError):
        logger.error("the upload folder cannot be written: %s", error.strerror)
        return refusal(507, NO_ROOM, kind, path)
    if kind in ("page", "ours", *OPTIONAL):
        return refusal(500, sentence(error), kind, path)
    logger.info("refused a request: %s", type(error).__name__)  # handlers end in `GuardedBlocks`
    return refusal(400, NOT_READABLE, kind, path)


def refusal(status: int, text: str, kind: Kind | None, path: str) -> Response:
    """A sentence as Gradio's own script reads it: plain for uploads, JSON elsewhere in the API."""
    if kind in OPTIONAL:
        return JSONResponse({"error": text}, status)
    if path.startswith(API) and kind != "upload":
        return JSONResponse({"error": text, "detail": text}, status)
    return PlainTextResponse(text, status)
