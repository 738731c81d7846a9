"""Where a first look starts: the head whose map says most at a glance, and patches worth a visit.

A map says much at a glance where little of the photo has most of the attention, in one place. So the score of a map is the share of
the patches' mass that lies on the brightest tenth of the patches, times the share of that tenth that hangs together in its largest
piece (patches that share a side). It is 1 where one connected tenth has everything, and 0 for an even map, which has no brightest
patches; a single bright patch in a corner, as models without registers have them, scores little, because the rest of its tenth lies
scattered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy, weighted_rows
from vit_viz.capture.trace import Trace
from vit_viz.lazy import torch

STOPS = 3
"""Patches that a tour visits."""

_MOST_ROWS = 256  # patches that a tour chooses from: bounds the rows that are formed for it


@dataclass(frozen=True)
class Opening:
    """Where a first look begins: a layer of the last third, one of its heads, and patches to visit, the first of all being 0.

    `score` says how much the map of that head says at a glance.
    """

    layer: int
    head: int
    tour: tuple[int, ...]
    score: float


def opening(trace: Trace) -> Opening:
    """The head of the last third of the layers whose map of the output's query has the highest score; of equals the first.

    The tour visits the patches whose own rows in that head score highest, each at least a third of the grid's longer side away
    from those before it; a patch whose row is even is none of them.
    """
    first = first_of_last_third(trace.num_layers)
    places = [(layer, head) for layer in range(first, trace.num_layers) for head in range(trace.num_heads)]
    weights = trace.query_weights(trace.layout.default_query)
    rows = [weighted_rows(trace, layer, weights) for layer in range(first, trace.num_layers)]
    scores = [score(one) for one in trace.layout.patches(to_numpy(torch.cat(rows)))]
    best = int(np.argmax(scores))
    layer, head = places[best]
    return Opening(layer, head, _tour(trace, layer, head), scores[best])


def first_of_last_third(layers: int) -> int:
    """The layer with which the last third begins, where heads of a trained model tend to look at objects."""
    return min(layers - 1, (2 * layers + 1) // 3)


def score(values: NDArray[np.floating]) -> float:
    """How much a map of weights over the patch grid, [rows, cols], says at a glance, in [0, 1]; see the head of this module."""
    total = float(values.sum())
    if not total > 0 or values.min() == values.max():
        return 0.0
    count = max(1, round(values.size / 10))
    brightest = np.argsort(-values, axis=None, kind="stable")[:count]
    share = float(values.ravel()[brightest].sum()) / total
    return share * _largest_piece(brightest.tolist(), values.shape[1]) / count


def _largest_piece(patches: Iterable[int], cols: int) -> int:
    """Of how many patches of a grid, counted row by row, the largest piece consists whose patches share sides."""
    width = cols + 1  # no patch is in the last column: the ends of two rows are not neighbours
    left, largest = {patch + patch // cols for patch in patches}, 0
    while left:
        reached = [left.pop()]
        for patch in reached:
            for beside in (patch - width, patch - 1, patch + 1, patch + width):
                if beside in left:
                    left.remove(beside)
                    reached.append(beside)
        largest = max(largest, len(reached))
    return largest


def _tour(trace: Trace, layer: int, head: int) -> tuple[int, ...]:
    rows, cols = trace.layout.grid
    patches = list(range(0, rows * cols, -(-rows * cols // _MOST_ROWS)))
    queries = [trace.layout.token(divmod(patch, cols)) for patch in patches]
    maps = trace.layout.patches(to_numpy(trace.attention(layer, heads=[head], queries=queries))[0])
    best = sorted((-score(one), patch) for one, patch in zip(maps, patches, strict=True))
    stops: list[int] = []
    for patch in (patch for score_below, patch in best if score_below < 0):
        row, col = divmod(patch, cols)
        near = (np.hypot(row - stop // cols, col - stop % cols) < max(rows, cols) / 3 for stop in stops)
        if len(stops) < STOPS and not any(near):
            stops.append(patch)
    return tuple(stops)
