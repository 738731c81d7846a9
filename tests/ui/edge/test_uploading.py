"""An upload while it arrives: nothing stays of one that does not end well, and its page hears how far it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from tests.ui.loops import played
from vit_viz.errors import BusyError, ParameterError
from vit_viz.ui.edge import bodies, uploads
from vit_viz.ui.edge.bodies import TooLarge
from vit_viz.ui.edge.uploads import (
    FULL,
    NO_PICTURE,
    TOO_MANY_OF_YOURS,
    UPLOAD_BYTES,
    Progress,
    Progresses,
    UploadFiles,
    progress_events,
    receive_upload,
)

BORDER = b"------formborder"
TYPE = "multipart/form-data; boundary=----formborder"
PICTURE = bytes(range(256)) * 5


def part(name: str, content: bytes, *, filename: str | None = None) -> bytes:
    """One part of a form, as browsers send it."""
    said = f'form-data; name="{name}"' + ("" if filename is None else f'; filename="{filename}"')
    return (
        BORDER
        + b"\r\nContent-Disposition: "
        + said.encode()
        + b"\r\nContent-Type: x/y\r\n\r\n"
        + content
        + b"\r\n"
    )


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + BORDER + b"--\r\n"


GOOD = form(part("files", PICTURE, filename="my photo.png"))


def sending(*bodies: bytes, then: str = "") -> Receive:
    """The messages of a request in several pieces; then it has ended, or the visitor hangs up or falls silent."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": True} for body in bodies]
    if not then and messages:
        messages[-1]["more_body"] = False

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        if then == "silence":
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return receive


