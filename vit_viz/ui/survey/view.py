"""The Survey tab: where a model looks in many photos at once. There only where whoever runs the app opened a survey.

It fetches, beside Gradio's own traffic:

    GET /vit_viz/survey/beside              ?model=&edits=                   JSON: whether photos are lit; through what they open
    GET /vit_viz/survey/look/<row>          ?model=                          JSON: of what the view of a photo is
    GET /vit_viz/survey/chosen              ?where=&layer=&head=&measure=&second=    JSON, see `vit_viz.ui.survey.routes`
    GET /vit_viz/survey/methods             ?where=&layer=&head=             JSON
    GET /vit_viz/survey/points              ?across=&up=&layer=&head=        float32 [3, photos]
    GET /vit_viz/survey/cards               ?where=&layer=&head=&measure=&second=&list=&from=    JSON, twelve more photos of a list
    GET /vit_viz/survey/photos.csv          ?where=&layer=&head=&measure=&second=&list=          all photos of a list
    GET /vit_viz/survey/compared            ?second=                         JSON, see `vit_viz.ui.survey.compared`
    GET /vit_viz/survey/heads.csv           ?second=                         the heads that moved
    GET /vit_viz/survey/plotly.js           ?of=                             plotly of a version, for the axes of the dots
    GET /vit_viz/survey/photo/<row>         ?layer=&head=                    JSON
    GET /vit_viz/survey/thumbnail/<row>                                      WebP
    GET /vit_viz/survey/lit/<row>           ?layer=&head=                    the photo lit by what the head looks at

A photo is asked for by its number in the survey, a second survey by its name. Every refusal is a 4xx with one sentence, as of the
other routes; what a visitor may well hit (a filter that is none, surveys that cannot be compared, a photo that has changed) is
answered instead, because browsers write refusals into their console.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute

from vit_viz.analyses.options import read_choice
from vit_viz.errors import ImageError, ParameterError
from vit_viz.figures import plots
from vit_viz.session.handles import visitor_in
from vit_viz.session.session import Session
from vit_viz.surveys.opened import Rows
from vit_viz.ui.kit import part, place, words
from vit_viz.ui.look.view import picture
from vit_viz.ui.page import Room, Tab
from vit_viz.ui.routes import as_json, fetched, whole
from vit_viz.ui.scripts import FOR_GOOD
from vit_viz.ui.survey import routes
from vit_viz.ui.survey.compared import Compared
from vit_viz.ui.survey.routes import OTHER_MODEL, OpenedRoom, open_room
from vit_viz.views.state import ViewState

NAME = "survey"
_LONGEST_NUMBER = 9


def survey_room(session: Session, folder: str | Path, *others: str | Path) -> Room:
    """The tab of the survey in a folder, or of the bundled one: "example".

    Args:
        others: surveys of the same photos, which it can be compared with.
    """
    opened = open_room(session, folder, *others)
    about = "What the heads do over many photos, and which photos stand out."
    tab = Tab(NAME, "Survey", partial(build, opened), about=about)
    return Room(tab, survey_routes(opened))


def build(opened: OpenedRoom) -> dict[str, Any]:
    """The tab, as `vit_viz.ui.kit.part` returns it."""
    said = words.explain(
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
        shows="what each head does over all photos that pass the filter, with the spread between photos; photos where a head's "
        "measure is highest and lowest; which photos are wrong, and where the model looked in them; beside a second survey of "
        "the same photos, which heads moved and which answers changed.",
        hides="why an answer is wrong, and what heads do together. A mean over photos is of these photos: another folder can give "
        "another one. Intervals say how much the choice of photos matters, not whether a method's idea is right.",
    )
    return part(
        "web/survey/room",
        html=f"<div id=vv-survey-tab>{place('survey')}<div id=vv-survey-dots></div></div>{said}",
        survey=routes.opened_value(opened.survey, opened.others.names)
        | {"figure": json.loads(plots.photo_scatter().to_json()), "plotly": plots.VERSION},
    )


# --- routes


def survey_routes(room: OpenedRoom) -> list[BaseRoute]:
    """The routes of an opened survey; they stand before those of the page."""

    def route(path: str, answer: Callable[[_Asked], Response]) -> BaseRoute:
        return fetched(f"/survey/{path}", partial(_Asked, room), lambda _, query: answer(query))

    return [route(path, answer) for path, answer in _ANSWERS.items()]


@dataclass(frozen=True)
class _Asked:
    """What a request asks of an opened survey; whatever is none is refused where it is read."""

    room: OpenedRoom
    request: HttpRequest

    def text(self, name: str, otherwise: str = "") -> str:
        return self.request.query_params.get(name, otherwise)

    @property
    def row(self) -> int:
        row = whole(self.request.path_params["row"], "photo", longest=_LONGEST_NUMBER)
        self.room.files.check(row)
        return row

    @property
    def head(self) -> tuple[int, int]:
        layer, head = (
            whole(self.text(name, "0"), name, longest=_LONGEST_NUMBER) for name in ("layer", "head")
        )
        return self.room.survey.checked(layer, head)

    @property
    def measure(self) -> str:
        return self.text("measure", "concentration")

    @property
    def rows(self) -> Rows:
        layer, head = self.head
        return self.room.survey.select(self.text("where"), layer=layer, head=head)

    @property
    def compared(self) -> Compared:
        return self.room.others.compared(self.text("second"))

    @property
    def changes(self) -> routes.Changes:
        return self.compared.changes if self.text("second") else routes.NO_CHANGES

    @property
    def photos(self) -> routes.PhotoList:
        layer, head = self.head
        lists = routes.lists_of(
            self.room.survey, self.rows, layer=layer, head=head, measure=self.measure, changes=self.changes
        )
        return lists[read_choice("list", self.text("list"), tuple(lists))]


def _beside(query: _Asked) -> Response:
    room = query.room
    return as_json(
        {
            "lit": room.is_own_model and room.files.are_there,
            "jump": room.jump_words(query.text("model"), query.text("edits")),
            "note": "" if room.is_own_model else OTHER_MODEL,
            "read": {"model": "", **room.options} if room.is_own_model else None,
        }
    )


def _look(query: _Asked) -> Response:
    """A photo as the survey's model received it; why not, where its file is gone or is another one now."""
    room = query.room
    name = room.files.name_of(query.row)
    try:
        room.files.picture(name)
    except ImageError as error:
        return as_json({"refused": str(error)})
    return as_json(
        {"image": name, "model": room.model_name or query.text("model"), "part": "", **room.options}
    )


