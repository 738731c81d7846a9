"""Whatever can be asked keeps its places for whoever comes: bodies, files, streams and refusals of one client."""

from __future__ import annotations

import json
import re
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.http.attacks import FLAGS, asked_on_line, cookie_of, line_to, valid_requests, with_picture
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import until

pytestmark = pytest.mark.server

QUESTION = {"image": {"sample": "lion"}}
MANY = 28  # files of one visitor that are made or wait
ANSWERED, WAITING = 4, 8  # slow questions of one visitor


HELD = """
import time
from vit_viz.analyses.trust import TRUST
from vit_viz.errors import Cancelled

def held(job, options):
    end = time.monotonic() + 240
    while time.monotonic() < end and not job.cancelled():
        time.sleep(0.05)
    raise Cancelled("Nobody waits for it.")

object.__setattr__(TRUST, "run", held)
"""
"""What takes long goes on for as long as others need to meet it, however fast the machine is, unless nobody waits for it."""
IMPATIENT = "import vit_viz.ui.edge.door as d; d.QUESTION_SECONDS = d.PICTURE_SECONDS = 0.5"


@pytest.fixture(scope="module")
def open_server(start_app: Callable[..., Server]) -> Server:
    """An app that has everything that can be asked for."""
    return start_app("--model", "mini", *FLAGS, before=HELD)


@pytest.fixture(scope="module")
def cookies(open_server: Server) -> list[str]:
    """Names of browsers, as the page gives them."""
    return [cookie_of(open_server) for _ in range(60)]


@contextmanager
def lines(*ways: Callable[[], socket.socket]) -> Iterator[list[socket.socket]]:
    """Connections, all open at once."""
    with ExitStack() as opened:
        yield [opened.enter_context(way()) for way in ways]


def said(line: socket.socket) -> str:
    """The whole of an answer, on a connection that its server closes."""
    line.settimeout(60)
    parts = []
    while part := line.recv(2**16):
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


def seen(line: socket.socket) -> bytes:
    """What has arrived on a connection, which stays there."""
    return line.recv(2**16, socket.MSG_PEEK)


def answered(all_lines: list[socket.socket]) -> int:
    """On how many of many connections something has arrived."""
    return len(select.select(all_lines, [], [], 0)[0])


# --- bodies that do not come


def stalled(
    server: Server, path: str, *, cookie: str = "", length: int = 300, body: bytes = b'{"image"'
) -> socket.socket:
    head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", f"Content-Length: {length}"]
    return line_to(server, [*head, *([f"Cookie: {cookie}"] if cookie else [])], body)


@pytest.mark.parametrize(
    ("path", "length"), [("/api/v1/relevance", 5_000_000), pytest.param("/mcp", 300, marks=pytest.mark.slow)]
)
def test_bodies_that_stall_take_no_place_from_anybody(
    open_server: Server, meet: Callable[..., Visitor], cookies: list[str], path: str, length: int
) -> None:
    ways = [
        *(lambda: stalled(open_server, path, length=length) for _ in range(12)),
        *(lambda c=c: stalled(open_server, path, cookie=c, length=length) for c in cookies),
    ]
    visitor = meet(open_server, timeout=120)
    visitor.arrive("?tab=explain")
    with lines(*ways) as held:
        for headers in (
            {},
            {"cookie": cookies[0]},
            {"cookie": cookie_of(open_server)},
        ):
            answer = httpx.post(
                f"{open_server.url}/api/v1/classes", json=QUESTION, headers=headers, timeout=120
            )
            assert (answer.status_code, list(answer.json())[:1]) == (200, ["question"]), answer.text
        assert visitor.question("integrated_gradients", **QUESTION).refusals == []
        assert len(held) == 72


def test_slow_questions_of_one_browser_are_a_few_and_whoever_hangs_up_ends_them(
    open_server: Server, meet: Callable[..., Visitor]
) -> None:
    greedy, modest = meet(open_server), meet(open_server)
    greedy.arrive()
    modest.arrive()
    ways = [lambda: asked_on_line(open_server, "trust", greedy.cookie)] * (ANSWERED + WAITING + 1)
    with lines(*ways) as held:
        until(lambda: answered(held) == ANSWERED + 1, what="those that are answered, and the one too many")
        (refused,) = [line for line in held if answered([line]) and seen(line).startswith(b"HTTP/1.1 429 ")]
        until(lambda: b"The machine is busy" in seen(refused), what="why")
        assert greedy.ask("open").refusals == []  # quick ones have places of their own
        with modest.asking("trust") as answer:
            assert answer.status_code == 200

    def is_let_in() -> bool:
        with greedy.asking("trust") as answer:
            return answer.status_code == 200

    until(is_let_in, what="a place that was free again")


@pytest.fixture(scope="module")
def impatient(start_app: Callable[..., Server]) -> Server:
    """An app that waits half a second for what does not come."""
    return start_app("--model", "mini", "--api", "--mcp", before=IMPATIENT)


