"""The Survey tab: where a model looks in many photos at once. There only where whoever runs the app opened a survey."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from vit_viz.errors import ParameterError
from vit_viz.explorer import colour_tables
from vit_viz.render.figures import photo_scatter
from vit_viz.session.session import Session
from vit_viz.ui.kit import SurveyRoom, words
from vit_viz.ui.page import Page, Room, Tab
from vit_viz.ui.survey import answers
from vit_viz.ui.survey.opened_room import OTHER_MODEL, OpenedRoom, open_room
from vit_viz.ui.survey.routes import survey_routes
from vit_viz.views.state import ViewState

NAME = "survey"
_OPTIONS = ("survey_where", "survey_across", "survey_up", "survey_measure")


@dataclass(frozen=True)
class SurveyTab:
    """The components of the tab.

    Args:
        room: filter, atlas and lists; its script fills the dots.
    """

    room: SurveyRoom


def survey_room(session: Session, folder: str | Path) -> Room:
    """The tab of the survey in a folder, or of the bundled one: "example".

    Raises:
        ParameterError: there is none.
        VitVizError: what it takes is not installed.
    """
    opened = open_room(session, folder)
    tab = Tab(NAME, "Survey", partial(build, opened), partial(wire, opened), shows=_shows)
    return Room(tab, survey_routes(opened))


def _shows(view: ViewState) -> Hashable:
    return view.layer, view.head, view.image, view.survey


def build(opened: OpenedRoom) -> SurveyTab:
    """Lay out the tab."""
    with gr.Column(elem_id="vv-survey-tab"):
        room = SurveyRoom(
            elem_id="vv-survey", survey=answers.opened_value(opened.survey), tables=colour_tables()
        )
        gr.Plot(photo_scatter(), show_label=False, elem_id="vv-survey-dots")
    words.explain(
        shows="what each head does over all photos that pass the filter, with the spread between photos; photos where a head's "
        "measure is highest and lowest; which photos are wrong, and where the model looked in them.",
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
    )
    return SurveyTab(room)


def wire(opened: OpenedRoom, tab: SurveyTab, page: Page) -> None:
    """Let the room choose heads and photos, and keep what is chosen in the link."""
    page.gesture(tab.room.option, _chosen)
    page.gesture(tab.room.choose, partial(_head, opened))
    page.gesture(tab.room.look, partial(_open, opened))
    page.drawing(NAME, partial(_draw, opened), [tab.room])


def _chosen(view: ViewState, _owner: str, data: dict[str, Any]) -> ViewState:
    return view.with_options({name: data[name] for name in _OPTIONS if name in data}).after_action()


def _head(opened: OpenedRoom, view: ViewState, _owner: str, data: dict[str, Any]) -> ViewState:
    layer, head = opened.survey.checked(_whole(data, "layer"), _whole(data, "head"))
    return view.after_action(layer=layer, head=head)


def _open(opened: OpenedRoom, view: ViewState, _owner: str, data: dict[str, Any]) -> ViewState:
    """A photo becomes the picture of the page, as the survey's model received it.

    Raises:
        ImageError: its file is gone, or is another one now.
    """
    row = _whole(data, "row")
    opened.files.check(row)
    name = opened.files.name_of(row)
    opened.files.picture(name)
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
        "image": view.image,
        "prefix": opened.files.name_of(0)[:-1],
        "layer": layer,
        "head": head,
        "where": options.survey_where,
        "across": options.survey_across,
        "up": options.survey_up,
        "measure": options.survey_measure if options.survey_measure in known else known[0],
        "lit": opened.is_own_model,
        "note": "" if opened.is_own_model else OTHER_MODEL,
    }


def _whole(data: dict[str, Any], name: str) -> int:
    """A whole number of an event.

    Raises:
        ParameterError: it is none.
    """
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ParameterError(f"The {name} is a whole number from 0.")
    return value
