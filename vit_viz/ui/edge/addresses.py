"""Which addresses there are, by method and shape, and who may ask them; everything else is refused, whatever Gradio would do there.

A request is let in by host name, address, method, length and origin; what is refused there has cost nothing yet. What fails behind
the guard ends here, too: as a sentence and a status that says whose fault it is. A test lists the routes of the installed Gradio
and fails when one is neither here nor in its own list of closed ones.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response

from vit_viz.analyses.registry import QUESTIONS
from vit_viz.errors import BusyError, ParameterError
from vit_viz.sentences import sentence
from vit_viz.surface import BRING, PICTURE_BYTES, QUESTION_BYTES
from vit_viz.ui.edge.exposure import Exposure

logger = logging.getLogger(__name__)

API = "/gradio_api/"
LOAD = "/vit_viz/load"  # which may bring a model here

Kind = Literal["page", "static", "fact", "start", "health", "ours", "api", "mcp"]
"""What an address is for: the page, its scripts and styles, a fact about the app; "start" is asked by Gradio's launch, "health" by
whoever keeps the app running; "ours" are those of vit_viz.ui.routes, "api" those of vit_viz.rest, "mcp" of vit_viz.mcp."""
OPTIONAL: tuple[Kind, ...] = ("api", "mcp")
"""There for whoever has opened the page, or where they were asked for."""

HEAD_BYTES = 16 * 2**10
_READ = ("GET", "HEAD")
_ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
"""Of addresses whose routes say themselves which methods they answer."""
_NAME = r"(?!\.\.?(?:/|$))[\w@+.,-]+"  # a part of a path that is neither . nor ..

NOT_READABLE = "The page sent something that cannot be read; please reload it and try again."
TOO_LARGE = "A picture has at most 20 MB, and is brought by POST /vit_viz/bring; whatever else is sent has at most 64 kB."
LARGE_HEAD = (
    "The headers of a request have at most 16 kB; please delete the cookies of this host and try again."
)
NO_LENGTH = (
    "What is sent says its length beforehand, in the header Content-Length; please send it again, whole."
)
STOPPED = "The upload stopped in the middle; please choose the picture again."
NOTHING_HERE = "There is nothing at this address; please reload the page."
NO_SUCH_HOST = (
    "The app is not served under this host name; whoever runs it can allow the name in VIT_VIZ_HOSTS."
)
FOREIGN_PAGE = "A page of another site cannot use this app; please open it in a window of its own."
_FOR_EVERY_PAGE: tuple[Kind, ...] = ("page", "static", "fact")
"""Kinds of addresses that a page of another site may request: a link to the page, and what reveals nothing about any visitor."""
_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Endpoint:
    """Addresses of one kind: the methods that they answer and the shape of their paths."""

    kind: Kind
    methods: tuple[str, ...]
    path: str


ADDRESSES = (
    Endpoint("page", _READ, r"/"),
    Endpoint("static", ("GET",), rf"/(?:assets|static|svelte)(?:/{_NAME})+"),
    Endpoint("static", ("GET",), rf"/(?:theme\.css|favicon\.ico|manifest\.json|robots\.txt)|{API}theme\.css"),
    Endpoint("static", ("GET",), rf"/vit_viz/page(?:/{_NAME})+"),
    Endpoint("fact", ("GET",), rf"{API}app_id"),  # asked by a page that has lost its server
    Endpoint("start", ("GET",), rf"{API}startup-events"),
    Endpoint("health", _READ, r"/health"),
    Endpoint("api", ("POST",), r"/vit_viz/[a-z]+"),
    Endpoint("api", _ANY, r"/api/v1(?:/[a-z0-9_]{1,60}(?:\.json)?)?"),
    Endpoint("mcp", ("POST",), r"/mcp"),
    Endpoint("ours", _ANY, r"/vit_viz/(?!page/).*"),
)


def endpoint_at(path: str, method: str = "") -> Endpoint | None:
    """What is at an address, for a method where one answers that; None where nothing is."""
    there = [one for one in ADDRESSES if re.fullmatch(one.path, path, re.ASCII | re.DOTALL)]
    return next((one for one in there if method in one.methods), there[0] if there else None)


def kind_of(method: str, path: str) -> Kind | None:
    """What a request is for; None where there is nothing, or nothing that answers its method."""
    one = endpoint_at(path, method)
    return one.kind if one is not None and method in one.methods else None


class TooLarge(Exception):  # noqa: N818
    """What is sent holds more than it may."""


def most_bytes(path: str) -> int:
    """Of what is sent to an address."""
    return PICTURE_BYTES if path == BRING else QUESTION_BYTES


def is_large_head(headers: Headers) -> bool:
    """Whether the headers of a request are more than any browser sends: to read thousands of them, or of cookies, takes long."""
    return sum(len(name) + len(value) for name, value in headers.raw) > HEAD_BYTES


def is_slow(path: str) -> bool:
    """Whether what is asked at an address costs many passes."""
    question = QUESTIONS.get(path.rpartition("/")[2])
    return path == LOAD or (question is not None and question.is_slow)


# --- refusals


def failure(error: Exception, path: str) -> Response:
    """The answer to a request that failed: one sentence, and a status that says whose fault it is."""
    one = endpoint_at(path)
    if isinstance(error, TooLarge):
        return refusal(413, TOO_LARGE, path)
    if isinstance(error, (ClientDisconnect, TimeoutError)):  # the client has hung up, or does not go on
        return refusal(408, STOPPED, path)
    if isinstance(error, (BusyError, ParameterError)):
        return refusal(429 if isinstance(error, BusyError) else 400, str(error), path)
    if one is not None and one.kind in ("page", "ours", *OPTIONAL):
        return refusal(500, sentence(error), path)
    logger.info("refused a request: %s", type(error).__name__)
    return refusal(400, NOT_READABLE, path)


def refusal(status: int, text: str, path: str) -> Response:
    """A sentence as the one who asks reads it: a program or Gradio's own script as JSON, a person as it is."""
    one = endpoint_at(path)
    is_json = path.startswith(API) or (one is not None and one.kind in OPTIONAL)
    return JSONResponse({"error": text}, status) if is_json else PlainTextResponse(text, status)


