"""Five cheap ways that shut out the others once: beside each, newcomers open the page, bring a picture and are answered."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.http.attacks import FLAGS, asked_on_line, cookie_of, line_to, with_picture
from tests.http.hostile import encoded, photo
from tests.http.test_doors import HELD, answered, said
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import until
from vit_viz.surface import BRING, QUESTION_BYTES

pytestmark = pytest.mark.server

SMALL = """
import vit_viz.ui.edge.door as door
import vit_viz.ui.routes as routes
from vit_viz.figures.files import Encoded
door.BODY_BYTES = 3 * 2**20
door.ANSWER_BYTES = 40 * 2**20
routes.explorer_file = lambda *_: Encoded(bytes(9 * 10**6), "text/html", "explorer.html")
"""
"""Pools that are full at once, which hold what one newcomer brings and reads; and a file that is larger than what a line holds."""


@pytest.fixture(scope="module")
def small(start_app: Callable[..., Server]) -> Server:
    """An app with little room."""
    return start_app("--model", "mini", *FLAGS, before=HELD + SMALL)


@contextmanager
def lines() -> Iterator[Callable[..., list[socket.socket]]]:
    """Opens connections, which stay open until the end."""
    with ExitStack() as held:
        yield lambda ways: [held.enter_context(way()) for way in ways]


def serves_newcomers(server: Server, *, count: int = 2) -> None:
    """As many newcomers, each of a browser of its own, are answered whatever they ask."""
    for number in range(count):
        with Visitor(server, timeout=60) as newcomer:
            assert newcomer.arrive().refusals == []
            assert newcomer.bring("mine.png", encoded(photo(700 + number), "PNG")).refusals == []
            assert newcomer.question("saco", image={"upload": newcomer.link["image"]}).refusals == []
            handle = newcomer.opened()["trace"]
            file = newcomer.http.get(f"/vit_viz/explorer/{handle}.html")
            assert (file.status_code, len(file.content) > 8 * 10**6) == (200, True)


def test_answers_that_five_cookies_do_not_read_close_the_app_to_nobody(small: Server) -> None:
    """Each asks for a dozen files, many times what there is room for."""
    with lines() as opened:
        asked = []
        for _ in range(5):
            with Visitor(small, timeout=60) as idle:
                head = [
                    f"GET /vit_viz/explorer/{with_picture(idle)}.html HTTP/1.1",
                    f"Cookie: {idle.cookie}",
                ]

            def unread(head: list[str] = head) -> socket.socket:
                line = line_to(small, head)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                return line

            asked += opened([unread] * 12)
        until(lambda: answered(asked) >= 20, what="answers that nobody reads")
        serves_newcomers(small)


def test_bodies_that_do_not_end_refuse_nobody(small: Server) -> None:
    """Of twenty cookies, 2 MB each of 19 MB that were announced."""
    body = bytes(2 * 10**6)

    def unfinished(cookie: str) -> Callable[[], socket.socket]:
        head = [f"POST {BRING} HTTP/1.1", "Content-Length: 19000000", f"Cookie: {cookie}"]
        return lambda: line_to(small, head, body)

    with lines() as opened:
        held = opened([unfinished(cookie_of(small)) for _ in range(20)])
        until(lambda: answered(held) >= 15, what="the end of most of them, which had no room")
        serves_newcomers(small)


def test_a_large_question_is_refused_before_it_is_read(small: Server) -> None:
    """28 MB of JSON were parsed where everybody's requests are handled."""
    content = json.dumps({"image": {"base64": "x" * 28_000_000}})
    cookie = cookie_of(small)
    for path in ("/api/v1/relevance", "/vit_viz/open"):
        length = f"Content-Length: {len(content)}"
        head = [f"POST {path} HTTP/1.1", length, f"Cookie: {cookie}", "Expect: 100-continue"]
        with line_to(small, head) as line:
            assert said(line).startswith("HTTP/1.1 413 ")
        answer = httpx.post(small.url + path, content=b" " * QUESTION_BYTES, headers={"cookie": cookie})
        assert answer.status_code == 400  # as large as it may be, and no JSON
    serves_newcomers(small, count=1)


def test_two_cookies_with_forty_slow_questions_each_let_others_have_theirs(small: Server) -> None:
    """Theirs go on for as long as anybody waits for them; each is one of the lines."""

    def slow(cookie: str) -> Callable[[], socket.socket]:
        return lambda: asked_on_line(small, "trust", cookie)

    with lines() as opened:
        held = opened([slow(cookie) for cookie in (cookie_of(small), cookie_of(small)) for _ in range(40)])
        until(lambda: answered(held) >= 40, what="refusals of those that are too many of one visitor")
        starts: dict[socket.socket, bytes] = {}

        def are_both() -> bool:
            """One goes on, while others are refused; which of both comes first is the machine's."""
            new = [line for line in held if line not in starts and answered([line])]
            starts.update({line: line.recv(2**16)[:13] for line in new})
            return {*starts.values()} == {b"HTTP/1.1 200 ", b"HTTP/1.1 429 "}

        until(are_both, what="an answer that goes on, and refusals")
        serves_newcomers(small)


def test_six_requests_for_large_files_let_others_have_theirs(small: Server) -> None:
    """Each is millions of dots, drawn in a hundred megabytes; the sizes differ, so that none is kept for another."""
    with lines() as opened, Visitor(small, timeout=60) as greedy:
        with_picture(greedy)

        def large(dpi: int) -> Callable[[], socket.socket]:
            figure = {"width_cm": 40, "dpi": dpi}
            content = json.dumps({"image": {"upload": greedy.link["image"]}, "figure": figure}).encode()
            length = f"Content-Length: {len(content)}"
            head = ["POST /api/v1/look HTTP/1.1", "Accept: image/png", length, f"Cookie: {greedy.cookie}"]
            return lambda: line_to(small, head, content)

        held = opened([large(dpi) for dpi in range(150, 156)])
        serves_newcomers(small)
        until(lambda: answered(held) == len(held), what="the files")
        assert {line.recv(13) for line in held} == {b"HTTP/1.1 200 "}
