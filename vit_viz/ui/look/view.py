"""What the Look tab shows: its map, on the screen and in numbers, and its explorer as a file of its own."""

from __future__ import annotations

from functools import partial

from vit_viz.analyses.attention import LOOK
from vit_viz.errors import ParameterError
from vit_viz.figures.files import Encoded, slug
from vit_viz.figures.request import figure_for
from vit_viz.figures.screen import screen_photo, screen_picture
from vit_viz.offline import page_of
from vit_viz.session.questions import ask, request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.ui.payload import explorer_view
from vit_viz.views.state import ViewState

MOST_BYTES = 40_000_000
"""Bytes of layers in a page that is made for a visitor, whom others wait beside; Python makes larger ones."""


def map_request(session: Session, subject: Subject, view: ViewState) -> Request:
    """What is asked for the map: one query in one head, or fused heads, of one layer."""
    view = fitting(session, subject, view)
    return request_for(
        session,
        subject,
        LOOK.name,
        layer=view.layer,
        query=view.query_of(session.trace_of(subject).layout),
        head=str(view.head),
        direction=view.attention.direction,
        norm=view.attention.norm,
    )


def picture(session: Session, subject: Subject, view: ViewState) -> Encoded:
    """The map on its photo, for the screen."""
    return screen_picture(session, figure_for(map_request(session, subject, view), view.drawing))


def fitting(session: Session, subject: Subject, view: ViewState) -> ViewState:
    """The view on this subject, where nothing has to give way."""
    trace = session.trace_of(subject)
    view, problems = view.fitted(layers=trace.num_layers, heads=trace.num_heads, layout=trace.layout)
    if problems:
        raise ParameterError(problems[0])
    return view


def explorer_file(session: Session, subject: Subject, view: ViewState) -> Encoded:
    """The live explorer of a subject as one HTML file, opening with this view."""
    view = fitting(session, subject, view)
    trace = session.checked_trace_of(subject)
    name = session.name_of(subject.image, owner=subject.owner)
    page = page_of(
        trace,
        screen_photo(session, subject),
        name=name,
        mode=subject.mode,
        size=subject.size,
        view=explorer_view(view, trace),
        ask=partial(ask, session, subject),
        most_bytes=MOST_BYTES,
    )
    parts = ("vit_viz", slug(name) or "photo", slug(trace.provenance.model) or "model")
    return Encoded(page, "text/html", "_".join(parts) + ".html")
