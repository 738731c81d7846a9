"""Position tables by hand, and what resampling must keep; test_resampling_oracle.py has its numbers."""

from __future__ import annotations

import math

import pytest
import torch

from tests.comparing import assert_same
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.positions import resample, rotary_angles, rotate, sinusoidal_1d, sinusoidal_2d


def test_sinusoidal_1d_by_hand() -> None:
    table = sinusoidal_1d(3, 4)
    expected = [
        [0, 1, 0, 1],
        *([math.sin(t), math.cos(t), math.sin(t / 100), math.cos(t / 100)] for t in (1, 2)),
    ]
    assert_same(table, torch.tensor(expected))


def test_sinusoidal_2d_says_the_column_first_then_the_row() -> None:
    table = sinusoidal_2d((2, 3), 8).reshape(2, 3, 8)
    col, row = 2, 1
    expected = [f(t / 10_000**e) for t in (col, row) for f in (math.sin, math.cos) for e in (0, 0.5)]
    assert_same(table[row, col], torch.tensor(expected))


def test_sinusoidal_models_add_their_table_to_any_grid() -> None:
    config = ViTConfig(
        img_size=(8, 8), patch_size=4, embed_dim=8, depth=0, num_heads=2, position="sinusoidal_2d", in_chans=1
    )
    model = VisionTransformer(config)
    with torch.no_grad():
        torch.nn.init.zeros_(model.patch_embed.proj.weight)
        torch.nn.init.zeros_(model.patch_embed.proj.bias)
        tokens = model.tokens(torch.zeros(1, 1, 8, 12))
    assert_same(tokens[0, 1:], sinusoidal_2d((2, 3), 8))
    assert "pos_embed" not in model.state_dict()


def test_resampling_to_the_same_grid_changes_nothing() -> None:
    table = torch.randn(24, 5)
    assert resample(table, (4, 6), (4, 6), variant="dino") is table


def test_a_table_that_does_not_fit_its_grid_is_refused() -> None:
    with pytest.raises(ParameterError, match="4 x 6 needs 24 positions; the table has 25"):
        resample(torch.zeros(25, 3), (4, 6), (8, 8))


def test_rotary_angles_by_hand() -> None:
    angles = rotary_angles((2, 4), 8, base=100.0).reshape(2, 4, 4)
    row, col = 2 * 1.5 / 2 - 1, 2 * 0.5 / 4 - 1
    expected = [2 * math.pi * row / p for p in (1, 10)] + [2 * math.pi * col / p for p in (1, 10)]
    assert_same(angles[1, 0], torch.tensor(expected), relative=3e-6)


def test_rotation_keeps_lengths_and_leaves_prefix_tokens_alone() -> None:
    angles = rotary_angles((2, 3), 8)
    x = torch.randn(1, 5, 8, 8)
    out = rotate(x, angles.cos(), angles.sin())
    assert_same(out[:, :, :2], x[:, :, :2], relative=3e-6)
    assert_same(out.norm(dim=-1), x.norm(dim=-1), relative=3e-6)
    assert (out[:, :, 2:] - x[:, :, 2:]).abs().max() > 0.1


def test_rotated_products_depend_only_on_the_distance_between_patches() -> None:
    angles = rotary_angles((5, 5), 8)
    q, k = torch.randn(8), torch.randn(8)
    turned_q, turned_k = (
        rotate(v.expand(25, 8), angles.cos(), angles.sin()).reshape(5, 5, 8) for v in (q, k)
    )
    assert_same(turned_q[1, 1] @ turned_k[2, 3], turned_q[2, 0] @ turned_k[3, 2], relative=3e-6)


def test_rotary_equals_timms_dinov3() -> None:
    sincos = pytest.importorskip("timm.layers.pos_embed_sincos")
    rope = sincos.RotaryEmbeddingDinoV3(8, temperature=100.0, feat_shape=[4, 6], rotate_half=True)
    x = torch.randn(2, 5, 24, 8)
    theirs = sincos.apply_rot_embed_cat(x, rope.get_embed(), half=True)
    angles = rotary_angles((4, 6), 8)
    assert_same(rotate(x, angles.cos(), angles.sin()), theirs, relative=3e-6)


def test_a_model_without_a_table_says_so() -> None:
    model = VisionTransformer(
        ViTConfig(img_size=8, patch_size=4, embed_dim=8, depth=1, num_heads=2, position="rotary")
    )
    with pytest.raises(ParameterError, match="rotary"):
        model.position_table((2, 2))
