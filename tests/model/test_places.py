"""Relative position biases and EVA-02's rotary positions: against timm and transformers, and by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.comparing import assert_same
from tests.model.inside import TINY, assert_same_inside, look_inside, randomise
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.model.positions import Rotary, grid_angles, num_biases, relative_index, resample_bias, rotate

pytestmark = pytest.mark.numbers

timm_beit = pytest.importorskip("timm.models.beit", reason="timm is the oracle of these tests")
GRID, HEADS = (4, 6), 5
OF_TIMM = pytest.mark.filterwarnings("ignore:Using a non-tuple sequence", "ignore:torch.searchsorted")
GRIDS = [(4, 6), (7, 9), (3, 11), (2, 2), (1, 5), (9, 4)]
OURS: dict[str, Any] = {
    name: value for name, value in TINY.items() if name not in ("mlp_ratio", "init_values")
} | {"mlp_hidden": 120, "position": "none", "layer_scale": True, "norm_eps": 1e-6}


def test_each_pair_of_tokens_has_the_bias_that_timm_looks_up() -> None:
    for grid in GRIDS:
        theirs = timm_beit.gen_relative_position_index(grid)
        assert torch.equal(relative_index(grid), theirs)
        assert int(theirs.max()) == num_biases(grid) - 1


def test_the_class_token_has_three_biases_of_its_own() -> None:
    index, last = relative_index(GRID), num_biases(GRID) - 1
    assert index[0, 0] == last
    assert (index[1:, 0] == last - 1).all()
    assert (index[0, 1:] == last - 2).all()
    assert index[1:, 1:].max() < last - 2


@OF_TIMM
@pytest.mark.parametrize("grid", GRIDS)
def test_biases_on_another_grid_are_timms(grid: tuple[int, int]) -> None:
    resize = pytest.importorskip("timm.layers").resize_rel_pos_bias_table
    table = torch.randn(num_biases(GRID), HEADS)
    expected = resize(table, grid, (num_biases(grid), HEADS), old_window_size=GRID)
    assert_same(resample_bias(table, GRID, grid), expected)


@pytest.mark.parametrize("grid", GRIDS)
def test_biases_on_another_grid_are_those_of_transformers(grid: tuple[int, int]) -> None:
    """Of a square grid: where it is not, transformers takes rows for columns."""
    transformers = pytest.importorskip("transformers")
    modeling = pytest.importorskip("transformers.models.beit.modeling_beit")
    config = transformers.BeitConfig(
        image_size=30, patch_size=6, num_attention_heads=HEADS, hidden_size=40, attn_implementation="eager"
    )
    theirs = modeling.BeitRelativePositionBias(config)
    torch.nn.init.normal_(theirs.relative_position_bias_table)
    table = theirs.relative_position_bias_table.detach()
    ours = resample_bias(table, (5, 5), grid, variant="transformers")[relative_index(grid)].permute(2, 0, 1)
    assert_same(ours[None], theirs(grid).detach())


@pytest.mark.parametrize("shared", [False, True])
def test_a_table_per_block_and_one_for_all_compute_as_timms(shared: bool) -> None:
    model = randomise(
        timm_beit.Beit(
            **TINY,
            init_values=0.1,
            use_abs_pos_emb=False,
            use_rel_pos_bias=not shared,
            use_shared_rel_pos_bias=shared,
        )
    )
    ours = _ours(model, relative_bias=not shared, shared_bias=shared)
    pixels = torch.randn(2, 3, 24, 42)
    assert_same_inside(
        look_inside(ours, ours.blocks, lambda: ours(pixels)),
        look_inside(model, model.blocks, lambda: model(pixels)),
    )


def test_both_tables_add_up() -> None:
    options: dict[str, Any] = {"use_rel_pos_bias": True, "use_shared_rel_pos_bias": True}
    model = randomise(timm_beit.Beit(**TINY, init_values=0.1, use_abs_pos_emb=True, **options))
    ours = _ours(model, relative_bias=True, shared_bias=True, position="learned")
    pixels = torch.randn(1, 3, 24, 42)
    assert_same(ours(pixels).detach(), model(pixels).detach())


@OF_TIMM
@pytest.mark.parametrize("grid", [(5, 9), (2, 7)])
def test_an_input_of_another_size_computes_as_timms_model_of_that_size(grid: tuple[int, int]) -> None:
    size = (grid[0] * 6, grid[1] * 7)
    model = randomise(timm_beit.Beit(**TINY, init_values=0.1, use_abs_pos_emb=False, use_rel_pos_bias=True))
    ours = _ours(model, relative_bias=True)
    model.set_input_size(size)
    pixels = torch.randn(2, 3, *size)
    assert_same_inside(
        look_inside(ours, ours.blocks, lambda: ours(pixels)),
        look_inside(model, model.blocks, lambda: model(pixels)),
    )


def _ours(model: Any, **config: Any) -> VisionTransformer:
    """Our model with the parameters of timm's, under the names that it has but for the biases of queries and values."""
    ours = VisionTransformer(
        ViTConfig(**{**OURS, "pooling": "mean", "fc_norm": True, "final_norm": False, **config})
    )
    state = {}
    for name, tensor in model.state_dict().items():
        if name.endswith("q_bias"):
            value = model.state_dict()[name.replace("q_bias", "v_bias")]
            state[name.replace("q_bias", "qkv.bias")] = torch.cat([tensor, torch.zeros_like(tensor), value])
        elif not name.endswith("v_bias"):
            state[name.replace("gamma_1", "ls1.gamma").replace("gamma_2", "ls2.gamma")] = tensor
    ours.load_state_dict(state)
    return ours.eval()


