"""The guard: what is let in, what it answers itself, what is added to answers, and what becomes of failures behind it."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import secrets
import threading
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
from tests.waiting import until
from vit_viz.errors import BusyError
from vit_viz.session.handles import new_visitor
from vit_viz.turns import Turns
from vit_viz.ui.edge import bodies, http_guard, passage
from vit_viz.ui.edge.addresses import FOREIGN_PAGE, NO_ROOM, NO_SUCH_HOST, NOTHING_HERE
from vit_viz.ui.edge.admission import OTHERS, SLOW, YOURS, Buckets
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.http_guard import HttpGuard, drop_abandoned, guarded
from vit_viz.ui.edge.pages import NOT_YOURS as NOT_YOUR_PAGE, Pages
from vit_viz.ui.edge.passage import ALIVE, MOST_STREAMS, NOT_ALIVE, NOT_YOURS
from vit_viz.ui.edge.shared_limits import TOO_QUICKLY
from vit_viz.ui.edge.uploads import NO_PICTURE, TOO_LARGE, UploadFiles
from vit_viz.ui.edge.user_errors import NOT_READABLE

QUICK_FN, SLOW_FN = SimpleNamespace(concurrency_id="1"), SimpleNamespace(concurrency_id=SLOW)
ADA = new_visitor()
LOCAL = Exposure.of("127.0.0.1", environment={})


@dataclass
class Queue:
    """Stands for the queue: what waits there, by id."""

    event_ids_to_events: dict[str, Any] = field(default_factory=dict)
    pending_event_ids_session: dict[str, set[str]] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    revivals: int = 0
    is_alive: bool = True
    has_failed: bool = False

    def put(self, page: str, fn: Any = QUICK_FN) -> None:
        """One more event of a page."""
        number = str(len(self.event_ids_to_events))
        self.event_ids_to_events[number] = SimpleNamespace(session_hash=page, fn=fn)
        self.pending_event_ids_session.setdefault(page, set()).add(number)

    def forget(self, page: str) -> None:
        """Take the questions of a page out."""
        self.forgotten.append(page)
        self.pending_event_ids_session.pop(page, None)

    def cancel(self, event_id: str) -> None:
        """Note whose end was asked for."""
        self.cancelled.append(event_id)

    def revive(self) -> None:
        """Fail the first time."""
        self.revivals += 1
        if self.revivals == 1:
            raise OSError
        self.has_failed = False


@dataclass
class Blocks:
    """Stands for the page behind the guard."""

    files: UploadFiles
    open_pages: Pages = field(default_factory=Pages)
    questions: Queue = field(default_factory=Queue)
    fns: dict[int, Any] = field(default_factory=lambda: {3: QUICK_FN, 4: SLOW_FN})
    abandoned: list[str] = field(default_factory=list)
    config: dict[str, str] = field(default_factory=lambda: {"theme": "light"})

    def on_abandoned(self, owner: str) -> None:
        """Note an owner of whom nobody listens."""
        self.abandoned.append(owner)


async def page(_request: Request) -> Response:
    return HTMLResponse("<p>page")


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
    Route("/gradio_api/queue/data", broken_stream),
    Route("/gradio_api/deep_link", reached),
    Route("/gradio_api/file={path:path}", reached),
    Route("/gradio_api/heartbeat/{name}", reached),
    Route("/gradio_api/upload", reached, methods=["POST"]),
]


class Behind(Starlette):
    """Stands for Gradio's app behind the guard."""

    def __init__(self, blocks: Blocks, exposure: Exposure, **options: Any) -> None:
        self.turns = Turns()
        super().__init__(routes=ROUTES, **guarded(exposure, turns=self.turns, **options))
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
    client.app.stop_event.set()  # type: ignore[attr-defined]  # so that a heartbeat that is let in ends
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
    blocks.questions.put("other1")
    body = {"session_hash": "abcd1", "event_id": "0", "fn_index": 3}
    assert client.post("/gradio_api/cancel", json=body).status_code == 400
    assert blocks.questions.cancelled == []
    blocks.questions.put("abcd1")
    answer = client.post("/gradio_api/cancel", json=body | {"event_id": "1"})
    assert (answer.status_code, answer.json()) == (200, {"success": True})
    assert blocks.questions.cancelled == ["1"]
    assert client.post("/gradio_api/cancel", json=body | {"event_id": "unknown"}).status_code == 200


