"""Uploaded files on disk: counted from their first byte, private to their visitor, deleted once they are read or abandoned.

While it arrives an upload is a file without a name, which the system deletes whatever happens. A whole one lies in a folder of its
own with an unguessable name. Gradio's own upload leaves a file behind wherever a visitor hangs up in the middle.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from gradio.utils import get_upload_folder
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from vit_viz.errors import BusyError, ParameterError
from vit_viz.ui.edge.admission import Buckets
from vit_viz.ui.edge.bodies import TooLarge, patient

TOTAL_BYTES = 256 * 2**20
VISITOR_BYTES = 64 * 2**20
MOST_ARRIVING = 2
"""Uploads of one visitor at a time; a page sends one. Parsing an upload costs time that others wait for."""

BURST_BYTES = 24 * 2**20
BYTES_PER_SECOND = 4 * 2**20
"""How much one visitor may send at full speed, and how fast after that: enough for a large picture, too little for a flood."""

UNREAD_SECONDS = 60.0
"""How long a file waits for the page that will say what it is for; the page does so at once."""

SHORT_OF_ROOM_SECONDS = 15.0
"""How long it waits when the space for uploads is full."""

TOO_MANY_OF_YOURS = "Several of your pictures are on their way already; please wait until they are here."
FULL = "Too many pictures are on their way to the server at the moment; please try again in a minute."

_UNSAFE = re.compile(r"[^\w .()-]+")
_LONGEST_NAME = 200  # bytes; file systems take 255
_MOST_PACED = 1000  # visitors whose pace is remembered

_logger = logging.getLogger(__name__)

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
class _File:
    visitor: str
    size: int
    kept_at: float
    due_at: float


class Arrival:
    """What is arriving, an upload or the body of a question: its bytes count against its visitor's share and the total."""

    def __init__(self, files: UploadFiles, visitor: str, *, is_upload: bool) -> None:
        self._files = files
        self.visitor = visitor
        self.is_upload = is_upload
        self.size = 0

    def take(self, count: int) -> float:
        """Count bytes that have arrived; returns the seconds after which its visitor may send more.

        Raises:
            BusyError: there is no room for them.
        """
        self._files._reserve(self, count)
        return self._files._pace.pour(self.visitor, count)


