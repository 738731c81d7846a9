"""How timm prepares pictures for its published weights: the table, and files that bring nothing but their name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

pytest.importorskip("timm", reason="timm is the oracle of these tests")

from timm.models import get_pretrained_cfg
from timm.models._registry import _model_default_cfgs

from vit_viz.checkpoints import load
from vit_viz.checkpoints.architectures import ARCHITECTURES
from vit_viz.checkpoints.families.base import CLIP, IMAGENET
from vit_viz.checkpoints.published_recipes import PUBLISHED, published_recipe
from vit_viz.model import VisionTransformer, ViTConfig

DEFAULTS = {"interpolation": "bicubic", "crop_mode": "center"}


def said_by_timm(name: str) -> dict[str, Any]:
    cfg = get_pretrained_cfg(name)
    return {key: getattr(cfg, key) for key in ("mean", "std", "crop_pct", *DEFAULTS)}


def test_the_table_says_of_each_name_and_tag_what_timms_registry_says() -> None:
    names = [name for name in ARCHITECTURES if name in _model_default_cfgs]
    names += [f"{name}.{tag}" for name in names for tag in _model_default_cfgs[name].cfgs if tag]
    assert len(names) > 500
    assert {name: DEFAULTS | (published_recipe(name) or {}) for name in names} == {
        name: said_by_timm(name) for name in names
    }


def test_the_table_has_no_tag_that_its_architecture_covers() -> None:
    repeated = [
        name for name in PUBLISHED if "." in name and PUBLISHED[name] == PUBLISHED[name.split(".")[0]]
    ]
    assert repeated == []


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("timm/vit_base_patch16_224.mae", IMAGENET[0]),
        ("vit_base_patch16_224.mae.fp16", IMAGENET[0]),
        ("vit_base_patch16_224.unheard_of", (0.5, 0.5, 0.5)),
        ("vit_base_patch16_clip_224.openai", CLIP[0]),
        ("vit_base_patch16", None),
        ("", None),
    ],
)
def test_a_name_is_read_with_its_folder_and_its_tag(name: str, mean: tuple[float, ...] | None) -> None:
    recipe = published_recipe(name)
    assert (recipe and recipe["mean"]) == mean


def test_a_file_that_brings_nothing_but_a_name_is_prepared_as_timm_does_it(tmp_path: Path) -> None:
    config = ViTConfig(img_size=48, patch_size=16, embed_dim=192, depth=1, num_heads=3, num_classes=5)
    for name, expected in (
        ("deit_tiny_patch16_224", (IMAGENET[0], "of timm's weights of this name")),
        ("mine", ((0.5, 0.5, 0.5), "assumed: the file brings none")),
    ):
        save_file(dict(VisionTransformer(config).state_dict()), tmp_path / f"{name}.safetensors")
        loaded = load(tmp_path / f"{name}.safetensors", device="cpu")
        assert (loaded.preprocess.mean, dict(loaded.provenance.parameters)["preprocessing"]) == expected
