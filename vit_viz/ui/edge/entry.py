"""Which requests are let in at all: by host name, address, method, length and origin. What is refused here has cost nothing yet."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response

from vit_viz.surface import BODY_BYTES
from vit_viz.ui.edge.addresses import OPTIONAL, Kind, methods_at
from vit_viz.ui.edge.exposure import Exposure
from vit_viz.ui.edge.refusals import refusal
from vit_viz.ui.edge.uploading import TOO_LARGE
from vit_viz.ui.edge.user_errors import NOT_READABLE

REQUEST_BYTES = 2 * 2**20  # of a request that is no upload: the values of a few controls

NOTHING_HERE = "There is nothing at this address; please reload the page."
NO_SUCH_HOST = (
    "The app is not served under this host name; whoever runs it can allow the name in VIT_VIZ_HOSTS."
)
FOREIGN_PAGE = "A page of another site cannot use this app; please open it in a window of its own."

_FOR_EVERY_PAGE: tuple[Kind, ...] = ("page", "static", "fact")
"""Kinds of addresses that a page of another site may request: a link to the page, and what reveals nothing about any visitor."""
_PORTS = {"http": ":80", "https": ":443"}


def refused_entry(
    connection: HTTPConnection, kind: Kind | None, *, exposure: Exposure, offered: Collection[Kind]
) -> Response | None:
    """Why a request is not let in; None where it is.

    Args:
        kind: of its address; None where that is not there, or does not answer its method.
        offered: kinds of addresses beside those of the page.
    """
    headers, path = connection.headers, str(connection.scope["path"])
    if not exposure.serves(headers.get("host", "")):
        return PlainTextResponse(NO_SUCH_HOST, 421)
    if kind is None:
        return _nothing_here(path, offered)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return refusal(400, NOT_READABLE, kind, path)
    most = BODY_BYTES if kind in OPTIONAL else REQUEST_BYTES
    if kind != "upload" and int(length) > most:
        return refusal(413, TOO_LARGE, kind, path)
    if kind not in _FOR_EVERY_PAGE and is_of_another_site(headers):
        return refusal(403, FOREIGN_PAGE, kind, path)
    return None


def is_of_another_site(headers: Headers) -> bool:
    """Whether a page of another site sends a request: browsers say so, older ones and those on plain HTTP by its origin alone.

    A program that is no browser sends neither, and can say what it likes.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("cross-site", "same-site")
    if "origin" not in headers:
        return False
    scheme, _, host = headers["origin"].lower().partition("://")
    port = _PORTS.get(scheme, "")
    named = (headers.get(name, "").partition(",")[0] for name in ("host", "x-forwarded-host"))
    own = {name.strip().lower().removesuffix(port) for name in named}
    return host.removesuffix(port) not in own - {""}


def _nothing_here(path: str, offered: Collection[Kind]) -> Response:
    """The answer where there is no address, or one that does not answer this method."""
    there = methods_at(path, offered)
    if not there:
        return refusal(404, NOTHING_HERE, None, path)
    kind, methods = there
    said = f"This address only answers {' and '.join(methods)}; please reload the page."
    answer = refusal(405, said, kind, path)
    answer.headers["Allow"] = ", ".join(methods)
    return answer
