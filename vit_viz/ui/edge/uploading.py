"""An upload, taken apart while it arrives, and the stream that tells its page how far it is.

Gradio's own upload leaves a file behind wherever a visitor hangs up in the middle; here what arrives has no name until it is whole.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import IO, Any, cast

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from vit_viz.errors import ParameterError
from vit_viz.ui.edge.bodies import TooLarge, patient
from vit_viz.ui.edge.upload_files import UploadFiles

UPLOAD_BYTES = 20 * 2**20
"""Of one upload: a little more than the largest picture that is read."""

TOO_LARGE = "This is more than 20 MB; please send a smaller picture, a JPEG for example."
NO_PICTURE = "An upload holds one picture; please choose it again."
STOPPED = "The upload stopped in the middle; please choose the picture again."

MOST_FOLLOWED = 4
"""Uploads that one visitor can follow at a time; a page follows one."""

_MOST_KNOWN = 1024
_FOLLOW_SECONDS = 120.0
_POLL_SECONDS = 0.1
_FILE_NAME = re.compile(rb'filename="([^"\r\n]{1,255})"')


@dataclass
class Progress:
    """How far one upload is: bytes that have arrived since the last event."""

    visitor: str
    name: str = ""
    new: int = 0
    is_done: bool = False
    is_followed: bool = False

    def note(self, body: bytes) -> None:
        """Bytes have arrived; the first of them hold the file's name, by which the page knows it."""
        self.new += len(body)
        if not self.name and (match := _FILE_NAME.search(body)):
            self.name = match[1].decode("utf-8", "replace")


@dataclass
class Progresses:
    """Uploads by the id that their page gave them; of too many, the oldest is forgotten."""

    _known: OrderedDict[tuple[str, str], Progress] = field(default_factory=OrderedDict)

    def of(self, visitor: str, upload_id: str) -> Progress:
        """The upload of an id, whether its first byte or its follower came first."""
        key = visitor, upload_id[:64]
        if key not in self._known:
            mine = [other for other in self._known if other[0] == visitor]
            for old in mine[: max(0, len(mine) + 1 - MOST_FOLLOWED)] or list(self._known)[: self._excess()]:
                del self._known[old]
        return self._known.setdefault(key, Progress(visitor))

    def _excess(self) -> int:
        return max(0, len(self._known) + 1 - _MOST_KNOWN)

    def forget(self, visitor: str, upload_id: str) -> None:
        """Nobody follows it any more."""
        self._known.pop((visitor, upload_id[:64]), None)


async def receive_upload(
    scope: Scope, receive: Receive, files: UploadFiles, *, visitor: str, progress: Progress
) -> list[str]:
    """The path of the file that a request brings; nothing is kept of a request that fails.

    Raises:
        ParameterError: it brings no file.
        TooLarge: it is larger than a picture may be.
        BusyError: there is no room for it.
        ClientDisconnect, TimeoutError: its visitor hung up, or sends nothing any more.
        OSError: it cannot be written.
    """
    with files.arriving(visitor) as arrival:
        take = patient(receive)

        async def counted() -> Message:
            message = await take()
            body = message.get("body", b"")
            pause = arrival.take(len(body))
            progress.note(body)
            if arrival.size > UPLOAD_BYTES:
                raise TooLarge
            await asyncio.sleep(pause)
            return message

        try:
            async with Request(scope, counted).form(max_files=1, max_fields=8) as form:
                file = form.get("files")
                if not isinstance(file, UploadFile):
                    raise ParameterError(NO_PICTURE)
                content = cast(IO[bytes], file.file)
                return [await run_in_threadpool(files.keep, arrival, file.filename or "", content)]
        except HTTPException as error:
            raise ParameterError(NO_PICTURE) from error
        finally:
            progress.is_done = True


async def progress_events(progress: Progress) -> AsyncIterator[bytes]:
    """Server-sent events that say how far an upload is, as Gradio's page reads them, until it is done."""
    if progress.is_followed:  # by another request, which gets the events
        return
    progress.is_followed = True
    for _ in range(int(_FOLLOW_SECONDS / _POLL_SECONDS)):
        if progress.new:
            event: dict[str, Any] = {
                "msg": "update",
                "orig_name": progress.name,
                "chunk_size": progress.new,
            }
            progress.new = 0
            yield _event(event)
        if progress.is_done:
            break
        await asyncio.sleep(_POLL_SECONDS)
    yield _event({"msg": "done"})


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
