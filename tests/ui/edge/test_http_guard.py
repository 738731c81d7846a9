"""The guard: what is let in, what it answers itself, what is added to answers, and what becomes of failures behind it."""

from __future__ import annotations

import asyncio
import errno
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.ui.loops import played
from vit_viz.errors import BusyError
from vit_viz.session.handles import new_visitor
from vit_viz.turns import Turns
from vit_viz.ui.edge import tending
from vit_viz.ui.edge.admission import OTHERS, SLOW, YOURS
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.guarding import guarded
from vit_viz.ui.edge.http_guard import (
    FOREIGN_PAGE,
    NO_SUCH_HOST,
    NOT_YOURS,
    NOTHING_HERE,
    HttpGuard,
)
from vit_viz.ui.edge.pages import NOT_YOURS as NOT_YOUR_PAGE
from vit_viz.ui.edge.pages import Pages
from vit_viz.ui.edge.refusals import NO_ROOM
from vit_viz.ui.edge.tending import drop_abandoned
from vit_viz.ui.edge.upload_files import UploadFiles
from vit_viz.ui.edge.uploading import NO_PICTURE, TOO_LARGE
from vit_viz.ui.edge.user_errors import NOT_READABLE

QUICK_FN, SLOW_FN = SimpleNamespace(concurrency_id="1"), SimpleNamespace(concurrency_id=SLOW)
ADA = new_visitor()
LOCAL = Exposure.of("127.0.0.1", environment={})


@dataclass
class Queue:
    """Stands for Gradio's queue: what waits there, by id."""

    event_ids_to_events: dict[str, Any] = field(default_factory=dict)
    pending_event_ids_session: dict[str, set[str]] = field(default_factory=dict)
    pending_messages_per_session: dict[str, Any] = field(default_factory=dict)
    cleaned: list[str] = field(default_factory=list)

    def put(self, page: str, fn: Any = QUICK_FN) -> None:
        """One more event of a page."""
        number = str(len(self.event_ids_to_events))
        self.event_ids_to_events[number] = SimpleNamespace(session_hash=page, fn=fn)
        self.pending_event_ids_session.setdefault(page, set()).add(number)
        self.pending_messages_per_session[page] = object()

    async def clean_events(self, *, session_hash: str) -> None:
        """As Gradio's: what waits is taken out."""
        self.cleaned.append(session_hash)
        events = self.event_ids_to_events
        for number in [n for n, event in events.items() if event.session_hash == session_hash]:
            del events[number]


@dataclass
class Blocks:
    """Stands for the page behind the guard."""

    files: UploadFiles
    open_pages: Pages = field(default_factory=Pages)
    _queue: Queue = field(default_factory=Queue)
    fns: dict[int, Any] = field(default_factory=lambda: {3: QUICK_FN, 4: SLOW_FN})
    abandoned: list[str] = field(default_factory=list)

    def on_abandoned(self, owner: str) -> None:
        """Note an owner of whom nobody listens."""
        self.abandoned.append(owner)


async def page(_request: Request) -> Response:
    return HTMLResponse("<p>page", headers={"content-security-policy": "default-src 'self'"})


async def static(request: Request) -> Response:
    assert "x-forwarded-host" not in request.headers
    headers = {"cache-control": "max-age=60", "access-control-allow-origin": "https://elsewhere.example"}
    return PlainTextResponse("script", headers=headers)


async def fault(_request: Request) -> Response:
    raise KeyError("secret")


async def broken_stream(_request: Request) -> Response:
    async def parts() -> Any:
        yield b"first"
        raise KeyError("secret")

    return StreamingResponse(parts())


