"""What the browser fetches beside Gradio's own traffic: binary layers, rows, numbers, the photo, pictures.

    GET /vit_viz/layer/<handle>/<layer>    q, k of a layer (or its attention), see `layer_bytes`
    GET /vit_viz/rows/<handle>/<layer>     ?query=&direction=   float32 [heads, tokens]
    GET /vit_viz/numbers/<handle>          ?layer=&head=&query=&direction=&at=row,col   JSON, in full precision
    GET /vit_viz/photo/<handle>            JPEG
    GET /vit_viz/picture/<handle>.png      ?kind=map|mosaic|explain|patches|...&bare=1   PNG to save, or JPEG for the screen

A handle is unguessable, expires, and is worth nothing in another browser. Every refusal is a 4xx with one plain sentence and
`no-store`, because browsers remember refusals otherwise. Answers never change under their handle, so they may be kept by the
browser of the one who asked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vit_viz.capture import Trace
from vit_viz.errors import BusyError, Cancelled, CaptureError, ImageError, ParameterError
from vit_viz.geometry import parse_query
from vit_viz.handles import Subject, visitor_in
from vit_viz.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.boundary import sentence
from vit_viz.ui.state import ViewState

PREFIX = "/vit_viz"
LAYER_BYTES = (
    60 * 2**20
)  # a layer that is larger than this stays on the server, which then answers row by row
GONE = "This picture is no longer kept; please reload the page."
NOTHING_HERE = "There is nothing at this address; please reload the page."
ONLY_GET = "This address only answers GET; please reload the page."
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")

Answer = Callable[[HttpRequest, Subject], Response]

_KEPT = {"Cache-Control": "private, max-age=3600", "X-Content-Type-Options": "nosniff"}
_NOT_KEPT = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Gone(Exception):  # noqa: N818
    """A handle that is unknown or has expired."""


def routes(session: Session) -> list[BaseRoute]:
    """The routes, for `launch(app_kwargs={"routes": ...})`."""

    def route(path: str, answer: Answer) -> Route:
        def endpoint(request: HttpRequest) -> Response:  # not async: Starlette gives it a thread of its own
            try:
                return answer(request, _subject(session, request))
            except Exception as error:
                return refusal(error)

        return Route(PREFIX + path, endpoint, methods=["GET"])

    return [
        route("/layer/{handle}/{layer}", lambda r, s: _layer(session, r, s)),
        route("/rows/{handle}/{layer}", lambda r, s: _rows(session, r, s)),
        route("/numbers/{handle}", lambda r, s: _numbers(session, r, s)),
        route("/photo/{handle}", lambda _, s: _picture_response(pictures.photo_jpeg(session, s), save=False)),
        route("/picture/{handle}.png", lambda r, s: _picture(session, r, s)),
        Route(
            PREFIX + "/{rest:path}", _nothing_here, methods=_METHODS
        ),  # the last, so that it takes what is left
    ]


def _nothing_here(request: HttpRequest) -> Response:
    """The answer to whatever else is asked of our addresses."""
    if request.method in ("GET", "HEAD"):
        return Response(NOTHING_HERE, 404, _NOT_KEPT, "text/plain; charset=utf-8")
    return Response(ONLY_GET, 405, {**_NOT_KEPT, "Allow": "GET"}, "text/plain; charset=utf-8")


def refusal(error: Exception) -> Response:
    """An exception as a response: one sentence, a status that says whose fault it is, never kept by the browser."""
    if isinstance(error, Gone | ImageError):
        status, text = 404, GONE if isinstance(error, Gone) else sentence(error)
    elif isinstance(error, ParameterError | CaptureError):
        status, text = 400, sentence(error)
    else:
        status, text = 429 if isinstance(error, BusyError | Cancelled) else 500, sentence(error)
    return Response(text, status, _NOT_KEPT, "text/plain; charset=utf-8")


def _subject(session: Session, request: HttpRequest) -> Subject:
    visitor = visitor_in(request.cookies)
    subject = session.handles.find(request.path_params["handle"], visitor=visitor)
    if subject is None:
        raise Gone
    return subject


def _trace(session: Session, subject: Subject) -> Trace:
    return session.trace(subject.model, subject.image, mode=subject.mode, owner=subject.owner)


def source_of(trace: Trace, layer: int) -> str:
    """How a layer reaches the browser: "qk", "attention" where q and k do not determine it, "rows" where it is too large."""
    heads, tokens = trace.num_heads, trace.num_tokens
    source = trace.source(layer)
    size = heads * tokens * (4 * trace.head_dim + 8 if source == "qk" else 2 * tokens)
    return source if size <= LAYER_BYTES else "rows"


def has_norms(trace: Trace) -> bool:
    """Whether ||v_j W_O,h|| is known, so that the browser can weigh attention by it."""
    try:
        return trace.value_norms(0) is not None
    except CaptureError:
        return False


def layer_bytes(trace: Trace, layer: int) -> tuple[str, bytes]:
    """A layer for the browser: its kind and its little-endian bytes.

    "qk": lse float32 [heads, tokens], value norms float32 [heads, tokens] (zeros where unknown), q float16 [heads, tokens,
    head_dim], k float16 likewise. "attention": float16 [heads, tokens, tokens].

    Raises:
        ParameterError: the layer does not exist, or is too large to travel.
    """
    if not 0 <= layer < trace.num_layers:
        raise ParameterError(f"Layer {layer} does not exist: this model has layers 0-{trace.num_layers - 1}.")
    kind = source_of(trace, layer)
    if kind == "rows":
        raise ParameterError("This layer is too large to travel whole; ask for its rows.")
    if kind == "attention":
        return kind, _bytes(trace.attention(layer), np.float16)
    lse, operands = trace.normaliser(layer), trace.layers[layer]
    norms = trace.value_norms(layer) if has_norms(trace) else lse * 0
    parts = [_bytes(lse, np.float32), _bytes(norms, np.float32)]
    return kind, b"".join([*parts, _bytes(operands.q, np.float16), _bytes(operands.k, np.float16)])


def _bytes(values: object, dtype: type[np.floating]) -> bytes:
    array = np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)
    largest = np.finfo(dtype).max
    packed: bytes = np.clip(array, -largest, largest).astype(np.dtype(dtype).newbyteorder("<")).tobytes()
    return packed


def _layer(session: Session, request: HttpRequest, subject: Subject) -> Response:
    trace = _trace(session, subject)
    kind, data = layer_bytes(trace, _whole(request.path_params["layer"], "layer"))
    headers = {**_KEPT, "X-Vit-Viz-Kind": kind, "X-Vit-Viz-Norms": str(has_norms(trace)).lower()}
    return Response(data, 200, headers, "application/octet-stream")


def _rows(session: Session, request: HttpRequest, subject: Subject) -> Response:
    trace = _trace(session, subject)
    layer = _whole(request.path_params["layer"], "layer")
    if not 0 <= layer < trace.num_layers:
        raise ParameterError(f"Layer {layer} does not exist: this model has layers 0-{trace.num_layers - 1}.")
    view = _view(request)
    weights = trace.query_weights(view.query_of(trace.layout))
    chosen = weights.nonzero().flatten()
    part = weights[chosen].float()
    if view.direction == "row":
        rows = trace.attention(layer, queries=chosen.tolist())  # [heads, queries, tokens]
        values = (rows * part.to(rows)[:, None]).sum(1)
    else:
        received = trace.received(layer, chosen.tolist())  # [heads, tokens, keys]
        values = (received * part.to(received)).sum(-1)
    return Response(_bytes(values, np.float32), 200, _KEPT, "application/octet-stream")


def _numbers(session: Session, request: HttpRequest, subject: Subject) -> Response:
    view, problems = pictures.fit_view(session, subject, _view(request))
    if problems:
        raise ParameterError(problems[0])
    found = pictures.attention(session, subject, view)
    answer: dict[str, object] = {
        "unit": found.unit,
        "caption": found.caption,
        "min": float(found.values.min()),
        "max": float(found.values.max()),
        "peak": list(found.peak),
        "patches": float(found.values.sum(dtype=np.float64)),
        "prefix": dict(found.prefix),
        "suffix": found.suffix_kinds,
    }
    if "at" in request.query_params:
        row, col = _patch(request.query_params["at"], found.grid)
        value = float(found.values[row, col])
        answer |= {"at": [row, col], "value": value, "share": value / found.total if found.total else 0.0}
    finite = {k: v for k, v in answer.items() if not (isinstance(v, float) and not math.isfinite(v))}
    return Response(json.dumps(finite), 200, _KEPT, "application/json")


def _picture(session: Session, request: HttpRequest, subject: Subject) -> Response:
    kind = request.query_params.get("kind", "map")
    bare = request.query_params.get("bare") == "1"
    drawn = pictures.picture(session, subject, _view(request), kind, bare=bare)  # type: ignore[arg-type]  # checked there
    return _picture_response(drawn, save=not bare)


def _picture_response(drawn: pictures.Encoded, *, save: bool) -> Response:
    headers = dict(_KEPT)
    if save:
        headers["Content-Disposition"] = f'attachment; filename="{drawn.file_name}"'
    return Response(drawn.data, 200, headers, drawn.media_type)


def _view(request: HttpRequest) -> ViewState:
    """The view that the address asks for, where nothing may be wrong: a picture is what its address says, or nothing."""
    view, problems = ViewState.from_address(str(request.url.query))
    if problems:
        raise ParameterError(problems[0])
    return view


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise ParameterError(f"The {name} is a whole number, not {text[:40]!r}.")
    return int(text)


def _patch(text: str, grid: tuple[int, int]) -> tuple[int, int]:
    where = parse_query(text[:40])
    if isinstance(where, str) or not isinstance(where[0], int):
        raise ParameterError(f"A patch is given as row,col, not {text[:40]!r}.")
    row, col = (int(n) for n in where)  # type: ignore[arg-type]
    if not (row < grid[0] and col < grid[1]):
        raise ParameterError(
            f"Patch ({row}, {col}) does not exist: rows are 0-{grid[0] - 1} and columns 0-{grid[1] - 1}."
        )
    return row, col