def test_slow_questions_of_one_visitor_leave_room_for_quick_ones_and_for_others(
    client: TestClient, blocks: Blocks, open_client: Callable[..., TestClient]
) -> None:
    assert ask(client, number=4).status_code == 200
    for _ in range(8):
        blocks.questions.put("abcd1", SLOW_FN)
    answer = ask(client, number=4)
    assert (answer.status_code, answer.json()["detail"]) == (429, YOURS)
    assert ask(client, number=3).status_code == 200
    bob = open_client()
    bob.get("/")
    assert ask(bob, "page2", 4).status_code == 200


def test_questions_that_come_at_once_are_counted_before_gradio_knows_them(blocks: Blocks) -> None:
    guard = HttpGuard(lambda *_: None, SimpleNamespace(get_blocks=lambda: blocks), LOCAL)  # type: ignore[arg-type]
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
        ("/gradio_api/queue/join", True),
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
        body = {"session_hash": "abcd1", "fn_index": 3}
        client.request("POST" if path.endswith("join") else "GET", path, json=body)
        assert seen == [is_quick]
        assert not app.turns.has_quick_questions(), "it is over, though it failed"


def test_slow_computations_are_told_of_quick_questions_and_not_of_slow_ones(blocks: Blocks) -> None:
    app = Behind(blocks, LOCAL)
    with TestClient(app):
        blocks.questions.put("abcd1", SLOW_FN)
        assert not app.turns.has_quick_questions()
        blocks.questions.put("abcd1", QUICK_FN)
        assert app.turns.has_quick_questions()


def test_a_full_lane_says_that_others_are_the_reason(client: TestClient, blocks: Blocks) -> None:
    for visitor in range(8):
        blocks.open_pages.admit(f"crowd{visitor}", f"visitor {visitor}", "x")
        for _ in range(8):
            blocks.questions.put(f"crowd{visitor}", SLOW_FN)
    answer = ask(client, number=4)
    assert (answer.status_code, answer.json()["detail"]) == (429, OTHERS)
    assert ask(client, number=3).status_code == 200


@pytest.mark.parametrize(("is_known", "let_in"), [(True, 22), (False, 64)])
def test_many_browsers_of_one_address_fill_a_third_of_the_slow_lane_where_addresses_are_known(
    blocks: Blocks, open_client: Callable[..., TestClient], is_known: bool, let_in: int
) -> None:
    """22 of 64: each question of an address, which may have 32, leaves less to the next one."""
    environment = {"VIT_VIZ_ADDRESS_HEADER": "x-real-ip"} if is_known else {}
    client = open_client(Exposure.of("127.0.0.1", environment=environment))

    def status(name: str, address: str) -> int:
        headers = {"cookie": f"vit_viz={new_visitor()}", "x-real-ip": address}
        body = {"session_hash": name, "fn_index": 4}
        return int(client.post("/gradio_api/queue/join", json=body, headers=headers).status_code)

    for number in range(let_in):
        assert status(f"near{number}", "203.0.113.5") == 200, number
        blocks.questions.put(f"near{number}", SLOW_FN)
    assert status("near", "203.0.113.5") == 429
    assert status("distant", "198.51.100.7") == (200 if is_known else 429)


