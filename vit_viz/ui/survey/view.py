"""The Survey tab: where a model looks in many photos at once. There only where whoever runs the app opened a survey.

It fetches, beside Gradio's own traffic:

    GET /vit_viz/survey/beside              ?model=&edits=                   JSON: whether photos are lit; through what they open
    GET /vit_viz/survey/look/<row>          ?model=                          JSON: of what the view of a photo is
    GET /vit_viz/survey/chosen              ?where=&layer=&head=&measure=&second=    JSON, see `vit_viz.ui.survey.answers`
    GET /vit_viz/survey/methods             ?where=&layer=&head=             JSON
    GET /vit_viz/survey/points              ?across=&up=&layer=&head=        float32 [3, photos]
    GET /vit_viz/survey/cards               ?where=&layer=&head=&measure=&second=&list=&from=    JSON, twelve more photos of a list
    GET /vit_viz/survey/photos.csv          ?where=&layer=&head=&measure=&second=&list=          all photos of a list
    GET /vit_viz/survey/compared            ?second=                         JSON, see `vit_viz.ui.survey.compared`
    GET /vit_viz/survey/heads.csv           ?second=                         the heads that moved
    GET /vit_viz/survey/photo/<row>         ?layer=&head=                    JSON
    GET /vit_viz/survey/thumbnail/<row>                                      WebP
    GET /vit_viz/survey/lit/<row>           ?layer=&head=                    the photo lit by what the head looks at

A photo is asked for by its number in the survey, a second survey by its name. Every refusal is a 4xx with one sentence, as of the
other routes; what a visitor may well hit (a filter that is none, surveys that cannot be compared, a photo that has changed) is
answered instead, because browsers write refusals into their console.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import gradio as gr
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute

from vit_viz.analyses.options import read_choice
from vit_viz.errors import ImageError, ParameterError
from vit_viz.explorer import colour_tables
from vit_viz.figures.plots import photo_scatter
from vit_viz.session.handles import visitor_in
from vit_viz.session.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.kit import web_room, words
from vit_viz.ui.page import Page, Room, Tab
from vit_viz.ui.routes import as_json, fetched, whole
from vit_viz.ui.survey import answers
from vit_viz.ui.survey.answers import OTHER_MODEL, OpenedRoom, open_room
from vit_viz.views.state import ViewState

NAME = "survey"
_LONGEST_NUMBER = 9


def survey_room(session: Session, folder: str | Path, *others: str | Path) -> Room:
    """The tab of the survey in a folder, or of the bundled one: "example".

    Args:
        others: surveys of the same photos, which it can be compared with.

    Raises:
        ParameterError: there is none.
        VitVizError: what it takes is not installed.
    """
    opened = open_room(session, folder, *others)
    about = "What the heads do over many photos, and which photos stand out."
    tab = Tab(NAME, "Survey", partial(build, opened), about=about)
    return Room(tab, survey_routes(opened))


def build(opened: OpenedRoom, _page: Page) -> None:
    """Lay out the tab."""
    with gr.Column(elem_id="vv-survey-tab"):
        value = answers.opened_value(opened.survey, opened.others.names)
        web_room("survey", survey=value, tables=colour_tables())
        gr.Plot(photo_scatter(), show_label=False, elem_id="vv-survey-dots")
    words.explain(
        shows="what each head does over all photos that pass the filter, with the spread between photos; photos where a head's "
        "measure is highest and lowest; which photos are wrong, and where the model looked in them; beside a second survey of "
        "the same photos, which heads moved and which answers changed.",
        hides="why an answer is wrong, and what heads do together. A mean over photos is of these photos: another folder can give "
        "another one. Intervals say how much the choice of photos matters, not whether a method's idea is right.",
    )
    words.formula(
        (
            r"positional share: $\frac{\lVert M \rVert^2 - P u^2}{\mathrm{mean} \lVert m \rVert^2 - P u^2}$",
            r"$M$: mean over the photos of the map of what the output is read from; $m$: the map of one photo; $P$: number of "
            r"patches; $u$: mean of all entries.",
        ),
        (
            r"95% interval: from the 2.5th to the 97.5th percentile of the mean over 1000 samples of the photos, drawn with "
            r"replacement",
            r"Efron and Tibshirani 1993, An Introduction to the Bootstrap, chapter 13.",
        ),
        (
            r"two surveys: interval $\bar d \pm t\, s / \sqrt{n}$, effect $\bar d / s$",
            r"$\bar d$, $s$: mean and standard deviation of the $n$ photos' own differences; $t$: the 97.5% point of Student's t "
            r"with $n - 1$ degrees of freedom. McNemar 1947, Psychometrika 12:153; Cohen 1988, section 2.3.5.",
        ),
    )


# --- routes


def survey_routes(room: OpenedRoom) -> list[BaseRoute]:
    """The routes of an opened survey; they stand before those of the page."""
    return [fetched(f"/survey/{path}", lambda _: room, answer) for path, answer in _ANSWERS.items()]


def _beside(request: HttpRequest, room: OpenedRoom) -> Response:
    given = request.query_params
    return as_json(
        {
            "lit": room.is_own_model and room.files.are_there,
            "jump": room.jump_words(given.get("model", ""), given.get("edits", "")),
            "note": "" if room.is_own_model else OTHER_MODEL,
        }
    )


def _look(request: HttpRequest, room: OpenedRoom) -> Response:
    """A photo as the survey's model received it; why not, where its file is gone or is another one now."""
    row = _row(room, request)
    name = room.files.name_of(row)
    try:
        room.files.picture(name)
    except ImageError as error:
        return as_json({"refused": str(error)})
    model = room.model_name or request.query_params.get("model", "")
    return as_json({"image": name, "model": model, "part": "", **room.options})


