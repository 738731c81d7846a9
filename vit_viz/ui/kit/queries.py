"""Choosing the query in a picture: by a click in the photo, or step by step with the arrow keys."""

from __future__ import annotations

from typing import Any

from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import format_query
from vit_viz.session.session import Session
from vit_viz.views.choices import subject_of
from vit_viz.views.state import ViewState


def pick(session: Session, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The view with the patch at a point of the original photo as its query; a point that no patch covers changes nothing.

    Args:
        data: y and x in pixels of the original.

    Raises:
        ParameterError: the point is not two numbers.
    """
    trace = _trace(session, view, owner)
    try:
        y, x = float(data["y"]), float(data["x"])
    except (KeyError, TypeError, ValueError):
        raise ParameterError("A click needs a row and a column in pixels of the photo.") from None
    finite = abs(y) + abs(x) < float("inf")
    patch = trace.crop_box.locate(y, x, trace.layout.grid) if trace.crop_box and finite else None
    return view if patch is None else view.after_action(query=format_query(patch))


def step(session: Session, view: ViewState, owner: str, data: dict[str, Any]) -> ViewState:
    """The view with its query moved by one patch; from a token that is not a patch it goes to the centre of the photo."""
    trace = _trace(session, view, owner)
    rows, cols = trace.layout.grid
    tokens = trace.layout.tokens(view.query_of(trace.layout)) if view.query else ()
    patches = [place for place in map(trace.layout.place, tokens) if place]
    if len(patches) != 1:
        return view.after_action(query=format_query((rows // 2, cols // 2)))
    row, col = patches[0]
    row = min(max(row + _direction(data, "down"), 0), rows - 1)
    col = min(max(col + _direction(data, "across"), 0), cols - 1)
    return view.after_action(query=format_query((row, col)))


def _direction(data: dict[str, Any], name: str) -> int:
    value = data.get(name, 0)
    return value if value in (-1, 0, 1) else 0


def _trace(session: Session, view: ViewState, owner: str) -> Trace:
    subject = subject_of(session, view, owner)
    return session.trace_of(subject)
