"""The guard: what is let in, what it answers itself, what is added to answers, and what becomes of failures behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from gradio.context import LocalContext
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from tests.ui.loops import played
from tests.waiting import until
from vit_viz.session.handles import new_visitor
from vit_viz.surface import OWNER, PAGE_HEADER
from vit_viz.turns import Turns
from vit_viz.ui.edge import bodies, http_guard
from vit_viz.ui.edge.addresses import FOREIGN_PAGE, NO_SUCH_HOST, NOT_READABLE, NOTHING_HERE, TOO_LARGE
from vit_viz.ui.edge.admission import OTHERS, SLOW, YOURS, Buckets
from vit_viz.ui.edge.bodies import TOO_MANY_OF_YOURS
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.http_guard import ALIVE, NO_MODEL, HttpGuard, guarded
from vit_viz.ui.edge.pages import NOT_YOURS as NOT_YOUR_PAGE

ADA = new_visitor()
LOCAL = Exposure.of("127.0.0.1", environment={})


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


async def asked(request: Request) -> Response:
    """How much has arrived, from whom, and what a lent GPU would be told of them; read where answers are computed."""
    size = len(await request.body())

    def computed() -> dict[str, Any]:
        lent_to = LocalContext.request.get(None)
        assert lent_to is not None
        return {"size": size, "owner": request.scope[OWNER], "token": lent_to.headers.get("x-ip-token")}

    return JSONResponse(await run_in_threadpool(computed))


async def reached(_request: Request) -> Response:
    return PlainTextResponse("reached")


async def missing(_request: Request) -> Response:
    return PlainTextResponse("missing", 404, {"cache-control": "max-age=60"})


CLOSED = ("/gradio_api/queue/join", "/gradio_api/upload", "/gradio_api/file=/etc/passwd", "/config")
"""Routes of Gradio."""


ROUTES = [
    Route("/", page),
    Route("/assets/x.js", static),
    Route("/vit_viz/fault", fault),
    Route("/vit_viz/broken/stream", broken_stream),
    Route("/gradio_api/app_id", fault),
    *(Route(f"/vit_viz/{name}", asked, methods=["POST"]) for name in ("facts", "trust", "bring")),
    Route("/assets/missing.js", missing),
    *(Route(path, reached, methods=["GET", "POST"]) for path in CLOSED),
]


class Behind(Starlette):
    """Stands for Gradio's app behind the guard."""

    def __init__(self, exposure: Exposure, **options: Any) -> None:
        self.turns = Turns()
        super().__init__(routes=ROUTES, **guarded(exposure, turns=self.turns, **options))
        self.stop_event = asyncio.Event()


@pytest.fixture
def open_client() -> Iterator[Callable[..., TestClient]]:
    """A new browser before an app; `exposure` is how that is reached, `beside` a browser before the same one."""
    opened: list[TestClient] = []

    def make(
        exposure: Exposure = LOCAL, *, host: str = "127.0.0.1", beside: TestClient | None = None
    ) -> TestClient:
        app = Behind(exposure) if beside is None else beside.app
        client = TestClient(app, base_url=f"http://{host}:7860", raise_server_exceptions=False)
        if beside is None:
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


def guard_of(client: TestClient) -> HttpGuard:
    """The guard of the app that a browser asks."""
    guard = client.app.middleware_stack  # type: ignore[attr-defined]
    assert isinstance(guard, HttpGuard)
    return guard


def ask(client: TestClient, name: str = "facts", content: bytes = b"{}", **headers: str) -> Any:
    return client.post(f"/vit_viz/{name}", content=content, headers=headers)


# --- names, hosts, addresses


def test_every_answer_has_the_security_headers(client: TestClient) -> None:
    for path in (
        "/",
        "/nowhere",
        "/assets/x.js",
        "/assets/missing.js",
        "/vit_viz/fault",
        "/gradio_api/app_id",
    ):
        headers = client.get(path).headers
        for name, value in (
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("access-control-allow-origin", None),
            ("cache-control", "max-age=60" if path == "/assets/x.js" else "no-store"),
        ):
            assert headers.get(name) == value, (path, name)
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


