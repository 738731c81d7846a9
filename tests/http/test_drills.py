"""When the machine fails: a disk that is full, a visitor who hangs up, a server that is killed."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest

from tests.http.hostile import encoded, photo
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import PATIENCE, until
from vit_viz.surface import BRING

pytestmark = pytest.mark.server


def large() -> bytes:
    """A picture of about a megabyte."""
    return encoded(photo(1, width=640, height=480), "BMP")


def small() -> bytes:
    return encoded(photo(2), "PNG")


@pytest.fixture(scope="module")
def cramped(start_app: Callable[..., Server]) -> Server:
    """An app that may write next to nothing, as on a disk that is full."""
    return start_app("--model", "mini", most_file_bytes=1000)


def test_pictures_need_no_disk(cramped: Server) -> None:
    with Visitor(cramped) as visitor:
        visitor.arrive()
        for name, content in (("large.bmp", large()), ("small.png", small())):
            assert visitor.bring(name, content).refusals == []
            assert visitor.ask("open").refusals == []
    assert cramped.uploaded() == []
    assert "Traceback" not in cramped.said()


def test_a_visitor_who_hangs_up_in_the_middle_of_a_picture_harms_nobody(cramped: Server) -> None:
    address = urlsplit(cramped.url)
    with Visitor(cramped) as visitor:
        visitor.arrive()
        head = visitor.http.build_request("POST", BRING, headers={"Content-Length": str(15 * 2**20)})
        lines = [f"{name}: {value}\r\n" for name, value in head.headers.items()]
        request = f"POST {BRING} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()
        for _ in range(8):  # together twice what one visitor may have on the way
            with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as line:
                line.sendall(request + bytes(15 * 2**20 - 1))
        until(lambda: visitor.bring("small.png", small()).refusals == [], what="room for another picture")
    assert cramped.is_alive()
    assert "Traceback" not in cramped.said()


@pytest.mark.slow
def test_a_server_that_was_killed_in_the_middle_of_a_request_starts_again_on_its_port(
    start_app: Callable[..., Server],
) -> None:
    server = start_app("--model", "mini")
    visitor = Visitor(server)
    visitor.arrive("?layer=2&head=3&image=tower")
    with visitor.asking("trust") as answer:
        assert answer.status_code == 200
        server.stop(signal.SIGKILL)
    with pytest.raises(httpx.HTTPError):
        visitor.http.get("/")
    visitor.close()
    server.start()
    with Visitor(server) as again:
        again.arrive("?layer=2&head=3&image=tower")
        assert again.opened()["image"] == "tower"