def _chosen(query: _Asked) -> Response:
    try:
        changes = query.changes
    except ParameterError:
        changes = routes.NO_CHANGES  # why, says the answer to `compared`
    room, (layer, head) = query.room, query.head
    value = routes.chosen_value(
        room.files,
        query.text("where"),
        layer=layer,
        head=head,
        measure=query.measure,
        patch_size=room.patch_size,
        changes=changes,
    )
    return as_json(value)


def _compared(query: _Asked) -> Response:
    try:
        return as_json(query.compared.value())
    except ParameterError as error:
        return as_json({"refused": str(error)})


def _points(query: _Asked) -> Response:
    (layer, head), axes = query.head, (query.text("across"), query.text("up"))
    dots = routes.point_bytes(query.room.survey, *axes, layer=layer, head=head)
    return Response(dots, media_type="application/octet-stream")


def _cards(query: _Asked) -> Response:
    begin = whole(query.text("from", "0"), "from", longest=_LONGEST_NUMBER)
    return as_json(query.photos.cards(query.room.files, *query.head, begin))


def _csv(name: str, text: str) -> Response:
    return Response(
        text,
        media_type="text/csv",
        headers={"Content-Disposition": f'attachment; filename="survey-{name}.csv"'},
    )


def _lit(query: _Asked) -> Response:
    room, (layer, head) = query.room, query.head
    subject = room.subject(query.row, visitor_in(query.request.cookies))
    view = ViewState().with_options({"layer": layer, "head": head, "style": "light"})
    try:
        drawn = picture(room.session, subject, view)
    except ImageError:  # its file is gone, or another one now: what is shown of it stays
        return Response(status_code=204)
    return Response(drawn.data, media_type=drawn.media_type)


def _plotly(query: _Asked) -> Response:
    """plotly for the browser, in a fifth of its size for those that say they can read that: all of them."""
    accepts = "gzip" in query.request.headers.get("accept-encoding", "")
    headers = FOR_GOOD | {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if accepts else {})
    return Response(plots.script(packed=accepts), 200, headers, "text/javascript")


_ANSWERS: dict[str, Callable[[_Asked], Response]] = {
    "beside": _beside,
    "look/{row}": _look,
    "chosen": _chosen,
    "methods": lambda query: as_json(routes.method_value(query.room.survey, query.rows)),
    "points": _points,
    "cards": _cards,
    "photos.csv": lambda query: _csv("photos", query.photos.csv(query.room.survey)),
    "photo/{row}": lambda query: as_json(routes.card_value(query.room.files, query.row, *query.head)),
    "thumbnail/{row}": lambda query: Response(query.room.files.thumbnail(query.row), media_type="image/webp"),
    "lit/{row}": _lit,
    "compared": _compared,
    "heads.csv": lambda query: _csv("heads", query.compared.csv()),
    "plotly.js": _plotly,
}