class UploadFiles:
    """Uploaded files by path, and the bytes of those that are still arriving.

    Args:
        folder: where they lie; asked each time.
        total_bytes: bound on all of them; visitor_bytes: bound on those of one visitor.
        clock: seconds, monotonic; a parameter so that tests need not wait.
    """

    def __init__(
        self,
        folder: Callable[[], str] = get_upload_folder,
        *,
        total_bytes: int = TOTAL_BYTES,
        visitor_bytes: int = VISITOR_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self.total_bytes = total_bytes
        self.visitor_bytes = visitor_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._files: OrderedDict[str, _File] = OrderedDict()
        self._arriving: set[Arrival] = set()
        self._pace = Buckets(
            burst=BURST_BYTES, per_second=BYTES_PER_SECOND, most_known=_MOST_PACED, clock=clock
        )

    @contextmanager
    def arriving(self, visitor: str, *, is_upload: bool = True) -> Iterator[Arrival]:
        """Count what arrives for as long as it takes; afterwards its bytes are free again, unless it was kept.

        Args:
            is_upload: and not the body of a question, of which a page asks several at a time.

        Raises:
            BusyError: `MOST_ARRIVING` uploads of this visitor's arrive already.
        """
        arrival = Arrival(self, visitor, is_upload=is_upload)
        with self._lock:
            uploads = sum(one.is_upload and one.visitor == visitor for one in self._arriving)
            if is_upload and uploads >= MOST_ARRIVING:
                raise BusyError(TOO_MANY_OF_YOURS)
            self._arriving.add(arrival)
        try:
            yield arrival
        finally:
            with self._lock:
                self._arriving.discard(arrival)

    def keep(self, arrival: Arrival, name: str, content: IO[bytes]) -> str:
        """Write a whole upload to its place; returns its path.

        Raises:
            OSError: it cannot be written; nothing of it stays.
        """
        place = Path(self._folder()) / secrets.token_hex(32)
        path = place / _safe(name)
        try:
            place.mkdir(parents=True)
            with path.open("wb") as file:
                shutil.copyfileobj(content, file, 2**20)
            size = path.stat().st_size
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            raise
        with self._lock:
            now = self._clock()
            self._files[str(path)] = _File(arrival.visitor, size, now, now + UNREAD_SECONDS)
            self._arriving.discard(arrival)
        return str(path)

    def belongs_to(self, path: str, visitor: str) -> bool:
        """Whether a visitor uploaded this file, and it is still here; exactly this path and no other form of it."""
        with self._lock:
            file = self._files.get(path)
            return file is not None and file.visitor == visitor

    def read(self, path: str, visitor: str) -> bytes | None:
        """The content of a visitor's own file; None where there is none."""
        if not self.belongs_to(path, visitor):
            return None
        with contextlib.suppress(OSError):
            return Path(path).read_bytes()
        return None

    def delete_after(self, path: str, seconds: float) -> None:
        """Delete a file that was read, after this many seconds, in which the browser may fetch its preview."""
        with self._lock:
            if path in self._files:
                self._files[path].due_at = self._clock() + seconds

    def sweep(self) -> bool:
        """Delete expired files; returns whether none is left."""
        with self._lock:
            now = self._clock()
            due = [path for path, file in self._files.items() if file.due_at <= now]
            for path in due:
                del self._files[path]
        for path in due:
            _delete(path)
        return bool(due) and not self._files

    @property
    def used_bytes(self) -> int:
        """Bytes on disk now."""
        with self._lock:
            return self._used(None)

    def _reserve(self, arrival: Arrival, count: int) -> None:
        dropped: list[str] = []
        try:
            with self._lock:
                arrival.size += count
                if self._used(arrival.visitor) > self.visitor_bytes:
                    raise BusyError(TOO_MANY_OF_YOURS)
                while self._used(None) > self.total_bytes and (path := self._oldest_unread()):
                    dropped.append(path)
                    del self._files[path]
                if self._used(None) > self.total_bytes:
                    raise BusyError(FULL)
        finally:
            for path in dropped:
                _delete(path)

    def _used(self, visitor: str | None) -> int:
        whole = sum(file.size for file in self._files.values() if visitor in (None, file.visitor))
        return whole + sum(one.size for one in self._arriving if visitor in (None, one.visitor))

    def _oldest_unread(self) -> str:
        """The file that has waited longest for its page, where that is long enough."""
        path, file = next(iter(self._files.items()), ("", None))
        return path if file and file.kept_at <= self._clock() - SHORT_OF_ROOM_SECONDS else ""


def _safe(name: str) -> str:
    """The last part of a file's name, in characters that every file system takes."""
    kept = _UNSAFE.sub("", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    return kept.encode()[-_LONGEST_NAME:].decode(errors="ignore").strip(" .") or "picture"


def _delete(path: str) -> None:
    try:
        shutil.rmtree(Path(path).parent)
    except OSError as error:
        _logger.warning("an uploaded file could not be deleted: %s", error.strerror)


@dataclass
class Progress:
    """How far one upload is: bytes that have arrived since the last event."""

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
            too_many = max(0, len(self._known) + 1 - _MOST_KNOWN)
            for old in mine[: max(0, len(mine) + 1 - MOST_FOLLOWED)] or list(self._known)[:too_many]:
                del self._known[old]
        return self._known.setdefault(key, Progress())

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
            event: dict[str, Any] = {"msg": "update", "orig_name": progress.name, "chunk_size": progress.new}
            progress.new = 0
            yield _event(event)
        if progress.is_done:
            break
        await asyncio.sleep(_POLL_SECONDS)
    yield _event({"msg": "done"})


def _event(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()
