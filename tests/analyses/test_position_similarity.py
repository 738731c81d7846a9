"""Similarity of positions: learned, sinusoidal, rotary, none; on any grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.comparing import assert_same
from vit_viz.analyses.positions import position_similarity
from vit_viz.errors import ParameterError
from vit_viz.model.config import ViTConfig
from vit_viz.model.positions import resample
from vit_viz.model.vit import VisionTransformer


def model(**options) -> VisionTransformer:
    config = ViTConfig(
        img_size=(16, 36), patch_size=(4, 6), embed_dim=40, num_heads=5, depth=1, num_classes=7, **options
    )
    vit = VisionTransformer(config)
    with torch.no_grad():
        for parameter in vit.parameters():
            parameter.normal_()
    return vit


@pytest.mark.parametrize("position", ["learned", "sinusoidal_1d", "sinusoidal_2d", "rotary"])
@pytest.mark.parametrize("grid", [None, (3, 7)])
def test_similarity_is_symmetric_with_a_diagonal_of_one(position, grid):
    matrix = position_similarity(model(position=position), grid=grid)
    rows, cols = grid or (4, 6)
    assert matrix.values.shape == (rows * cols, rows * cols)
    np.testing.assert_allclose(np.diag(matrix.values), 1, atol=1e-6)
    assert_same(matrix.values, matrix.values.T, relative=1e-6)
    assert np.abs(matrix.values).max() <= 1 + 1e-6


def test_learned_positions_are_compared_by_cosine_not_by_dot_product():
    vit = model(reg_tokens=2)
    table = vit.pos_embed[0].detach().numpy()
    matrix = position_similarity(vit)
    for one, other in ((0, 5), (3, 17)):
        a, b = table[3 + one], table[3 + other]
        expected = float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))
        assert matrix.values[one, other] == pytest.approx(expected, abs=1e-6)
    with torch.no_grad():
        vit.pos_embed *= torch.linspace(1, 5, 27)[:, None]
    assert_same(position_similarity(vit).values, matrix.values, relative=1e-6)


def test_the_class_token_has_its_own_row_where_it_has_a_position():
    vit = model(reg_tokens=2)
    table = vit.pos_embed[0].detach()
    matrix = position_similarity(vit)
    assert list(matrix.extra) == ["class", "register 0", "register 1"]
    expected = torch.cosine_similarity(table[:1], table[3:])
    assert_same(matrix.extra["class"], expected.numpy(), relative=1e-6)
    assert not position_similarity(model(reg_tokens=2, no_embed_class=True)).extra
    assert not position_similarity(model(position="sinusoidal_2d")).extra


def test_another_grid_is_resampled_by_the_variant_of_the_model():
    vit = model(resample="dino")
    table = resample(vit.pos_embed[0, 1:], (4, 6), (5, 5), variant="dino").detach()
    expected = torch.cosine_similarity(table[:, None], table[None], dim=-1)
    matrix = position_similarity(vit, grid=(5, 5))
    assert_same(matrix.values, expected.numpy())
    assert "Resampled from the 4 x 6 positions" in matrix.note


def test_rotary_similarity_is_the_mean_cosine_of_the_relative_phase_by_hand():
    # head_dim 8: frequencies 2 pi and 2 pi / 10 per axis; neighbours in a row of a 1 x 2 grid lie 1 apart on the column axis
    matrix = position_similarity(model(position="rotary"), grid=(1, 2))
    expected = (1 + 1 + math.cos(2 * math.pi) + math.cos(2 * math.pi / 10)) / 4
    assert matrix.values[0, 1] == pytest.approx(expected, abs=1e-6)
    assert "learns no position embedding" in matrix.note


def test_a_model_without_positions_gets_an_explanation():
    with pytest.raises(ParameterError, match="has no position embedding: it knows where a patch is only"):
        position_similarity(model(position="none"))


@pytest.mark.parametrize("table", ["relative_bias", "shared_bias"])
def test_a_model_with_biases_for_offsets_says_so(table):
    with pytest.raises(
        ParameterError, match="add a learned number to the scores for the offset of two patches"
    ):
        position_similarity(model(position="none", **{table: True}))
    note = position_similarity(model(**{table: True})).note
    assert (
        note == "Each layer also adds a learned number for the offset of two patches, which is not in here."
    )


def test_rotation_beside_positions_is_told():
    matrix = position_similarity(model(rotary_grid=(3, 5)), grid=(5, 7))
    assert matrix.note.startswith("Resampled from the 4 x 6 positions")
    assert matrix.note.endswith(" turns queries and keys by angles of the position, which are not in here.")


def test_a_module_that_is_not_ours_gets_an_explanation():
    with pytest.raises(ParameterError, match="not from Linear"):
        position_similarity(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("grid", [(0, 4), (100, 100)])
def test_a_grid_out_of_bounds_is_refused(grid):
    with pytest.raises(ParameterError, match="positions"):
        position_similarity(model(), grid=grid)
