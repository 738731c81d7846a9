"""No visitor can shut out the others, fill the disk, reach another host, or get what is another's; each row was possible once."""

from __future__ import annotations

import http.server
import io
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http.neighbours import (
    Experience,
    invented_pages,
    neighbours,
    trust_that_nobody_reads,
    under,
    uploads_broken_off,
)
from tests.http.visitor import Visitor
from tests.serving import Server
from tests.waiting import until

pytestmark = pytest.mark.server

MOST_ON_DISK = 300 * 2**20  # what may wait, and what is on its way


# --- while somebody attacks


@pytest.fixture(scope="module")
def attacked(start_app: Callable[..., Server]) -> Server:
    """An app of their own for the attacks."""
    return start_app("--model", "mini")


@pytest.fixture(scope="module")
def calm(attacked: Server) -> Experience:
    """What the neighbours meet when nobody attacks."""
    seen = neighbours(attacked)
    assert seen.refusals == []
    return seen


def on_disk(server: Server) -> int:
    """Bytes of the app's temporary files, those without a name included."""
    assert server.process is not None
    open_files = Path(f"/proc/{server.process.pid}/fd")
    without_name = [entry for entry in open_files.iterdir() if "(deleted)" in link_target(entry)]
    return sum(bytes_of(path) for path in [*server.uploaded(), *without_name])


def link_target(entry: Path) -> str:
    """Where an open file lies; nothing where it was closed since it was listed."""
    try:
        return os.readlink(entry)
    except OSError:
        return ""


def bytes_of(path: Path) -> int:
    """A file's size; 0 where the app deleted it since it was listed."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@pytest.mark.slow
@pytest.mark.parametrize("attack", [trust_that_nobody_reads, uploads_broken_off, invented_pages])
def test_neighbours_are_served_while_somebody_attacks_and_after(
    attacked: Server, calm: Experience, attack: Any
) -> None:
    disk: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            disk.append(on_disk(attacked))

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    quiet = attacked.memory()
    with under(attack, attacked):
        during = neighbours(attacked, calm=calm)
    after = neighbours(attacked, calm=calm)
    over.set()
    watching.join()
    assert (during.refusals, during.wrong) == ([], [])
    assert (after.refusals, after.wrong) == ([], [])
    assert len(during.numbers) == len(after.numbers) == len(calm.numbers)
    assert max(disk) <= MOST_ON_DISK
    until(lambda: on_disk(attacked) == 0, what="an empty disk", seconds=120)
    assert attacked.memory() < quiet + 400
    assert "Traceback" not in attacked.said()


@pytest.mark.slow
def test_what_nobody_waits_for_makes_room_at_once(attacked: Server) -> None:
    """Eight visitors fill the slow lane and leave; the next one's figures come without waiting for theirs."""
    with under(trust_that_nobody_reads, attacked):
        pass  # it has begun when each visitor has asked
    with Visitor(attacked, timeout=120) as visitor:
        visitor.arrive("?tab=explain")
        assert visitor.ask("trust", methods=["rollout"]).refusals == []


# --- what a request cannot reach


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """The address of another host, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    "form", ["file=http://{}/x", "file=https://{}/x", "file/http://{}/x", "proxy=http://{}/x", "file=//{}/x"]
)
def test_no_address_fetches_from_another_host(
    meet: Callable[..., Visitor], elsewhere: tuple[str, list[str]], form: str
) -> None:
    host, asked = elsewhere
    visitor = meet()
    visitor.arrive()
    assert visitor.http.get(f"/gradio_api/{form.format(host)}").status_code == 404
    assert asked == []


@pytest.mark.parametrize("name", ["", "%00", "..", "a b", "A" * 16, "x" * 5000])
def test_a_page_without_a_proper_name_is_refused_quietly(
    meet: Callable[..., Visitor], app: Server, name: str
) -> None:
    visitor = meet()
    visitor.arrive()
    before = len(app.said())
    assert visitor.http.get(f"/gradio_api/heartbeat/{name}").status_code in (400, 404)
    nobody = meet(keeps_cookies=False)
    nobody.page = name
    assert nobody.ask("open").status == 404
    assert len(app.said()) == before


def test_a_tiff_full_of_private_tags_adds_at_most_a_line_to_the_log(
    meet: Callable[..., Visitor], app: Server
) -> None:
    visitor = meet()
    visitor.arrive()
    before = len(app.said())
    assert visitor.bring("tags.tif", tiff_with_private_tags(4000)).refusals == []
    assert visitor.ask("facts").refusals == []
    assert len(app.said()) - before < 300


def tiff_with_private_tags(count: int) -> bytes:
    """A small TIFF whose directory holds this many tags of a type that there is not."""
    width, height = 9, 7
    pixels = zlib.compress(bytes(range(width * height)))
    known = [
        (256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, 8),
        (277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, len(pixels)),
    ]  # fmt: skip
    private = [(40_000 + i, 99, 1, 1) for i in range(count)]
    directory = io.BytesIO()
    directory.write(struct.pack("<H", len(known) + len(private)))
    for tag in known + private:
        directory.write(struct.pack("<HHII", *tag))
    directory.write(struct.pack("<I", 0))
    return b"II*\0" + struct.pack("<I", 8 + len(pixels)) + pixels + directory.getvalue()
