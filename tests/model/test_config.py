"""Configurations: what is read, what is refused, and how fast."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.spending import LargestTensor, python_memory
from vit_viz.errors import ParameterError
from vit_viz.model import ViTConfig


def test_a_configuration_survives_json() -> None:
    config = ViTConfig(
        img_size=(32, 48), patch_size=8, embed_dim=40, num_heads=5, reg_tokens=2, scale=0.5, mlp="swiglu"
    )
    assert ViTConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_timms_names_are_read() -> None:
    config = ViTConfig.from_dict(
        {
            "img_size": 128,
            "embed_dim": 192,
            "num_heads": 6,
            "mlp_ratio": 2.5,
            "global_pool": "avg",
            "init_values": 1e-5,
        }
    )
    assert (config.img_size, config.mlp_hidden, config.pooling) == ((128, 128), 480, "mean")
    assert config.fc_norm
    assert not config.final_norm
    assert config.layer_scale


@pytest.mark.parametrize(
    ("given", "size"), [(48, (48, 48)), ((32, 48), (32, 48)), ([32.0, 48], (32, 48)), (16384, (16384, 16384))]
)
def test_a_size_is_one_number_or_a_height_and_a_width(given: Any, size: tuple[int, int]) -> None:
    assert (
        ViTConfig.from_dict({"img_size": given, "patch_size": 1024 if given == 16384 else 16}).img_size
        == size
    )


def test_an_unknown_entry_is_named() -> None:
    with pytest.raises(ParameterError, match="'depht'"):
        ViTConfig.from_dict({"depht": 12})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"depth": 10**9}, "The number of layers must lie between"),
        ({"embed_dim": 10**12}, "The width of a token must lie between"),
        ({"img_size": 10**9}, "The size of the picture must lie between"),
        ({"num_classes": -1}, "The number of classes must lie between"),
        ({"embed_dim": 16384, "depth": 256, "num_heads": 4}, "billion parameters"),
        ({"img_size": 16384, "patch_size": 1}, "no usable patch grid"),
        ({"img_size": 8, "patch_size": 16}, "no usable patch grid"),
        ({"num_heads": 5}, "numbers of a token cannot be shared by 5 heads"),
        ({"depth": "12"}, "whole number"),
        ({"depth": float("nan")}, "whole number"),
        ({"depth": True}, "whole number"),
        ({"mlp": "relu"}, "The kind of MLP must be one of"),
        ({"class_token": False}, "Class pooling needs a class token"),
        ({"position": "rotary", "embed_dim": 30, "num_heads": 5}, "heads whose width 4 divides"),
        ({"norm_eps": 0}, "The epsilon of the norms must lie between 0 and 1"),
        ({"norm_eps": 1}, "The epsilon of the norms must lie between 0 and 1"),
        ({"norm_eps": "tiny"}, "The epsilon of the norms must lie between"),
        ({"scale": float("inf")}, "The factor of the scores must lie between"),
        ({"class_token": 10**9}, "The class token must be true or false"),
        ({"qkv_bias": "yes"}, "The qkv bias must be true or false"),
        ({"mlp_ratio": 10**9}, "The ratio of the MLP's width to a token's must be"),
        ({"mlp_ratio": 999, "embed_dim": 768}, "The width of the MLP must lie between"),
        ({"global_pool": "max"}, "The pooling must be one of"),
        ({"img_size": (10**6, 32)}, "between 1 and 16384 pixels, not 1000000 x 32"),
        ({"img_size": (32, 10**6)}, "between 1 and 16384 pixels, not 32 x 1000000"),
        ({"patch_size": (0, 8)}, "The size of a patch must lie between 1 and 16384 pixels, not 0 x 8"),
        ({"patch_size": (8, 0)}, "The size of a patch must lie between 1 and 16384 pixels, not 8 x 0"),
        ({"img_size": (32, 48, 64)}, r"The size of the picture is \(height, width\) or one number"),
        ({"class_tokens": 0}, "The number of class tokens must lie between 1 and 1024"),
        ({"class_tokens": 2, "dist_token": True}, "With several class tokens there"),
        ({"class_tokens": 2, "class_token": False, "pooling": "mean"}, "several class tokens"),
        ({"class_tokens": 2, "class_read": [2]}, r"that is read must be one of 0-1, .*not \[2\]"),
        ({"class_tokens": 2, "class_read": [0, 0]}, "and none twice"),
        ({"class_read": [-1]}, "must be one of 0-0"),
        ({"class_read": []}, "must be one of 0-0"),
        ({"class_read": 0}, "is given in a list of numbers"),
        ({"position_grid": 16384}, "no usable patch grid"),
        ({"position_grid": [8, 0]}, "grid of the table of positions must lie between"),
        ({"position_grid": 8, "position": "none"}, "Only learned positions can have a grid"),
        ({"img_size": "48"}, "The size of the picture must be a whole number, not '48'"),
        ({"patch_size": (8, 6.5)}, "The size of a patch must be a whole number, not '6.5'"),
    ],
)
def test_what_is_out_of_bounds_is_refused_before_anything_is_made(
    values: dict[str, Any], message: str
) -> None:
    with LargestTensor() as tensors, python_memory() as memory, pytest.raises(ParameterError, match=message):
        ViTConfig.from_dict(values)
    assert tensors.bytes == 0
    assert memory.bytes < 2**20


@pytest.mark.parametrize(
    ("options", "unread"),
    [
        ({"dist_token": True}, ("distillation",)),
        ({"dist_token": True, "dist_head": True}, ()),
        ({"dist_token": True, "pooling": "mean"}, ()),
        ({"class_tokens": 3, "class_read": (0, 2)}, ("class 1",)),
        ({}, ()),
    ],
)
def test_tokens_that_the_output_passes_over_are_named(
    options: dict[str, Any], unread: tuple[str, ...]
) -> None:
    assert ViTConfig(**options).unread == unread


def test_the_parameter_count_is_close_to_the_truth() -> None:
    assert ViTConfig().num_parameters == pytest.approx(86_567_656, rel=2e-3)