def test_what_a_proxy_says_is_believed_only_where_there_is_one(
    open_client: Callable[..., TestClient],
) -> None:
    said = {"x-forwarded-proto": "https", "x-forwarded-host": "vit.example"}
    told = Exposure.of("127.0.0.1", environment={"VIT_VIZ_BEHIND_PROXY": "1"})
    for exposure, reach, status in (
        (LOCAL, "SameSite=Lax", 403),
        (told, "SameSite=None; Secure; Partitioned", 200),
    ):
        client = open_client(exposure)
        assert reach in client.get("/", headers=said).headers["set-cookie"]
        client.cookies.clear()
        client.get("/")
        assert ask(client, **said, origin="https://vit.example").status_code == status


def test_a_host_name_of_another_site_gets_nothing(open_client: Callable[..., TestClient]) -> None:
    answer = open_client(host="rebound.example").get("/")
    assert (answer.status_code, answer.text) == (421, NO_SUCH_HOST)
    assert "set-cookie" not in answer.headers


def test_an_address_that_the_page_does_not_use_is_not_reached(client: TestClient) -> None:
    for path in (*CLOSED, "/assets/../x", "/docs"):
        for method in ("GET", "POST"):
            answer = client.request(method, path)
            assert answer.status_code == 404
            assert NOTHING_HERE in answer.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_can_link_here_and_nothing_else(client: TestClient, site: str) -> None:
    headers = {"sec-fetch-site": site}
    client.app.stop_event.set()  # type: ignore[attr-defined]  # so that a heartbeat that is let in ends
    assert client.get("/", headers=headers).status_code == 200
    for answer in (
        client.post("/vit_viz/open", json={}, headers=headers),
        client.get("/gradio_api/heartbeat/abcd", headers=headers),
        client.get("/vit_viz/fault", headers=headers),
    ):
        assert answer.status_code == 403
        assert FOREIGN_PAGE in answer.text


# --- questions


def test_a_question_arrives_whole_and_says_who_asks(
    client: TestClient, open_client: Callable[..., TestClient]
) -> None:
    mine = client.cookies["vit_viz"]
    assert ask(client, content=b"x" * 1000).json() == {"size": 1000, "owner": mine, "token": None}
    other = open_client(beside=client)
    other.get("/")
    assert ask(other).json()["owner"] == other.cookies["vit_viz"] != mine


def test_a_browser_that_keeps_no_cookies_asks_by_the_name_of_its_open_page(client: TestClient) -> None:
    client.cookies.clear()
    assert ask(client).status_code == 404
    page = {PAGE_HEADER: "abcd1"}
    assert ask(client, **page).status_code == 404  # it has not been opened
    with guard_of(client).pages.heartbeat("abcd1", "no cookie testclient", "page abcd1"):
        assert ask(client, **page).json()["owner"] == "page abcd1"
        assert ask(client, **{PAGE_HEADER: "other"}).status_code == 404
    with guard_of(client).pages.heartbeat("abcd2", "somebody else", "page abcd2"):
        assert ask(client, **{PAGE_HEADER: "abcd2"}).status_code == 404


def test_a_lent_gpu_is_told_who_asks_also_where_many_ask_at_once(client: TestClient) -> None:
    """The page around a Space's gives each question a token, which the package `spaces` looks for in Gradio's context."""
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda n: ask(client, **{"x-ip-token": f"token {n}"}).json()["token"], range(24))
    assert list(answers) == [f"token {n}" for n in range(24)]


def test_slow_questions_of_one_visitor_leave_room_for_quick_ones_and_for_others(
    client: TestClient, open_client: Callable[..., TestClient]
) -> None:
    bob = open_client(beside=client)
    bob.get("/")
    place, mine = guard_of(client).admission.place, client.cookies["vit_viz"]
    with ExitStack() as waiting:
        for _ in range(8):
            waiting.enter_context(place(SLOW, mine, ""))
        answer = ask(client, "trust")
        assert (answer.status_code, answer.json()) == (429, {"error": YOURS})
        assert ask(client, "facts").status_code == 200
        assert ask(bob, "trust").status_code == 200
        for number in range(64 - 8):
            waiting.enter_context(place(SLOW, f"visitor {number}", ""))
        answer = ask(bob, "trust")
        assert (answer.status_code, answer.json()) == (429, {"error": OTHERS})
        assert ask(bob, "facts").status_code == 200
    assert ask(client, "trust").status_code == 200  # they are over, and there is room again


