"""Every way of resampling positions against sums over cells that are written out, without torch's interpolation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from vit_viz.model.positions import Resample, resample

Weights = NDArray[np.float64]


def cubic(x: float, a: float) -> float:
    """Keys 1981, the kernel of bicubic interpolation: a = -0.75 in torch, -0.5 where it antialiases, as in Pillow."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def at_points(old: int, points: list[float], kernel: Callable[[float], float], reach: int) -> Weights:
    """What each cell weighs at each point, where the cells of the edge go on beyond it."""
    weights = np.zeros((len(points), old))
    for row, point in enumerate(points):
        for cell in range(math.floor(point) - reach + 1, math.floor(point) + reach + 1):
            weights[row, min(max(cell, 0), old - 1)] += kernel(point - cell)
    return weights


def centres(new: int, scale: float) -> list[float]:
    """Where the middles of new cells lie among the old ones."""
    return [(i + 0.5) / scale - 0.5 for i in range(new)]


def antialiased(old: int, new: int) -> Weights:
    """A kernel as wide as a new cell where that is wider than an old one; what lies outside has no weight."""
    wide = max(1.0, old / new)
    weights = np.array(
        [
            [cubic((cell - point) / wide, -0.5) for cell in range(old)]
            for point in (float(c) for c in centres(new, new / old))
        ]
    )
    return weights / weights.sum(1, keepdims=True)


def axis_weights(variant: str, old: int, new: int) -> Weights:
    """What each old cell weighs in each new one along an axis."""
    plain = lambda x: cubic(x, -0.75)  # noqa: E731
    if variant in ("timm", "dinov2_reg"):
        return antialiased(old, new)
    if variant in ("dino", "dinov2"):
        return at_points(old, centres(new, (new + 0.1) / old), plain, 2)
    if variant == "torchvision":
        return at_points(old, [i * (old - 1) / (new - 1) for i in range(new)], plain, 2)
    if variant == "transformers":
        return at_points(old, centres(new, new / old), plain, 2)
    assert variant == "bilinear"
    points = [max(0.0, point) for point in centres(new, new / old)]
    return at_points(old, points, lambda x: max(0.0, 1 - abs(x)), 1)


@pytest.mark.parametrize("new_grid", [(9, 4), (3, 11)], ids=["taller", "wider"])
@pytest.mark.parametrize("variant", get_args(Resample))
def test_each_variant_is_the_sum_over_cells_that_its_formula_says(
    variant: Resample, new_grid: tuple[int, int]
) -> None:
    rows, cols, dim = 5, 7, 3
    table = torch.randn(rows * cols, dim, generator=torch.Generator().manual_seed(4))
    down, across = axis_weights(variant, rows, new_grid[0]), axis_weights(variant, cols, new_grid[1])
    picture = table.double().numpy().reshape(rows, cols, dim)
    expected = np.einsum("ir,jc,rcd->ijd", down, across, picture).reshape(-1, dim)
    got = resample(table, (rows, cols), new_grid, variant=variant).numpy()
    np.testing.assert_allclose(got, expected, atol=3e-5 * np.abs(expected).max())
