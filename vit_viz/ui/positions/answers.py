"""What the Positions tab is told: small values, and the similarity of all pairs of places as bytes."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.position_distance import by_direction, finding, likeness_by_distance
from vit_viz.analyses.position_tables import (
    FILTER_COMPONENTS,
    POSITION_COMPONENTS,
    RESAMPLING,
    ROTARY_SIMILARITY,
    FilterComponents,
    PositionComponents,
    Resampling,
    RotarySimilarity,
    answerable,
)
from vit_viz.analyses.positions import POSITIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.capture import Trace
from vit_viz.errors import ParameterError
from vit_viz.explorer.packing import plain_bytes
from vit_viz.geometry import Grid
from vit_viz.results import TokenMaps, TokenMatrix
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session
from vit_viz.ui.payload import figure_address, photo_value, picture_address
from vit_viz.ui.pictures import POSITION_KINDS, place_of, position_request, prefix_of
from vit_viz.ui.scripts import PREFIX
from vit_viz.views.state import ViewState
from vit_viz.views.tab_options import PositionPart

Value = dict[str, Any]

MOST_CELLS = 400_000
"""Numbers that are sent of all pairs; beyond it the small maps are those of every other place, or of fewer."""


def parts_of(session: Session, subject: Subject) -> list[PositionPart]:
    """The parts of the tab that this model has something for; none where the model is not ours."""
    try:
        answered = answerable(session.model(subject.model))
    except ParameterError:
        return []
    named: dict[PositionPart, AnyQuestion] = {"similarity": POSITIONS}
    named |= {part: question for part, (question, _) in _PARTS.items()}
    return [part for part, question in named.items() if question in answered]


def every(grid: Grid) -> int:
    """Of how many places in either direction one has a small map."""
    rows, cols = grid
    step = 1
    while -(-rows // step) * -(-cols // step) * rows * cols > MOST_CELLS:
        step += 1
    return step


def tile_bytes(session: Session, subject: Subject, view: ViewState) -> bytes:
    """The small maps row by row, float16 [rows / every, cols / every, rows, cols].

    Raises:
        ParameterError: the model has no positions to compare.
    """
    matrix: TokenMatrix = session.run(position_request(session, subject, view, "positions"))
    step = every(matrix.grid)
    return plain_bytes(matrix.values.reshape(*matrix.grid, *matrix.grid)[::step, ::step], np.float16)


def similarity_value(session: Session, subject: Subject, view: ViewState) -> Value:
    """The place that is enlarged, how alike places are by their distance, and where all small maps are fetched.

    Raises:
        ParameterError: the model has no positions to compare; the message says why.
    """
    matrix: TokenMatrix = session.run(position_request(session, subject, view, "positions"))
    trace, likeness = session.trace_of(subject), likeness_by_distance(matrix)
    assert trace.crop_box is not None  # a session traces photos, which have one
    rows, cols = trace.layout.grid
    _, _, height, width = trace.crop_box.region
    row, col = place_of(view, trace.layout.grid, matrix.grid)
    places = view.positions.position_grid
    name = prefix_of(view, matrix) if matrix.extra else ""
    saved = {kind: picture_address(session, subject, view, kind) for kind in POSITION_KINDS}
    return {
        "tiles": f"{PREFIX}/positions/{session.handles.issue(subject)}?places={places}",
        "every": every(matrix.grid),
        "unit": matrix.unit,
        "cell": (width / cols) / (height / rows),
        "photo": photo_value(session, subject)
        | {"grid": list(matrix.grid), "crop": trace.crop_box.to_dict()},
        "place": [row, col],
        "row": _floats(matrix.tile(row, col)),
        "prefix": {"name": name, "values": _floats(matrix.extra[name])} if name else None,
        "title": finding(likeness),
        "about": _about(session, subject, matrix, trace),
        "direction": by_direction(likeness),
        **{name: _floats(getattr(likeness, name)) for name in ("mean", "low", "high")},
        "pairs": likeness.pairs.tolist(),
        "saved": [figure_address(saved[kind]) for kind in POSITION_KINDS if kind != "prefix" or name],
    }


def _about(session: Session, subject: Subject, matrix: TokenMatrix, trace: Trace) -> str:
    """Where the positions come from, and who has none, in sentences."""
    config, sentences = session.model(subject.model).config, [matrix.note]
    here, shown = (f"{rows} x {cols}" for rows, cols in (trace.layout.grid, matrix.grid))
    if config is not None and config.position == "learned" and config.grid == matrix.grid:
        is_same = trace.layout.grid == matrix.grid
        rest = "this photo uses them as they are" if is_same else f"this photo has {here} patches"
        sentences.insert(0, f"The positions were trained at {shown}; {rest}.")
    if trace.layout.prefix and not matrix.extra:
        sentences.append(_without(trace.layout.prefix))
    return " ".join(filter(None, sentences))


def _without(prefix: tuple[str, ...]) -> str:
    """Who has no position, in a sentence."""
    kinds = Counter(name.rstrip(" 0123456789") for name in prefix)
    names = [
        f"the {kind}{'s' if count > 1 else ''}{'' if kind == 'register' else ' token'}"
        for kind, count in kinds.items()
    ]
    words, rest = (
        " and ".join(names),
        "have no position of their own" if len(prefix) > 1 else "has no position of its own",
    )
    return f"{words[0].upper()}{words[1:]} {rest}."


# --- what is shown beside similarity: another grid, rotary periods, components of positions and of filters


def part_value(session: Session, subject: Subject, part: PositionPart, grid: Grid | None) -> Value:
    """What one part of the tab shows of a model.

    Args:
        grid: (rows, cols); None is the grid that the model was made for.

    Raises:
        ParameterError: the model has nothing of the kind; the message says why.
    """
    if part == "similarity":
        return {}
    question, told = _PARTS[part]
    options: dict[str, Any] = (
        {"rows": grid[0], "cols": grid[1]} if grid and question is not FILTER_COMPONENTS else {}
    )
    return told(session.run(request_for(session, subject, question.name, **options)))


def _resampled(answer: Resampling) -> Value:
    before, after = _colours(answer.before, answer.after)
    difference = answer.difference.values
    return {
        "old_grid": list(answer.before.grid),
        "grid": list(answer.after.grid),
        "before": before[0],
        "own": answer.own,
        "unit": answer.difference.unit,
        "high": float(difference.max()),
        "variants": [
            {"name": name, "colours": colours, "difference": _floats(apart), "overall": float(overall)}
            for name, colours, apart, overall in zip(
                answer.after.names, after, difference, answer.overall, strict=True
            )
        ],
    }


def _components(answer: PositionComponents) -> Value:
    return {
        "grid": list(answer.maps.grid),
        "colours": _colours(answer.maps)[0][0],
        "shares": [float(share) for share in answer.shares],
    }


def _periods(answer: RotarySimilarity) -> Value:
    return {
        "periods": [float(period) for period in answer.periods],
        "rows": {"values": _floats(answer.rows), "count": answer.rows.shape[1]},
        "cols": {"values": _floats(answer.cols), "count": answer.cols.shape[1]},
    }


def _filters(answer: FilterComponents) -> Value:
    values = (
        answer.values if answer.values.shape[1] == 3 else answer.values.mean(1, keepdims=True).repeat(3, 1)
    )
    largest = np.abs(values).max((1, 2, 3), keepdims=True)
    scaled = 0.5 + values / np.where(largest > 0, 2 * largest, 1)  # gray is 0
    return {
        "grid": list(answer.values.shape[2:]),
        "filters": [_bytes(picture.transpose(1, 2, 0)) for picture in scaled],
        "shares": [float(share) for share in answer.shares],
    }


_PARTS: dict[PositionPart, tuple[AnyQuestion, Callable[[Any], Value]]] = {
    "resampled": (RESAMPLING, _resampled),
    "periods": (ROTARY_SIMILARITY, _periods),
    "components": (POSITION_COMPONENTS, _components),
    "filters": (FILTER_COMPONENTS, _filters),
}


def _colours(*maps: TokenMaps) -> list[list[str]]:
    """Three coordinates as red, green and blue, on one scale for all: from the 1st to the 99th percentile of each."""
    everything = np.concatenate([one.values.reshape(-1, 3) for one in maps])
    low, high = np.percentile(everything, (1, 99), axis=0)
    spread = np.where(high > low, high - low, 1)
    return [[_bytes((state - low) / spread) for state in one.values] for one in maps]


def _bytes(picture: NDArray[Any]) -> str:
    """Colours in [0, 1] as base64 of 3 bytes each."""
    return base64.b64encode(np.rint(255 * np.clip(picture, 0, 1)).astype(np.uint8).tobytes()).decode("ascii")


def _floats(values: NDArray[np.float32]) -> str:
    """Numbers as base64 of little-endian fp32, as a value of Gradio's must hold no long lists."""
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode("ascii")