class Server:
    """What receives uploads, with a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = UploadFiles(lambda: str(folder))
        self.progress = Progress()

    def receive(self, receive: Receive, *, content_type: str = TYPE) -> list[str]:
        paths: list[str] = played(self.receiving(receive, content_type=content_type))
        return paths

    async def receiving(self, receive: Receive, *, content_type: str = TYPE) -> list[str]:
        scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": "/gradio_api/upload",
            "headers": [(b"content-type", content_type.encode())],
            "app": self,  # with which Starlette makes an HTTPException of a form that cannot be read
        }
        return await receive_upload(scope, receive, self.files, visitor="ada", progress=self.progress)

    def is_empty(self) -> bool:
        """Whether nothing is on disk and nothing is counted."""
        return self.files.used_bytes == 0 and not list(self.folder.rglob("*")) and not self.files._arriving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    one = Server(tmp_path / "uploads")
    yield one
    assert one.progress.is_done  # however it ended


def pieces(body: bytes, size: int) -> list[bytes]:
    return [body[i : i + size] for i in range(0, len(body), size)]


# --- what ends well


@pytest.mark.parametrize("size", [1, 7, 1000, len(GOOD)])
def test_a_picture_in_any_number_of_pieces_is_kept_for_its_visitor(server: Server, size: int) -> None:
    (path,) = server.receive(sending(*pieces(GOOD, size)))
    assert Path(path).name == "my photo.png"
    assert server.files.read(path, "ada") == PICTURE
    assert server.files.read(path, "bob") is None
    assert server.files.used_bytes == len(PICTURE)
    assert server.progress.new == len(GOOD)


def test_a_picture_that_does_not_fit_the_memory_is_kept_too(server: Server) -> None:
    content = bytes(3 * 2**20 + 5)
    (path,) = server.receive(sending(*pieces(form(part("files", content, filename="a.png")), 2**16)))
    assert server.files.read(path, "ada") == content


def test_a_hostile_name_is_made_harmless(server: Server) -> None:
    (path,) = server.receive(sending(form(part("files", b"x", filename="../../evil.png"))))
    assert Path(path).parent.parent == server.folder


def test_a_picture_without_a_name_is_kept(server: Server) -> None:
    (path,) = server.receive(sending(form(part("files", b"x", filename=""))))
    assert Path(path).name == "picture"


def test_other_fields_beside_the_picture_are_no_matter(server: Server) -> None:
    fields = [part(f"field {n}", b"value") for n in range(8)]
    (path,) = server.receive(sending(form(*fields, part("files", PICTURE, filename="a.png"))))
    assert server.files.read(path, "ada") == PICTURE


# --- what does not


@pytest.mark.parametrize("sent", [0, 1, 60, len(GOOD) // 2, len(GOOD) - 1])
def test_nothing_stays_of_an_upload_that_is_cut(server: Server, sent: int) -> None:
    with pytest.raises(ClientDisconnect):
        server.receive(sending(GOOD[:sent], then="hang up"))
    assert server.is_empty()


def test_nothing_stays_of_a_large_upload_that_is_cut_just_before_its_end(server: Server) -> None:
    body = form(part("files", bytes(4 * 2**20), filename="a.png"))[:-1]
    with pytest.raises(ClientDisconnect):
        server.receive(sending(*pieces(body, 2**16), then="hang up"))
    assert server.is_empty()


BAD = {
    "two files": (form(part("files", b"1", filename="a"), part("files", b"2", filename="b")), TYPE),
    "a file in another field": (form(part("file", b"1", filename="a")), TYPE),
    "no file": (form(part("files", b"text")), TYPE),
    "no parts": (form(), TYPE),
    "nothing": (b"", TYPE),
    "too many fields": (
        form(*[part(f"f{n}", b"") for n in range(9)], part("files", b"", filename="a")),
        TYPE,
    ),
    "a field that is too long": (form(part("f", bytes(2**20 + 1)), part("files", b"", filename="a")), TYPE),
    "another border": (GOOD, "multipart/form-data; boundary=another"),
    "no border": (GOOD, "multipart/form-data"),
    "no form": (GOOD, "image/png"),
    "no type": (GOOD, ""),
    "no multipart": (b"files=a.png", "application/x-www-form-urlencoded"),
    "garbage": (bytes(range(256)) * 9, TYPE),
    "a header without end": (BORDER + b"\r\nContent-Disposition: " + b"x" * 10_000, TYPE),
    "too many headers": (BORDER + b"\r\n" + b"A: b\r\n" * 1000, TYPE),
}


# Starlette leaves it to Python to close the file of the part that did not end
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_form_that_ends_before_its_last_border_leaves_nothing(server: Server) -> None:
    with pytest.raises(ParameterError, match=NO_PICTURE):
        server.receive(sending(GOOD[: -len(BORDER) - 10]))
    assert server.is_empty()


@pytest.mark.parametrize("case", BAD)
def test_what_brings_no_picture_is_one_sentence_and_leaves_nothing(server: Server, case: str) -> None:
    body, content_type = BAD[case]
    with pytest.raises(ParameterError, match=NO_PICTURE):
        server.receive(sending(body), content_type=content_type)
    assert server.is_empty()


@pytest.mark.parametrize("over", [0, 1])
def test_an_upload_may_be_as_large_as_the_limit(server: Server, over: int) -> None:
    around = len(form(part("files", b"", filename="a.png")))
    body = form(part("files", bytes(UPLOAD_BYTES - around + over), filename="a.png"))
    if over:
        with pytest.raises(TooLarge):
            server.receive(sending(*pieces(body, 2**20)))
        assert server.is_empty()
    else:
        assert len(server.receive(sending(*pieces(body, 2**20)))) == 1


def test_an_upload_of_no_end_is_not_read_to_its_end(server: Server) -> None:
    head, read = part("files", b"", filename="a.png")[:-2], [0]

    async def endless() -> Message:
        body = bytes(2**20) if read[0] else head
        read[0] += len(body)
        return {"type": "http.request", "body": body, "more_body": True}

    with pytest.raises(TooLarge):
        server.receive(endless)
    assert UPLOAD_BYTES < read[0] <= UPLOAD_BYTES + 2**20 + len(head)
    assert server.is_empty()


def test_an_upload_that_stalls_ends(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "IDLE_SECONDS", 0.05)

    async def stall() -> str:
        try:
            await server.receiving(sending(GOOD[:-3], then="silence"))
        except TimeoutError:
            return "it ended by itself"
        return "a whole upload"

    assert played(stall()) == "it ended by itself"
    assert server.is_empty()


@pytest.mark.parametrize(("bound", "said"), [("visitor_bytes", TOO_MANY_OF_YOURS), ("total_bytes", FULL)])
def test_an_upload_without_room_is_refused_while_it_arrives(server: Server, bound: str, said: str) -> None:
    setattr(server.files, bound, len(GOOD) - 1)
    with pytest.raises(BusyError, match=said):
        server.receive(sending(*pieces(GOOD, 100)))
    assert server.is_empty()
    setattr(server.files, bound, len(GOOD))
    assert len(server.receive(sending(*pieces(GOOD, 100)))) == 1


def test_a_disk_that_cannot_be_written_leaves_nothing(server: Server, tmp_path: Path) -> None:
    (tmp_path / "uploads").write_bytes(b"a file where the folder should be")
    with pytest.raises(OSError):
        server.receive(sending(GOOD))
    assert server.files.used_bytes == 0


# --- how far it is


def events_of(
    progress: Progress, meanwhile: Callable[[], Awaitable[None]] | None = None
) -> list[dict[str, Any]]:
    """What a page hears of an upload, while something happens."""

    async def follow() -> list[bytes]:
        other = asyncio.ensure_future(meanwhile()) if meanwhile else None
        events = [event async for event in progress_events(progress)]
        if other:
            await other
        return events

    events = played(follow())
    assert all(event.startswith(b"data: ") and event.endswith(b"\n\n") for event in events)
    return [json.loads(event[len(b"data: ") :]) for event in events]


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_POLL_SECONDS", 0.005)


@pytest.mark.usefixtures("_quick")
def test_a_page_hears_how_many_bytes_have_come_and_that_it_is_done() -> None:
    progress = Progress()

    async def arrive() -> None:
        for body in pieces(GOOD, 300):
            progress.note(body)
            while progress.new:
                await asyncio.sleep(0.001)
        progress.is_done = True

    events = events_of(progress, arrive)
    assert [event["msg"] for event in events] == ["update"] * len(pieces(GOOD, 300)) + ["done"]
    assert sum(event["chunk_size"] for event in events[:-1]) == len(GOOD)
    assert {event["orig_name"] for event in events[:-1]} == {"my photo.png"}


def test_who_follows_late_hears_all_at_once() -> None:
    progress = Progress()
    progress.note(GOOD)
    progress.is_done = True
    assert events_of(progress) == [
        {"msg": "update", "orig_name": "my photo.png", "chunk_size": len(GOOD)},
        {"msg": "done"},
    ]


@pytest.mark.usefixtures("_quick")
def test_an_upload_that_never_comes_is_followed_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_FOLLOW_SECONDS", 0.02)
    assert events_of(Progress()) == [{"msg": "done"}]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'filename="Gr\xc3\xb6\xc3\x9fe.png"', "Größe.png"),
        (b'filename="\xff.png"', "�.png"),
        (b'filename="a.png"; filename="b.png"', "a.png"),
        (b'filename=""', ""),
        (b'filename="' + b"x" * 300 + b'"', ""),
        (b'filename="a\r\nb"', ""),
        (b"no name", ""),
    ],
)
def test_the_name_is_the_one_that_the_form_says(body: bytes, name: str) -> None:
    progress = Progress()
    progress.note(body)
    progress.note(b'filename="later.png"' if name else b"")
    assert (progress.name, progress.is_done) == (name, False)


def test_an_upload_and_its_follower_meet_whoever_comes_first() -> None:
    known = Progresses()
    first = known.of("ada", "id 1")
    assert known.of("ada", "id 1") is first
    assert known.of("bob", "id 1") is not first  # an id of another visitor opens nothing
    assert known.of("ada", "id 2") is not first
    known.forget("bob", "id 2")
    known.forget("ada", "id 1")
    assert known.of("ada", "id 1") is not first


def test_of_too_many_uploads_that_one_visitor_follows_the_oldest_is_forgotten() -> None:
    known = Progresses()
    bobs = known.of("bob", "0")
    adas = [known.of("ada", str(n)) for n in range(uploads.MOST_FOLLOWED + 1)]
    assert known.of("bob", "0") is bobs
    assert known.of("ada", str(uploads.MOST_FOLLOWED)) is adas[-1]
    assert known.of("ada", "0") is not adas[0]
    assert len(known._known) == uploads.MOST_FOLLOWED + 1


def test_of_too_many_uploads_of_all_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_MOST_KNOWN", 5)
    known = Progresses()
    first, second = known.of("v0", "x"), known.of("v1", "x")
    for n in range(2, 6):
        known.of(f"v{n}", "x")
    assert len(known._known) == 5
    assert known.of("v1", "x") is second
    assert known.of("v0", "x") is not first


def test_an_upload_is_followed_once() -> None:
    progress = Progress(is_done=True)

    async def followed() -> list[bytes]:
        return [event async for event in progress_events(progress)]

    assert len(played(followed())) == 1
    assert played(followed()) == []


def test_who_sends_too_slowly_gives_the_room_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then keeps no place, though each comes before the idle time is over."""
    now, files = [0.0], UploadFiles(lambda: str(tmp_path))
    monkeypatch.setattr(bodies, "time", SimpleNamespace(monotonic=lambda: now[0]))
    head = b"--b\r\nContent-Disposition: form-data; name=files; filename=x.png\r\n\r\n"
    sent = [head]

    async def receive() -> Message:
        now[0] += bodies.IDLE_SECONDS - 1
        return {"type": "http.request", "body": sent.pop() if sent else b"x", "more_body": True}

    request = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", b"multipart/form-data; boundary=b")],
    }
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        played(receive_upload(request, receive, files, visitor="ada", progress=Progress()))
    assert now[0] < 4 * bodies.IDLE_SECONDS
    assert files.used_bytes == 0


