"""Which Vision Transformers of transformers load into our model, and compute the same: a tiny random one of each family.

Run by `python -m benchmarks.architectures`; the table of families in docs/MODELS.md is compared with FAMILIES by a test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import tests.conftest  # noqa: F401 - lets transformers import beside a CPU build of torch
from benchmarks.watching import Outcome, Seen, difference, randomised
from vit_viz.checkpoints import load
from vit_viz.errors import UnknownFamily

SIZE, PATCH = 24, 6
BASE = {
    "hidden_size": 40,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "image_size": SIZE,
    "patch_size": PATCH,
}
WITH_MLP = {**BASE, "intermediate_size": 120}
SIDES = {**WITH_MLP, "image_size": [SIZE, SIZE], "patch_size": [PATCH, PATCH]}
DENSE = {"fusion_hidden_size": 8, "neck_hidden_sizes": [8] * 4}

Read = Callable[[nn.Module, Tensor], Tensor]


@dataclass(frozen=True)
class Family:
    """A family as docs/MODELS.md calls it, and how a tiny model of it is made and read.

    Args:
        make: from the module transformers to a model with random weights.
        blocks: where its blocks are, as attributes; "" for a family that is refused.
        read: what our model's output has to equal.
    """

    name: str
    make: Callable[[Any], nn.Module]
    blocks: str = ""
    read: Read | None = None


def _logits(model: nn.Module, pixels: Tensor) -> Tensor:
    return model(pixels).logits


def _pooled(model: nn.Module, pixels: Tensor) -> Tensor:
    return model(pixels).pooler_output


def _class_token(model: nn.Module, pixels: Tensor) -> Tensor:
    return model(pixels).last_hidden_state[:, 0]


def _mean_of_patches(model: nn.Module, pixels: Tensor) -> Tensor:
    return model(pixels).last_hidden_state[:, 1:].mean(dim=1)


def _unshuffled(model: nn.Module, pixels: Tensor) -> Tensor:
    order = torch.arange((SIZE // PATCH) ** 2, dtype=torch.float32)  # the noise by which it would shuffle
    return model(pixels, noise=order.expand(len(pixels), -1)).last_hidden_state[:, 0]


def _depth_anything(library: Any) -> nn.Module:
    backbone = library.Dinov2Config(
        **BASE, mlp_ratio=3, out_indices=[3], reshape_hidden_states=False, apply_layernorm=True
    )
    sizes = {"reassemble_hidden_size": 40, "neck_hidden_sizes": [8], "reassemble_factors": [1]}
    return library.DepthAnythingForDepthEstimation(
        library.DepthAnythingConfig(
            backbone_config=backbone, patch_size=PATCH, fusion_hidden_size=8, head_hidden_size=8, **sizes
        )
    )


FAMILIES: tuple[Family, ...] = (
    Family(
        "ViT",
        lambda t: t.ViTForImageClassification(t.ViTConfig(**WITH_MLP, num_labels=7)),
        "vit.layers",
        _logits,
    ),
    Family(
        "DeiT",
        lambda t: t.DeiTForImageClassificationWithTeacher(t.DeiTConfig(**WITH_MLP, num_labels=7)),
        "deit.layers",
        _logits,
    ),
    Family(
        "ViT-MSN",
        lambda t: t.ViTMSNForImageClassification(t.ViTMSNConfig(**WITH_MLP, num_labels=7)),
        "vit.layers",
        _logits,
    ),
    Family(
        "ViT-MAE",
        lambda t: t.ViTMAEModel(t.ViTMAEConfig(**WITH_MLP, mask_ratio=0.0)),
        "layers",
        _unshuffled,
    ),
    Family(
        "I-JEPA",
        lambda t: t.IJepaForImageClassification(t.IJepaConfig(**WITH_MLP, num_labels=7)),
        "ijepa.layers",
        _logits,
    ),
    Family("DINOv2", lambda t: t.Dinov2Model(t.Dinov2Config(**BASE, mlp_ratio=3)), "encoder.layer", _pooled),
    Family(
        "DINOv2 with registers",
        lambda t: t.Dinov2WithRegistersModel(t.Dinov2WithRegistersConfig(**BASE, mlp_ratio=3)),
        "encoder.layer",
        _pooled,
    ),
    Family(
        "DINOv3",
        lambda t: t.DINOv3ViTModel(t.DINOv3ViTConfig(**WITH_MLP, num_register_tokens=4)),
        "model.layer",
        _pooled,
    ),
    Family(
        "DINOv3 without registers",
        lambda t: t.DINOv3ViTModel(t.DINOv3ViTConfig(**WITH_MLP, num_register_tokens=0)),
        "model.layer",
        _pooled,
    ),
    Family(
        "CLIP",
        lambda t: t.CLIPVisionModelWithProjection(t.CLIPVisionConfig(**WITH_MLP, projection_dim=9)),
        "vision_model.encoder.layers",
        lambda model, pixels: model(pixels).image_embeds,
    ),
    Family(
        "SigLIP", lambda t: t.SiglipVisionModel(t.SiglipVisionConfig(**WITH_MLP)), "encoder.layers", _pooled
    ),
    Family(
        "BLIP", lambda t: t.BlipVisionModel(t.BlipVisionConfig(**WITH_MLP)), "encoder.layers", _class_token
    ),
    Family(
        "InternViT-300M",
        lambda t: t.InternVLVisionModel(t.InternVLVisionConfig(**SIDES, attention_bias=True)),
        "encoder.layer",
        _mean_of_patches,
    ),
    Family(
        "DPT",
        lambda t: t.DPTForDepthEstimation(
            t.DPTConfig(**WITH_MLP, **DENSE, backbone_out_indices=[0, 1, 2, 2])
        ),
        "dpt.encoder.layer",
        lambda model, pixels: model.dpt(pixels).last_hidden_state[:, 0],
    ),
    Family(
        "Depth Anything",
        _depth_anything,
        "backbone.encoder.layer",
        lambda model, pixels: model.backbone(pixels).feature_maps[-1][:, 0],
    ),
    Family(
        "BEiT",
        lambda t: t.BeitForImageClassification(
            t.BeitConfig(**WITH_MLP, use_relative_position_bias=True, num_labels=7)
        ),
        "beit.layers",
        _logits,
    ),
    Family(
        "data2vec-vision",
        lambda t: t.Data2VecVisionForImageClassification(
            t.Data2VecVisionConfig(**WITH_MLP, use_relative_position_bias=True, num_labels=7)
        ),
        "data2vec_vision.encoder.layer",
        _logits,
    ),
    Family(
        "RADIO",
        lambda t: t.RadioModel(
            t.RadioConfig(
                **BASE,
                mlp_ratio=3.0,
                max_img_size=36,
                num_registers=2,
                norm_mean=(0.0,) * 3,
                norm_std=(1.0,) * 3,
            )
        ),
        "encoder.layer",
        lambda model, pixels: model(pixels).summary,
    ),
    Family(
        "YOLOS",
        lambda t: t.YolosForObjectDetection(
            t.YolosConfig(**{**WITH_MLP, "image_size": [SIZE, SIZE]}, num_detection_tokens=3)
        ),
    ),
    Family(
        "SigLIP 2 NaFlex",
        lambda t: t.Siglip2VisionModel(
            t.Siglip2VisionConfig(**{k: v for k, v in WITH_MLP.items() if k != "image_size"}, num_patches=16)
        ),
    ),
    Family(
        "InternViT-6B",
        lambda t: t.InternVLVisionModel(
            t.InternVLVisionConfig(**SIDES, use_qk_norm=True, norm_type="rms_norm")
        ),
    ),
)


def loading() -> list[str]:
    """Names of the families that have to load."""
    return [family.name for family in FAMILIES if family.read is not None]


def refused() -> list[str]:
    """Names of the families that have to be refused."""
    return [family.name for family in FAMILIES if family.read is None]


def outcomes() -> Iterator[Outcome]:
    """What becomes of each family."""
    for family in FAMILIES:
        yield check(family)


def check(family: Family) -> Outcome:
    """Save a tiny model as transformers does, load it, and compare logits or features, each block and each attention."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        reference = randomised(family.make(transformers))
        reference.save_pretrained(folder)  # type: ignore[operator]
        try:
            model = load(Path(folder), device="cpu").model
        except UnknownFamily as refusal:
            return Outcome(
                family.name, "transformers", "refused", str(refusal).replace(Path(folder).name, "it")
            )
        except Exception as problem:  # the table is about what happens
            return Outcome(family.name, "transformers", "fails", f"{type(problem).__name__}: {problem}")
        if family.read is None:
            return Outcome(family.name, "transformers", "fails", "loads, but should have been refused")
        error = difference(*_inside(family, model, reference))
    result = "loads" if error <= 1e-5 else "fails"
    return Outcome(family.name, "transformers", result, f"differs by {error:.1e}")


def _inside(family: Family, model: nn.Module, reference: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    pixels = torch.randn(2, 3, SIZE, SIZE)
    assert family.read is not None
    theirs = reduce(getattr, family.blocks.split("."), reference)
    with Seen(model.blocks) as ours_seen:
        ours = model(pixels)
    with Seen(theirs) as theirs_seen:
        read = family.read(reference, pixels)
    count = len(theirs_seen.blocks)  # SigLIP's pool is an nn.MultiheadAttention there; the output compares it
    return (
        [ours, *ours_seen.blocks, *ours_seen.attention[:count]],
        [read, *theirs_seen.blocks, *theirs_seen.attention[:count]],
    )
