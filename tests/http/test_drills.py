"""When the machine fails: a disk that is full or locked, a visitor who hangs up, a server that is killed."""

from __future__ import annotations

import shutil
import signal
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest

from tests.http.hostile import encoded, photo
from tests.http.server import Server
from tests.http.visitor import Visitor

NO_ROOM = (
    "The server cannot keep this picture now, because its disk is full or locked; please try again later."
)


def large() -> bytes:
    """A picture of about a megabyte."""
    return encoded(photo(1, width=640, height=480), "BMP")


def small() -> bytes:
    return encoded(photo(2), "PNG")


@pytest.fixture(scope="module")
def cramped(start_server: Callable[..., Server]) -> Server:
    """An app that may write no file above 300 kB, as on a disk that is nearly full."""
    return start_server(most_file_bytes=300_000)


def test_a_full_disk_gives_one_sentence_and_leaves_nothing(cramped: Server) -> None:
    with Visitor(cramped) as visitor:
        visitor.arrive()
        answer = visitor.upload("large.bmp", large())
        assert (answer.status_code, answer.text) == (507, NO_ROOM)
        assert cramped.uploaded() == []
        assert visitor.bring("small.png", small()).refusals == []
    assert cramped.is_alive()
    assert "Traceback" not in cramped.said()


def test_a_locked_folder_gives_one_sentence(cramped: Server) -> None:
    folder = cramped.files
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("")  # root may write everywhere, but nobody writes into a file
    try:
        with Visitor(cramped) as visitor:
            visitor.arrive()
            answer = visitor.upload("small.png", small())
            assert (answer.status_code, answer.text) == (507, NO_ROOM)
    finally:
        folder.unlink()
    with Visitor(cramped) as visitor:
        visitor.arrive()
        assert visitor.bring("small.png", small()).refusals == []


def test_a_visitor_who_hangs_up_in_the_middle_of_an_upload_harms_nobody(cramped: Server) -> None:
    address = urlsplit(cramped.url)
    head = (
        "POST /gradio_api/upload HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: multipart/form-data; boundary=b\\r\\n"
        "Content-Length: 100000\\r\\n\\r\\n--b\\r\\nContent-Disposition: form-data; name=files; filename=x.png\\r\\n\\r\\n"
    )
    for _ in range(5):
        with socket.create_connection((address.hostname, address.port), timeout=10) as line:
            line.sendall(head.encode() + b"x" * 5000)
    with Visitor(cramped) as visitor:  # who comes after them is served
        visitor.arrive()
        assert visitor.bring("small.png", small()).refusals == []
    assert cramped.is_alive()
    assert "Traceback" not in cramped.said()


@pytest.mark.slow
def test_a_server_that_was_killed_in_the_middle_of_a_request_starts_again_on_its_port(
    start_server: Callable[..., Server],
) -> None:
    server = start_server()
    visitor = Visitor(server)
    visitor.arrive("?layer=2&head=3&image=tower")
    event = visitor.event("vv-tab-explain", "select")
    visitor.join(event["id"], visitor.inputs(event, ()))
    server.stop(signal.SIGKILL)
    with pytest.raises(httpx.HTTPError):
        visitor.http.get("/")
    visitor.close()
    server.start()
    with Visitor(server) as again:
        again.arrive("?layer=2&head=3&image=tower")
        view = again.value("vv-explorer")["view"]
        assert (again.value("vv-explorer")["image"], view["layer"], view["head"]) == ("tower", 2, 3)
