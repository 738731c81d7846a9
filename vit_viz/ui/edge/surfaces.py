"""What the app offers beside the page where whoever runs it asks for it: questions by name over HTTP (vit_viz.rest, vit_viz.mcp).

They stand behind the same guard as the page: the same host names, the same limits for each visitor. A question there may compute
for long, so each takes a place in the lane of slow ones; what holds a large picture counts as an upload while it arrives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute
from starlette.types import Message, Receive

from vit_viz.ui.edge.addresses import Kind
from vit_viz.ui.edge.upload_files import UploadFiles
from vit_viz.ui.edge.uploading import IDLE_SECONDS, UPLOAD_BYTES, TooLarge

OWNER = "vit_viz.owner"
"""Key in a request's scope: who asks, as the session knows it."""

BODY_BYTES = UPLOAD_BYTES * 4 // 3 + 2**16
"""Of a question: a picture as base64, and some words."""


@dataclass(frozen=True)
class Surface:
    """One way to ask beside the page.

    Args:
        kind: of its addresses.
        routes: that answer there.
        running: what has to run meanwhile.
    """

    kind: Kind
    routes: Sequence[BaseRoute]
    running: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext


async def read_body(receive: Receive, files: UploadFiles, visitor: str) -> bytes:
    """The body of a question.

    Raises:
        TooLarge: it is larger than a picture and some words can be.
        BusyError: several of this visitor's arrive already, or there is no room for it.
        ClientDisconnect, TimeoutError: its visitor hung up, or sends nothing any more.
    """
    with files.arriving(visitor) as arrival:
        parts: list[bytes] = []
        more = True
        while more:
            message = await asyncio.wait_for(receive(), IDLE_SECONDS)
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            pause = arrival.take(len(parts[-1]))
            if arrival.size > BODY_BYTES:
                raise TooLarge
            await asyncio.sleep(pause)
            more = bool(message.get("more_body"))
        return b"".join(parts)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A request whose body was read already."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def take() -> Message:
        return waiting.pop() if waiting else await receive()

    return take
