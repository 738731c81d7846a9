"""The model against timm's, and by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.comparing import assert_same
from tests.model.inside import TINY, assert_same_inside, look_inside, randomise
from vit_viz.errors import ParameterError
from vit_viz.model import VisionTransformer, ViTConfig, linear
from vit_viz.model.linear import Linear, PatchConv2d, forced_kernel, use_fastest_linear

pytestmark = pytest.mark.numbers

timm_vit = pytest.importorskip("timm.models.vision_transformer", reason="timm is the oracle of these tests")
layers = pytest.importorskip("timm.layers")

VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # name: (timm's extra arguments, how ours says the same)
    "plain": ({}, {}),
    "no prefix, mean": ({"class_token": False, "global_pool": "avg"},) * 2,
    "registers": ({"reg_tokens": 4},) * 2,
    "registers without positions": ({"reg_tokens": 4, "no_embed_class": True},) * 2,
    "mean of patches, norm before": ({"global_pool": "avg", "fc_norm": False},) * 2,
    "mean with prefix": (
        {"global_pool": "avg", "pool_include_prefix": True},
        {"global_pool": "avg", "pool_prefix": True},
    ),
    "attention pooling": ({"global_pool": "map", "class_token": False, "fc_norm": False},) * 2,
    "no positions": ({"pos_embed": "none"}, {"position": "none"}),
    "no biases": (
        {"qkv_bias": False, "proj_bias": False},
        {"qkv_bias": False, "proj_bias": False, "mlp_bias": False},
    ),
    "query and key norms": ({"qk_norm": True},) * 2,
    "inner norms": (
        {"scale_attn_norm": True, "scale_mlp_norm": True},
        {"attn_norm": True, "mlp_norm": True},
    ),
    "layer scale": ({"init_values": 0.1},) * 2,
    "clip": ({"pre_norm": True, "act_layer": "quick_gelu"}, {"pre_norm": True, "mlp": "quick_gelu"}),
    "tanh gelu": ({"act_layer": "gelu_tanh"}, {"mlp": "gelu_tanh"}),
    "swiglu": ({"mlp_layer": layers.SwiGLU, "act_layer": nn.SiLU}, {"mlp": "swiglu"}),
    "packed swiglu": ({"mlp_layer": layers.SwiGLUPacked, "act_layer": nn.SiLU}, {"mlp": "swiglu_packed"}),
    "swiglu without biases": (
        {"mlp_layer": layers.SwiGLU, "act_layer": nn.SiLU, "proj_bias": False},
        {"mlp": "swiglu", "proj_bias": False, "mlp_bias": False},
    ),
    "packed swiglu without biases": (
        {"mlp_layer": layers.SwiGLUPacked, "act_layer": nn.SiLU, "proj_bias": False},
        {"mlp": "swiglu_packed", "proj_bias": False, "mlp_bias": False},
    ),
    "swiglu with an inner norm": (
        {"mlp_layer": layers.SwiGLU, "act_layer": nn.SiLU, "scale_mlp_norm": True},
        {"mlp": "swiglu", "mlp_norm": True},
    ),
    "packed swiglu with an inner norm": (
        {"mlp_layer": layers.SwiGLUPacked, "act_layer": nn.SiLU, "scale_mlp_norm": True},
        {"mlp": "swiglu_packed", "mlp_norm": True},
    ),
    "rms norm": (
        {
            "norm_layer": partial(layers.RmsNorm, eps=1e-5),
            "embed_norm_layer": partial(layers.RmsNorm, eps=1e-5),
        },
        {"norm": "rms", "norm_eps": 1e-5, "patch_norm": True},
    ),
    "no final norm": ({"final_norm": False},) * 2,
    "no head": ({"num_classes": 0},) * 2,
    "one channel": ({"in_chans": 1},) * 2,
}


def pair(theirs: dict[str, Any], ours: dict[str, Any]) -> tuple[nn.Module, VisionTransformer]:
    reference = randomise(timm_vit.VisionTransformer(**{**TINY, **theirs}))
    model = VisionTransformer(ViTConfig.from_dict({**TINY, **ours})).eval()
    model.load_state_dict(reference.state_dict(), strict=True)
    return reference, model


@pytest.mark.parametrize("name", VARIANTS)
def test_logits_blocks_and_attention_equal_timms(name: str) -> None:
    theirs, ours = VARIANTS[name]
    assert_same_as(timm_vit.VisionTransformer(**{**TINY, **theirs}), ours)


def assert_same_as(reference: nn.Module, choices: dict[str, Any]) -> None:
    reference = randomise(reference)
    model = VisionTransformer(ViTConfig.from_dict({**TINY, **choices})).eval()
    model.load_state_dict(reference.state_dict(), strict=True)
    pixels = torch.randn(2, model.config.in_chans, 24, 42)
    ours = look_inside(model, model.blocks, lambda: model(pixels))
    theirs = look_inside(reference, reference.blocks, lambda: reference(pixels))
    assert_same_inside(ours, theirs)
    with torch.no_grad():  # where nobody looks, the last block may do less
        assert_same(model(pixels), theirs[0])


def test_another_input_size_equals_timms_dynamic_size() -> None:
    reference, model = pair({"dynamic_img_size": True}, {})
    pixels = torch.randn(2, 3, 48, 28)
    with torch.no_grad():
        assert_same(model(pixels), reference(pixels))


def test_padding_equals_timms_dynamic_padding() -> None:
    reference, model = pair({"dynamic_img_size": True, "dynamic_img_pad": True}, {"pad": True})
    pixels = torch.randn(2, 3, 25, 41)
    with torch.no_grad():
        assert_same(model(pixels), reference(pixels))
    assert model.layout(25, 41).grid == (5, 6)


@pytest.mark.parametrize("patch_embed", ["conv", "unfold"])
def test_dropping_what_no_patch_covers_equals_timms_convolution(patch_embed: str) -> None:
    reference, model = pair({"img_size": (29, 47)}, {"img_size": (29, 47), "drop_remainder": True})
    if patch_embed == "unfold":
        state = {**model.state_dict(), "patch_embed.proj.weight": model.patch_embed.proj.weight.flatten(1)}
        model = VisionTransformer(replace(model.config, patch_embed="unfold")).eval()
        model.load_state_dict(state, strict=True)
    pixels = torch.randn(2, 3, 29, 47)
    with torch.no_grad():
        ours, theirs = model(pixels), reference(pixels)
    assert float((ours - theirs).abs().max()) <= 1e-5 * float(theirs.abs().max())
    assert model.layout(29, 47).grid == model.config.grid == (4, 6)


def test_a_remainder_is_refused_unless_the_configuration_says_what_becomes_of_it() -> None:
    model = VisionTransformer(ViTConfig.from_dict(TINY))
    words = "29 x 42 pixels cannot be cut into patches of 6 x 7: .* pad=True or drop_remainder=True"
    with pytest.raises(ParameterError, match=words):
        model(torch.randn(1, 3, 29, 42))
    with pytest.raises(ParameterError, match="filled up or cut, not both"):
        replace(model.config, pad=True, drop_remainder=True)


def test_distilled_model_equals_timms() -> None:
    deit = pytest.importorskip("timm.models.deit")
    assert_same_as(deit.VisionTransformerDistilled(**TINY), {"dist_token": True, "dist_head": True})


def test_unfold_and_convolution_give_the_same_tokens() -> None:
    config = ViTConfig.from_dict({**TINY, "in_chans": 1})
    conv = VisionTransformer(config).eval()
    unfold = VisionTransformer(ViTConfig.from_dict({**config.to_dict(), "patch_embed": "unfold"})).eval()
    state = conv.state_dict()
    state["patch_embed.proj.weight"] = state["patch_embed.proj.weight"].flatten(1)
    unfold.load_state_dict(state, strict=True)
    pixels = torch.randn(2, 1, 24, 42)
    with torch.no_grad():
        assert_same(unfold(pixels), conv(pixels))


def test_patches_are_cut_row_by_row_with_channels_first() -> None:
    model = VisionTransformer(ViTConfig.from_dict({**TINY, "in_chans": 2}))
    pixels = torch.arange(2 * 24 * 42, dtype=torch.float32).reshape(1, 2, 24, 42)
    patches = model.patch_embed.patches(pixels)
    assert patches.shape == (1, 24, 2 * 6 * 7)
    assert_same(patches[0, 1 * 6 + 4], pixels[0, :, 6:12, 28:35].flatten(), relative=1e-6)


def test_the_wrong_number_of_channels_is_refused_in_words() -> None:
    model = VisionTransformer(ViTConfig.from_dict(TINY))
    with pytest.raises(ParameterError, match=r"\[batch, 3, height, width\], not \[1, 1, 24, 42\]"):
        model(torch.zeros(1, 1, 24, 42))


@pytest.mark.parametrize(("registers", "distilled"), [(0, False), (0, True), (4, False)])
def test_the_layout_names_every_prefix_token_in_order(registers: int, distilled: bool) -> None:
    values = {**TINY, "reg_tokens": registers, "dist_token": distilled}
    model = VisionTransformer(ViTConfig.from_dict(values))
    layout = model.layout(48, 28)
    assert layout.grid == (8, 4)
    assert layout.prefix == (
        "class",
        *["distillation"] * distilled,
        *[f"register {i}" for i in range(registers)],
    )
    assert model.tokens(torch.zeros(1, 3, 48, 28)).shape == (1, layout.num_tokens, 40)


def test_prefix_tokens_come_first_and_get_their_own_positions() -> None:
    model = VisionTransformer(ViTConfig.from_dict({**TINY, "reg_tokens": 1}))
    with torch.no_grad():
        tokens = model.tokens(torch.zeros(2, 3, 24, 42))
        assert_same(tokens[1, 0], model.cls_token[0, 0] + model.pos_embed[0, 0])
        bias = model.patch_embed.proj.bias
        assert_same(tokens[0, 7], bias + model.pos_embed[0, 7])


def test_scale_changes_the_attention_it_names() -> None:
    model = VisionTransformer(ViTConfig.from_dict({**TINY, "scale": 1e-9})).eval()
    _, inside = look_inside(model, model.blocks, lambda: model(torch.randn(1, 3, 24, 42)))
    assert_same(inside.attention[0], torch.full((1, 5, 25, 25), 1 / 25))


def test_restarting_from_a_block_continues_the_same_forward() -> None:
    model = VisionTransformer(ViTConfig.from_dict({**TINY, "position": "rotary"})).eval()
    pixels = torch.randn(1, 3, 24, 42)
    logits, inside = look_inside(model, model.blocks, lambda: model(pixels))
    with torch.no_grad():
        again = model.classify(model.run_blocks(inside.blocks[0], (4, 6), start=1))
    assert_same(again, logits)


def test_the_faster_kernel_is_chosen_once_for_all_layers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = VisionTransformer(ViTConfig.from_dict(TINY))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    linear._choice.cache_clear()
    with forced_kernel("auto"):
        chosen = use_fastest_linear(model)
    linear._choice.cache_clear()
    assert {layer.use_onednn for layer in model.modules() if isinstance(layer, Linear)} == {chosen}


def test_a_forced_kernel_computes_every_linear_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = VisionTransformer(ViTConfig.from_dict(TINY)).eval(), []
    layers = 4 * 3 + 1  # qkv, proj, fc1, fc2 in each of three blocks, and the head
    computed = linear._onednn
    monkeypatch.setattr(linear, "_onednn", lambda *operands: (calls.append(1), computed(*operands))[1])
    with torch.no_grad():
        for kernel, expected in (("onednn", layers), ("torch", 0), ("auto", 0)):
            calls.clear()
            with forced_kernel(kernel):
                model(torch.randn(1, 3, 24, 42))
            assert len(calls) == expected


def test_a_forced_kernel_is_not_timed() -> None:
    model = VisionTransformer(ViTConfig.from_dict(TINY))
    for kernel in ("torch", "onednn"):
        with forced_kernel(kernel):
            assert use_fastest_linear(model) is (kernel == "onednn")


@pytest.mark.parametrize("bias", [True, False])
def test_the_convolution_as_a_product_of_matrices_is_the_convolution(bias):
    """A GPU takes it, since its convolutions round to TF32; the last pixels that fill no patch are left out by both."""
    torch.manual_seed(5)
    convolution = PatchConv2d(3, 7, kernel_size=(4, 6), stride=(4, 6), bias=bias)
    pixels = torch.randn(2, 3, 14, 31)
    assert_same(convolution.as_product(pixels), convolution(pixels))
    assert convolution.as_product(pixels).shape == (2, 7, 3, 5)
    assert isinstance(VisionTransformer(ViTConfig()).patch_embed.proj, PatchConv2d)
