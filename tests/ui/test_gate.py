"""The gate: what is let in, what is added to answers, and what becomes of failures behind it."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from vit_viz.ui.gate import NO_ROOM, NOT_YOURS, NOTHING_HERE, TOO_LARGE, Gate
from vit_viz.ui.tray import Tray


class Behind(Starlette):
    """Stands for Gradio's app behind the gate."""

    tray: Tray

    def get_blocks(self) -> Any:
        return SimpleNamespace(tray=self.tray)


async def page(_request: Request) -> Response:
    return HTMLResponse("<p>page")


async def upload(request: Request) -> Response:
    path = request.query_params["path"]
    if path == "full":
        raise OSError(errno.ENOSPC, "No space left on device")
    await request.body()
    return JSONResponse([path])


async def file(_request: Request) -> Response:
    return PlainTextResponse("content")


async def fault(_request: Request) -> Response:
    raise KeyError("secret")


async def broken_stream(_request: Request) -> Response:
    async def parts() -> Any:
        yield b"first"
        raise KeyError("secret")

    return StreamingResponse(parts())


async def echo(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


ROUTES = [
    Route("/", page),
    Route("/fault", fault),
    Route("/gradio_api/upload", upload, methods=["POST"]),
    Route("/gradio_api/file={path:path}", file),
    Route("/gradio_api/queue/join", echo, methods=["POST"]),
    Route("/gradio_api/fault", fault),
    Route("/gradio_api/deep_link", file),
    Route("/gradio_api/queue/data", broken_stream),
]


@pytest.fixture
def behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Behind:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path))
    app = Behind(routes=ROUTES, middleware=[Middleware(Gate)])
    app.tray = Tray()
    return app


@pytest.fixture
def client(behind: Behind) -> Iterator[TestClient]:
    with TestClient(behind) as client:
        yield client


def test_every_answer_says_that_it_must_not_be_sniffed(client: TestClient) -> None:
    for path in ("/", "/nowhere", "/gradio_api/file=x", "/gradio_api/deep_link", "/gradio_api/fault"):
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


def test_a_page_gives_a_browser_a_name_once(client: TestClient) -> None:
    first = client.get("/").headers["set-cookie"]
    assert first.startswith("vit_viz=")
    assert "set-cookie" not in client.get("/").headers
    client.cookies.clear()
    assert client.get("/").headers["set-cookie"] != first


def test_only_pages_give_names(client: TestClient) -> None:
    assert "set-cookie" not in client.get("/gradio_api/file=x").headers


def test_a_closed_address_is_not_reached(client: TestClient) -> None:
    answer = client.get("/gradio_api/deep_link")
    assert (answer.status_code, answer.json()["detail"]) == (404, NOTHING_HERE)


@pytest.mark.parametrize(("path", "most"), [("queue/join", 2 * 2**20), ("upload?path=x", 20 * 2**20)])
def test_a_body_is_bounded_with_and_without_a_length(client: TestClient, path: str, most: int) -> None:
    assert client.post(f"/gradio_api/{path}", content=bytes(most)).status_code == 200
    for content in (bytes(most + 1), (bytes(2**16) for _ in range(most // 2**16 + 1))):
        answer = client.post(f"/gradio_api/{path}", content=content)
        assert answer.status_code == 413
        assert TOO_LARGE in answer.text


@pytest.mark.parametrize("length", ["-1", "x", "1e3"])
def test_a_length_that_is_no_number_is_refused(client: TestClient, length: str) -> None:
    answer = client.post("/gradio_api/queue/join", content=b"x", headers={"content-length": length})
    assert answer.status_code == 413


def test_an_uploaded_file_is_its_own_browsers(client: TestClient, behind: Behind) -> None:
    client.get("/")
    mine = client.cookies["vit_viz"]
    assert client.post("/gradio_api/upload?path=/tray/mine.png").json() == ["/tray/mine.png"]
    assert behind.tray.belongs_to("/tray/mine.png", mine)
    assert client.get("/gradio_api/file=/tray/mine.png").text == "content"
    client.cookies.clear()
    answer = client.get("/gradio_api/file=/tray/mine.png")
    assert (answer.status_code, answer.json()["detail"]) == (404, NOT_YOURS)
    assert client.get("/gradio_api/file=%2Ftray%2Fmine.png").status_code == 404


def test_a_full_disk_is_one_sentence_and_what_is_unfinished_is_deleted(
    client: TestClient, tmp_path: Path
) -> None:
    loose = tmp_path / "tmpgrowing"
    loose.write_bytes(b"x")
    answer = client.post("/gradio_api/upload?path=full")
    assert (answer.status_code, answer.text) == (507, NO_ROOM)
    assert not loose.exists()


def test_a_fault_of_the_api_is_the_visitors_and_says_nothing(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.get("/gradio_api/fault")
    assert answer.status_code == 400
    assert "secret" not in json.dumps(answer.json()) + caplog.text


def test_a_fault_of_a_page_is_one_sentence_and_logged(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.get("/fault")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "unexpected exception" in caplog.text


def test_an_answer_that_breaks_off_ends_quietly(client: TestClient) -> None:
    answer = client.get("/gradio_api/queue/data")
    assert (answer.status_code, answer.text) == (200, "first")
