"""Every way of resampling positions: sums over cells that are written out, and the functions of the libraries themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.comparing import assert_same
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
    points = [max(0.0, point) for point in centres(new, new / old)]
    if variant == "radio":
        points = [i * (old - 1) / (new - 1) for i in range(new)]
    return at_points(old, points, lambda x: max(0.0, 1 - abs(x)), 1)


@pytest.mark.parametrize("new_grid", [(9, 4), (3, 11)], ids=["taller", "wider"])
@pytest.mark.parametrize("variant", get_args(Resample))
def test_each_variant_is_the_sum_over_cells_that_its_formula_says(
    variant: Resample, new_grid: tuple[int, int]
) -> None:
    rows, cols, dim = 5, 7, 3
    table = torch.randn(rows * cols, dim, generator=torch.Generator().manual_seed(4))
    down, across = axis_weights(variant, rows, new_grid[0]), axis_weights(variant, cols, new_grid[1])
    if variant.startswith("radio"):  # a part of a square
        down, across = (
            axis_weights(variant, old, max(new_grid))[:new]
            for old, new in zip((rows, cols), new_grid, strict=True)
        )
    picture = table.double().numpy().reshape(rows, cols, dim)
    expected = np.einsum("ir,jc,rcd->ijd", down, across, picture).reshape(-1, dim)
    got = resample(table, (rows, cols), new_grid, variant=variant).numpy()
    np.testing.assert_allclose(got, expected, atol=3e-5 * np.abs(expected).max())


# --- the functions of the libraries themselves, each on grids that it takes

OLD, DIM, PATCH = (6, 6), 5, 4
WIDER, TALLER, FEWER, MORE = (3, 11), (9, 4), (4, 4), (13, 13)


def by_timm(table: Tensor, new: tuple[int, int], **options: object) -> Tensor:
    timm = pytest.importorskip("timm.layers")
    resampled: Tensor = timm.resample_abs_pos_embed(
        table[None], new_size=list(new), old_size=list(OLD), num_prefix_tokens=0, **options
    )
    return resampled[0]


def by_timm_bilinear(table: Tensor, new: tuple[int, int]) -> Tensor:
    return by_timm(table, new, interpolation="bilinear", antialias=False)


def by_torchvision(table: Tensor, new: tuple[int, int]) -> Tensor:
    """It takes one side of a square."""
    theirs = pytest.importorskip("torchvision.models.vision_transformer")
    state = {"encoder.pos_embedding": torch.cat((torch.full((1, DIM), 9.0), table))[None]}
    resampled: Tensor = theirs.interpolate_embeddings(new[0] * PATCH, PATCH, state)["encoder.pos_embedding"]
    return resampled[0, 1:]


def by_transformers(module: str, name: str) -> Callable[[Tensor, tuple[int, int]], Tensor]:
    def resampled(table: Tensor, new: tuple[int, int]) -> Tensor:
        transformers = pytest.importorskip("transformers")
        sizes = {
            "hidden_size": DIM,
            "num_attention_heads": 1,
            "image_size": OLD[0] * PATCH,
            "patch_size": PATCH,
        }
        embeddings = getattr(
            import_module(f"transformers.models.{module}.modeling_{module}"), f"{name}Embeddings"
        )(getattr(transformers, f"{name}Config")(**sizes))
        embeddings.position_embeddings.data = torch.cat((torch.full((1, DIM), 9.0), table))[None]
        tokens = torch.zeros(1, 1 + new[0] * new[1], DIM)
        with torch.no_grad():
            found: Tensor = embeddings.interpolate_pos_encoding(tokens, new[0] * PATCH, new[1] * PATCH)
        return found[0, 1:]

    return resampled


def by_radio_of_transformers(table: Tensor, new: tuple[int, int]) -> Tensor:
    """It takes a table of as many rows as columns."""
    transformers = pytest.importorskip("transformers")
    embeddings = import_module("transformers.models.radio.modeling_radio").RadioPatchEmbeddings(
        transformers.RadioConfig(hidden_size=DIM, patch_size=PATCH, max_img_size=OLD[0] * PATCH)
    )
    embeddings.position_embedding.data = table[None]
    with torch.no_grad():
        found: Tensor = embeddings._interpolate_position_embedding(new, table.dtype)
    return found[0]


@pytest.mark.parametrize(
    ("variant", "theirs", "grids"),
    [
        pytest.param("timm", by_timm, (WIDER, TALLER), id="timm"),
        pytest.param("bilinear", by_timm_bilinear, (WIDER, TALLER), id="bilinear"),
        pytest.param("torchvision", by_torchvision, (FEWER, MORE), id="torchvision"),
        pytest.param("transformers", by_transformers("vit", "ViT"), (WIDER, TALLER), id="transformers-vit"),
        pytest.param(
            "transformers", by_transformers("dinov2", "Dinov2"), (WIDER, TALLER), id="transformers-dinov2"
        ),
        pytest.param(
            "dinov2_reg",
            by_transformers("dinov2_with_registers", "Dinov2WithRegisters"),
            (WIDER, TALLER),
            id="transformers-dinov2-registers",
        ),
        pytest.param(
            "radio_v4", by_radio_of_transformers, (WIDER, TALLER, FEWER, MORE), id="transformers-radio"
        ),
    ],
)
def test_each_variant_is_what_the_function_of_its_library_gives(
    variant: Resample, theirs: Callable[..., Tensor], grids: tuple[tuple[int, int], ...]
) -> None:
    table = torch.randn(OLD[0] * OLD[1], DIM)
    for grid in grids:
        assert_same(resample(table, OLD, grid, variant=variant), theirs(table, grid), relative=3e-6)
