"""Models of transformers and torchvision, tiny: their own eager attention, as they return it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.cases.truth import (
    REFUSED,
    RIGHT,
    SOUND,
    TOLD,
    Case,
    Flow,
    Oracle,
    Truth,
    first_block,
    nothing,
    probed_places,
    raster,
)

SIZES = {
    "hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5, "intermediate_size": 56, "patch_size": 16,
}  # fmt: skip
WIDE = {**SIZES, "image_size": (48, 80)}
SQUARE = {**SIZES, "image_size": 64}
LABELS = {"num_labels": 7}
STAGES = {
    "hidden_sizes": [8, 16, 24, 40],
    "depths": [1, 1, 1, 2],
    "num_attention_heads": [1, 2, 3, 5],
    **LABELS,
}
PROVEN = frozenset({RIGHT})
NOT_PROVEN = frozenset({TOLD, REFUSED})


@dataclass(frozen=True)
class Plain:
    """A model of one attention over all patches per block.

    Args:
        model, config: names of their classes; the name of the configuration's class without "Config" is the table's.
        choices: of the configuration.
        has_class: whether token 0 is the class token.
        ends: verdicts that are right for it.
        implementations: of attention that it has.
        probe: the part of the first block that is given one vector per token; "" is the block itself.
    """

    model: str
    config: str
    choices: dict[str, Any]
    has_class: bool = True
    ends: frozenset[str] = PROVEN
    implementations: tuple[str, ...] = ("sdpa", "eager")
    probe: str = ""


PLAIN = (
    Plain("ViTForImageClassification", "ViTConfig", WIDE | LABELS),
    Plain("DeiTForImageClassificationWithTeacher", "DeiTConfig", WIDE | LABELS),
    Plain("ViTMSNForImageClassification", "ViTMSNConfig", WIDE | LABELS),
    Plain("IJepaModel", "IJepaConfig", WIDE, has_class=False),
    Plain("BeitForImageClassification", "BeitConfig", SQUARE | LABELS | {"use_relative_position_bias": True}),
    Plain("CLIPVisionModel", "CLIPVisionConfig", SQUARE),
    Plain("CLIPVisionModelWithProjection", "CLIPVisionConfig", SQUARE),
    Plain("SiglipVisionModel", "SiglipVisionConfig", SQUARE, has_class=False),
    Plain("Dinov2ForImageClassification", "Dinov2Config", SQUARE | LABELS | {"mlp_ratio": 2}),
    Plain(
        "Dinov2WithRegistersForImageClassification",
        "Dinov2WithRegistersConfig",
        SQUARE | LABELS | {"mlp_ratio": 2, "num_register_tokens": 3},
    ),
    Plain("DINOv3ViTModel", "DINOv3ViTConfig", SQUARE | {"num_register_tokens": 3}),
    Plain("YolosModel", "YolosConfig", WIDE | {"image_size": [48, 80], "num_detection_tokens": 4}),
    Plain(
        "YolosForObjectDetection", "YolosConfig", WIDE | {"image_size": [48, 80], "num_detection_tokens": 4}
    ),
    Plain("BlipVisionModel", "BlipVisionConfig", SQUARE),
    Plain(
        "InternVLVisionModel",
        "InternVLVisionConfig",
        SQUARE | {"image_size": [64, 64], "patch_size": [16, 16]},
    ),
    Plain("DPTModel", "DPTConfig", SQUARE | {"backbone_out_indices": [0, 1, 2, 2]}, ends=SOUND),
    Plain("MLCDVisionModel", "MLCDVisionConfig", SQUARE),
    Plain("Aimv2VisionModel", "Aimv2VisionConfig", SQUARE, has_class=False, ends=SOUND),
    Plain("PixioModel", "PixioConfig", SQUARE, ends=SOUND),
    Plain("OwlViTVisionModel", "OwlViTVisionConfig", SQUARE),
    Plain(
        "VitDetModel",
        "VitDetConfig",
        SQUARE | {"mlp_ratio": 2},
        has_class=False,
        ends=SOUND,
        implementations=("eager",),
        probe="norm1",
    ),
    Plain(
        "VitPoseBackbone",
        "VitPoseBackboneConfig",
        WIDE | {"image_size": [48, 80], "patch_size": [16, 16], "mlp_ratio": 2},
        has_class=False,
        ends=SOUND,
    ),
    Plain("FlavaImageModel", "FlavaImageConfig", SQUARE),
    Plain("AltCLIPVisionModel", "AltCLIPVisionConfig", SQUARE),
    Plain("ChineseCLIPVisionModel", "ChineseCLIPVisionConfig", SQUARE),
    Plain("GitVisionModel", "GitVisionConfig", SQUARE, implementations=("eager",)),
    Plain("JanusVisionModel", "JanusVisionConfig", SQUARE, has_class=False, ends=SOUND),
)


def cases() -> Iterator[Case]:
    """Plain models with both implementations of attention, then the others."""
    for plain in PLAIN:
        for implementation in plain.implementations:
            yield _plain(plain, implementation)
    yield from _data2vec()
    yield from _mae()
    yield from _others()
    yield Case("torchvision VisionTransformer", _torchvision, torchvision_truth, (64, 64), PROVEN)


def returned(model: Any, pixels: Tensor) -> list[Tensor]:
    """The model's own `output_attentions` with its eager implementation, [1, heads, queries, keys] each."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        return list(model(pixels, output_attentions=True).attentions)


