"""The ways in which published Vision Transformers name their parameters; one module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints.architectures import architecture
from vit_viz.checkpoints.families import (
    dino,
    dinov3,
    timm,
    torchvision,
    transformers_clip,
    transformers_dinov3,
    transformers_vit,
)
from vit_viz.checkpoints.families.base import Checkpoint, Family
from vit_viz.errors import UnknownFamily

FAMILIES: tuple[Family, ...] = (
    dino,  # before timm, whose block names it shares
    dinov3,
    timm,
    transformers_vit,
    transformers_dinov3,
    transformers_clip,
    torchvision,
)

_STRANGERS = (  # part of a parameter's name -> what has such parameters
    ("relative_position_bias_table", "a windowed or relative-position transformer (Swin, BEiT)"),
    ("relative_position_bias", "a windowed or relative-position transformer (Swin, BEiT)"),
    ("layer1.0.conv1.weight", "a ResNet"),
    ("downsample_layers.", "a ConvNeXt"),
    ("stages.0.blocks.0.conv_dw", "a ConvNeXt"),
    ("blocks.0.in_proj.weight", "a ViT with parallel blocks"),
    ("blocks.0.attns.0.", "a ViT with parallel blocks"),
    ("blocks.0.attn.lambda_q1", "a ViT with differential attention"),
    ("lora_", "a LoRA adapter"),
    ("transformer.wte.", "a language model"),
    ("model.embed_tokens.", "a language model"),
)


def family_of(checkpoint: Checkpoint) -> Family:
    """The family whose parameter names these are.

    Raises:
        UnknownFamily: none; the message says what it looks like instead, and the first names.
    """
    for family in FAMILIES:
        if family.matches(checkpoint):
            return family
    likeness = next(
        (what for part, what in _STRANGERS if any(part in name for name in checkpoint.state)), None
    )
    names = ", ".join(sorted(checkpoint.state)[:4])
    raise UnknownFamily(
        f"This is not a Vision Transformer that we know{f': it looks like {likeness}' if likeness else ''}. "
        f"Its {len(checkpoint.state)} parameters begin with {names}. Known are: {', '.join(family.NAME for family in FAMILIES)}."
    )


_KINDS = (  # model_type of transformers
    "vit",
    "deit",
    "dinov2",
    "dinov2_with_registers",
    "dinov3_vit",
    "clip",
    "clip_vision_model",
    "siglip",
    "siglip_vision_model",
    "vit_mae",
)


def refuse_strangers(settings: Mapping[str, Any], name: str) -> None:
    """Refuse by its config.json what is no Vision Transformer that we know; a file without a word on it may pass.

    Raises:
        UnknownFamily: the architecture or the model type is another one.
    """
    kind, timm_name = settings.get("model_type"), settings.get("architecture")
    if isinstance(kind, str) and kind not in _KINDS:
        raise UnknownFamily(
            f"{name!r} is a {kind[:40]!r} model, not a Vision Transformer that we know: {', '.join(_KINDS)}."
        )
    if isinstance(timm_name, str):
        known = architecture(timm_name)
        if known is None and kind is None:
            raise UnknownFamily(
                f"{name!r} is timm's {timm_name[:60]!r}, which is not one of the Vision Transformers that we know."
            )
        if known and "refused" in known:
            raise UnknownFamily(
                f"{name!r} is not a plain Vision Transformer: its blocks have {known['refused']}, which we do not draw."
            )
