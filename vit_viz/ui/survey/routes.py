"""What the Survey tab fetches beside Gradio's own traffic; there only where a survey was opened.

    GET /vit_viz/survey/chosen              ?where=&layer=&head=&measure=    JSON, see `vit_viz.ui.survey.answers`
    GET /vit_viz/survey/methods             ?where=&layer=&head=             JSON
    GET /vit_viz/survey/points              ?across=&up=&layer=&head=        float32 [3, photos]
    GET /vit_viz/survey/photo/<row>         ?layer=&head=                    JSON
    GET /vit_viz/survey/thumbnail/<row>                                      WebP
    GET /vit_viz/survey/lit/<row>           ?layer=&head=&theme=             the photo lit by what the head looks at

A photo is asked for by its number in the survey. Every refusal is a 4xx with one sentence, as of the other routes.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from vit_viz.errors import ParameterError
from vit_viz.session.handles import visitor_in
from vit_viz.ui import pictures
from vit_viz.ui.routes import fetched
from vit_viz.ui.survey import answers
from vit_viz.ui.survey.opened_room import OpenedRoom
from vit_viz.views.state import ViewState

Answer = Callable[[OpenedRoom, HttpRequest], Response]
_LONGEST_NUMBER = 9


def survey_routes(room: OpenedRoom) -> list[BaseRoute]:
    """The routes of an opened survey; they stand before those of the page."""
    return [_route(room, path, answer) for path, answer in _ANSWERS.items()]


def _route(room: OpenedRoom, path: str, answer: Answer) -> Route:
    return fetched(f"/survey/{path}", lambda _: room, lambda request, opened: answer(opened, request))


def _chosen(room: OpenedRoom, request: HttpRequest) -> Response:
    layer, head = _head(room, request)
    given = request.query_params
    told = answers.chosen_value(
        room.survey,
        given.get("where", ""),
        layer=layer,
        head=head,
        measure=given.get("measure", "concentration"),
        patch_size=room.patch_size,
    )
    return _json(told)


def _methods(room: OpenedRoom, request: HttpRequest) -> Response:
    layer, head = _head(room, request)
    rows = room.survey.select(request.query_params.get("where", ""), layer=layer, head=head)
    return _json(answers.method_value(room.survey, rows))


def _points(room: OpenedRoom, request: HttpRequest) -> Response:
    layer, head = _head(room, request)
    given = request.query_params
    dots = answers.point_bytes(
        room.survey, given.get("across", ""), given.get("up", ""), layer=layer, head=head
    )
    return Response(dots, media_type="application/octet-stream")


def _photo(room: OpenedRoom, request: HttpRequest) -> Response:
    layer, head = _head(room, request)
    return _json(answers.card_value(room.survey, _row(room, request), layer=layer, head=head))


def _thumbnail(room: OpenedRoom, request: HttpRequest) -> Response:
    return Response(room.files.thumbnail(_row(room, request)), media_type="image/webp")


def _lit(room: OpenedRoom, request: HttpRequest) -> Response:
    layer, head = _head(room, request)
    subject = room.subject(_row(room, request), visitor_in(request.cookies))
    view = ViewState().with_options({"layer": layer, "head": head, "style": "light"})
    is_dark = request.query_params.get("theme") == "dark"
    drawn = pictures.picture(
        room.session, subject, view, "map", bare=True, theme="dark" if is_dark else "light"
    )
    return Response(drawn.data, media_type=drawn.media_type)


_ANSWERS: dict[str, Answer] = {
    "chosen": _chosen,
    "methods": _methods,
    "points": _points,
    "photo/{row}": _photo,
    "thumbnail/{row}": _thumbnail,
    "lit/{row}": _lit,
}


def _json(told: object) -> Response:
    return Response(json.dumps(told), media_type="application/json")


def _head(room: OpenedRoom, request: HttpRequest) -> tuple[int, int]:
    given = request.query_params
    return room.survey.checked(
        _whole(given.get("layer", "0"), "layer"), _whole(given.get("head", "0"), "head")
    )


def _row(room: OpenedRoom, request: HttpRequest) -> int:
    row = _whole(request.path_params["row"], "photo")
    room.files.check(row)
    return row


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise ParameterError(f"The {name} is a whole number, not {text[:40]!r}.")
    return int(text)
