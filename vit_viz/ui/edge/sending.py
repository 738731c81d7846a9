"""Answers part by part, as fast as they are read: what is not read yet is held here, where it counts, and not in a socket."""

from __future__ import annotations

from starlette.types import Message, Send

from vit_viz.ui.edge.bodies import Patience

PART_BYTES = 64 * 2**10


def paced(send: Send) -> Send:
    """A line whose reader has to go on reading; what it returns raises TimeoutError where that ends, as `Patience` says."""
    patience = Patience()

    async def give(message: Message) -> None:
        body: bytes = message.get("body", b"")
        for start in range(0, max(1, len(body)), PART_BYTES):
            part = body[start : start + PART_BYTES]
            is_last = start + PART_BYTES >= len(body)
            async with patience.waiting():
                await send(message if is_last and not start else _part(message, part, is_last=is_last))
            patience.moved(len(part))

    return give


def _part(message: Message, part: bytes, *, is_last: bool) -> Message:
    return {**message, "body": part, "more_body": not is_last or message.get("more_body", False)}