@pytest.mark.parametrize(
    ("path", "is_quick"),
    [
        *(
            ("/", True),
            ("/vit_viz/fault", True),
            ("POST /vit_viz/open", True),
            ("POST /vit_viz/trust", False),
        ),
    ],
)
def test_slow_computations_are_told_of_a_quick_request_as_long_as_it_is_open(
    path: str, is_quick: bool
) -> None:
    app, seen = Behind(LOCAL), list[bool]()
    method, _, address = path.rpartition(" ")

    async def note(scope: Any, receive: Any, send: Any) -> None:
        seen.append(app.turns.has_quick_questions())
        raise KeyError("secret")

    with TestClient(app, base_url="http://127.0.0.1:7860", raise_server_exceptions=False) as client:
        client.cookies["vit_viz"] = ADA
        guard_of(client).app = note
        client.request(method or "GET", address, json={} if method else None)
        assert seen == [is_quick]
        assert not app.turns.has_quick_questions(), "it is over, though it failed"


@pytest.mark.parametrize(("is_known", "let_in"), [(True, 22), (False, 64)])
def test_many_browsers_of_one_address_fill_a_third_of_the_slow_lane_where_addresses_are_known(
    open_client: Callable[..., TestClient], is_known: bool, let_in: int
) -> None:
    """22 of 64: each question of an address, which may have 32, leaves less to the next one."""
    environment = {"VIT_VIZ_ADDRESS_HEADER": "x-real-ip"} if is_known else {}
    client = open_client(Exposure.of("127.0.0.1", environment=environment))

    def status(address: str) -> int:
        headers = {"cookie": f"vit_viz={new_visitor()}", "x-real-ip": address}
        return int(ask(client, "trust", **headers).status_code)

    with ExitStack() as waiting:
        for number in range(let_in):
            assert status("203.0.113.5") == 200, number
            near = "203.0.113.5" if is_known else ""
            waiting.enter_context(guard_of(client).admission.place(SLOW, f"visitor {number}", near))
        assert status("203.0.113.5") == 429
        assert status("198.51.100.7") == (200 if is_known else 429)


# --- whether the app is there


def test_whoever_keeps_the_app_running_learns_that_it_answers_and_another_site_does_not(
    open_client: Callable[..., TestClient],
) -> None:
    client = open_client()
    answer = client.get("/health")
    assert (answer.status_code, answer.text, client.head("/health").text) == (200, ALIVE, "")
    assert "set-cookie" not in answer.headers
    assert client.get("/health", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/health", headers={"host": "rebound.example"}).status_code == 421


def test_an_app_without_its_model_does_not_say_that_it_answers() -> None:
    has_model = True
    app = Behind(LOCAL, has_model=lambda: has_model)
    with TestClient(app, base_url="http://127.0.0.1:7860") as client:
        assert client.get("/health").status_code == 200
        has_model = False
        answer = client.get("/health")
        assert (answer.status_code, answer.text, client.head("/health").status_code) == (503, NO_MODEL, 503)
        has_model = True
        assert client.get("/health").text == ALIVE


# --- heartbeats, bodies


def test_a_heartbeat_beats_without_gradio_and_ends_with_the_page() -> None:
    left: list[str] = []
    app = Behind(LOCAL)
    guard = HttpGuard(app, app, LOCAL, on_left=left.append)
    sent: list[Any] = []

    async def play() -> None:
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)
            if b"ALIVE" in message.get("body", b""):
                assert guard.pages.find("abcd1").heartbeats == 1  # type: ignore[union-attr]
                gone.set()

        await guard(scope("/gradio_api/heartbeat/abcd1", cookie=ADA), receive, send)

    played(play())
    assert sent[0]["status"] == 200
    assert left == [ADA]
    assert guard.pages.find("abcd1").heartbeats == 0  # type: ignore[union-attr]