async def joined(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


async def reached(_request: Request) -> Response:
    return PlainTextResponse("reached")


ROUTES = [
    Route("/", page),
    Route("/assets/x.js", static),
    Route("/vit_viz/fault", fault),
    Route("/gradio_api/app_id", fault),
    Route("/gradio_api/queue/join", joined, methods=["POST"]),
    Route("/gradio_api/cancel", joined, methods=["POST"]),
    Route("/gradio_api/queue/data", broken_stream),
    Route("/gradio_api/deep_link", reached),
    Route("/gradio_api/file={path:path}", reached),
    Route("/gradio_api/heartbeat/{name}", reached),
    Route("/gradio_api/upload", reached, methods=["POST"]),
]


class Behind(Starlette):
    """Stands for Gradio's app behind the guard."""

    def __init__(self, blocks: Blocks, exposure: Exposure) -> None:
        self.turns = Turns()
        super().__init__(routes=ROUTES, **guarded(exposure, turns=self.turns))
        self.blocks = blocks
        self.stop_event = asyncio.Event()

    def get_blocks(self) -> Any:
        return self.blocks


@pytest.fixture
def blocks(tmp_path: Path) -> Blocks:
    return Blocks(UploadFiles(lambda: str(tmp_path / "uploads")))


@pytest.fixture
def open_client(blocks: Blocks) -> Iterator[Callable[..., TestClient]]:
    """A new browser before the same app; `exposure` is how the app is reached."""
    opened: list[TestClient] = []

    def make(exposure: Exposure = LOCAL, *, host: str = "127.0.0.1") -> TestClient:
        client = TestClient(
            Behind(blocks, exposure), base_url=f"http://{host}:7860", raise_server_exceptions=False
        )
        opened.append(client.__enter__())
        return client

    yield make
    for client in opened:
        client.__exit__(None, None, None)


@pytest.fixture
def client(open_client: Callable[..., TestClient]) -> TestClient:
    client = open_client()
    client.get("/")
    return client


def ask(client: TestClient, name: Any = "abcd1", number: Any = 3, **more: Any) -> Any:
    return client.post("/gradio_api/queue/join", json={"session_hash": name, "fn_index": number, **more})


# --- names, hosts, addresses


def test_every_answer_has_the_security_headers(client: TestClient) -> None:
    for path in (
        "/",
        "/nowhere",
        "/assets/x.js",
        "/gradio_api/file=x",
        "/vit_viz/fault",
        "/gradio_api/app_id",
    ):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin", path
        assert "access-control-allow-origin" not in headers, path
        assert ("no-store" in headers["cache-control"]) == (path != "/assets/x.js"), path
    assert "default-src 'none'" in client.get("/vit_viz/fault").headers["content-security-policy"]


def test_a_page_gives_a_browser_a_name_once(open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    first = client.get("/").headers["set-cookie"]
    assert first.startswith("vit_viz=")
    assert "HttpOnly; SameSite=Lax" in first
    assert "set-cookie" not in client.get("/").headers
    client.cookies.clear()
    assert client.get("/").headers["set-cookie"] != first
    client.cookies.clear()
    assert "set-cookie" not in client.get("/assets/x.js").headers


def test_https_is_believed_only_where_there_is_a_proxy(open_client: Callable[..., TestClient]) -> None:
    said = {"x-forwarded-proto": "https"}
    assert "SameSite=Lax" in open_client().get("/", headers=said).headers["set-cookie"]
    told = Exposure.of("127.0.0.1", environment={"VIT_VIZ_BEHIND_PROXY": "1"})
    assert (
        "SameSite=None; Secure; Partitioned" in open_client(told).get("/", headers=said).headers["set-cookie"]
    )


def test_headers_that_nobody_vouches_for_are_not_passed_on(client: TestClient) -> None:
    assert client.get("/assets/x.js", headers={"x-forwarded-host": "elsewhere.example"}).text == "script"


def test_a_host_name_of_another_site_gets_nothing(open_client: Callable[..., TestClient]) -> None:
    answer = open_client(host="rebound.example").get("/")
    assert (answer.status_code, answer.text) == (421, NO_SUCH_HOST)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/gradio_api/deep_link", "/config", "/assets/../x", "/gradio_api/file/x", "/docs"]
)
def test_an_address_that_the_page_does_not_use_is_not_reached(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert NOTHING_HERE in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_can_link_here_and_nothing_else(client: TestClient, site: str) -> None:
    headers = {"sec-fetch-site": site}
    assert client.get("/", headers=headers).status_code == 200
    for answer in (
        client.post("/gradio_api/queue/join", json={}, headers=headers),
        client.get("/gradio_api/heartbeat/abcd", headers=headers),
        client.get("/vit_viz/fault", headers=headers),
    ):
        assert answer.status_code == 403
        assert FOREIGN_PAGE in answer.text


# --- questions


def test_a_question_reaches_gradio_whole(client: TestClient) -> None:
    answer = ask(client, data=["x" * 1000])
    assert answer.status_code == 200
    assert int(answer.text) > 1000


@pytest.mark.parametrize("name", ["", "UPPER", "../x", "a" * 33, "abc", 5, None, ["abcd"]])
def test_a_page_has_a_name_of_the_usual_shape(client: TestClient, name: Any) -> None:
    answer = ask(client, name)
    assert (answer.status_code, answer.json()["detail"]) == (400, NOT_READABLE)


@pytest.mark.parametrize("number", ["3", None, 1.5, True, [3]])
def test_a_question_names_its_handler_by_number(client: TestClient, number: Any) -> None:
    assert ask(client, number=number).status_code == 400


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"nonsense", b"[" * 5000, b"\xff"])
def test_a_question_that_cannot_be_read_is_refused(client: TestClient, body: bytes) -> None:
    for path in ("queue/join", "cancel"):
        answer = client.post(f"/gradio_api/{path}", content=body)
        assert (answer.status_code, answer.json()["detail"]) == (400, NOT_READABLE)


