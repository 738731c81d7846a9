"""The explorer of what the Look tab shows, as a file of its own."""

from __future__ import annotations

from vit_viz.figures.files import Encoded, slug
from vit_viz.figures.screen import screen_photo
from vit_viz.offline import page_of
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui import pictures
from vit_viz.ui.payload import explorer_view
from vit_viz.views.state import ViewState

MOST_BYTES = 40_000_000
"""Bytes of layers in a page that is made for a visitor, whom others wait beside; Python makes larger ones."""


def explorer_file(session: Session, subject: Subject, view: ViewState) -> Encoded:
    """The live explorer of a subject as one HTML file, opening with this view."""
    view = pictures.fitting(session, subject, view)
    trace = session.checked_trace_of(subject)
    name = session.name_of(subject.image, owner=subject.owner)
    page = page_of(
        trace,
        screen_photo(session, subject),
        name=name,
        mode=subject.mode,
        view=explorer_view(view, trace),
        most_bytes=MOST_BYTES,
    )
    parts = ("vit_viz", slug(name) or "photo", slug(trace.provenance.model) or "model")
    return Encoded(page, "text/html", "_".join(parts) + ".html")
