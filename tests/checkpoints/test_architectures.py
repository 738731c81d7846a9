"""timm's whole zoo of Vision Transformers, as the benchmark script counts it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

pytest.importorskip("timm", reason="timm is the oracle of these tests")

import timm

from benchmarks.architectures import architectures, check
from vit_viz.checkpoints.architectures import ARCHITECTURES, architecture

ACTIVATIONS = {"GELUTanh": "gelu_tanh", "QuickGELU": "quick_gelu"}
REFUSED = {
    "ParallelThingsBlock": "parallel blocks",
    "ParallelScalingBlock": "parallel blocks",
    "DiffParallelScalingBlock": "differential attention",
    "DiffAttention": "differential attention",
    "ResPostBlock": "norms after the branches",
    "EvaBlockPostNorm": "norms after the branches",
}
BILINEAR = ("flexivit_", "_radio_")
"""Parts of the names of models that were trained with positions resampled so; timm's model does not say it."""


def made(name: str) -> nn.Module:
    """timm's model with a single block, without memory for its parameters."""
    with torch.device("meta"):
        return timm.create_model(name, depth=1)  # type: ignore[no-any-return]


def said_by_timm(name: str) -> dict[str, Any]:
    """What the table should have of an architecture, read off timm's own model."""
    model: Any = made(name)
    block, embed = model.blocks[0], model.patch_embed
    kinds = [type(part).__name__ for part in (block, getattr(block, "attn", None))]
    if reasons := [REFUSED[kind] for kind in kinds if kind in REFUSED]:
        return {"refused": reasons[0]}
    said: dict[str, Any] = {"num_heads": block.attn.num_heads}
    if block.norm1.eps != 1e-6:
        said["norm_eps"] = block.norm1.eps
    if type(block.mlp.act).__name__ in ACTIVATIONS:
        said["mlp"] = ACTIVATIONS[type(block.mlp.act).__name__]
    if model.global_pool == "avg" and model.cls_token is not None:
        said["pooling"] = "mean"
    if getattr(model, "pool_include_prefix", False):
        said["pool_prefix"] = True
    if type(rotary := getattr(model, "rope", None)).__name__ == "RotaryEmbeddingCat":
        said |= {"rotary_grid": rotary.ref_feat_shape, "rotary_base": rotary.temperature}
    if any(side % patch for side, patch in zip(embed.img_size, embed.patch_size, strict=True)):
        said["img_size"] = embed.img_size
    if any(part in name for part in BILINEAR):
        said["resample"] = "bilinear"
    return said


@pytest.mark.filterwarnings("ignore")
def test_the_table_says_of_each_architecture_what_timms_own_model_says() -> None:
    assert {name: said_by_timm(name) for name in ARCHITECTURES} == ARCHITECTURES


def test_the_table_has_all_current_names_of_timm() -> None:
    current = {name for _, name in architectures()}
    assert current - set(ARCHITECTURES) == set()


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("vit_tiny_patch16_224", 3),
        ("timm/vit_tiny_patch16_224.augreg_in21k", 3),
        ("vit_tiny_patch16_224.augreg_in21k.fp16", 3),
        ("some/where/vit_wee_patch16_reg1_gap_256", 4),
        ("vit_tiny_patch16", None),
        ("", None),
    ],
)
def test_a_name_is_known_with_and_without_its_tag(name: str, heads: int | None) -> None:
    known = architecture(name)
    assert (None if known is None else known["num_heads"]) == heads


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_all_plain_vits_of_timm_load_with_parity_and_the_rest_is_refused_by_name() -> None:
    outcomes = [check(module, name) for module, name in architectures()]
    assert [outcome for outcome in outcomes if outcome.result == "fails"] == []
    vits = [outcome.result for outcome in outcomes if outcome.module == "vision_transformer"]
    assert vits.count("loads") >= 150
    refused = [outcome for outcome in outcomes if outcome.result == "refused"]
    assert [outcome for outcome in refused if not outcome.detail.startswith(f"{outcome.name!r} is ")] == []
    assert {outcome.result for outcome in outcomes if outcome.module == "beit"} == {"loads"}
    assert {outcome.name for outcome in refused if outcome.module == "eva"} == {
        "eva02_enormous_patch14_clip_224"
    }


@pytest.mark.parametrize("name", ["vit_base_patch16_siglip_224", "vit_small_patch16_18x2_224"])
def test_the_script_tells_loading_from_refusal(name: str) -> None:
    assert check("vision_transformer", name).result == ("refused" if "18x2" in name else "loads")
