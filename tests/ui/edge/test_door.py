"""The door: what is let in, what it answers itself, what is added to answers, and what becomes of failures behind it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
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
from vit_viz.session.handles import cookie_name, new_visitor
from vit_viz.surface import BRING, OWNER, PAGE_HEADER
from vit_viz.turns import GONE, WHO, Turns
from vit_viz.ui.edge import door as doors
from vit_viz.ui.edge.addresses import (
    FOREIGN_PAGE,
    LARGE_HEAD,
    NO_LENGTH,
    NO_SUCH_HOST,
    NOT_READABLE,
    NOTHING_HERE,
    TOO_LARGE,
)
from vit_viz.ui.edge.door import ALIVE, NO_MODEL, NO_ROOM, NOTHING_INSIDE, Door, guarded
from vit_viz.ui.edge.exposure import Exposure

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


def door_of(client: TestClient) -> Door:
    """The door of the app that a browser asks."""
    door = client.app.middleware_stack  # type: ignore[attr-defined]
    assert isinstance(door, Door)
    return door


def ask(client: TestClient, name: str = "facts", content: bytes = b"{}", **headers: str) -> Any:
    return client.post(f"/vit_viz/{name}", content=content, headers=headers)


# --- names, hosts, addresses


def test_while_an_app_runs_no_computation_keeps_the_interpreter_for_long(
    open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    intervals: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", intervals.append)
    open_client()
    assert intervals == [doors.SWITCH_SECONDS]


def test_headers_beyond_any_browser_s_are_refused_before_they_are_read(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of cookies took longer to read than a page takes to send."""
    known = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    assert client.get("/", headers={"cookie": known + "; a=" + "b" * 15_000}).status_code == 200
    monkeypatch.setattr("vit_viz.ui.edge.door.visitor_in", lambda cookies: "" if not cookies else 1 / 0)
    for headers in (
        {"cookie": "a=b; " * 4_000},
        {f"x-{n}": "y" * 9 for n in range(1_300)},
        {"accept": "*/*," * 5_000},
    ):
        for path in ("/", "/assets/x.js", "/vit_viz/facts"):
            client.cookies.clear()
            answer = client.get(path, headers=headers)
            assert (answer.status_code, answer.text) == (431, LARGE_HEAD)


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
        is_page = path == "/"  # whose own policy is tested with the page
        assert (headers["content-security-policy"] == NOTHING_INSIDE) == (not is_page), path


def test_a_page_gives_a_browser_a_name_once(open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    first = client.get("/").headers["set-cookie"]
    assert first.startswith(f"{cookie_name()}=")
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
    assert client.get("/", headers=headers).status_code == 200
    for answer in (
        client.post("/vit_viz/open", json={}, headers=headers),
        client.get("/vit_viz/fault", headers=headers),
    ):
        assert answer.status_code == 403
        assert FOREIGN_PAGE in answer.text


# --- questions


def test_a_question_arrives_whole_and_says_who_asks(
    client: TestClient, open_client: Callable[..., TestClient]
) -> None:
    mine = client.cookies[cookie_name()]
    assert ask(client, content=b"x" * 1000).json() == {"size": 1000, "owner": mine, "token": None}
    other = open_client(beside=client)
    other.get("/")
    assert ask(other).json()["owner"] == other.cookies[cookie_name()] != mine


def test_a_browser_that_keeps_no_cookies_asks_by_the_name_of_its_page(client: TestClient) -> None:
    """Which nobody can guess; with a cookie it says nothing."""
    page = {PAGE_HEADER: "0123456789abcdef"}
    assert ask(client, **page).json()["owner"] == client.cookies[cookie_name()]
    client.cookies.clear()
    assert ask(client, **page).json()["owner"] == "page 0123456789abcdef"
    for short in ("", "0123456789abcde", "0123456789ABCDEF", "0" * 65):
        assert ask(client, **{PAGE_HEADER: short}).status_code == 404


def test_a_lent_gpu_is_told_who_asks_also_where_many_ask_at_once(client: TestClient) -> None:
    """The page around a Space's gives each question a token, which the package `spaces` looks for in Gradio's context."""
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda n: ask(client, **{"x-ip-token": f"token {n}"}).json()["token"], range(24))
    assert list(answers) == [f"token {n}" for n in range(24)]