def _chosen(request: HttpRequest, room: OpenedRoom) -> Response:
    layer, head = _head_of(room, request)
    given = request.query_params
    try:
        changes = _changes(request, room)
    except ParameterError:
        changes = answers.NO_CHANGES  # why, says the answer to `compared`
    told = answers.chosen_value(
        room.files,
        given.get("where", ""),
        layer=layer,
        head=head,
        measure=given.get("measure", "concentration"),
        patch_size=room.patch_size,
        changes=changes,
    )
    return as_json(told)


def _changes(request: HttpRequest, room: OpenedRoom) -> answers.Changes:
    """The photos that changed their answer in the second survey; none where there is none."""
    second = request.query_params.get("second", "")
    return room.others.compared(second).changes if second else answers.NO_CHANGES


def _compared(request: HttpRequest, room: OpenedRoom) -> Response:
    try:
        return as_json(room.others.compared(request.query_params.get("second", "")).value())
    except ParameterError as error:
        return as_json({"refused": str(error)})


def _heads_csv(request: HttpRequest, room: OpenedRoom) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="survey-heads.csv"'}
    moved = room.others.compared(request.query_params.get("second", "")).csv()
    return Response(moved, media_type="text/csv", headers=headers)


def _methods(request: HttpRequest, room: OpenedRoom) -> Response:
    layer, head = _head_of(room, request)
    rows = room.survey.select(request.query_params.get("where", ""), layer=layer, head=head)
    return as_json(answers.method_value(room.survey, rows))


def _points(request: HttpRequest, room: OpenedRoom) -> Response:
    layer, head = _head_of(room, request)
    given = request.query_params
    dots = answers.point_bytes(
        room.survey, given.get("across", ""), given.get("up", ""), layer=layer, head=head
    )
    return Response(dots, media_type="application/octet-stream")


def _listed(request: HttpRequest, room: OpenedRoom) -> answers.PhotoList:
    layer, head = _head_of(room, request)
    given = request.query_params
    rows = room.survey.select(given.get("where", ""), layer=layer, head=head)
    measure = given.get("measure", "concentration")
    lists = answers.lists_of(
        room.survey, rows, layer=layer, head=head, measure=measure, changes=_changes(request, room)
    )
    return lists[read_choice("list", given.get("list", ""), tuple(lists))]


def _cards(request: HttpRequest, room: OpenedRoom) -> Response:
    layer, head = _head_of(room, request)
    begin = whole(request.query_params.get("from", "0"), "from", longest=_LONGEST_NUMBER)
    return as_json(_listed(request, room).cards(room.files, layer, head, begin))


def _csv(request: HttpRequest, room: OpenedRoom) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="survey-photos.csv"'}
    return Response(_listed(request, room).csv(room.survey), media_type="text/csv", headers=headers)


def _photo(request: HttpRequest, room: OpenedRoom) -> Response:
    layer, head = _head_of(room, request)
    return as_json(answers.card_value(room.files, _row(room, request), layer=layer, head=head))


def _thumbnail(request: HttpRequest, room: OpenedRoom) -> Response:
    return Response(room.files.thumbnail(_row(room, request)), media_type="image/webp")


def _lit(request: HttpRequest, room: OpenedRoom) -> Response:
    layer, head = _head_of(room, request)
    subject = room.subject(_row(room, request), visitor_in(request.cookies))
    view = ViewState().with_options({"layer": layer, "head": head, "style": "light"})
    try:
        drawn = pictures.picture(room.session, subject, view, "map", bare=True)
    except ImageError:  # its file is gone, or another one now: what is shown of it stays
        return Response(status_code=204)
    return Response(drawn.data, media_type=drawn.media_type)


_ANSWERS: dict[str, Callable[[HttpRequest, OpenedRoom], Response]] = {
    "beside": _beside,
    "look/{row}": _look,
    "chosen": _chosen,
    "methods": _methods,
    "points": _points,
    "cards": _cards,
    "photos.csv": _csv,
    "photo/{row}": _photo,
    "thumbnail/{row}": _thumbnail,
    "lit/{row}": _lit,
    "compared": _compared,
    "heads.csv": _heads_csv,
}


def _head_of(room: OpenedRoom, request: HttpRequest) -> tuple[int, int]:
    layer, head = (
        whole(request.query_params.get(name, "0"), name, longest=_LONGEST_NUMBER)
        for name in ("layer", "head")
    )
    return room.survey.checked(layer, head)


def _row(room: OpenedRoom, request: HttpRequest) -> int:
    row = whole(request.path_params["row"], "photo", longest=_LONGEST_NUMBER)
    room.files.check(row)
    return row