def test_questions_that_nobody_listens_for_are_dropped(blocks: Blocks) -> None:
    now = [100.0]
    blocks.open_pages = Pages(clock=lambda: now[0])
    ada, bob = (blocks.open_pages.admit(f"page{i}", f"cookie {i}", f"owner {i}") for i in range(2))
    for one in (ada, bob):
        with blocks.open_pages.asking(one):
            blocks.questions.put(one.name)
    with blocks.open_pages.listening(ada):
        now[0] += 60
    with blocks.open_pages.listening(bob):
        now[0] += 1.4
        drop_abandoned(blocks)  # type: ignore[arg-type]
        assert blocks.questions.forgotten == []
        now[0] += 0.2
        drop_abandoned(blocks)  # type: ignore[arg-type]
        drop_abandoned(blocks)  # type: ignore[arg-type]
    assert blocks.questions.forgotten == ["page0"]
    assert blocks.abandoned == ["owner 0"]


@pytest.mark.parametrize("more", [{"batched": True}, {"simple_format": True}, {"batched": 1, "x": 2}])
def test_a_question_in_another_form_than_the_page_s_is_refused(client: TestClient, more: Any) -> None:
    answer = ask(client, **more)
    assert (answer.status_code, answer.json()["detail"]) == (400, NOT_READABLE)
    assert ask(client, **dict.fromkeys(more, False)).status_code == 200


# --- whether the queue lives


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_whoever_keeps_the_app_running_learns_whether_questions_are_answered(
    open_client: Callable[..., TestClient], blocks: Blocks, method: str
) -> None:
    client = open_client()
    blocks.questions.put("abcd1")
    for is_alive, status, text in ((True, 200, ALIVE), (False, 503, NOT_ALIVE), (True, 200, ALIVE)):
        blocks.questions.is_alive = is_alive
        answer = client.request(method, "/health")
        assert (answer.status_code, answer.text) == (status, text if method == "GET" else "")
        assert "set-cookie" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"


