"""What is asked for the figures of the Positions tab: all positions, the chosen one, that of a prefix token."""

from __future__ import annotations

from functools import partial

from vit_viz.analyses.positions import POSITIONS
from vit_viz.errors import ParameterError
from vit_viz.geometry import Grid, format_query
from vit_viz.results import TokenMatrix
from vit_viz.session.handles import Subject
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request
from vit_viz.session.session import Session
from vit_viz.views.state import ViewState

KINDS = ("positions", "position", "prefix")


def request_of(session: Session, subject: Subject, view: ViewState, kind: str) -> Request:
    """What is asked for one of the figures of a view; positions are of the model alone, whatever the photo.

    Raises:
        ParameterError: the model has no positions to show, or no prefix token with one.
    """
    image_grid = session.trace_of(subject).layout.grid
    grid = format_query(image_grid) if view.positions.position_grid == "image" else ""
    ask = partial(request_for, session, subject, POSITIONS.name, grid=grid)
    everything = ask()
    if kind == "positions":
        return everything
    matrix: TokenMatrix = session.run(everything)
    if kind == "position":
        return ask(place=format_query(place_of(view, image_grid, matrix.grid)))
    if not matrix.extra:
        raise ParameterError("No prefix token of this model has a position of its own.")
    return ask(place=prefix_of(view, matrix))


def place_of(view: ViewState, image_grid: Grid, grid: Grid) -> tuple[int, int]:
    """The position to enlarge: that of the pinned patch, scaled to the grid shown; else the centre."""
    first = view.query.split(";")[0]
    if first[:1].isdigit():
        row, col = (int(n) for n in first.split(","))
        return (
            min(row * grid[0] // image_grid[0], grid[0] - 1),
            min(col * grid[1] // image_grid[1], grid[1] - 1),
        )
    return grid[0] // 2, grid[1] // 2


def prefix_of(view: ViewState, matrix: TokenMatrix) -> str:
    """The prefix token whose position is shown: the query where it has one, else the first that has."""
    return view.query if view.query in matrix.extra else next(iter(matrix.extra))
