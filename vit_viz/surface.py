"""Surfaces beside the page that the app offers on request: questions by name over HTTP (vit_viz.rest, vit_viz.mcp).

They stand behind the same door as the page: the same host names, the same turns. A browser that has opened the page may ask over
HTTP always; others where that is offered. A question is small: a picture is brought first, by itself, and then named by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from starlette.routing import BaseRoute

EVENTS = "text/event-stream"
"""Type of an answer that tells how far it is while it is computed."""

KEPT = "only-if-cached"
"""In the header Cache-Control of a question that is answered only where its answer is at hand."""

PAGE_HEADER = "x-vit-viz-page"
"""In which a page of a browser that keeps no cookies says its name."""

OWNER = "vit_viz.owner"
"""Key in a request's scope: who asks, as the session knows it."""

BRING = "/vit_viz/bring"
"""Where the page sends pictures, each as the body of a request; see vit_viz.ui.header.routes."""

FILE_HEADER = "x-vit-viz-file"
"""In which it says what the file is called, percent-encoded; an address would stand in the logs of proxies."""

PICTURE_BYTES, QUESTION_BYTES = 20 * 2**20, 64 * 2**10
"""Of a picture that is brought, and of anything else that is sent."""


@dataclass(frozen=True)
class Surface:
    """One way to ask beside the page.

    Args:
        kind: of its addresses.
        routes: that answer there, beside those of the app.
        running: what has to run meanwhile.
    """

    kind: Literal["api", "mcp"]
    routes: Sequence[BaseRoute] = ()
    running: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
