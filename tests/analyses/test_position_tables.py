"""Positions taken apart: resampled in all ways, by rotary period, and in components."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.comparing import assert_same
from vit_viz.analyses.position_tables import (
    VARIANTS,
    filter_components,
    position_components,
    resampling,
    rotary_similarity,
)
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer, ViTConfig


def model(**options) -> VisionTransformer:
    settings = {"img_size": (16, 36), "patch_size": (4, 6), "embed_dim": 40, "num_heads": 5, "depth": 1}
    vit = VisionTransformer(ViTConfig(**{**settings, "num_classes": 7, **options}))
    random = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.copy_(
                torch.randn(parameter.shape, generator=random) * torch.linspace(2, 0.5, parameter.shape[-1])
            )
    return vit


def along(table: np.ndarray, base: np.ndarray) -> np.ndarray:
    """A table along the first three components of another, by NumPy's singular values."""
    rows = np.linalg.svd(base - base.mean(0), full_matrices=False)[2][:3]
    rows = rows * np.sign(rows[np.arange(3), np.abs(rows).argmax(1)])[:, None]
    return (table - base.mean(0)) @ rows.T


@pytest.mark.parametrize(
    ("ask", "options", "sentence"),
    [
        (rotary_similarity, {"rotary_grid": (3, 5)}, "Only the periods of rotary positions like DINOv3's"),
        (rotary_similarity, {"position": "none", "relative_bias": True}, "those of this model are relative"),
        (position_components, {"position": "none", "shared_bias": True}, "its positions are 'relative'"),
    ],
)
def test_positions_that_are_not_shown_are_named(ask, options, sentence):
    with pytest.raises(ParameterError, match=sentence):
        ask(model(**options))


def test_biases_are_not_drawn_on_another_grid():
    with pytest.raises(ParameterError, match="this model has learned biases for offsets instead"):
        resampling(model(position="none", relative_bias=True), grid=(5, 7))


def test_each_variant_is_drawn_along_the_components_of_the_checkpoint():
    vit = model(resample="dino", reg_tokens=1)
    table = vit.pos_embed[0, 2:].detach()
    found = resampling(vit, grid=(3, 7))
    assert found.own == "dino"
    assert found.after.names == VARIANTS
    assert_same(found.before.values[0], along(table.numpy(), table.numpy()).reshape(4, 6, 3))
    picture = table.T.reshape(1, 40, 4, 6)
    by_hand = F.interpolate(picture, size=(3, 7), mode="bicubic", antialias=True)[0].flatten(1).T
    drawn = along(by_hand.numpy(), table.numpy()).reshape(3, 7, 3)
    assert_same(found.after.values[VARIANTS.index("timm")], drawn)


def test_differences_are_relative_to_the_models_own_way():
    vit = model(resample="torchvision")
    found = resampling(vit, grid=(5, 3))
    picture = vit.pos_embed[0, 1:].detach().T.reshape(1, 40, 4, 6)
    own = F.interpolate(picture, size=(5, 3), mode="bicubic", align_corners=True)[0].flatten(1).T.numpy()
    other = F.interpolate(picture, size=(5, 3), mode="bilinear")[0].flatten(1).T.numpy()
    place = VARIANTS.index("bilinear")
    expected = np.linalg.norm(other - own, axis=1) / np.linalg.norm(own, axis=1).mean()
    assert_same(found.difference.values[place], expected.reshape(5, 3))
    assert found.overall[place] == pytest.approx(np.linalg.norm(other - own) / np.linalg.norm(own), rel=1e-5)
    assert found.overall[VARIANTS.index("torchvision")] == 0
    assert (found.difference.values[VARIANTS.index("torchvision")] == 0).all()


def test_on_the_checkpoints_own_grid_all_ways_are_the_same():
    found = resampling(model(), grid=(4, 6))
    assert (found.difference.values == 0).all()
    assert_same(found.after.values[3], found.before.values[0])


def test_periods_by_hand():
    # head_dim 8: periods 1 and 10 halves of the picture; neighbours in 5 columns lie 2/5 apart
    found = rotary_similarity(model(position="rotary"), grid=(2, 5))
    assert_same(found.periods, [1, 10], relative=1e-6)
    assert found.cols[0, 1] == pytest.approx(math.cos(2 * math.pi * 0.4), abs=1e-6)
    assert found.cols[1, 4] == pytest.approx(math.cos(2 * math.pi * 1.6 / 10), abs=1e-6)
    assert found.rows[1, 1] == pytest.approx(math.cos(2 * math.pi * 1.0 / 10), abs=1e-6)
    assert (found.rows[:, 0] == 1).all()


@pytest.mark.parametrize("grid", [(3, 7), (5, 2)])
def test_periods_are_those_of_timms_dinov3(grid):
    """The cosine of the angle between two patches, from timm's own sines and cosines."""
    rope = pytest.importorskip("timm.layers.pos_embed_sincos").RotaryEmbeddingDinoV3
    table = rope(dim=8, temperature=100.0, feat_shape=list(grid)).get_embed()
    sin, cos = (part.double()[:, :4].reshape(*grid, 2, 2) for part in table.chunk(2, dim=-1))
    first = rotary_similarity(model(position="rotary"), grid=grid)
    down = (sin[:, 0, 0] * sin[0, 0, 0] + cos[:, 0, 0] * cos[0, 0, 0]).T
    across = (sin[0, :, 1] * sin[0, 0, 1] + cos[0, :, 1] * cos[0, 0, 1]).T
    assert_same(first.rows, down.float().numpy(), relative=1e-5)
    assert_same(first.cols, across.float().numpy(), relative=1e-5)


def test_components_of_the_table_are_those_of_a_singular_value_decomposition():
    vit = model(reg_tokens=2)
    found = position_components(vit)
    maps, shares = found.maps, found.shares
    table = vit.pos_embed[0, 3:].detach().numpy().astype(np.float64)
    assert_same(maps.values[0], along(table, table).reshape(4, 6, 3))
    singular = np.linalg.svd(table - table.mean(0))[1] ** 2
    assert_same(shares, singular[:3] / singular.sum())
    assert position_components(model(position="sinusoidal_2d"), grid=(3, 5)).maps.grid == (3, 5)


@pytest.mark.parametrize("embed", ["conv", "unfold"])
def test_components_of_the_filters_are_pictures_of_unit_length(embed):
    vit = model(patch_embed=embed)
    found = filter_components(vit, count=9)
    weight = vit.patch_embed.proj.weight.detach().numpy().reshape(40, -1).astype(np.float64)
    _, singular, rows = np.linalg.svd(weight - weight.mean(0), full_matrices=False)
    rows *= np.sign(rows[np.arange(len(rows)), np.abs(rows).argmax(1)])[:, None]
    assert_same(found.values, rows[:9].reshape(9, 3, 4, 6))
    assert_same(found.shares, (singular**2 / (singular**2).sum())[:9])
    assert filter_components(vit, count=1000).values.shape == (72, 3, 4, 6)


def test_what_a_model_does_not_have_is_said():
    with pytest.raises(
        ParameterError, match="Only learned positions are resampled; those of this model are rotary"
    ):
        resampling(model(position="rotary"), grid=(3, 3))
    with pytest.raises(ParameterError, match="those of this model are learned"):
        rotary_similarity(model())
    with pytest.raises(ParameterError, match="no position embedding"):
        position_components(model(position="none"))
    with pytest.raises(ParameterError, match="4096"):
        resampling(model(), grid=(100, 100))
    with pytest.raises(ParameterError, match="not from Linear"):
        filter_components(torch.nn.Linear(2, 2))
