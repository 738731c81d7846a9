"""Patches grouped into larger segments, where a method cannot afford to try each patch."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.patchwise import patch_colours
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.geometry import Grid

_POSITION = 3.0  # of the longer side of the image, in standard deviations of colour: segments that are compact, but follow edges


def segments_of(subject: PreparedImage, count: int) -> NDArray[np.int64]:
    """Which segment each patch belongs to, [rows, cols]; segments are connected and count from 0.

    Neighbours are merged until `count` segments are left, each time the two whose merging costs least, by Ward's criterion
    |A| |B| / (|A| + |B|) * |mean A - mean B|^2 over the patches' mean colour and position. Nothing is drawn at random: the same
    image has the same segments.

    Source: Ward 1963, doi:10.1080/01621459.1963.10500845.
    """
    rows, cols = subject.layout.grid
    colours = patch_colours(subject).double().cpu().numpy()  # [rows, cols, channels]
    spread = float(colours.std(axis=(0, 1)).mean()) or 1.0
    place = np.stack(np.meshgrid(np.arange(rows), np.arange(cols), indexing="ij"), -1) / max(rows, cols)
    features = np.concatenate([colours / spread, _POSITION * place], -1)
    return merged(features.reshape(rows * cols, -1), (rows, cols), count)


def merged(means: NDArray[np.float64], grid: Grid, count: int) -> NDArray[np.int64]:
    """Merge neighbours of a grid until `count` segments are left: means [patches, features] -> segments [rows, cols]."""
    means, sizes, owner = means.copy(), np.ones(len(means)), np.arange(len(means))
    beside: list[set[int]] = [set() for _ in means]

    def cost(a: int, b: int) -> tuple[float, int, int, float, float]:
        difference = means[a] - means[b]
        price = sizes[a] * sizes[b] / (sizes[a] + sizes[b]) * float(difference @ difference)
        return price, a, b, sizes[a], sizes[b]

    for a, b in _neighbours(grid):
        beside[a].add(b)
        beside[b].add(a)
    heap = [cost(a, b) for a, b in _neighbours(grid)]
    heapq.heapify(heap)
    for _ in range(len(means) - count):
        while True:
            _price, a, b, size_a, size_b = heapq.heappop(heap)
            if (size_a, size_b) == (sizes[a], sizes[b]):  # neither has been merged since
                break
        means[a] = (sizes[a] * means[a] + sizes[b] * means[b]) / (sizes[a] + sizes[b])
        sizes[a], sizes[b] = sizes[a] + sizes[b], 0
        owner[owner == b] = a
        beside[a] = (beside[a] | beside[b]) - {a, b}
        for other in beside[a]:
            beside[other] = (beside[other] - {b}) | {a}
            heapq.heappush(heap, cost(min(a, other), max(a, other)))
    return np.unique(owner, return_inverse=True)[1].reshape(grid).astype(np.int64)


def _neighbours(grid: Grid) -> Iterator[tuple[int, int]]:
    """Pairs of patches that share an edge, the lower index first."""
    rows, cols = grid
    for patch in range(rows * cols):
        if (patch + 1) % cols:
            yield patch, patch + 1
        if patch + cols < rows * cols:
            yield patch, patch + cols
