"""Families of transformers, each loaded with parity or refused by name; and variants that their table does not hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from benchmarks.transformers_families import BASE, FAMILIES, WITH_MLP, Family, check as outcome_of, loading
from tests.checkpoints.test_families import check, save_state
from tests.comparing import assert_same
from tests.model.inside import randomise
from vit_viz.checkpoints import load
from vit_viz.errors import UnknownFamily

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="timm is an oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is the oracle of these tests")

REASONS = {
    "YOLOS": "detection tokens come after the patches.*vv.trace",
    "SigLIP 2 NaFlex": "list of patches with a mask",
    "InternViT-6B": "across all heads at once",
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.filterwarnings("ignore")
def test_families_load_with_parity_or_are_refused_by_name(family: Family) -> None:
    outcome = outcome_of(family)
    if family.name in loading():
        assert (outcome.result, outcome.name) == ("loads", family.name), outcome.detail
    else:
        assert outcome.result == "refused", outcome.detail
        assert re.search(f"^'it' is {family.name}: .*{REASONS[family.name]}", outcome.detail)


@pytest.mark.parametrize("name", sorted(REASONS))
def test_what_is_refused_is_recognised_by_its_parameters_alone(tmp_path: Path, name: str) -> None:
    (family,) = (family for family in FAMILIES if family.name == name)
    family.make(transformers).save_pretrained(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(UnknownFamily, match=f"is .*{name}.*: .*{REASONS[name]}"):
        load(tmp_path)


def test_swin_is_not_taken_for_beit(tmp_path: Path) -> None:
    model = transformers.SwinModel(
        transformers.SwinConfig(embed_dim=8, depths=[1, 1], num_heads=[1, 2], image_size=32, window_size=2)
    )
    model.save_pretrained(tmp_path)
    with pytest.raises(UnknownFamily, match=r"it looks like a windowed .*Swin"):
        load(tmp_path)


def test_blip_with_its_text_tower_gives_its_image_embedding(tmp_path: Path) -> None:
    text = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    text |= {"vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2, "sep_token_id": 3, "pad_token_id": 0}
    config = transformers.BlipConfig(text_config=text, vision_config=WITH_MLP, projection_dim=9)
    model = randomise(transformers.BlipModel(config))
    model.save_pretrained(tmp_path)
    pixels = torch.randn(2, 3, 24, 24)

    def embed(pixels: Tensor) -> Tensor:
        return model.visual_projection(model.vision_model(pixels).pooler_output)

    loaded = load(tmp_path, device="cpu")
    with torch.no_grad():
        assert_same(loaded.model(pixels), embed(pixels), relative=1e-5)  # its tower alone is in the table
    assert loaded.config.projection
    assert loaded.config.pooling == "class"


def test_internvit_as_its_authors_name_it_computes_the_same(tmp_path: Path) -> None:
    """timm converts these very names to its own by the rules that are undone here."""
    size = {"img_size": 24, "patch_size": 6, "embed_dim": 40, "depth": 3, "num_heads": 5, "num_classes": 0}
    model = randomise(timm.create_model("vit_intern300m_patch14_448", **size))
    state = {}
    for name, tensor in model.state_dict().items():
        name = name.replace("patch_embed.proj.", "embeddings.patch_embedding.")
        name = name.replace("cls_token", "embeddings.class_embedding")
        name = name.replace("pos_embed", "embeddings.position_embedding").replace(".gamma", "")
        state[name.replace("blocks.", "encoder.layers.")] = tensor
    config = {
        "model_type": "intern_vit_6b",
        "num_attention_heads": 5,
        "image_size": 24,
        "layer_norm_eps": 1e-6,
    }
    save_state(tmp_path, state, **config)
    check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 24))


def test_a_depth_model_says_that_only_its_backbone_is_here(tmp_path: Path) -> None:
    (family,) = (family for family in FAMILIES if family.name == "Depth Anything")
    family.make(transformers).save_pretrained(tmp_path)
    assumed = dict(load(tmp_path, device="cpu").provenance.parameters)["assumed"]
    assert "only the backbone" in assumed


def test_a_hybrid_dpt_is_refused_by_name(tmp_path: Path) -> None:
    save_state(tmp_path, {"dpt.embeddings.backbone.bit.embedder.convolution.weight": torch.zeros(1)})
    with pytest.raises(UnknownFamily, match="is a hybrid DPT: its patches come from a ResNet"):
        load(tmp_path)


# --- DINOv3 without registers


DINOV3 = {"embed_dim": 128, "depth": 3, "num_heads": 2, "num_classes": 0, "img_size": 24, "patch_size": 6}


@pytest.mark.parametrize("architecture", ["vit_small_patch16_dinov3", "vit_small_patch16_dinov3_qkvb"])
def test_timms_dinov3_without_registers_computes_the_same(tmp_path: Path, architecture: str) -> None:
    model = randomise(timm.create_model(architecture, num_reg_tokens=0, **DINOV3))
    save_state(
        tmp_path,
        model.state_dict(),
        architecture=architecture,
        global_pool="avg",
        model_args={"num_heads": 2},
    )
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 36))
    assert loaded.config.prefix == ("class",)


@pytest.mark.parametrize("tokens", ["none", "an empty tensor"])
def test_original_dinov3_without_registers_computes_the_same(tmp_path: Path, tokens: str) -> None:
    model = randomise(
        timm.create_model("vit_small_patch16_dinov3", num_reg_tokens=0, global_pool="token", **DINOV3)
    )
    state = {
        re.sub(r"gamma_(\d)", r"ls\1.gamma", name): tensor for name, tensor in model.state_dict().items()
    }
    state |= {"rope_embed.periods": torch.ones(16), "mask_token": torch.zeros(1, 128)}
    if tokens != "none":
        state["storage_tokens"] = torch.zeros(1, 0, 128)
    save_state(tmp_path, state, name="pretrained")
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 36))
    assert loaded.family == "DINOv3"


def test_transformers_dinov3_keeps_an_empty_tensor_where_it_has_no_registers(tmp_path: Path) -> None:
    """This is what the table's case rests on."""
    model = transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**WITH_MLP, num_register_tokens=0))
    assert model.state_dict()["embeddings.register_tokens"].shape == (1, 0, BASE["hidden_size"])


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("vit_pe_core_tiny_patch16_384", "a Perception Encoder"),
        ("vit_medium_patch16_rope_reg1_gap_256", "a ViT with rotary positions"),
        ("naflexvit_base_patch16_gap", "NaFlexViT"),
    ],
)
@pytest.mark.parametrize("told", ["by config.json", "by the name of the file"])
def test_timms_other_transformers_are_refused_by_name(
    tmp_path: Path, name: str, what: str, told: str
) -> None:
    """Some have exactly the parameters of a model that loads, and compute something else."""
    with torch.device("meta"):
        model = timm.create_model(name, depth=1)
    state = {key: torch.zeros(tensor.shape) for key, tensor in model.state_dict().items()}
    if told == "by config.json":
        save_state(tmp_path, state, architecture=name)
    else:
        save_state(tmp_path, state, name=f"{name}.tag")
    with pytest.raises(UnknownFamily, match=f"is {what}: "):
        load(tmp_path)
