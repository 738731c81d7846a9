"""One app for the quick tests, and fresh ones for those that measure or break theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.http.server import Server
from tests.http.visitor import Visitor


@contextmanager
def starting(folders: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start `python app.py` on a free port; whatever was started is stopped at the end, by its process id."""
    started: list[Server] = []

    def start(**options: Any) -> Server:
        server = Server(folders.mktemp("server"), **options)
        started.append(server)
        return server.start()

    try:
        yield start
    finally:  # also where one of them did not answer
        for server in started:
            server.stop()


@pytest.fixture(scope="module")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Starts apps that end with the file of tests that wanted them."""
    with starting(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app that quick tests share."""
    with starting(tmp_path_factory) as start:
        yield start()


@pytest.fixture
def meet(server: Server) -> Iterator[Callable[..., Visitor]]:
    """A new visitor of the shared app, or of another one."""
    met: list[Visitor] = []

    def visitor(of: Server | None = None, **options: Any) -> Visitor:
        met.append(Visitor(of or server, **options))
        return met[-1]

    yield visitor
    for one in met:
        one.close()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    """A folder that no server looks into."""
    return tmp_path