@pytest.mark.parametrize(
    "change",
    [
        {"class_token": False, "pooling": "mean"},
        {"reg_tokens": 2},
        {"dist_token": True},
    ],
)
def test_biases_go_with_one_class_token_alone(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="entries for one class token and patches"):
        ViTConfig(**{**OURS, "relative_bias": True, **change})


def test_biases_are_resampled_as_timm_or_transformers_do_it() -> None:
    with pytest.raises(ParameterError, match="as timm or transformers does it, not as 'dino'"):
        ViTConfig(**OURS, shared_bias=True, resample="dino")


def test_tables_of_biases_count_as_parameters() -> None:
    """A file may ask for a grid of 262,144 patches: its tables have a million entries per head and block."""
    plain = ViTConfig(**OURS)
    for change, tables in (
        ({"relative_bias": True}, 3),
        ({"shared_bias": True}, 1),
        ({"relative_bias": True, "shared_bias": True}, 4),
    ):
        config = replace(plain, **change)
        assert config.num_parameters - plain.num_parameters == tables * HEADS * 7 * 11
    with pytest.raises(ParameterError, match="billion parameters"):
        ViTConfig(img_size=512, patch_size=1, depth=256, num_heads=48, relative_bias=True, position="none")


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, "none"),
        ({"relative_bias": True}, "relative"),
        ({"shared_bias": True}, "relative"),
        ({"shared_bias": True, "position": "learned"}, "learned"),
        ({"position": "rotary"}, "rotary"),
    ],
)
def test_a_bias_is_what_says_where_a_patch_is_where_nothing_else_does(
    change: dict[str, Any], kind: str
) -> None:
    assert ViTConfig(**{**OURS, **change}).position_kind == kind


# --- rotary positions of EVA-02


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("trained", [(16, 16), (5, 7)])
def test_queries_are_turned_as_eva_02_turns_them(grid: tuple[int, int], trained: tuple[int, int]) -> None:
    layers = pytest.importorskip("timm.layers")
    embed = layers.RotaryEmbeddingCat(8, in_pixels=False, feat_shape=list(grid), ref_feat_shape=list(trained))
    q = torch.randn(2, HEADS, grid[0] * grid[1], 8)
    angles = grid_angles(grid, 8, trained=trained)
    turned = rotate(q, *Rotary(angles.cos(), angles.sin(), adjacent=True))
    assert_same(turned, layers.apply_rot_embed_cat(q, embed.get_embed()))


def test_the_class_token_is_not_turned() -> None:
    q, angles = torch.randn(HEADS, 25, 8), grid_angles(GRID, 8, trained=(3, 3))
    turned = rotate(q, angles.cos(), angles.sin(), adjacent=True)
    assert torch.equal(turned[:, 0], q[:, 0])
    assert_same(turned.norm(dim=-1), q.norm(dim=-1))
    assert not torch.allclose(turned[:, 2:], q[:, 2:])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"position": "rotary"}, "A grid of rotary positions comes beside other positions"),
        ({"embed_dim": 30}, "heads whose width 4 divides, not 6"),
        (
            {"rotary_grid": (0, 3)},
            "The grid of the rotary positions must lie between 1 and 16384 patches, not 0 x 3",
        ),
    ],
)
def test_rotary_grids_are_checked(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParameterError, match=sentence):
        ViTConfig(**{**OURS, "rotary_grid": (16, 16), **change})


def test_configurations_survive_being_written() -> None:
    config = ViTConfig(**OURS, rotary_grid=(16, 12), rotary_base=10_000.0, relative_bias=True)
    assert ViTConfig.from_dict(config.to_dict()) == config
    assert replace(config, rotary_grid=None) == ViTConfig.from_dict(config.to_dict() | {"rotary_grid": None})