@pytest.mark.parametrize("path", ["/api/v1/look", "/mcp", "/vit_viz/open", "/vit_viz/bring"])
def test_a_body_that_does_not_come_is_waited_for_only_so_long(impatient: Server, path: str) -> None:
    with lines(lambda: stalled(impatient, path, cookie=cookie_of(impatient))) as (line,):
        line.settimeout(60)
        assert line.recv(2**16).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", ["/api/v1/look", "/vit_viz/open"])
def test_a_body_that_comes_byte_by_byte_is_waited_for_only_so_long(impatient: Server, path: str) -> None:
    """A byte now and then buys nothing."""
    with lines(lambda: stalled(impatient, path, cookie=cookie_of(impatient), length=60_000)) as (line,):

        def is_answered() -> bool:
            ready = select.select([line], [], [], 0.1)[0]
            if not ready:
                line.sendall(b" ")
            return bool(ready)

        until(is_answered, what="an answer to a sender that slow")
        assert line.recv(2**16).startswith(b"HTTP/1.1 408 ")


# --- answers that are made, and read


def getting(server: Server, path: str, cookie: str) -> Callable[[], socket.socket]:
    head = [f"GET {path} HTTP/1.1", f"Cookie: {cookie}", "Connection: close"]
    return lambda: line_to(server, head)


def test_many_valid_requests_of_one_client_let_others_go_first(
    open_server: Server, meet: Callable[..., Visitor]
) -> None:
    greedy, modest = meet(open_server, timeout=120), meet(open_server, timeout=120)
    theirs, trace = with_picture(greedy), with_picture(modest)
    cookie = greedy.cookie
    paths = [path for path in valid_requests(theirs) if "/explorer/" in path]
    with lines(*(getting(open_server, paths[n % len(paths)], cookie) for n in range(MANY))) as asked:
        for path in (
            f"numbers/{trace}?layer=1&head=2&query=3,4",
            f"rows/{trace}/3?query=class",
            f"layer/{trace}/2",
        ):
            assert modest.http.get(f"/vit_viz/{path}").status_code == 200
        assert httpx.get(f"{open_server.url}/", timeout=120).status_code == 200
        assert answered(asked) < MANY
        first = said(asked[0])
        assert "200 OK" in first[:20], (first[-300:], open_server.said()[-3000:])


@pytest.mark.slow
def test_what_one_client_does_not_read_does_not_fill_the_memory(
    open_server: Server, meet: Callable[..., Visitor]
) -> None:
    """A file for which 200 connections ask and which none reads."""
    idle, modest = meet(open_server, timeout=120), meet(open_server, timeout=120)
    theirs, trace = with_picture(idle), with_picture(modest)
    cookie = idle.cookie
    path = f"/vit_viz/explorer/{theirs}.html"
    assert len(idle.http.get(path).content) > 1.5 * 10**6
    before = open_server.memory()
    with lines(*(getting(open_server, path, cookie) for _ in range(200))) as asked:
        until(lambda: answered(asked) >= 20, what="some answers")
        for layer in range(6):
            answer = modest.http.get(f"/vit_viz/numbers/{trace}?layer={layer}&head=1&query=3,4")
            assert answer.status_code == 200
        assert modest.http.get(f"/vit_viz/explorer/{trace}.html").status_code == 200
        assert open_server.memory() < before + 150


def test_a_filter_of_many_corners_is_refused_and_one_of_a_polygon_is_not(
    open_server: Server, meet: Callable[..., Visitor]
) -> None:
    visitor = meet(open_server)
    visitor.arrive()
    corners = ", ".join(f"{n} {n % 2}" for n in range(48))
    inside = f"inside(head_concentration, head_entropy, '{corners}')"
    for count, is_refused in ((1, False), (2, False), (3, True)):
        where = " or ".join([inside] * count)
        answer = visitor.http.get("/vit_viz/survey/chosen", params={"where": where})
        assert answer.status_code == 200, (
            answer.text
        )  # a sentence for who wrote the filter, no error of the page
        assert ("have at most 96 corners" in answer.json().get("refused", "")) == is_refused


# --- origins, handles, methods


def test_another_origin_is_refused_where_a_browser_says_nothing_else(
    open_server: Server, meet: Callable[..., Visitor]
) -> None:
    origin = "http://127.0.0.1.evil.example"
    visitor = meet(open_server)
    trace = with_picture(visitor)
    requests: list[tuple[str, str]] = [
        *(("POST", path) for path in ("/vit_viz/open", "/vit_viz/bring")),
        *(("GET", f"/vit_viz/{path}") for path in (f"numbers/{trace}", f"layer/{trace}/0", "survey/chosen")),
        *(("POST", path) for path in ("/api/v1/classes", "/mcp")),
    ]
    for method, path in requests:
        for headers, is_refused in (
            ({"origin": origin}, True),
            ({"origin": open_server.url}, False),
            ({"origin": origin, "sec-fetch-site": "same-origin"}, False),
            ({}, False),
        ):
            answer = visitor.http.request(
                method, path, headers=headers, json=QUESTION if method == "POST" else None
            )
            assert (answer.status_code == 403) == is_refused, (method, path, headers)
    assert visitor.http.get("/", headers={"origin": origin}).status_code == 200


