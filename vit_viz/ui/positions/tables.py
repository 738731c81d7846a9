"""What the Positions tab shows beside similarity: another grid, rotary periods, components of positions and of filters."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.position_tables import (
    FILTER_COMPONENTS,
    POSITION_COMPONENTS,
    RESAMPLING,
    ROTARY_SIMILARITY,
    FilterComponents,
    PositionComponents,
    Resampling,
    RotarySimilarity,
)
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.geometry import Grid
from vit_viz.results import TokenMaps
from vit_viz.session.handles import Subject
from vit_viz.session.questions import request_for
from vit_viz.session.session import Session
from vit_viz.views.tab_options import PositionPart

Value = dict[str, Any]


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