def test_the_page_of_one_visitor_is_worthless_to_another(
    client: TestClient, open_client: Callable[..., TestClient]
) -> None:
    client.app.stop_event.set()  # type: ignore[attr-defined]  # so that a heartbeat ends at once
    eve = open_client(beside=client)
    eve.get("/")
    assert client.get("/gradio_api/heartbeat/abcd1").status_code == 200
    answer = eve.get("/gradio_api/heartbeat/abcd1")
    assert (answer.status_code, answer.json()) == (400, {"error": NOT_YOUR_PAGE})
    for name in ("", "UPPER", "a" * 33, "abc", "a b c d", "abcd%00"):  # of another shape than a page's
        answer = client.get(f"/gradio_api/heartbeat/{name}")
        assert (answer.status_code, answer.json()) == (400, {"error": NOT_READABLE})


def scope(path: str, *, cookie: str) -> dict[str, Any]:
    """A GET as the web server hands it on."""
    headers = [(b"host", b"127.0.0.1"), (b"cookie", f"vit_viz={cookie}".encode())]
    return {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http",
        "headers": headers, "client": ("127.0.0.1", 5), "asgi": {"version": "3.0", "spec_version": "2.3"},
    }  # fmt: skip


@pytest.mark.parametrize("has_length", [True, False])
@pytest.mark.parametrize(("name", "most"), [("facts", 2 * 2**20), ("bring", 20 * 2**20)])
def test_a_body_is_bounded_with_and_without_a_length(
    client: TestClient, has_length: bool, name: str, most: int
) -> None:
    def post(size: int) -> Any:
        content = bytes(size)
        parts = content if has_length else (content[i : i + 2**16] for i in range(0, size, 2**16))
        return client.post(f"/vit_viz/{name}", content=parts)

    guard_of(client).arrivals._pace = Buckets(burst=2**40, per_second=1)
    for length in (b"-1", b"x", "²".encode()):
        answer = client.post(f"/vit_viz/{name}", content=b"x", headers=[(b"content-length", length)])
        assert answer.status_code == 400
    assert post(most).json()["size"] == most
    answer = post(most + 1)
    assert (answer.status_code, answer.json()) == (413, {"error": TOO_LARGE})
    assert guard_of(client).arrivals._held.total() == 0


def test_a_body_without_room_is_refused_and_the_room_is_free_again(client: TestClient) -> None:
    guard_of(client).arrivals.visitor_bytes = 1000
    answer = ask(client, "bring", bytes(1001))
    assert (answer.status_code, answer.json()) == (429, {"error": TOO_MANY_OF_YOURS})
    assert ask(client, "bring", bytes(1000)).status_code == 200
    assert guard_of(client).arrivals._held.total() == 0


# --- failures