def test_each_second_of_the_slowest_rate_buys_one_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long the next bytes may take: what is left of the idle time and what arrived has bought, and never more than at first."""
    idle = bodies.IDLE_SECONDS
    head = b"--b\r\nContent-Disposition: form-data; name=files; filename=x.png\r\n\r\n"
    now, allowed, files = [0.0], [], UploadFiles(lambda: str(tmp_path))
    arrivals = iter([(0.0, 2.0), (idle - 2.0, 0.0), (1.5, 3.0), (3.5, 0.0)])  # seconds, then bytes in seconds

    def timeout(seconds: float) -> nullcontext[None]:
        allowed.append(seconds)
        return nullcontext()

    async def receive() -> Message:
        passed, bought = next(arrivals)
        now[0] += passed
        body = b"x" * int(bought * bodies.SLOWEST)
        begins = head + body[len(head) :] if allowed == [idle] else body
        return {"type": "http.request", "body": begins, "more_body": True}

    monkeypatch.setattr(bodies, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(timeout=timeout))
    request = {
        "type": "http",
        "method": "POST",
        "headers": [(b"content-type", b"multipart/form-data; boundary=b")],
    }
    with pytest.raises(TimeoutError):
        played(receive_upload(request, receive, files, visitor="ada", progress=Progress()))
    assert allowed == pytest.approx([idle, idle, 2.0, 3.5])


def test_an_id_that_is_long_takes_no_room() -> None:
    known = Progresses()
    one = known.of("ada", "x" * 100_000)
    assert max(len(upload_id) for _, upload_id in known._known) <= 64
    assert known.of("ada", "x" * 100_000) is one
    known.forget("ada", "x" * 100_000)
    assert known._known == {}