def test_the_page_of_one_visitor_is_worthless_to_another(
    client: TestClient, open_client: Callable[..., TestClient]
) -> None:
    eve = open_client()
    eve.get("/")
    assert ask(client).status_code == 200
    for answer in (
        ask(eve),
        eve.get("/gradio_api/queue/data?session_hash=abcd1"),
        eve.get("/gradio_api/heartbeat/abcd1"),
        eve.post("/gradio_api/cancel", json={"session_hash": "abcd1", "event_id": "0", "fn_index": 3}),
    ):
        assert (answer.status_code, answer.json()["detail"]) == (400, NOT_YOUR_PAGE)


def test_a_question_of_another_page_is_not_cancelled(client: TestClient, blocks: Blocks) -> None:
    blocks._queue.put("other1")
    body = {"session_hash": "abcd1", "event_id": "0", "fn_index": 3}
    assert client.post("/gradio_api/cancel", json=body).status_code == 400
    assert client.post("/gradio_api/cancel", json=body | {"event_id": "unknown"}).status_code == 200


def test_slow_questions_of_one_visitor_leave_room_for_quick_ones_and_for_others(
    client: TestClient, blocks: Blocks, open_client: Callable[..., TestClient]
) -> None:
    assert ask(client, number=4).status_code == 200
    for _ in range(8):
        blocks._queue.put("abcd1", SLOW_FN)
    answer = ask(client, number=4)
    assert (answer.status_code, answer.json()["detail"]) == (429, YOURS)
    assert ask(client, number=3).status_code == 200
    bob = open_client()
    bob.get("/")
    assert ask(bob, "page2", 4).status_code == 200


def test_questions_that_come_at_once_are_counted_before_gradio_knows_them(blocks: Blocks) -> None:
    guard = HttpGuard(lambda *_: None, SimpleNamespace(get_blocks=lambda: blocks), LOCAL)  # type: ignore[arg-type,return-value]
    page = blocks.open_pages.admit("abcd1", "ada", "ada")
    with ExitStack() as let_in:
        for _ in range(8):  # the places of one visitor in this lane
            let_in.enter_context(guard.place(SLOW, page))
        with pytest.raises(BusyError, match=YOURS):
            let_in.enter_context(guard.place(SLOW, page))
    with guard.place(SLOW, page):
        pass  # they are over, and there is room again


@pytest.mark.parametrize(
    ("path", "is_quick"),
    [
        ("/", True),
        ("/assets/x.js", True),
        ("/gradio_api/app_id", True),
        ("/vit_viz/fault", True),
        ("/gradio_api/queue/data?session_hash=abcd1", False),  # open as long as a page is
        ("/gradio_api/cancel", False),
    ],
)
def test_slow_computations_are_told_of_a_quick_request_as_long_as_it_is_open(
    blocks: Blocks, path: str, is_quick: bool
) -> None:
    app, seen = Behind(blocks, LOCAL), list[bool]()

    async def note(scope: Any, receive: Any, send: Any) -> None:
        seen.append(app.turns.has_quick_questions())
        raise KeyError("secret")

    with TestClient(app, base_url="http://127.0.0.1:7860", raise_server_exceptions=False) as client:
        app.middleware_stack.app = note  # type: ignore[union-attr]
        client.request("POST" if path.endswith("cancel") else "GET", path, json={"session_hash": "abcd1"})
        assert seen == [is_quick]
        assert not app.turns.has_quick_questions(), "it is over, though it failed"


