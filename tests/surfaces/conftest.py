"""A tiny model behind the guard, with every surface that is offered beside the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import odd_session
from vit_viz import rest
from vit_viz.session.session import Session
from vit_viz.surface import Surface
from vit_viz.ui import opened
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.http_guard import guarded
from vit_viz.ui.edge.pages import Pages
from vit_viz.ui.edge.uploads import UploadFiles
from vit_viz.ui.walkthrough import answers as steps


class Behind(Starlette):
    """Stands for Gradio's app behind the guard."""

    def __init__(self, session: Session, surfaces: list[Surface], files: UploadFiles) -> None:
        exposure = Exposure.of("127.0.0.1", environment={})
        beside = [route for one in surfaces for route in one.routes]
        super().__init__(
            routes=[*rest.routes(session), *opened.routes(session), *steps.routes(session), *beside],
            **guarded(exposure, surfaces),
        )
        queue = SimpleNamespace(event_ids_to_events={}, pending_event_ids_session={}, has_failed=False)
        self.blocks = SimpleNamespace(
            files=files, open_pages=Pages(), questions=queue, fns={}, on_abandoned=print
        )
        self.stop_event = asyncio.Event()

    def get_blocks(self) -> Any:
        return self.blocks


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture(scope="module")
def open_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., TestClient]]:
    """A browser or a program before an app of a session that offers these surfaces."""
    folder: Path = tmp_path_factory.mktemp("uploads")
    with ExitStack() as clients:

        def make(session: Session, *surfaces: Surface) -> TestClient:
            app = Behind(session, list(surfaces), UploadFiles(lambda: str(folder)))
            client = TestClient(app, base_url="http://127.0.0.1:7860", raise_server_exceptions=False)
            return clients.enter_context(client)

        yield make


@pytest.fixture(scope="module")
def api(session: Session, open_client: Callable[..., TestClient]) -> TestClient:
    return open_client(session, rest.FOR_OTHERS)