PHOTO_ALONE = (
    "explorer/{}.html",
    *("proof/{}", "layer/{}/0", "tokens/{}/0", "rows/{}/0", "numbers/{}"),
)  # fmt: skip


def test_the_handle_of_a_photo_opens_the_photo_alone(app: Server, meet: Callable[..., Visitor]) -> None:
    visitor = meet()
    with_picture(visitor)
    photo = visitor.opened()["photo"]
    for path in PHOTO_ALONE:
        answer = visitor.http.get("/vit_viz/" + path.format(photo.rpartition("/")[2]))
        said = "This picture is no longer kept; please reload the page."
        assert (answer.status_code, answer.text) == (404, said), path
    assert visitor.http.get(photo).status_code == 200
    assert "Traceback" not in app.said()


METHODS = {
    "/": "GET, HEAD", "/theme.css": "GET", "/gradio_api/app_id": "GET", "/gradio_api/queue/join": None,
    "/gradio_api/queue/data": None, "/gradio_api/upload": None, "/gradio_api/cancel": None, "/gradio_api/file=x": None,
    "/vit_viz/photo/x": "GET",
    "/vit_viz/page/0/x.jpg": "GET", "/api/v1": "GET", "/api/v1/look": "POST", "/api/v1/openapi.json": "GET",
    "/mcp": "POST", "/nowhere": None,
}  # fmt: skip


def test_a_method_that_an_address_does_not_take_is_told_so(open_server: Server) -> None:
    for path, taken in METHODS.items():
        for method in ("PUT", "PATCH"):
            answer = httpx.request(method, open_server.url + path, timeout=60)
            expected = (405 if taken else 404, taken)
            assert (answer.status_code, answer.headers.get("allow")) == expected, (method, path)
            assert len(answer.text) > 20


# --- what is too large


@pytest.mark.parametrize(
    ("path", "size"), [("/vit_viz/open", 40), ("/vit_viz/bring", 24), ("/api/v1/look", 40), ("/mcp", 40)]
)
def test_a_sender_of_too_much_comes_to_read_why(open_server: Server, path: str, size: int) -> None:
    """The whole body is sent before anything is read, as simple clients do."""
    head = [f"POST {path} HTTP/1.1", "Connection: close", f"Content-Length: {size * 10**6}"]
    head.append(f"Cookie: {cookie_of(open_server)}")
    with lines(lambda: line_to(open_server, head)) as (line,):
        for _ in range(size):
            line.sendall(b" " * 10**6)
        answer = said(line)
    assert answer.startswith("HTTP/1.1 413 "), answer[:200]
    assert "A picture has at most 20 MB" in answer


@pytest.mark.parametrize("request_", ["GET /", "POST /nowhere", "POST /vit_viz/bring"])
def test_a_body_in_parts_is_hung_up_on(open_server: Server, request_: str) -> None:
    """A second of the web server's for every 500 kB in parts of a byte, for as long as they came, closed the app to everybody."""
    head = [f"{request_} HTTP/1.1", "Transfer-Encoding: chunked", f"Cookie: {cookie_of(open_server)}"]
    with lines(lambda: line_to(open_server, head, b"1\r\nx\r\n")) as (line,):
        answer = said(line)  # to the end of the connection, though not to that of the body
    assert answer.startswith("HTTP/1.1 411 "), answer[:200]


def test_a_refused_question_leaves_the_connection_usable(open_server: Server) -> None:
    headers = {"cookie": cookie_of(open_server)}
    with httpx.Client(base_url=open_server.url, timeout=60, headers=headers) as client:
        for _ in range(3):
            assert client.post("/vit_viz/open", content=b"x" * 30 * 10**6).status_code == 413
            assert client.post("/api/v1/classes", content=json.dumps(QUESTION)).status_code == 200


# --- the owner's survey


@pytest.mark.slow
@pytest.mark.parametrize("is_shown", [False, True])
def test_the_survey_of_a_shared_app_is_the_owners_unless_a_flag_says_otherwise(
    start_app: Callable[..., Server], is_shown: bool
) -> None:
    flags: tuple[str, ...] = ("--survey", "example", *(("--share-survey",) if is_shown else ()))
    shared = start_app("--model", "mini", *flags, VIT_VIZ_BEHIND_PROXY="1")
    with Visitor(shared) as visitor:
        visitor.arrive()
        page = visitor.http.get("/").text
        # what the page is told stands in its own script
        scripts = [
            visitor.http.get(address).text for address in re.findall(r'<script src="\.(/[^"]+)"', page)
        ]
        labels = re.findall(r'\\"label\\": \\"(\w+)\\"', "".join(scripts))
        assert "Look" in labels
        assert ("Survey" in labels) == is_shown
        for path in ("chosen", "methods", "photo/0", "thumbnail/0", "points?across=row&up=row"):
            answer = visitor.http.get(f"/vit_viz/survey/{path}")
            assert (answer.status_code != 404) == is_shown, path
    assert ("--share-survey" in shared.said()) == (not is_shown)
