"""What the browser fetches beside Gradio's own traffic: binary layers, rows, numbers, the photo.

    GET /vit_viz/page/<digest>/<file>      icon and picture, see `vit_viz.ui.preview`; the palette's list of questions
    GET /vit_viz/layer/<handle>/<layer>    q, k of a layer (or its attention), see `vit_viz.explorer.packing`
    GET /vit_viz/tokens/<handle>/<state>   ?role=   float16 [tokens, dim] of length 1, see `vit_viz.ui.tokens.routes`
    GET /vit_viz/positions/<handle>        ?places=   float16 [places, rows, cols], see `vit_viz.ui.positions.routes`
    GET /vit_viz/rows/<handle>/<layer>     ?query=&direction=   float32 [heads, tokens]
    GET /vit_viz/numbers/<handle>          ?layer=&head=&query=&direction=&at=row,col   JSON, in full precision
    GET /vit_viz/proof/<handle>            JSON: the badge, which says "checking" until the model's structure is known
    GET /vit_viz/photo/<handle>            JPEG
    GET /vit_viz/explorer/<handle>.html    ?layer=&head=&q=...     the explorer as a file of its own, to save

A handle is unguessable, expires, and is worth nothing in another browser. Every refusal is a 4xx with one plain sentence. Of all
answers browsers keep only the files of the page, because the others belong to a visitor, and because browsers remember
refusals otherwise (vit_viz.ui.edge.door).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache, partial
from typing import TypeVar

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vit_viz.analyses.attention import HEAD_ROWS, HeadRows
from vit_viz.errors import BusyError, Cancelled, CaptureError, ExportError, ImageError, ParameterError
from vit_viz.explorer.packing import has_norms, layer_bytes, plain_bytes
from vit_viz.figures.files import Encoded
from vit_viz.figures.screen import photo_jpeg
from vit_viz.geometry import parse_query, place_words
from vit_viz.results import PatchMap
from vit_viz.sentences import sentence
from vit_viz.session.handles import visitor_in
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import help as control_help, preview, scripts
from vit_viz.ui.look.view import explorer_file, map_request
from vit_viz.ui.palette import view as palette
from vit_viz.ui.payload import badge_value
from vit_viz.ui.positions.routes import tile_bytes
from vit_viz.ui.scripts import PREFIX
from vit_viz.ui.tokens import routes as token_routes
from vit_viz.views.state import ViewState

GONE = "This picture is no longer kept; please reload the page."
NOTHING_HERE = "There is nothing at this address; please reload the page."
ONLY_GET = "This address only answers GET; please reload the page."
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")

_TYPES = {"svg": "image/svg+xml", "jpg": "image/jpeg", "json": "application/json"}

About = TypeVar("About")


class Gone(Exception):  # noqa: N818
    """A handle that is unknown or has expired."""


def routes(session: Session) -> list[BaseRoute]:
    """The routes, for `launch(app_kwargs={"routes": ...})`."""

    def subject_of(request: HttpRequest) -> Subject:
        return _found(session, request, request.path_params["handle"])

    @cache
    def files() -> dict[str, bytes]:
        """What the page fetches that is the same for every visitor, by address: made once, as anybody may ask for it."""
        listings = {control_help.LISTING: control_help.listing(), palette.LISTING: palette.listing()}
        return {
            scripts.file_address(name, content): content
            for name, content in (preview.files() | listings).items()
        }

    def page_file(request: HttpRequest) -> Response:
        content = files().get(request.scope["path"])
        if content is None:
            return _nothing_here(request)
        media_type = _TYPES[request.path_params["name"].rpartition(".")[2]]
        return Response(content, 200, scripts.FOR_GOOD, media_type)

    return [
        Route(scripts.FILES + "/{digest}/{name}", page_file, methods=["GET"]),
        fetched(
            "/photo/{handle}",
            lambda request: _of_handle(session, request, request.path_params["handle"]),
            partial(_photo, session),
        ),
        *(fetched(path, subject_of, partial(answer, session)) for path, answer in _ANSWERS.items()),
        Route(
            PREFIX + "/{rest:path}", _nothing_here, methods=_METHODS
        ),  # the last, so that it takes what is left
    ]


def fetched(
    path: str, find: Callable[[HttpRequest], About], answer: Callable[[HttpRequest, About], Response]
) -> Route:
    """A route below `PREFIX`: what it is about is found at once, or the request is refused; the answer is made in a thread.

    Args:
        find: what the answer is about; quick, and raises where there is nothing.
    """

    async def endpoint(request: HttpRequest) -> Response:
        try:
            return await run_in_threadpool(answer, request, find(request))
        except Exception as error:
            return refusal(error)

    return Route(PREFIX + path, endpoint, methods=["GET"])


def _nothing_here(request: HttpRequest) -> Response:
    """The answer to whatever else is asked of our addresses."""
    if request.method in ("GET", "HEAD"):
        return Response(NOTHING_HERE, 404, media_type="text/plain; charset=utf-8")
    return Response(ONLY_GET, 405, {"Allow": "GET"}, "text/plain; charset=utf-8")


def refusal(error: Exception) -> Response:
    """An exception as a response: one sentence, a status that says whose fault it is, never kept by the browser."""
    if isinstance(error, Gone | ImageError):
        status, text = 404, GONE if isinstance(error, Gone) else sentence(error)
    elif isinstance(error, ParameterError | CaptureError | ExportError):
        status, text = 400, sentence(error)
    else:
        status, text = 429 if isinstance(error, BusyError | Cancelled) else 500, sentence(error)
    return Response(text, status, media_type="text/plain; charset=utf-8")


def _found(session: Session, request: HttpRequest, handle: str) -> Subject:
    """What a model made of a photo; the handle of a photo alone opens nothing but that photo."""
    subject = _of_handle(session, request, handle)
    if not subject.model:
        raise Gone
    return subject


def _of_handle(session: Session, request: HttpRequest, handle: str) -> Subject:
    subject = session.handles.find(handle, visitor=visitor_in(request.cookies))
    if subject is None:
        raise Gone
    return subject


def _photo(session: Session, _request: HttpRequest, subject: Subject) -> Response:
    return _picture_response(photo_jpeg(session, subject), save=False)


def _layer(session: Session, request: HttpRequest, subject: Subject) -> Response:
    trace = session.trace_of(subject)
    kind, data = layer_bytes(trace, whole(request.path_params["layer"], "layer"))
    headers = {"X-Vit-Viz-Kind": kind, "X-Vit-Viz-Norms": str(has_norms(trace)).lower()}
    return Response(data, 200, headers, "application/octet-stream")


def _tokens(session: Session, request: HttpRequest, subject: Subject) -> Response:
    state, role = whole(request.path_params["state"], "state"), request.query_params.get("role", "tokens")
    vectors = token_routes.vector_bytes(session, subject, state, role)
    return Response(vectors, media_type="application/octet-stream")


def _positions(session: Session, request: HttpRequest, subject: Subject) -> Response:
    tiles = tile_bytes(session, subject, trained=request.query_params.get("places") == "trained")
    return Response(tiles, media_type="application/octet-stream")


def _rows(session: Session, request: HttpRequest, subject: Subject) -> Response:
    view = _view(request)
    rows: HeadRows = session.run(
        subject.request(
            HEAD_ROWS.name,
            layer=whole(request.path_params["layer"], "layer"),
            query=view.query_of(session.trace_of(subject).layout),
            direction=view.attention.direction,
        )
    )
    return Response(plain_bytes(rows.values, np.float32), media_type="application/octet-stream")


def _numbers(session: Session, request: HttpRequest, subject: Subject) -> Response:
    patch_map: PatchMap = session.run(map_request(session, subject, _view(request)))
    answer: dict[str, object] = {
        "unit": patch_map.unit,
        "caption": patch_map.caption,
        "min": float(patch_map.values.min()),
        "max": float(patch_map.values.max()),
        "peak": patch_map.peak,
        "patches": float(patch_map.values.sum(dtype=np.float64)),
        "prefix": dict(patch_map.prefix),
        "suffix": patch_map.suffix_kinds,
    }
    if "at" in request.query_params:
        row, col = _patch(request.query_params["at"], patch_map.grid)
        value = float(patch_map.values[row, col])
        answer |= {
            "at": [row, col],
            "value": value,
            "share": value / patch_map.total if patch_map.total else 0.0,
        }
    finite = {k: v for k, v in answer.items() if not (isinstance(v, float) and not math.isfinite(v))}
    return as_json(finite)


def _proof(session: Session, _request: HttpRequest, subject: Subject) -> Response:
    """The badge as it is now; asking for it keeps the check going."""
    return as_json(badge_value(subject, session.trace_of(subject)))


def _explorer(session: Session, request: HttpRequest, subject: Subject) -> Response:
    return _picture_response(explorer_file(session, subject, _view(request)), save=True)


_ANSWERS: dict[str, Callable[[Session, HttpRequest, Subject], Response]] = {
    "/layer/{handle}/{layer}": _layer,
    "/tokens/{handle}/{state}": _tokens,
    "/positions/{handle}": _positions,
    "/rows/{handle}/{layer}": _rows,
    "/numbers/{handle}": _numbers,
    "/proof/{handle}": _proof,
    "/explorer/{handle}.html": _explorer,
}


def as_json(value: object) -> Response:
    """Plain values as the page reads them."""
    return Response(json.dumps(value), media_type="application/json")


def _picture_response(drawn: Encoded, *, save: bool) -> Response:
    headers = {}
    if save:
        headers["Content-Disposition"] = f'attachment; filename="{drawn.file_name}"'
    return Response(drawn.data, 200, headers, drawn.media_type)


def _view(request: HttpRequest) -> ViewState:
    """The view that the address asks for, where nothing may be wrong: a picture is what its address says, or nothing."""
    view, problems = ViewState.from_address(str(request.url.query))
    if problems:
        raise ParameterError(problems[0])
    return view


def whole(text: str, name: str, *, longest: int = 6) -> int:
    """A whole number of an address, of so many digits at most."""
    if not (text.isascii() and text.isdigit() and len(text) <= longest):
        raise ParameterError(f"The {name} is a whole number, not {text[:40]!r}.")
    return int(text)


def _patch(text: str, grid: tuple[int, int]) -> tuple[int, int]:
    where = parse_query(text[:40])
    if isinstance(where, str) or not isinstance(where[0], int):
        raise ParameterError(f"A patch is given as row,col, not {text[:40]!r}.")
    row, col = (int(n) for n in where)  # type: ignore[arg-type]
    if not (row < grid[0] and col < grid[1]):
        raise ParameterError(
            f"Patch {place_words((row, col))} does not exist: rows are 0-{grid[0] - 1} and columns 0-{grid[1] - 1}."
        )
    return row, col