def test_a_page_of_another_site_does_not_learn_it(client: TestClient) -> None:
    assert client.get("/health", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/health", headers={"host": "rebound.example"}).status_code == 421


def test_a_queue_that_failed_is_started_again_and_again(
    blocks: Blocks, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_guard, "REVIVE_SECONDS", 0.001)
    with TestClient(Behind(blocks, LOCAL)):
        assert blocks.questions.revivals == 0
        blocks.questions.has_failed = True
        until(lambda: blocks.questions.revivals == 2, what="the second try")
        until(lambda: not blocks.questions.has_failed)
    assert "could not be started again" in caplog.text


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
    assert client.post("/gradio_api/queue/join", content=b"x", headers=headers).status_code == 400


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
    monkeypatch.setattr("vit_viz.ui.edge.uploads._FOLLOW_SECONDS", 0.2)
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
    monkeypatch.setattr(http_guard, "TEND_SECONDS", 0.001)
    swept: list[int] = []

    def sweep() -> None:
        swept.append(1)
        raise OSError("once more")

    monkeypatch.setattr(blocks.files, "sweep", sweep)

    async def play() -> None:
        task = asyncio.create_task(http_guard.tend(blocks))  # type: ignore[arg-type]
        while len(swept) < 3:
            await asyncio.sleep(0.001)
        task.cancel()

    played(play())
    assert "tending the app failed" in caplog.text


# --- streams of a page, refusals that go on, readers who do not read


@pytest.mark.parametrize(
    ("path", "kind"), [("queue/data?session_hash=abcd1", "listeners"), ("heartbeat/abcd1", "heartbeats")]
)
@pytest.mark.parametrize("open_already", [0, 3, 4, 5])
def test_a_page_has_at_most_four_streams_of_each_kind(
    client: TestClient,
    blocks: Blocks,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    kind: str,
    open_already: int,
) -> None:
    client.app.stop_event.set()  # type: ignore[attr-defined]  # so that a heartbeat ends at once
    ask(client)
    page = blocks.open_pages.find("abcd1")
    setattr(page, kind, open_already)
    status = client.get(f"/gradio_api/{path}").status_code
    assert status == (429 if open_already >= MOST_STREAMS else 200)
    assert getattr(page, kind) == open_already
    other = "listeners" if kind == "heartbeats" else "heartbeats"
    setattr(page, kind, 0)
    setattr(page, other, MOST_STREAMS)  # those of the other kind do not count
    assert client.get(f"/gradio_api/{path}").status_code == 200


def test_whoever_is_refused_again_and_again_hears_it_later_and_others_do_not(
    open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    client, other = open_client(), open_client()
    client.app.middleware_stack.refusals = Buckets(burst=2, per_second=2, clock=lambda: 0.0)  # type: ignore[attr-defined]
    other.app.middleware_stack = client.app.middleware_stack  # type: ignore[attr-defined]
    for one in (client, other):
        one.get("/")
    monkeypatch.setattr(passage, "asyncio", SimpleNamespace(sleep=sleep))
    for path in (
        "/nowhere",
        "/vit_viz/fault",
        "/gradio_api/file=x",
        "/nowhere",
    ):  # ours, a route's, a file's: all count
        assert client.get(path).status_code >= 400
    assert client.get("/").status_code == 200
    assert other.get("/nowhere").status_code == 404
    assert pauses == [0.0, 0.0, 0.5, 1.0, 0.0]
    for _ in range(20):
        client.get("/nowhere")
    assert pauses[-1] == passage.LONGEST_PAUSE_SECONDS


def test_new_pages_of_one_visitor_come_only_so_fast(open_client: Callable[..., TestClient]) -> None:
    """By any door; the pages that are open go on, other visitors open theirs, and what was refused does not count."""
    client, other, now = open_client(), open_client(), [100.0]
    guard: Any = client.app.middleware_stack  # type: ignore[attr-defined]
    guard.openings = Buckets(burst=3, per_second=0.5, clock=lambda: now[0])
    other.app.middleware_stack = guard  # type: ignore[attr-defined]
    for one in (client, other):
        one.get("/")
    assert [ask(client, f"name{n}").status_code for n in range(3)] == [200] * 3
    for _ in range(4):
        refused = ask(client, secrets.token_hex(8))
        assert (refused.status_code, refused.json()["error"]) == (429, TOO_QUICKLY)
    for path in ("heartbeat/name9", "queue/data?session_hash=name9"):
        assert client.get(f"/gradio_api/{path}").status_code == 429
    assert guard.blocks.open_pages.find("name9") is None
    assert [ask(client, f"name{n}").status_code for n in range(3)] == [200] * 3
    assert ask(other, "theirs").status_code == 200
    now[0] += 2.0
    assert [ask(client, name).status_code for name in ("name4", "name5")] == [200, 429]
    now[0] += 100.0
    assert [ask(client, f"later{n}").status_code for n in range(4)] == [200, 200, 200, 429]


def test_new_pages_from_one_address_come_only_so_fast_where_addresses_are_known(
    open_client: Callable[..., TestClient],
) -> None:
    """A cookie is to be had by whoever drops the last one."""
    client = open_client(Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": "x-real-ip"}))
    guard: Any = client.app.middleware_stack  # type: ignore[attr-defined]
    guard.openings_from = Buckets(burst=2, per_second=1, clock=lambda: 0.0)

    def opens(address: str) -> int:
        client.cookies.clear()
        client.get("/")
        client.headers["x-real-ip"] = address
        return int(ask(client, secrets.token_hex(8)).status_code)

    assert [opens("8.8.8.8") for _ in range(4)] == [200, 200, 429, 429]
    assert [opens("9.9.9.9") for _ in range(2)] == [200, 200]


def test_an_answer_that_nobody_reads_is_given_up(blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who stops in the middle is waited for only so long; one who goes on reading gets all of it."""
    content, deadlines = bytes(range(256)) * 1024, list[asyncio.Timeout]()

    def timeout(_seconds: float) -> asyncio.Timeout:
        deadlines.append(asyncio.timeout(None))
        return deadlines[-1]

    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(timeout=timeout))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(content)(scope, receive, send)

    async def play(parts_read: int) -> tuple[bytes, int]:
        behind = Behind(blocks, LOCAL)
        guard = HttpGuard(app, behind, LOCAL)
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            if len(sent) > parts_read:
                deadlines[-1].reschedule(0)  # the time for this part is over
                await asyncio.Event().wait()
            sent.append(message)

        await guard(scope("/vit_viz/large", cookie=ADA), receive, send)
        assert not guard.answer_turns.is_busy
        return b"".join(message.get("body", b"") for message in sent), guard.answer_turns.unread_bytes

    assert played(play(9)) == (content, 0)
    some, unread = played(play(2))
    assert 0 < len(some) < len(content)
    assert content.startswith(some)
    assert unread == 0


def test_what_lies_unread_counts_until_its_last_part_is_taken(blocks: Blocks) -> None:
    content, seen = bytes(200_000), []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(content)(scope, receive, send)

    async def play() -> None:
        guard = HttpGuard(app, Behind(blocks, LOCAL), LOCAL)

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            seen.append(
                (len(message.get("body", b"")), guard.answer_turns.unread_bytes, guard.answer_turns.is_busy)
            )

        await guard(scope("/vit_viz/large", cookie=ADA), receive, send)

    played(play())
    assert seen == [(0, 0, True), *[(2**16, 200_000, False)] * 3, (200_000 - 3 * 2**16, 200_000, False)]


SITES = [
    ("http://127.0.0.1:7860", "127.0.0.1:7860", False),
    ("http://127.0.0.1", "127.0.0.1", False),
    ("http://127.0.0.1:80", "127.0.0.1", False),
    ("http://127.0.0.1", "127.0.0.1:80", False),
    ("https://127.0.0.1", "127.0.0.1:443", False),
    ("HTTP://LOCALHOST:7860", "localhost:7860", False),
    ("http://127.0.0.1:7861", "127.0.0.1:7860", True),
    ("http://127.0.0.1", "127.0.0.1:443", True),
    ("http://localhost:7860", "127.0.0.1:7860", True),
    ("http://elsewhere.example", "127.0.0.1:7860", True),
    ("http://127.0.0.1:7860.elsewhere.example", "127.0.0.1:7860", True),
    ("null", "127.0.0.1:7860", True),
    ("", "127.0.0.1:7860", True),
]


@pytest.mark.parametrize(("origin", "host", "is_foreign"), SITES)
def test_an_origin_is_that_of_the_page_itself(
    client: TestClient, origin: str, host: str, is_foreign: bool
) -> None:
    headers = {"origin": origin, "host": host}
    answer = client.post(
        "/gradio_api/queue/join", json={"session_hash": "abcd1", "fn_index": 3}, headers=headers
    )
    assert (answer.status_code == 403) == is_foreign
    assert client.get("/", headers=headers).status_code == 200  # a link to the page is no use of it
    said = headers | {"sec-fetch-site": "same-origin"}
    assert client.get("/vit_viz/fault", headers=said).status_code == 500


def test_the_host_that_a_trusted_proxy_names_is_ours(open_client: Callable[..., TestClient]) -> None:
    headers = {"origin": "https://vit.example", "x-forwarded-host": "vit.example"}
    told = Exposure.of("127.0.0.1", environment={"VIT_VIZ_BEHIND_PROXY": "1"})
    for exposure, status in ((told, 200), (LOCAL, 403)):
        body = {"session_hash": "abcd1", "fn_index": 3}
        answer = open_client(exposure).post("/gradio_api/queue/join", json=body, headers=headers)
        assert answer.status_code == status


def test_what_the_first_page_need_not_wait_for_begins_once_the_app_is_up(
    blocks: Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not where the app has ended before."""
    begun: list[str] = []
    for name, seconds, is_up in (("soon", 0.0, True), ("never", 3600.0, True), ("not up", 0.0, False)):
        monkeypatch.setattr(http_guard, "BEGIN_SECONDS", seconds)
        app = Behind(blocks, LOCAL, begin=lambda name=name: begun.append(name))
        with TestClient(app, base_url="http://127.0.0.1:7860") if is_up else ExitStack() as client:
            if is_up:
                assert client.get("/").status_code == 200
                until(lambda: begun == ["soon"], what="the beginning")
    assert begun == ["soon"]
    until(lambda: not any(isinstance(one, threading.Timer) for one in threading.enumerate()), what="the end")
