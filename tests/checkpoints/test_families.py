"""Every family: random tiny models, saved as their library saves them, compute the same in our model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.comparing import assert_same
from tests.model.inside import TINY, assert_same_inside, look_inside, randomise
from vit_viz.checkpoints import load
from vit_viz.errors import KeyMismatch, UnknownFamily

pytestmark = pytest.mark.numbers

timm = pytest.importorskip("timm", reason="timm is an oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

HF = {"hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "image_size": 24, "patch_size": 6}
HF_MLP = {**HF, "intermediate_size": 120}


def check(
    folder: Path, reference: nn.Module, blocks: Any, call: Callable[[Tensor], Tensor], pixels: Tensor
) -> Any:
    """Load what lies in `folder` and compare logits, blocks and attention with the reference."""
    loaded = load(folder, device="cpu")
    ours = look_inside(loaded.model, loaded.model.blocks, lambda: loaded.model(pixels))
    theirs = look_inside(reference, blocks, lambda: call(pixels))
    pooling = len(ours[1].attention) - len(ours[1].blocks)
    if pooling and len(theirs[1].attention) == len(theirs[1].blocks):
        del ours[1].attention[-1]  # SigLIP's pool is a MultiheadAttention there; the logits compare it
    assert_same_inside(ours, theirs)
    return loaded


def save_state(folder: Path, state: dict[str, Tensor], name: str = "model", **config: Any) -> None:
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, folder / f"{name}.safetensors")
    if config:
        (folder / "config.json").write_text(json.dumps(config))


def save_timm(folder: Path, model: nn.Module, **config: Any) -> None:
    save_state(folder, model.state_dict(), **config)


@pytest.mark.parametrize(
    ("architecture", "overrides"),
    [
        ("vit_tiny_patch16_224", {}),
        ("deit_tiny_distilled_patch16_224", {}),
        ("deit3_small_patch16_224", {}),
        ("vit_base_patch16_clip_quickgelu_224", {}),
        ("vit_base_patch16_siglip_224", {}),
        ("vit_so400m_patch16_siglip_256", {}),
        ("vit_small_patch14_dinov2", {}),
        ("vit_small_patch14_reg4_dinov2", {}),
        ("vit_giant_patch14_dinov2", {}),
        ("aimv2_large_patch14_224", {}),
        ("vit_little_patch16_reg4_gap_256", {}),
    ],
)
def test_timm_models_compute_the_same(tmp_path: Path, architecture: str, overrides: dict[str, Any]) -> None:
    size = {**TINY, "img_size": 24, "patch_size": 6, **overrides}
    model = randomise(timm.create_model(architecture, pretrained=False, **size))
    save_timm(tmp_path, model, architecture=architecture, model_args={"num_heads": 5, "img_size": 24})
    check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 24))


@pytest.mark.parametrize(
    "architecture",
    ["vit_small_patch16_dinov3", "vit_small_patch16_dinov3_qkvb", "vit_small_plus_patch16_dinov3"],
)
@pytest.mark.parametrize("pool", ["avg", "token"])
def test_timms_dinov3_computes_the_same_at_any_shape(tmp_path: Path, architecture: str, pool: str) -> None:
    size = {name: value for name, value in TINY.items() if name != "num_classes"}
    model = randomise(
        timm.create_model(
            architecture, num_classes=7, global_pool=pool, **{**size, "img_size": 24, "patch_size": 6}
        )
    )
    save_timm(tmp_path, model, architecture=architecture, global_pool=pool, model_args={"num_heads": 5})
    check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 36))


RELATIVE = ["beit_base_patch16_224", "beitv2_base_patch16_224"]
EVA = [
    "eva02_tiny_patch14_224",
    "eva02_base_patch14_448",
    "eva02_base_patch16_clip_224",
    "eva_giant_patch14_224",
]


@pytest.mark.parametrize("architecture", [*RELATIVE, *EVA])
@pytest.mark.parametrize("size", [(24, 24), (24, 36)])
def test_timms_beit_and_eva_compute_the_same(
    tmp_path: Path, architecture: str, size: tuple[int, int]
) -> None:
    shape = {**TINY, "img_size": size, "patch_size": 6}
    model = randomise(timm.create_model(architecture, pretrained=False, **shape))
    save_timm(tmp_path, model, architecture=architecture, model_args={"num_heads": 5, "img_size": list(size)})
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, *size))
    assert loaded.family == "BEiT / EVA"
    assert "assumed" not in dict(loaded.provenance.parameters)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence", "ignore:torch.searchsorted")  # timm's
@pytest.mark.parametrize("architecture", [*RELATIVE, *EVA])
def test_beit_and_eva_compute_the_same_on_another_grid(tmp_path: Path, architecture: str) -> None:
    shape = {**TINY, "img_size": 24, "patch_size": 6}
    model = randomise(timm.create_model(architecture, pretrained=False, **shape))
    save_timm(tmp_path, model, architecture=architecture, model_args={"num_heads": 5, "img_size": 24})
    model.set_input_size((30, 18))
    check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 30, 18))


@pytest.mark.parametrize("wrapped", [False, True])
def test_beit_as_its_authors_saved_it_computes_the_same_under_any_name(tmp_path: Path, wrapped: bool) -> None:
    """The table alone says how many heads there are, and the grid."""
    model = randomise(timm.create_model("beit_base_patch16_224", **{**TINY, "img_size": 24, "patch_size": 6}))
    state: Any = {**model.state_dict(), "mask_token": torch.randn(1, 1, 40)}
    state |= {f"blocks.{i}.attn.relative_position_index": torch.zeros(17, 17).long() for i in range(3)}
    torch.save({"model": state} if wrapped else state, tmp_path / "finetuned.pth")
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 24))
    assert (loaded.config.num_heads, loaded.config.grid) == (5, (4, 4))


@pytest.mark.parametrize(
    "options",
    [
        {"position": "none", "relative_bias": True},
        {"shared_bias": True},
        {"rotary_grid": (3, 5)},
    ],
)
def test_a_file_of_our_own_says_everything(
    tmp_path: Path, make_model: Callable[..., Any], options: dict[str, Any]
) -> None:
    model, pixels = make_model(**options), torch.randn(1, 3, 16, 36)
    save_timm(tmp_path, model, **model.config.to_dict())
    loaded = load(tmp_path, device="cpu")
    assert loaded.config == model.config
    assert_same(loaded.model(pixels), model(pixels).detach())


def test_an_eva_02_of_unknown_name_says_what_is_assumed(tmp_path: Path) -> None:
    size = {**TINY, "embed_dim": 128, "num_heads": 2, "img_size": 24, "patch_size": 6}
    model = randomise(timm.create_model("eva02_tiny_patch14_224", **size))
    save_file(dict(model.state_dict()), tmp_path / "mine.safetensors")
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 24))
    assert "rotary positions of EVA-02 on a grid of 16 x 16" in dict(loaded.provenance.parameters)["assumed"]


def test_a_table_that_fits_no_grid_is_refused(tmp_path: Path) -> None:
    model = timm.create_model("beit_base_patch16_224", **{**TINY, "img_size": (24, 36), "patch_size": 6})
    save_timm(tmp_path, model, architecture="beit_base_patch16_224")
    with pytest.raises(KeyMismatch, match="has 80 entries, which fit no square patch grid"):
        load(tmp_path, device="cpu")


BIASES = {
    "a table per block": {"use_relative_position_bias": True},
    "a shared table": {"use_shared_relative_position_bias": True},
    "both": {"use_relative_position_bias": True, "use_shared_relative_position_bias": True},
    "positions as well": {"use_relative_position_bias": True, "use_absolute_position_embeddings": True},
    "positions alone": {"use_absolute_position_embeddings": True},
    "the class token as output": {"use_relative_position_bias": True, "use_mean_pooling": False},
    "no layer scale": {"use_relative_position_bias": True, "layer_scale_init_value": 0.0},
}


@pytest.mark.parametrize("kind", BIASES)
@pytest.mark.parametrize("size", [(24, 24), (30, 18)])
def test_transformers_beit_computes_the_same_at_any_shape(
    tmp_path: Path, kind: str, size: tuple[int, int]
) -> None:
    model = randomise(
        transformers.BeitForImageClassification(
            transformers.BeitConfig(**HF_MLP, num_labels=7, **BIASES[kind])
        )
    )
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.beit.layers, logits(model), torch.randn(2, 3, *size))


@pytest.mark.parametrize("family", ["ViT", "Beit"])
def test_transformers_names_of_version_5_compute_the_same(tmp_path: Path, family: str) -> None:
    """`save_pretrained` writes those of version 4, a file of the state those of its modules."""
    options = {"use_relative_position_bias": True} if family == "Beit" else {}
    config = getattr(transformers, f"{family}Config")(**HF_MLP, num_labels=7, **options)
    model = randomise(getattr(transformers, f"{family}ForImageClassification")(config))
    save_timm(tmp_path, model, **config.to_dict())
    check(tmp_path, model, getattr(model, family.lower()).layers, logits(model), torch.randn(2, 3, 24, 24))


def test_a_masked_beit_of_transformers_is_its_encoder(tmp_path: Path) -> None:
    config = transformers.BeitConfig(
        **HF_MLP, vocab_size=11, use_mask_token=True, use_shared_relative_position_bias=True
    )
    model = randomise(transformers.BeitForMaskedImageModeling(config))
    model.save_pretrained(tmp_path)

    def encoded(pixels: Tensor) -> Tensor:
        return model.layernorm(model.beit(pixels).last_hidden_state)[:, 0]

    loaded = check(tmp_path, model, model.beit.layers, encoded, torch.randn(2, 3, 24, 24))
    assert "only the encoder" in dict(loaded.provenance.parameters)["assumed"]


def test_a_beit_of_transformers_for_a_grid_that_is_not_square_is_refused(tmp_path: Path) -> None:
    config = transformers.BeitConfig(
        **HF_MLP | {"image_size": (24, 36)}, num_labels=7, use_relative_position_bias=True
    )
    transformers.BeitForImageClassification(config).save_pretrained(tmp_path)
    with pytest.raises(UnknownFamily, match="made for a grid of 4 x 6, where transformers takes rows of its"):
        load(tmp_path, device="cpu")


def test_the_linear_patch_embedding_of_old_timm_files_loads(tmp_path: Path) -> None:
    model = randomise(timm.create_model("vit_tiny_patch16_224", **{**TINY, "img_size": 24, "patch_size": 6}))
    save_timm(tmp_path, model, architecture="vit_tiny_patch16_224", model_args={"num_heads": 5})
    pixels = torch.randn(1, 3, 24, 24)
    expected = load(tmp_path, device="cpu").model(pixels)
    state = dict(model.state_dict())
    state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].flatten(1)
    save_state(tmp_path, state)
    assert_same(load(tmp_path, device="cpu").model(pixels), expected, relative=3e-6)


@pytest.mark.parametrize("architecture", ["vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2"])
def test_original_dinov2_names_compute_the_same(tmp_path: Path, architecture: str) -> None:
    size = {**TINY, "embed_dim": 128, "num_heads": 2, "num_classes": 0, "img_size": 24, "patch_size": 6}
    model = randomise(timm.create_model(architecture, **size))
    state = {**model.state_dict(), "mask_token": torch.randn(1, 128)}
    if "reg_token" in state:  # the original keeps the class token's position in the table
        position = torch.randn(1, 1, 128)
        state["register_tokens"] = state.pop("reg_token")
        state["pos_embed"] = torch.cat([position, state["pos_embed"]], dim=1)
        state["cls_token"] = state["cls_token"] - position
    torch.save(state, tmp_path / "dinov2_vits14_pretrain.pth")
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 24))
    assert loaded.family == "DINO / DINOv2 (original)"
    assert loaded.config.resample == ("dinov2_reg" if "reg4" in architecture else "dinov2")


@pytest.mark.parametrize("wrapped", [False, True])
def test_original_dino_names_compute_the_same(tmp_path: Path, wrapped: bool) -> None:
    size = {**TINY, "embed_dim": 128, "num_heads": 2, "num_classes": 0, "img_size": 24, "patch_size": 6}
    model = randomise(timm.create_model("vit_small_patch16_224", **size))
    state: Any = dict(model.state_dict())
    if wrapped:  # the full checkpoint: student and teacher, each with a projection head
        teacher = {f"backbone.{name}": tensor for name, tensor in state.items()}
        state = {"teacher": teacher | {"head.mlp.0.weight": torch.randn(2, 2)}, "epoch": 3}
    torch.save(state, tmp_path / "dino_deitsmall16_pretrain.pth")
    loaded = check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 24))
    assert loaded.config.resample == "dino"


def test_original_dinov3_names_compute_the_same(tmp_path: Path) -> None:
    size = {**TINY, "embed_dim": 128, "num_heads": 2, "num_classes": 0, "img_size": 24, "patch_size": 6}
    model = randomise(timm.create_model("vit_small_patch16_dinov3_qkvb", global_pool="token", **size))
    state = {}
    for name, tensor in model.state_dict().items():
        if name.endswith(".q_bias"):
            q, block = tensor, name.removesuffix(".q_bias")
            v = model.state_dict()[f"{block}.v_bias"]
            state[f"{block}.qkv.bias"] = torch.cat([q, torch.randn_like(q), v])
            state[f"{block}.qkv.bias_mask"] = torch.ones(3 * len(q))
        elif not name.endswith(".v_bias"):
            state[
                name.replace("gamma_1", "ls1.gamma")
                .replace("gamma_2", "ls2.gamma")
                .replace("reg_token", "storage_tokens")
            ] = tensor
    state |= {"rope_embed.periods": torch.ones(16), "mask_token": torch.zeros(1, 128)}
    torch.save(state, tmp_path / "dinov3_vits16_pretrain_lvd1689m.pth")
    check(tmp_path, model, model.blocks, model, torch.randn(2, 3, 24, 36))


def logits(model: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda pixels: model(pixels).logits


def pooled(model: nn.Module) -> Callable[[Tensor], Tensor]:
    return lambda pixels: model(pixels).pooler_output


def test_transformers_vit_computes_the_same(tmp_path: Path) -> None:
    config = transformers.ViTConfig(
        **HF_MLP, num_labels=7, hidden_act="gelu_pytorch_tanh", layer_norm_eps=1e-4
    )
    model = randomise(transformers.ViTForImageClassification(config))
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.vit.layers, logits(model), torch.randn(2, 3, 24, 24))


def test_transformers_vit_of_one_channel_without_a_head_computes_the_same(tmp_path: Path) -> None:
    model = randomise(transformers.ViTModel(transformers.ViTConfig(**HF_MLP, num_channels=1, qkv_bias=False)))
    model.save_pretrained(tmp_path)
    check(
        tmp_path, model, model.layers, lambda x: model(x).last_hidden_state[:, 0], torch.randn(2, 1, 24, 24)
    )


def test_transformers_deit_without_its_teacher_computes_the_same(tmp_path: Path) -> None:
    model = randomise(
        transformers.DeiTForImageClassification(transformers.DeiTConfig(**HF_MLP, num_labels=7))
    )
    model.save_pretrained(tmp_path)
    loaded = check(tmp_path, model, model.deit.layers, logits(model), torch.randn(2, 3, 24, 24))
    assert loaded.config.prefix == ("class", "distillation")


@pytest.mark.parametrize("gated", [False, True])
def test_transformers_dinov2_classifier_computes_the_same(tmp_path: Path, gated: bool) -> None:
    config = transformers.Dinov2Config(**HF, mlp_ratio=3, num_labels=7, use_swiglu_ffn=gated)
    model = randomise(transformers.Dinov2ForImageClassification(config))
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.dinov2.encoder.layer, logits(model), torch.randn(2, 3, 24, 24))


@pytest.mark.parametrize("kind", ["Dinov2", "Dinov2WithRegisters"])
def test_transformers_dinov2_computes_the_same_at_another_size(tmp_path: Path, kind: str) -> None:
    config = getattr(transformers, f"{kind}Config")(**HF, mlp_ratio=3)
    model = randomise(getattr(transformers, f"{kind}Model")(config))
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.encoder.layer, pooled(model), torch.randn(2, 3, 36, 18))


@pytest.mark.parametrize(("gated", "act"), [(False, "gelu"), (True, "silu")])
def test_transformers_dinov3_computes_the_same(tmp_path: Path, gated: bool, act: str) -> None:
    config = transformers.DINOv3ViTConfig(
        **HF_MLP, num_register_tokens=4, use_gated_mlp=gated, hidden_act=act
    )
    model = randomise(transformers.DINOv3ViTModel(config))
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.model.layer, pooled(model), torch.randn(2, 3, 24, 36))


def test_the_vision_tower_of_a_whole_clip_computes_the_same(tmp_path: Path) -> None:
    text = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "vocab_size": 99,
    }
    config = transformers.CLIPConfig(vision_config=HF_MLP, text_config=text, projection_dim=9)
    model = randomise(transformers.CLIPModel(config))
    model.save_pretrained(tmp_path)

    def embed(pixels: Tensor) -> Tensor:
        return model.visual_projection(model.vision_model(pixels).pooler_output)

    loaded = check(tmp_path, model, model.vision_model.encoder.layers, embed, torch.randn(2, 3, 24, 24))
    assert not loaded.has_classes
    assert loaded.labels is None


def test_transformers_clip_classifier_computes_the_same(tmp_path: Path) -> None:
    model = randomise(
        transformers.CLIPForImageClassification(transformers.CLIPConfig(vision_config=HF_MLP, num_labels=7))
    )
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.vision_model.encoder.layers, logits(model), torch.randn(2, 3, 24, 24))


def test_transformers_siglip_classifier_computes_the_same(tmp_path: Path) -> None:
    model = randomise(
        transformers.SiglipForImageClassification(
            transformers.SiglipConfig(vision_config=HF_MLP, num_labels=7)
        )
    )
    model.save_pretrained(tmp_path)
    check(tmp_path, model, model.vision_model.encoder.layers, logits(model), torch.randn(2, 3, 24, 24))


def test_torchvision_vit_computes_the_same(tmp_path: Path) -> None:
    tv = pytest.importorskip("torchvision.models.vision_transformer")
    model = randomise(
        tv.VisionTransformer(
            image_size=24, patch_size=6, num_layers=3, num_heads=2, hidden_dim=128, mlp_dim=72, num_classes=7
        )
    )
    torch.save(model.state_dict(), tmp_path / "vit.pth")
    loaded = load(tmp_path, device="cpu")
    pixels = torch.randn(2, 3, 24, 24)
    weights: list[Tensor] = []

    class Weights(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.nn.functional.multi_head_attention_forward:
                asked = {**(kwargs or {}), "need_weights": True, "average_attn_weights": False}
                out = func(*args, **asked)
                weights.append(out[1])
                return out
            return func(*args, **(kwargs or {}))

    ours = look_inside(loaded.model, loaded.model.blocks, lambda: loaded.model(pixels))
    with Weights():
        theirs = look_inside(model, model.encoder.layers, lambda: model(pixels))
    theirs[1].attention[:] = weights
    assert_same_inside(ours, theirs)