def refused_entry(connection: HTTPConnection, one: Endpoint | None, exposure: Exposure) -> Response | None:
    """Why a request is not let in to what is at its address; None where it is."""
    headers, path, method = connection.headers, str(connection.scope["path"]), connection.scope["method"]
    if is_large_head(headers):
        return PlainTextResponse(LARGE_HEAD, 431)
    lengths = headers.getlist("content-length")
    if "transfer-encoding" in headers and (
        lengths or not exposure.believes_proxy
    ):  # a proxy joins parts, and may pass them on so
        return refusal(411, NO_LENGTH, path)
    if not exposure.serves(headers.getlist("host")):
        return PlainTextResponse(NO_SUCH_HOST, 421)
    if one is None:
        return refusal(404, NOTHING_HERE, path)
    if method not in one.methods:
        said = f"This address only answers {' and '.join(one.methods)}; please reload the page."
        answer = refusal(405, said, path)
        answer.headers["Allow"] = ", ".join(one.methods)
        return answer
    length, *others = lengths or ["0"]
    if others or not (length.isascii() and length.isdigit()):
        return refusal(400, NOT_READABLE, path)
    if int(length) > most_bytes(path):
        return refusal(413, TOO_LARGE, path)
    if one.kind not in _FOR_EVERY_PAGE and is_of_another_site(headers):
        return refusal(403, FOREIGN_PAGE, path)
    return None


def is_of_another_site(headers: Headers) -> bool:
    """Whether a page of another site sends a request: browsers say so, older ones and those on plain HTTP by its origin alone.

    A program that is no browser sends neither, and can say what it likes.
    """
    if "sec-fetch-site" in headers:
        return headers["sec-fetch-site"] in ("cross-site", "same-site")
    if "origin" not in headers:
        return False
    scheme, _, host = headers["origin"].lower().partition("://")
    port = _PORTS.get(scheme, "")
    named = (headers.get(name, "").partition(",")[0] for name in ("host", "x-forwarded-host"))
    own = {name.strip().lower().removesuffix(port) for name in named}
    return host.removesuffix(port) not in own - {""}