def transformers_truth(
    model: nn.Module, pixels: Tensor, *, grid: tuple[int, int], has_class: bool, probe: str
) -> Truth:
    """Attention as the model returns it, places from the tokens that move."""
    calls = [attention[0] for attention in returned(model, pixels)]
    places = probed_places(model, pixels, grid, _first(model).get_submodule(probe))
    return Truth(calls, grid, places, 0 if has_class else None)


def staged_truth(model: nn.Module, pixels: Tensor, *, grid: tuple[int, int], first: int = 0) -> Truth:
    """A pyramid: some calls are over all patches of their own stage, row by row as feature maps are flattened."""
    attention = returned(model, pixels)
    square = [each[0] for each in attention if each.shape[-1] == each.shape[-2] and len(each) == 1]
    return Truth(
        square, grid, raster(grid, first=first), 0 if first else None, flow="other", blocks=len(attention)
    )


def _first(model: nn.Module) -> nn.Module:
    """The first block of the encoder, also of a model whose heads have as many layers."""
    for name in ("vit", "encoder"):
        part = getattr(model, name, None)
        if isinstance(part, nn.Module):
            return _first(part)
    return first_block(model)


def _make(model: str, config: str, choices: dict[str, Any], implementation: str) -> nn.Module:
    import transformers

    transformers.logging.set_verbosity_error()
    made: Any = getattr(transformers, model)(getattr(transformers, config)(**choices))
    if implementation:
        made.set_attn_implementation(implementation)
    module: nn.Module = made
    return module