@pytest.mark.parametrize(
    ("path", "is_quick"),
    [
        *(
            ("/vit_viz/fault", True),
            ("POST /vit_viz/open", True),
            ("POST /api/v1/trust", False),
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
        client.cookies[cookie_name()] = ADA
        door_of(client).app = note
        client.request(method or "GET", address, json={} if method else None)
        assert seen == [is_quick]
        assert not app.turns.has_quick_questions(), "it is over, though it failed"


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


# --- bodies


def scope(path: str, *, cookie: str, method: str = "GET", length: int = 0) -> dict[str, Any]:
    """A request as the web server hands it on."""
    headers = [(b"host", b"127.0.0.1"), (b"cookie", f"{cookie_name()}={cookie}".encode())]
    headers += [(b"content-length", b"%d" % length)]
    return {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "scheme": "http",
        "headers": headers, "client": ("127.0.0.1", 5), "asgi": {"version": "3.0", "spec_version": "2.3"},
    }  # fmt: skip


@pytest.mark.parametrize(("name", "most"), [("facts", 64 * 2**10), ("bring", 20 * 2**20)])
def test_a_body_is_bounded_and_says_how_long_it_is(client: TestClient, name: str, most: int) -> None:
    for length in (b"-1", b"x", "²".encode()):
        answer = client.post(f"/vit_viz/{name}", content=b"x", headers=[(b"content-length", length)])
        assert answer.status_code == 400
    assert ask(client, name, bytes(most)).json()["size"] == most
    answer = ask(client, name, bytes(most + 1))
    assert (answer.status_code, answer.json()) == (413, {"error": TOO_LARGE})
    answer = client.post(f"/vit_viz/{name}", content=iter([b"in", b"parts"]))
    assert (answer.status_code, answer.json()) == (411, {"error": NO_LENGTH})
    assert door_of(client).bodies.holds == set()


def test_a_proxy_may_pass_a_body_on_in_parts(open_client: Callable[..., TestClient]) -> None:
    client = open_client(replace(LOCAL, believes_proxy=True))
    client.get("/")
    assert client.post("/vit_viz/facts", content=iter([b"in", b"parts"])).json()["size"] == 7
    answer = client.post("/vit_viz/facts", content=iter([bytes(64 * 2**10), b"x"]))
    assert (answer.status_code, answer.json()) == (413, {"error": TOO_LARGE})
    assert door_of(client).bodies.holds == set()


def test_a_body_without_room_is_refused_and_the_room_is_free_again(client: TestClient) -> None:
    door_of(client).bodies.limit = 1000
    answer = ask(client, "bring", bytes(1001))
    assert (answer.status_code, answer.json()) == (429, {"error": NO_ROOM})
    assert ask(client, "bring", bytes(1000)).status_code == 200
    assert door_of(client).bodies.holds == set()


def test_two_ways_to_find_the_end_of_a_body_are_refused(client: TestClient) -> None:
    """What stands before the app could see another end."""
    for status, headers in (
        (411, [("content-length", "2"), ("transfer-encoding", "chunked")]),
        (400, [("content-length", "2"), ("content-length", "3")]),
        (400, [("content-length", "2"), ("content-length", "2")]),
        (411, [("content-length", "0"), ("transfer-encoding", "identity")]),
    ):
        answer = client.post("/vit_viz/facts", content=b"{}", headers=headers)
        said = {"error": NOT_READABLE if status == 400 else NO_LENGTH}
        assert (answer.status_code, answer.json()) == (status, said), headers


def line(*parts: bytes) -> tuple[Callable[[], Any], asyncio.Event]:
    """What a client sends, which then waits until it is told to hang up."""
    waiting, gone = list(parts), asyncio.Event()

    async def receive() -> Any:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(0), "more_body": True}
        await gone.wait()
        return {"type": "http.disconnect"}

    return receive, gone


def test_of_bodies_without_room_the_one_that_has_taken_most_for_longest_ends() -> None:
    """A newcomer is let in, also where the pool is full of others."""
    said: dict[str, list[Any]] = {"first": [], "second": [], "newcomer": []}
    sizes = {"first": 900, "second": 1000, "newcomer": 500}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("no body is whole")

    async def play() -> None:
        door = Door(app, LOCAL)
        door.bodies.limit = 2000
        tasks = []
        for name, size in sizes.items():
            receive, _ = line(bytes(size))

            async def send(message: Any, name: str = name) -> None:
                said[name].append(message)

            asked = scope("/vit_viz/bring", cookie=new_visitor(), method="POST", length=size + 1)
            asked["headers"].append((b"expect", b"100-continue"))  # so that nobody waits for the rest
            tasks.append(asyncio.create_task(door(asked, receive, send)))
            await until_true(lambda size=size: any(one.bytes == size for one in door.bodies.holds))
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert sorted(one.bytes for one in door.bodies.holds) == [500, *([900] if said["second"] else [1000])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    played(play())
    assert said["newcomer"] == []
    (refused,) = [messages for messages in said.values() if messages]
    assert (refused[0]["status"], NO_ROOM.encode() in refused[1]["body"]) == (429, True)


async def until_true(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_pictures_that_are_long_in_decoding_hold_no_place_of_quick_answers() -> None:
    """Thirty visitors bring some that never end; a newcomer's question is answered, and one of them makes way for the next."""
    free = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == BRING:
            await free.wait()
        await PlainTextResponse("here")(scope, receive, send)

    async def play() -> list[int]:
        door, statuses = Door(app, LOCAL), list[int]()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        door.pictures.held_seconds = 0.0
        bring = [
            asyncio.create_task(
                door(scope(BRING, cookie=new_visitor(), method="POST", length=1), whole(b"x"), send)
            )
            for _ in range(30)
        ]
        await until_true(lambda: door.pictures.waiting("answers") == 28)
        await door(scope("/vit_viz/photo/x", cookie=ADA), line()[0], send)
        assert statuses[0] == 200
        await until_true(lambda: 429 in statuses)
        free.set()
        await asyncio.gather(*bring)
        return statuses

    statuses = played(play())
    assert set(statuses) == {200, 429}


def whole(body: bytes) -> Callable[[], Any]:
    """What a client sends who then waits."""
    receive, _gone = line()
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def sent() -> Any:
        return parts.pop() if parts else await receive()

    return sent


def test_who_hangs_up_while_waiting_leaves_and_what_computes_for_them_hears_of_it() -> None:
    heard: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        is_gone = GONE.get()
        assert is_gone is not None
        heard.extend([WHO.get(), is_gone()])
        await receive()
        heard.append((await receive())["type"])
        heard.append(is_gone())

    async def play() -> None:
        door = Door(app, LOCAL)
        door.quick = Turns()

        async def send(message: Any) -> None:
            pass

        visits = [line(), line()]
        tasks = [
            asyncio.create_task(door(scope("/vit_viz/photo/x", cookie=ADA), receive, send))
            for receive, _ in visits
        ]
        await until_true(lambda: door.quick.waiting("answers") == 1)
        assert door.has_quick_questions()
        visits[1][1].set()
        await tasks[1]
        assert door.quick.waiting("answers") == 0
        visits[0][1].set()
        await tasks[0]
        assert not door.has_quick_questions()

    played(play())
    assert heard == [("", ADA), False, "http.disconnect", True]


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


# --- readers who do not read


async def read_large(content: bytes, send: Callable[[Door, Any], Any]) -> Door:
    """The door after it has sent a large answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(content)(scope, receive, send)

    receive, _ = line()
    door = Door(app, LOCAL)
    await door(scope("/vit_viz/large", cookie=ADA), receive, partial(send, door))
    return door


def test_an_answer_that_nobody_reads_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much of it has been read by then."""
    content, sent = bytes(range(256)) * 1024, list[bytes]()
    monkeypatch.setattr(doors, "ANSWER_SECONDS", 0.05)

    async def send(_door: Door, message: Any) -> None:
        if len(sent) > 2:
            await asyncio.Event().wait()
        sent.append(message.get("body", b""))

    door = played(read_large(content, send))
    assert b"".join(sent) == content[: 2 * doors.PART_BYTES]
    assert (door.answers.holds, door.has_quick_questions()) == (set(), False)


def test_what_lies_unread_counts_until_its_last_part_is_taken_and_takes_no_place() -> None:
    content, sent, seen = bytes(range(250)) * 800, list[bytes](), list[tuple[int, int, bool]]()

    async def send(door: Door, message: Any) -> None:
        sent.append(message.get("body", b""))
        (unread,) = door.answers.holds
        seen.append((len(sent[-1]), unread.bytes, door.has_quick_questions()))

    door = played(read_large(content, send))
    assert b"".join(sent) == content
    assert seen == [
        (0, 200_000, False),
        *[(2**16, 200_000, False)] * 3,
        (200_000 - 3 * 2**16, 200_000, False),
    ]
    assert door.answers.holds == set()


def test_where_answers_have_no_room_the_dearest_is_cut_and_a_newcomer_s_is_read() -> None:
    """Its connection is broken, so that nothing waits for somebody who does not read."""

    class Line:
        """As the web server's: a reader who stops after so many parts."""

        def __init__(self, parts: int) -> None:
            self.parts, self.taken, self.is_aborted = parts, 0, False
            self.transport = self

        def abort(self) -> None:
            self.is_aborted = True

        async def send(self, _message: Any) -> None:
            self.taken += 1
            if self.taken > self.parts:
                await asyncio.Event().wait()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response(bytes(300_000))(scope, receive, send)

    async def play() -> None:
        door = Door(app, LOCAL)
        door.answers.limit = 700_000
        idle, newcomer = [Line(2), Line(2)], Line(99)
        for one in idle:
            receive, _ = line()
            asked = scope("/vit_viz/large", cookie=ADA)
            _tasks.append(asyncio.create_task(door(asked, receive, one.send)))
            await until_true(lambda one=one: one.taken == 3)
        receive, _ = line()
        await door(scope("/vit_viz/large", cookie=new_visitor()), receive, newcomer.send)
        assert (newcomer.taken, newcomer.is_aborted) == (1 + 5, False)
        await _tasks[0]
        assert [one.is_aborted for one in idle] == [True, False]
        _tasks[1].cancel()
        await asyncio.gather(*_tasks, return_exceptions=True)

    _tasks: list[asyncio.Task[None]] = []
    played(play())


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


def test_what_the_first_page_need_not_wait_for_begins_once_when_that_is_made() -> None:
    """And not because the app is up, or anything else is asked."""
    begun: list[str] = []
    app = Behind(LOCAL, begin=lambda: begun.append("here"))
    with TestClient(app, base_url="http://127.0.0.1:7860") as client:
        assert client.get("/vit_viz/fault").status_code == 500
        assert client.get("/health").status_code == 200
        assert not begun
        for encoding in ("gzip", "br", "identity"):
            assert client.get("/", headers={"accept-encoding": encoding}).status_code == 200
        until(lambda: bool(begun), what="the beginning")
    assert begun == ["here"]
