"""What one client can do to an app that answers others meanwhile: held connections, and requests without end, valid and not.

Each attack goes on until `stop` is set. Those of `tests.http.neighbours` ask slow questions and upload; these do the rest.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.http.hostile import encoded, photo
from tests.http.visitor import HasUrl, Visitor
from vit_viz.analyses.registry import QUESTIONS

THREADS = 96
FLAGS = ("--api", "--mcp", "--survey", "example")
"""Of an app that has everything that can be attacked."""


def cookie_of(server: HasUrl) -> str:
    """A new name for a browser as the page gives it, NAME=VALUE."""
    ((name, value),) = httpx.get(f"{server.url}/", timeout=90).cookies.items()
    return f"{name}={value}"


def line_to(server: HasUrl, head: Sequence[str], body: bytes = b"") -> socket.socket:
    """A connection on which a request has begun."""
    address = urlsplit(server.url)
    line = socket.create_connection((str(address.hostname), int(address.port or 80)), timeout=60)
    try:
        line.sendall("\r\n".join([*head, f"Host: {address.netloc}", "", ""]).encode() + body)
    except BaseException:
        line.close()
        raise
    return line


def hold(stop: Any, connect: Iterable[Callable[[], socket.socket]], *, again_seconds: float) -> None:
    """Hold connections open, and open those again that the server has ended."""
    ways = list(connect)
    with ExitStack() as held:
        lines: list[socket.socket | None] = [None] * len(ways)
        while not stop.is_set():
            for number, way in enumerate(ways):
                if stop.is_set():
                    break
                line = lines[number]
                if line is None or _is_over(line):
                    if line is not None:
                        line.close()
                    try:
                        lines[number] = held.enter_context(way())
                    except OSError:
                        lines[number] = None  # the server takes no more
            stop.wait(again_seconds)


def _is_over(line: socket.socket) -> bool:
    """Whether the server has answered or ended a request that is not whole."""
    line.setblocking(False)
    try:
        line.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def bodies_that_stall(server: HasUrl, stop: Any) -> None:
    """Questions that never become whole, small and large: 8 without a cookie, and one of each of 60 cookies."""
    cookies = ["" for _ in range(8)] + [cookie_of(server) for _ in range(60)]

    def stalled(number: int, cookie: str) -> socket.socket:
        path = "/mcp" if number % 2 else "/api/v1/relevance"
        length = 5_000_000 if number % 3 == 0 else 300
        head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", f"Content-Length: {length}"]
        return line_to(server, [*head, *([f"Cookie: {cookie}"] if cookie else [])], b'{"image"')

    hold(stop, [lambda n=n, c=c: stalled(n, c) for n, c in enumerate(cookies)], again_seconds=1.0)


def answers_that_nobody_reads(server: HasUrl, stop: Any) -> None:
    """200 times the largest file of a picture, asked for on lines of which nothing is read."""
    with Visitor(server, timeout=90) as visitor:
        trace = with_picture(visitor)
        head = [
            f"GET /vit_viz/explorer/{trace}.html HTTP/1.1",
            f"Cookie: {visitor.cookie}",
        ]

        def unread() -> socket.socket:
            line = line_to(server, head)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            return line

        with ExitStack() as held:
            for _ in range(200):
                if stop.is_set():
                    return
                held.enter_context(unread())
            stop.wait()


def with_picture(visitor: Visitor) -> str:
    """The handle of a picture that a visitor brings."""
    visitor.arrive()
    visitor.bring("mine.png", encoded(photo(4100), "PNG"))
    return str(visitor.opened()["trace"])


def valid_requests(trace: str) -> list[str]:
    """What may be fetched of a picture and of a survey, each a little different from the others."""
    where = "head_concentration > 0.{}"
    return [
        *(
            f"/vit_viz/numbers/{trace}?layer={n % 6}&head={n % 3}&q={n % 16},{n % 16}&at=1,2"
            for n in range(36)
        ),
        *(f"/vit_viz/explorer/{trace}.html?layer={layer}" for layer in range(6)),
        *(f"/vit_viz/survey/chosen?layer={n}&head=1&where={where.format(n)}" for n in range(6)),
        *(f"/vit_viz/survey/methods?layer={n}&head=1" for n in range(6)),
    ]


def requests_without_end(server: HasUrl, stop: Any) -> None:
    """96 threads of one client ask for files and numbers that they may have."""
    with Visitor(server, timeout=90) as visitor:
        paths = valid_requests(with_picture(visitor))
        ask_without_end(server, stop, paths, visitor.cookie)


def refused_without_end(server: HasUrl, stop: Any) -> None:
    """96 threads of one client ask for what is not there, what they may not have, and for filters that are too long or wrong."""
    with Visitor(server, timeout=90) as visitor:
        trace = with_picture(visitor)
        paths = [
            *(f"/vit_viz/{kind}/{secrets.token_urlsafe(24)}" for kind in ("layer", "photo", "numbers")),
            *(f"/vit_viz/numbers/{trace}?layer={layer}" for layer in (99, "x", -1)),
            *("/nowhere", "/vit_viz/nowhere", "/gradio_api/file=/etc/passwd"),
            *(f"/vit_viz/survey/chosen?layer=1&head=1&where={where}" for where in ("x" * 20_000, "1 = ", "2 > 1 or " * 400)),
        ]  # fmt: skip
        ask_without_end(server, stop, paths, visitor.cookie)


def long_filters(server: HasUrl, stop: Any) -> None:
    """96 threads of one client filter a survey by expressions as long as they may be."""
    inside = "inside(head_concentration, head_entropy, '0 0, 1 0.1, 0.9 1, 0.1 0.8') or "
    chain = "abs(head_concentration * head_entropy) + 0.{} > 0.5 or "
    wheres = [
        *(inside * (3900 // len(inside)) + f"head_concentration > 0.{n:06d}" for n in range(40)),
        *(chain.format(n) * (3900 // (len(chain) + 4)) + "1 = 1" for n in range(1000, 1040)),
    ]
    paths = [str(httpx.URL("/vit_viz/survey/chosen", params={"where": where})) for where in wheres]
    ask_without_end(server, stop, paths, cookie_of(server))


def pages_without_end(server: HasUrl, stop: Any) -> None:
    """24 threads of a client that keeps no cookies open the page, and its scripts, again and again."""
    ask_without_end(server, stop, ["/", "/theme.css", "/gradio_api/app_id"], "", threads=24)


def asked_on_line(server: HasUrl, name: str, cookie: str, **body: Any) -> socket.socket:
    """A connection on which a page has asked something of its link, and waits to hear how far the answer is."""
    path = f"/api/v1/{name}" if name in QUESTIONS else f"/vit_viz/{name}"
    content = json.dumps(
        {"image": {"sample": "lion"}} | body if name in QUESTIONS else {"view": ""} | body
    ).encode()
    head = [f"POST {path} HTTP/1.1", "Content-Type: application/json", "Accept: text/event-stream"]
    return line_to(server, [*head, f"Content-Length: {len(content)}", f"Cookie: {cookie}"], content)


def questions_that_wait(server: HasUrl, stop: Any) -> None:
    """Slow questions of one cookie on 8 lines, and quick ones on 14, of which nothing is read, again and again."""
    cookie = cookie_of(server)
    while not stop.is_set():
        with ExitStack() as held:
            for number in range(22):
                held.enter_context(asked_on_line(server, "trust" if number < 8 else "open", cookie))
            stop.wait(1.0)


def ask_without_end(
    server: HasUrl, stop: Any, paths: Sequence[str], cookie: str, *, threads: int = THREADS
) -> None:
    """Ask from many threads, each as soon as it was answered."""

    def asking(first: int) -> None:
        with httpx.Client(base_url=server.url, timeout=120, headers={"cookie": cookie}) as client:
            number = first
            while not stop.is_set():
                try:
                    client.get(paths[number % len(paths)])
                except httpx.HTTPError:
                    stop.wait(0.1)
                number += 7

    running = [threading.Thread(target=asking, args=(n,), daemon=True) for n in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(150)