def _plain(plain: Plain, implementation: str) -> Case:
    size = plain.choices["image_size"]
    height, width = (size, size) if isinstance(size, int) else size
    oracle = partial(
        transformers_truth, grid=(height // 16, width // 16), has_class=plain.has_class, probe=plain.probe
    )
    build = partial(_make, plain.model, plain.config, plain.choices, implementation)
    return Case(f"transformers {plain.model}, {implementation}", build, oracle, (height, width), plain.ends)


def _case(
    model: str,
    config: str,
    choices: dict[str, Any],
    oracle: Oracle,
    size: tuple[int, int],
    ends: frozenset[str] = NOT_PROVEN,
) -> Case:
    return Case(f"transformers {model}", partial(_make, model, config, choices, ""), oracle, size, ends)


def _data2vec() -> Iterator[Case]:
    """Its `attentions` come back empty in some versions: its dropouts of attention are read instead."""
    choices = SQUARE | LABELS | {"use_shared_relative_position_bias": True}
    for implementation in ("sdpa", "eager"):
        build = partial(
            _make, "Data2VecVisionForImageClassification", "Data2VecVisionConfig", choices, implementation
        )
        yield Case(f"transformers Data2VecVision, {implementation}", build, data2vec_truth, (64, 64), PROVEN)


def data2vec_truth(model: Any, pixels: Tensor) -> Truth:
    """Softmaxes where its eager attention drops out."""
    model = _make_eager(model)
    places = probed_places(model, pixels, (4, 4))
    calls: list[Tensor] = []
    for name, part in model.named_modules():
        if name.endswith("attention.attention.dropout"):
            part.register_forward_pre_hook(lambda _, args: calls.append(args[0][0].clone()))
    with torch.no_grad():
        model(pixels)
    return Truth(calls, (4, 4), places, 0)


def _make_eager(model: Any) -> nn.Module:
    """The same weights in a model that was built with eager attention, since the class of its layers depends on it."""
    config = model.config
    config._attn_implementation = "eager"
    eager: nn.Module = type(model)(config).eval()
    eager.load_state_dict(model.state_dict())
    return eager


def _mae() -> Iterator[Case]:
    """The tokens of ViT-MAE are shuffled, also where none is masked."""
    choices = SQUARE | {"mask_ratio": 0.0}
    decoder = {
        "decoder_hidden_size": 40, "decoder_num_hidden_layers": 2, "decoder_num_attention_heads": 5,
        "decoder_intermediate_size": 56,
    }  # fmt: skip
    yield _case("ViTMAEModel", "ViTMAEConfig", choices, shuffled_truth, (64, 64))
    yield _case("ViTMAEForPreTraining", "ViTMAEConfig", choices | decoder, shuffled_truth, (64, 64))


def shuffled_truth(model: nn.Module, pixels: Tensor) -> Truth:
    """Attention between tokens whose places change from pass to pass."""
    calls = [attention[0] for attention in returned(model, pixels)]
    flow: Flow = "other" if hasattr(model, "decoder") else "chain"
    return Truth(calls, (4, 4), [], 0, flow=flow)


def _others() -> Iterator[Case]:
    """Pyramids, windows, and pixels that are packed before they enter."""
    wide = partial(staged_truth, grid=(2, 3))
    yield _case(
        "SegformerForImageClassification",
        "SegformerConfig",
        STAGES | {"decoder_hidden_size": 16},
        wide,
        (64, 96),
    )
    yield _case("GLPNModel", "GLPNConfig", STAGES | {"num_attention_heads": [1, 2, 4, 5]}, wide, (64, 96))
    pvt = partial(staged_truth, grid=(2, 2), first=1)
    yield _case("PvtForImageClassification", "PvtConfig", STAGES | {"image_size": 64}, pvt, (64, 64))
    yield _case("PvtV2ForImageClassification", "PvtV2Config", STAGES | {"image_size": 64}, nothing, (64, 64))
    swin = {"embed_dim": 20, "depths": [2, 2], "num_heads": [1, 1]} | LABELS
    yield _case(
        "SwinForImageClassification",
        "SwinConfig",
        swin | {"image_size": 56, "window_size": 7},
        nothing,
        (56, 56),
    )
    yield _case(
        "Swinv2ForImageClassification",
        "Swinv2Config",
        swin | {"image_size": 64, "window_size": 8},
        nothing,
        (64, 64),
    )
    levit = {
        "image_size": 64,
        "hidden_sizes": [32, 48, 64],
        "num_attention_heads": [2, 3, 4],
        "depths": [1, 2, 2],
        "key_dim": [8] * 3,
    }
    yield _case("LevitForImageClassification", "LevitConfig", levit, nothing, (64, 64))
    cvt = {"embed_dim": [8, 16, 40], "depth": [1, 2, 3], "num_heads": [1, 2, 5]} | LABELS
    yield _case("CvtForImageClassification", "CvtConfig", cvt, nothing, (64, 64))
    hiera = {
        "image_size": [64, 64],
        "embed_dim": 16,
        "num_heads": [1, 2, 4, 8],
        "depths": [1, 1, 2, 1],
    } | LABELS
    yield _case("HieraForImageClassification", "HieraConfig", hiera, nothing, (64, 64))
    mobile = {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 8, 8, 8, 8, 16]}
    yield _case("MobileViTForImageClassification", "MobileViTConfig", mobile, nothing, (64, 64))
    yield _case(
        "MobileViTV2ForImageClassification", "MobileViTV2Config", {"image_size": 64}, nothing, (64, 64)
    )
    yield _case("SwiftFormerForImageClassification", "SwiftFormerConfig", {}, nothing, (64, 64))
    group = {
        "hidden_size": 40, "depths": [2, 1, 1], "num_attention_heads": 5, "intermediate_size": 56, "image_size": 64,
        "patch_size": 16, "num_group_tokens": [4, 3, 0], "num_output_groups": [4, 3, 0],
    }  # fmt: skip
    yield _case("GroupViTVisionModel", "GroupViTVisionConfig", group, nothing, (64, 64))
    sam = SQUARE | {"mlp_dim": 56, "window_size": 0, "global_attn_indexes": [0, 1, 2], "output_channels": 16}
    yield _case("SamVisionModel", "SamVisionConfig", sam, sam_truth, (64, 64), SOUND)


def sam_truth(model: Any, pixels: Tensor) -> Truth:
    """Weights that its eager attention returns beside its output."""
    eager = _make_eager(model)
    places = probed_places(eager, pixels, (4, 4))
    calls: list[Tensor] = []
    for layer in eager.vision_encoder.layers:  # type: ignore[union-attr]
        layer.attn.register_forward_hook(
            lambda _, __, output: calls.append(output[1].reshape(-1, *output[1].shape[-2:]).clone())
        )
    with torch.no_grad():
        eager(pixels)
    return Truth(calls, (4, 4), places)


def _torchvision() -> nn.Module:
    from torchvision.models.vision_transformer import VisionTransformer

    return VisionTransformer(
        image_size=64, patch_size=16, num_layers=3, num_heads=5, hidden_dim=40, mlp_dim=56, num_classes=7
    )


def torchvision_truth(model: Any, pixels: Tensor) -> Truth:
    """Weights that its layers return when they are asked, given what enters each block."""
    calls: list[Tensor] = []

    def look(layer: Any, args: tuple[Tensor, ...]) -> None:
        x = layer.ln_1(args[0])
        calls.append(layer.self_attention(x, x, x, average_attn_weights=False)[1][0])

    for layer in model.encoder.layers:
        layer.register_forward_pre_hook(look)
    with torch.no_grad():
        model(pixels)
    return Truth(calls, (4, 4), raster((4, 4), first=1), 0)
