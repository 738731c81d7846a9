"""What the app offers beside the page where whoever runs it asks for it: questions by name over HTTP (vit_viz.rest, vit_viz.mcp).

They stand behind the same guard as the page: the same host names, the same limits for each visitor. A browser that has opened the
page may ask over HTTP always, within the limits of the page; others where that is offered. Their questions may compute for long, so
each takes a place in the lane of slow ones; what holds a large picture counts as an upload while it arrives.
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
"""Where the page sends pictures, each as the body of a request; see vit_viz.ui.header.answers."""

FILE_HEADER = "x-vit-viz-file"
"""In which it says what the file is called, percent-encoded; an address would stand in the logs of proxies."""

PICTURE_BYTES = 20 * 2**20
"""Of a picture that is sent, as of an upload."""

BODY_BYTES = PICTURE_BYTES * 4 // 3 + 2**16
"""Of a question: a picture as base64, and some words."""


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