def test_slow_computations_are_told_of_quick_questions_and_not_of_slow_ones(blocks: Blocks) -> None:
    app = Behind(blocks, LOCAL)
    with TestClient(app):
        blocks._queue.put("abcd1", SLOW_FN)
        assert not app.turns.has_quick_questions()
        blocks._queue.put("abcd1", QUICK_FN)
        assert app.turns.has_quick_questions()


def test_a_full_lane_says_that_others_are_the_reason(client: TestClient, blocks: Blocks) -> None:
    for visitor in range(8):
        blocks.open_pages.admit(f"crowd{visitor}", f"visitor {visitor}", "x")
        for _ in range(8):
            blocks._queue.put(f"crowd{visitor}", SLOW_FN)
    answer = ask(client, number=4)
    assert (answer.status_code, answer.json()["detail"]) == (429, OTHERS)
    assert ask(client, number=3).status_code == 200


def test_questions_that_nobody_listens_for_are_dropped(blocks: Blocks) -> None:
    now = [100.0]
    blocks.open_pages = Pages(clock=lambda: now[0])
    ada, bob = (blocks.open_pages.admit(f"page{i}", f"cookie {i}", f"owner {i}") for i in range(2))
    for one in (ada, bob):
        with blocks.open_pages.asking(one):
            blocks._queue.put(one.name)
    with blocks.open_pages.listening(ada):
        now[0] += 60
    with blocks.open_pages.listening(bob):
        now[0] += 1.4
        played(drop_abandoned(blocks))  # type: ignore[arg-type]
        assert blocks._queue.cleaned == []
        now[0] += 0.2
        played(drop_abandoned(blocks))  # type: ignore[arg-type]
        played(drop_abandoned(blocks))  # type: ignore[arg-type]
    assert blocks._queue.cleaned == ["page0"]
    assert blocks.abandoned == ["owner 0"]
    assert "page0" not in blocks._queue.pending_event_ids_session
    assert "page0" not in blocks._queue.pending_messages_per_session


# --- heartbeats, uploads, files


def test_a_heartbeat_beats_without_gradio_and_ends_with_the_page(blocks: Blocks) -> None:
    left: list[str] = []
    blocks.open_pages.on_left = left.append
    app = Behind(blocks, LOCAL)
    sent: list[Any] = []

    async def play() -> None:
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if b"ALIVE" in message.get("body", b""):
                assert blocks.open_pages.find("abcd1").heartbeats == 1  # type: ignore[union-attr]
                gone.set()

        guard = HttpGuard(app, app, LOCAL)
        await guard(scope("/gradio_api/heartbeat/abcd1", cookie=ADA), receive, send)

    played(play())
    assert sent[0]["status"] == 200
    assert left == [ADA]
    assert blocks.open_pages.find("abcd1").heartbeats == 0  # type: ignore[union-attr]


def scope(path: str, *, cookie: str) -> dict[str, Any]:
    """A GET as the web server hands it on."""
    headers = [(b"host", b"127.0.0.1"), (b"cookie", f"vit_viz={cookie}".encode())]
    return {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http",
        "headers": headers, "client": ("127.0.0.1", 5), "asgi": {"version": "3.0", "spec_version": "2.3"},
    }  # fmt: skip


def picture() -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (31, 17), (1, 2, 3)).save(stream, "PNG")
    return stream.getvalue()


def upload(client: TestClient, content: bytes, name: str = "photo.png") -> Any:
    return client.post("/gradio_api/upload", files={"files": (name, content)})


def test_an_uploaded_file_is_its_own_browsers_by_its_own_path(
    client: TestClient, open_client: Callable[..., TestClient]
) -> None:
    path = upload(client, picture()).json()[0]
    answer = client.get(f"/gradio_api/file={path}", headers={"range": "bytes=0-3", "cookie2": "secret"})
    assert (answer.status_code, answer.content) == (200, picture())
    assert answer.headers["content-type"] == "image/png"
    assert "range" not in "".join(answer.headers).lower().replace("accept-ranges", "range")
    folder, _, name = path.rpartition("/")
    for form in (f"{folder}//{name}", f"{folder}/%2e/{name}", f"{path}/", "https://elsewhere.example/x.png"):
        refused = client.get(f"/gradio_api/file={form}")
        assert (refused.status_code, refused.json()["detail"]) == (404, NOT_YOURS), form
    assert open_client().get(f"/gradio_api/file={path}").status_code == 404


