"""When the machine fails: a disk that is full or locked, a visitor who hangs up, a server that is killed."""

from __future__ import annotations

import json
import shutil
import signal
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pytest

from tests.http.hostile import encoded, photo
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import PATIENCE

pytestmark = pytest.mark.server

NO_ROOM = (
    "The server cannot keep this picture now, because its disk is full or locked; please try again later."
)


def large() -> bytes:
    """A picture of about a megabyte."""
    return encoded(photo(1, width=640, height=480), "BMP")


def small() -> bytes:
    return encoded(photo(2), "PNG")


@pytest.fixture(scope="module")
def cramped(start_app: Callable[..., Server]) -> Server:
    """An app that may write no file above 300 kB, as on a disk that is nearly full."""
    return start_app("--model", "mini", most_file_bytes=300_000)


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
    with Visitor(cramped) as visitor:
        visitor.arrive()
        before = set(cramped.uploaded())
        multipart = {"Content-Type": "multipart/form-data; boundary=b", "Content-Length": "100000"}
        part = "--b\r\nContent-Disposition: form-data; name=files; filename=x.png\r\n\r\n"
        for number in range(5):
            known = {"upload_id": f"broken off {number}"}
            head = visitor.http.build_request("POST", "/gradio_api/upload", params=known, headers=multipart)
            lines = [f"{name}: {value}\r\n" for name, value in head.headers.items()]
            request = f"POST {head.url.raw_path.decode()} HTTP/1.1\r\n{''.join(lines)}\r\n{part}".encode()
            with (
                visitor.http.stream(
                    "GET", "/gradio_api/upload_progress", params=known, timeout=PATIENCE
                ) as told,
                socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as line,
            ):
                line.sendall(request + b"x" * 50_000)
                events = (json.loads(event[6:])["msg"] for event in told.iter_lines() if event)
                assert next(events) == "update"
                line.close()
                assert set(events) <= {"update", "done"}  # to its end, which comes when nothing more can
        assert set(cramped.uploaded()) <= before
        assert visitor.bring("small.png", small()).refusals == []  # who comes after them is served
    assert cramped.is_alive()
    assert "Traceback" not in cramped.said()


@pytest.mark.slow
def test_a_server_that_was_killed_in_the_middle_of_a_request_starts_again_on_its_port(
    start_app: Callable[..., Server],
) -> None:
    server = start_app("--model", "mini")
    visitor = Visitor(server)
    visitor.arrive("?layer=2&head=3&image=tower")
    with visitor.asking("trust", methods=["relevance", "rollout"]) as answer:
        assert answer.status_code == 200
        server.stop(signal.SIGKILL)
    with pytest.raises(httpx.HTTPError):
        visitor.http.get("/")
    visitor.close()
    server.start()
    with Visitor(server) as again:
        again.arrive("?layer=2&head=3&image=tower")
        assert again.opened()["image"] == "tower"
