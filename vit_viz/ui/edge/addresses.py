"""Which addresses there are, by method and shape: what the page uses. Everything else answers 404, whatever Gradio would do there.

A test lists the routes of the installed Gradio and fails when one is neither here nor in its own list of closed ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

API = "/gradio_api/"

Kind = Literal[
    "page",
    "static",
    "fact",
    "heartbeat",
    "join",
    "messages",
    "cancel",
    "upload",
    "upload progress",
    "file",
    "health",
    "ours",
    "api",
    "mcp",
]
"""What an address is for: the page, its scripts and styles, a fact about the app, ...; "health" is asked by whoever
keeps the app running; "ours" are those of vit_viz.ui.routes.

"api" (vit_viz.rest) and "mcp" (vit_viz.mcp) are there only where they were asked for.
"""
OPTIONAL: tuple[Kind, ...] = ("api", "mcp")

_READ = ("GET", "HEAD")
_ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
"""Of addresses whose routes say themselves which methods they answer."""
_NAME = r"(?!\.\.?(?:/|$))[\w@+.,-]+"  # a part of a path that is neither . nor ..


@dataclass(frozen=True)
class Address:
    """Addresses of one kind: the methods that they answer and the shape of their paths."""

    kind: Kind
    methods: tuple[str, ...]
    path: str

    def matches(self, method: str, path: str) -> bool:
        """Whether this is one of them."""
        return method in self.methods and re.fullmatch(self.path, path, re.ASCII | re.DOTALL) is not None


ADDRESSES = (
    Address("page", _READ, r"/"),
    Address("static", ("GET",), rf"/(?:assets|static|svelte)(?:/{_NAME})+"),
    Address("static", ("GET",), rf"/(?:theme\.css|favicon\.ico|manifest\.json|robots\.txt)|{API}theme\.css"),
    Address("static", ("GET",), rf"/vit_viz/(?:js|page)(?:/{_NAME})+"),
    Address(
        "fact", ("GET",), rf"{API}(?:app_id|startup-events)"
    ),  # a page that reconnects asks, and the app when it starts
    Address("heartbeat", ("GET",), rf"{API}heartbeat/[^/]*"),
    Address("join", ("POST",), rf"{API}queue/join"),
    Address("messages", ("GET",), rf"{API}queue/data"),
    Address("cancel", ("POST",), rf"{API}cancel"),
    Address("upload", ("POST",), rf"{API}upload"),
    Address("upload progress", ("GET",), rf"{API}upload_progress"),
    Address("file", _READ, rf"{API}file=.+"),
    Address("health", _READ, r"/health"),
    Address("api", _ANY, r"/api/v1(?:/[a-z0-9_]{1,60}(?:\.json)?)?"),
    Address("mcp", ("GET", "POST", "DELETE"), r"/mcp"),
    Address("ours", _ANY, r"/vit_viz/(?!(?:js|page)/).*"),
)


def kind_of(method: str, path: str) -> Kind | None:
    """What a request is for; None where there is nothing."""
    for address in ADDRESSES:
        if address.matches(method, path):
            return address.kind
    return None


def methods_at(path: str, offered: Collection[Kind]) -> tuple[Kind, tuple[str, ...]] | None:
    """What an address is for, and the methods that it answers; None where there is nothing.

    Args:
        offered: kinds beside those of the page.
    """
    for address in ADDRESSES:
        is_there = address.kind in offered or address.kind not in OPTIONAL
        if is_there and address.matches(address.methods[0], path):
            return address.kind, address.methods
    return None