def test_a_file_that_is_no_picture_is_never_shown(client: TestClient) -> None:
    path = upload(client, b"<script>alert(1)</script>", "page.html").json()[0]
    answer = client.get(f"/gradio_api/file={path}")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment"


def test_an_upload_without_a_picture_is_one_sentence(client: TestClient, tmp_path: Path) -> None:
    for answer in (
        client.post("/gradio_api/upload", data={"files": "text"}),
        client.post("/gradio_api/upload", content=b"nothing"),
        client.post("/gradio_api/upload", files=[("files", ("a", b"1")), ("files", ("b", b"2"))]),
        client.post("/gradio_api/upload", content=b"x", headers={"content-type": "multipart/form-data"}),
    ):
        assert (answer.status_code, answer.text) == (400, NO_PICTURE)
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize("has_length", [True, False])
def test_a_body_is_bounded_with_and_without_a_length(client: TestClient, has_length: bool) -> None:
    body = json.dumps({"session_hash": "abcd1", "fn_index": 3}).encode()
    most = 2 * 2**20

    def post(content: bytes) -> Any:
        parts = content if has_length else (content[i : i + 2**16] for i in range(0, len(content), 2**16))
        return client.post("/gradio_api/queue/join", content=parts)

    assert post(body.ljust(most)).status_code == 200
    answer = post(body.ljust(most + 1))
    assert (answer.status_code, answer.json()["detail"]) == (413, TOO_LARGE)


def test_an_upload_is_bounded(client: TestClient, blocks: Blocks) -> None:
    assert upload(client, bytes(20 * 10**6)).status_code == 200
    answer = upload(client, bytes(20 * 2**20))  # and its wrapping
    assert (answer.status_code, answer.text) == (413, TOO_LARGE)
    assert blocks.files.used_bytes == 20 * 10**6


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "²"])
def test_a_length_that_is_no_number_is_refused(client: TestClient, length: str) -> None:
    headers = [(b"content-length", length.encode())]
    assert client.post("/gradio_api/queue/join", content=b"x", headers=headers).status_code == 400  # type: ignore[arg-type]


def test_a_full_disk_is_one_sentence(
    client: TestClient, blocks: Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(blocks.files, "keep", full)
    answer = upload(client, picture())
    assert (answer.status_code, answer.text) == (507, NO_ROOM)


def test_the_progress_of_an_upload_is_told_to_its_own_page(
    client: TestClient, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vit_viz.ui.edge.uploading._FOLLOW_SECONDS", 0.2)
    assert client.post("/gradio_api/upload?upload_id=one", files={"files": ("a.png", picture())}).is_success
    told = client.get("/gradio_api/upload_progress?upload_id=one").text
    assert '"orig_name": "a.png"' in told
    assert told.rstrip().endswith('{"msg": "done"}')
    eve = open_client()
    assert "a.png" not in eve.get("/gradio_api/upload_progress?upload_id=one").text


# --- failures


def test_a_fault_of_the_api_is_the_visitors_and_says_nothing(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.get("/gradio_api/app_id")
    assert answer.status_code == 400
    assert "secret" not in answer.text + caplog.text


def test_a_fault_of_a_route_is_one_sentence_and_logged(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.get("/vit_viz/fault")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "unexpected exception" in caplog.text


def test_an_answer_that_breaks_off_ends_quietly(client: TestClient) -> None:
    answer = client.get("/gradio_api/queue/data?session_hash=abcd1")
    assert (answer.status_code, answer.text) == (200, "first")


def test_what_fails_while_the_app_is_tended_does_not_end_the_tending(
    blocks: Blocks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tending, "TEND_SECONDS", 0.001)
    swept: list[int] = []

    def sweep() -> None:
        swept.append(1)
        raise OSError("once more")

    monkeypatch.setattr(blocks.files, "sweep", sweep)

    async def play() -> None:
        task = asyncio.create_task(tending.tend(blocks))  # type: ignore[arg-type]
        while len(swept) < 3:
            await asyncio.sleep(0.001)
        task.cancel()

    played(play())
    assert "tending the app failed" in caplog.text
