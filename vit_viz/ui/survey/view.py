"""The Survey tab: where a model looks in many photos at once. There only where whoever runs the app opened a survey.

It fetches, beside Gradio's own traffic:

    GET /vit_viz/survey/chosen              ?where=&layer=&head=&measure=&second=    JSON, see `vit_viz.ui.survey.answers`
    GET /vit_viz/survey/methods             ?where=&layer=&head=             JSON
    GET /vit_viz/survey/points              ?across=&up=&layer=&head=        float32 [3, photos]
    GET /vit_viz/survey/cards               ?where=&layer=&head=&measure=&second=&list=&from=    JSON, twelve more photos of a list
    GET /vit_viz/survey/photos.csv          ?where=&layer=&head=&measure=&second=&list=          all photos of a list
    GET /vit_viz/survey/compared            ?second=                         JSON, see `vit_viz.ui.survey.compared`
    GET /vit_viz/survey/heads.csv           ?second=                         the heads that moved
    GET /vit_viz/survey/photo/<row>         ?layer=&head=                    JSON
    GET /vit_viz/survey/thumbnail/<row>                                      WebP
    GET /vit_viz/survey/lit/<row>           ?layer=&head=&theme=             the photo lit by what the head looks at

A photo is asked for by its number in the survey, a second survey by its name. Every refusal is a 4xx with one sentence, as of the
other routes; what a visitor may well hit (a filter that is none, surveys that cannot be compared, a photo that has changed) is
answered instead, because browsers write refusals into their console.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

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
from vit_viz.ui.kit import SurveyRoom, words
from vit_viz.ui.page import Page, Room, Tab
from vit_viz.ui.routes import as_json, fetched, whole
from vit_viz.ui.survey import answers
from vit_viz.ui.survey.answers import OTHER_MODEL, OpenedRoom, open_room
from vit_viz.views.state import ViewState

NAME = "survey"
_LONGEST_NUMBER = 9
_OPTIONS = ("survey_where", "survey_across", "survey_up", "survey_measure", "survey_list", "survey_second")


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
    tab = Tab(NAME, "Survey", partial(build, opened), shows=_shows, about=about)
    return Room(tab, survey_routes(opened))


def _shows(view: ViewState) -> Hashable:
    return view.about, view.layer, view.head, view.survey


def build(opened: OpenedRoom, page: Page) -> None:
    """Lay out the tab, let the room choose heads and photos, and keep what is chosen in the link."""
    with gr.Column(elem_id="vv-survey-tab"):
        room = SurveyRoom(
            elem_id="vv-survey",
            survey=answers.opened_value(opened.survey, opened.others.names),
            tables=colour_tables(),
        )
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
    page.choices(room.option, *_OPTIONS)
    page.gesture(room.choose, partial(_head, opened))
    page.gesture(room.look, partial(_open, opened))
    page.drawing(NAME, partial(_draw, opened), [room])


def _head(opened: OpenedRoom, view: ViewState, _owner: str, data: dict[str, Any]) -> ViewState:
    layer, head = opened.survey.checked(_whole(data, "layer"), _whole(data, "head"))
    return view.after_action(layer=layer, head=head)


def _open(opened: OpenedRoom, view: ViewState, _owner: str, data: dict[str, Any]) -> ViewState:
    """A photo becomes the picture of the page, as the survey's model received it, and the head under the outline the page's.

    Raises:
        ImageError: its file is gone, or is another one now.
    """
    row = _whole(data, "row")
    opened.files.check(row)
    name = opened.files.name_of(row)
    opened.files.picture(name)
    return _head(opened, _on_photo(opened, view, name), "", data)


def _on_photo(opened: OpenedRoom, view: ViewState, name: str) -> ViewState:
    model = opened.model_name or view.model
    return view.on_subject(image=name, model=model).after_action(**opened.options)


def _draw(opened: OpenedRoom, _page: Page, view: ViewState, _owner: str) -> Iterator[Any]:
    yield room_value(opened, view)


def room_value(opened: OpenedRoom, view: ViewState) -> dict[str, Any]:
    """What is chosen; the numbers are fetched."""
    survey, options = opened.survey, view.survey
    layer = survey.num_layers - 1 if view.layer is None else min(view.layer, survey.num_layers - 1)
    head = min(view.head, survey.num_heads - 1) if isinstance(view.head, int) else 0
    known = [one["name"] for one in answers.opened_value(survey)["measures"]]
    return {
        "revision": view.revision,
        "look": _looked_at(opened, view),
        "layer": layer,
        "head": head,
        "where": options.survey_where,
        "across": options.survey_across,
        "up": options.survey_up,
        "measure": options.survey_measure if options.survey_measure in known else known[0],
        "list": options.survey_list,
        "second": options.survey_second,
        "lit": opened.is_own_model and opened.files.are_there,
        "jump": opened.jump_words(view),
        "note": "" if opened.is_own_model else OTHER_MODEL,
    }


def _looked_at(opened: OpenedRoom, view: ViewState) -> str:
    """The photo and the head that the page shows, as "row/layer/head"; "" where that is not what a photo opens as."""
    row = opened.files.row_of(view.image)
    if row is None or _on_photo(opened, view, view.image).about != view.about:
        return ""
    return f"{row}/{view.layer}/{view.head}"


def _whole(data: dict[str, Any], name: str) -> int:
    """A whole number of an event.

    Raises:
        ParameterError: it is none.
    """
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ParameterError(f"The {name} is a whole number from 0.")
    return value


# --- routes


def survey_routes(room: OpenedRoom) -> list[BaseRoute]:
    """The routes of an opened survey; they stand before those of the page."""
    return [fetched(f"/survey/{path}", lambda _: room, answer) for path, answer in _ANSWERS.items()]


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
    is_dark = request.query_params.get("theme") == "dark"
    try:
        drawn = pictures.picture(
            room.session, subject, view, "map", bare=True, theme="dark" if is_dark else "light"
        )
    except ImageError:  # its file is gone, or another one now: what is shown of it stays
        return Response(status_code=204)
    return Response(drawn.data, media_type=drawn.media_type)


_ANSWERS: dict[str, Callable[[HttpRequest, OpenedRoom], Response]] = {
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
