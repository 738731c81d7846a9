"""The small maps of the Positions tab: the similarity of all pairs of places as bytes, or of as many as are sent at once."""

from __future__ import annotations

import numpy as np

from vit_viz.analyses.positions import POSITIONS
from vit_viz.explorer.packing import plain_bytes
from vit_viz.geometry import Grid, format_query
from vit_viz.results import TokenMatrix
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

MOST_CELLS = 400_000
"""Numbers that are sent of all pairs; beyond it the small maps are those of every other place, or of fewer."""


def every(grid: Grid) -> int:
    """Of how many places in either direction one has a small map."""
    rows, cols = grid
    step = 1
    while -(-rows // step) * -(-cols // step) * rows * cols > MOST_CELLS:
        step += 1
    return step


def tile_bytes(session: Session, subject: Subject, *, trained: bool) -> bytes:
    """The small maps row by row, float16 [rows / every, cols / every, rows, cols].

    Args:
        trained: whether on the grid of the training, and not on that of the photo.
    """
    grid = "" if trained else format_query(session.trace_of(subject).layout.grid)
    matrix: TokenMatrix = session.run(request_for(session, subject, POSITIONS.name, grid=grid))
    step = every(matrix.grid)
    return plain_bytes(matrix.values.reshape(*matrix.grid, *matrix.grid)[::step, ::step], np.float16)