def test_a_fault_says_nothing_of_the_inside(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    """Gradio's is the visitor's; one of ours is logged."""
    answer = client.get("/gradio_api/app_id")
    assert answer.status_code == 400
    assert "secret" not in answer.text + caplog.text
    answer = client.get("/vit_viz/fault")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "unexpected exception" in caplog.text


def test_an_answer_that_breaks_off_ends_quietly(client: TestClient) -> None:
    answer = client.get("/vit_viz/broken/stream")
    assert (answer.status_code, answer.text) == (200, "first")


# --- refusals that go on, readers who do not read


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
    monkeypatch.setattr(http_guard, "asyncio", SimpleNamespace(sleep=sleep))
    for path in (
        "/nowhere",
        "/vit_viz/fault",
        "/gradio_api/heartbeat/x",
        "/nowhere",
    ):  # whoever refuses: all count
        assert client.get(path).status_code >= 400
    assert client.get("/").status_code == 200
    assert other.get("/nowhere").status_code == 404
    assert pauses == [0.0, 0.0, 0.5, 1.0, 0.0]
    for _ in range(20):
        client.get("/nowhere")
    assert pauses[-1] == http_guard.LONGEST_PAUSE_SECONDS


def test_where_addresses_are_known_a_new_cookie_does_not_make_refusals_quick_again(
    open_client: Callable[..., TestClient],
) -> None:
    client = open_client(Exposure.of("127.0.0.1", environment={"VIT_VIZ_ADDRESS_HEADER": "x-real-ip"}))
    refusals = Buckets(burst=99, per_second=1, clock=lambda: 0.0)
    guard_of(client).refusals = refusals
    for _ in range(3):
        headers = {"cookie": f"vit_viz={new_visitor()}", "x-real-ip": "203.0.113.5"}
        assert client.get("/nowhere", headers=headers).status_code == 404
    assert {name: level for name, (level, _) in refusals._levels.items()} == {"203.0.113.5": 3}


async def read_large(content: bytes, send: Callable[[HttpGuard, Any], Any]) -> HttpGuard:
    """The guard after it has sent a large answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(content)(scope, receive, send)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    guard = HttpGuard(app, Behind(LOCAL), LOCAL)
    await guard(scope("/vit_viz/large", cookie=ADA), receive, partial(send, guard))
    return guard


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who stops in the middle is waited for only so long."""
    content, sent, deadlines = bytes(range(256)) * 1024, list[bytes](), list[asyncio.Timeout]()

    def timeout(_seconds: float) -> asyncio.Timeout:
        deadlines.append(asyncio.timeout(None))
        return deadlines[-1]

    async def send(_guard: HttpGuard, message: Any) -> None:
        if len(sent) > 2:
            deadlines[-1].reschedule(0)  # the time for this part is over
            await asyncio.Event().wait()
        sent.append(message.get("body", b""))

    monkeypatch.setattr(bodies, "asyncio", SimpleNamespace(timeout=timeout))
    guard = played(read_large(content, send))
    assert b"".join(sent) == content[: 2 * bodies.PART_BYTES]
    assert (guard.answer_turns.is_busy, guard.answer_turns.unread_bytes) == (False, 0)


def test_what_lies_unread_counts_until_its_last_part_is_taken() -> None:
    content, sent, seen = bytes(range(250)) * 800, list[bytes](), list[tuple[int, int, bool]]()

    async def send(guard: HttpGuard, message: Any) -> None:
        sent.append(message.get("body", b""))
        seen.append((len(sent[-1]), guard.answer_turns.unread_bytes, guard.answer_turns.is_busy))

    guard = played(read_large(content, send))
    assert b"".join(sent) == content
    assert seen == [(0, 0, True), *[(2**16, 200_000, False)] * 3, (200_000 - 3 * 2**16, 200_000, False)]
    assert guard.answer_turns.unread_bytes == 0


SITES = [
    ("http://127.0.0.1:7860", "127.0.0.1:7860", False),
    ("http://127.0.0.1", "127.0.0.1", False),
    ("http://127.0.0.1", "127.0.0.1:80", False),
    ("https://127.0.0.1", "127.0.0.1:443", False),
    ("HTTP://LOCALHOST:7860", "localhost:7860", False),
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
    answer = client.post("/vit_viz/open", json={}, headers=headers)
    assert (answer.status_code == 403) == is_foreign
    assert client.get("/", headers=headers).status_code == 200  # a link to the page is no use of it
    said = headers | {"sec-fetch-site": "same-origin"}
    assert client.get("/vit_viz/fault", headers=said).status_code == 500


def test_what_the_first_page_need_not_wait_for_begins_once_the_app_is_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And not where the app has ended before."""
    begun: list[str] = []
    for name, seconds, is_up in (("soon", 0.0, True), ("never", 3600.0, True), ("not up", 0.0, False)):
        monkeypatch.setattr(http_guard, "BEGIN_SECONDS", seconds)
        app = Behind(LOCAL, begin=lambda name=name: begun.append(name))
        with TestClient(app, base_url="http://127.0.0.1:7860") if is_up else ExitStack() as client:
            if is_up:
                assert client.get("/").status_code == 200
                until(lambda: begun == ["soon"], what="the beginning")
    assert begun == ["soon"]
    until(lambda: not any(isinstance(one, threading.Timer) for one in threading.enumerate()), what="the end")
