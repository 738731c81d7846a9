"""A tiny model behind the door, with every surface that is offered beside the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.ui.desk import odd_session
from vit_viz import rest
from vit_viz.session.session import Session
from vit_viz.surface import Surface
from vit_viz.ui import opened
from vit_viz.ui.edge.door import guarded
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.header.routes import bring_route


class Behind(Starlette):
    """Stands for Gradio's app behind the door."""

    def __init__(self, session: Session, surfaces: list[Surface]) -> None:
        exposure = Exposure.of("127.0.0.1", environment={})
        beside = [route for one in surfaces for route in one.routes]
        super().__init__(
            routes=[
                *rest.routes(session),
                *opened.routes(session),
                bring_route(session),
                *beside,
            ],
            **guarded(exposure, surfaces),
        )
        self.stop_event = asyncio.Event()


@pytest.fixture(scope="module")
def session() -> Session:
    return odd_session()


@pytest.fixture(scope="module")
def open_client() -> Iterator[Callable[..., TestClient]]:
    """A browser or a program before an app of a session that offers these surfaces."""
    with ExitStack() as clients:

        def make(session: Session, *surfaces: Surface) -> TestClient:
            app = Behind(session, list(surfaces))
            client = TestClient(app, base_url="http://127.0.0.1:7860", raise_server_exceptions=False)
            return clients.enter_context(client)

        yield make


@pytest.fixture(scope="module")
def api(session: Session, open_client: Callable[..., TestClient]) -> TestClient:
    return open_client(session, rest.FOR_OTHERS)
