"""ViT, DeiT, DINOv2 and DINOv2 with registers as transformers saves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints.families.base import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Checkpoint,
    Inferred,
    Recipe,
    State,
    activation,
    fuse_qkv,
    infer,
    rename,
)
from vit_viz.checkpoints.families.dino import merge_class_position

NAME = "transformers ViT / DeiT / DINOv2"
RECIPE = Recipe(mean=IMAGENET_MEAN, std=IMAGENET_STD, crop_fraction=0.875)

_MARK = "embeddings.patch_embeddings.projection.weight"
RULES = [  # the names of version 4 first, those of version 5 beside them
    (
        r"^(vit|deit|dinov2|dinov2_with_registers|base_model|model)\.(?=embeddings|encoder|layers?\.|layernorm)",
        "",
    ),
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^embeddings\.distillation_token$", "dist_token"),
    (r"^embeddings\.register_tokens$", "reg_token"),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.patch_embeddings\.(projection\.)?", "patch_embed.proj."),
    (r"^(encoder\.|model\.)?layers?\.(\d+)\.", r"blocks.\2."),
    (r"\.attention\.attention\.(q)uery\.", r".attn.\1."),
    (r"\.attention\.attention\.(k)ey\.", r".attn.\1."),
    (r"\.attention\.attention\.(v)alue\.", r".attn.\1."),
    (r"\.attention\.output\.dense\.", ".attn.proj."),
    (r"\.attention\.([qkv])_proj\.", r".attn.\1."),
    (r"\.attention\.o_proj\.", ".attn.proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"^(blocks\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
    (r"\.layernorm_before\.", ".norm1."),
    (r"\.layernorm_after\.", ".norm2."),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
    (r"\.mlp\.weights_in\.", ".mlp.fc1."),
    (r"\.mlp\.weights_out\.", ".mlp.fc2."),
    (r"^layernorm\.", "norm."),
    (r"^(cls_)?classifier\.", "head."),
    (r"^distillation_classifier\.", "head_dist."),
]
_GATED = [
    (r"\.mlp\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.mlp\.up_proj\.", ".mlp.fc1_x."),
    (r"\.mlp\.down_proj\.", ".mlp.fc2."),
]
_DROPPED = [r"((vit|deit|dinov2)\.)?pooler\.", r"(\w+\.)?embeddings\.mask_token$", r"decoder\."]


def matches(checkpoint: Checkpoint) -> bool:
    """A patch embedding under transformers' name, and a class token."""
    return any(
        name.removesuffix(_MARK).count(".") <= 1 for name in checkpoint.state if name.endswith(_MARK)
    ) and any(name.endswith("embeddings.cls_token") for name in checkpoint.state)


def convert(checkpoint: Checkpoint) -> State:
    """timm's names, with q, k and v joined."""
    return merge_class_position(fuse_qkv(rename(checkpoint.state, [*RULES, *_GATED], drop=_DROPPED)))


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From config.json where there is one, else from the shapes."""
    settings = checkpoint.config
    second = "blocks.0.ls1.gamma" in state
    kind = str(settings.get("model_type") or ("dinov2" if second else "vit"))
    known = common(settings, default_eps=1e-6 if kind.startswith("dinov2") else 1e-12)
    if "blocks.0.mlp.fc1_g.weight" not in state and not _packed(state):
        known["mlp"] = activation(settings.get("hidden_act"))
    known["resample"] = "dinov2_reg" if "reg_token" in state else "transformers"
    return infer(state, **known)


def common(settings: Mapping[str, Any], *, default_eps: float) -> dict[str, Any]:
    """What every config.json of transformers says under the same names."""
    return {
        "img_size": settings.get("image_size"),
        "num_heads": settings.get("num_attention_heads"),
        "norm_eps": settings.get("layer_norm_eps", default_eps),
    }


def _packed(state: State) -> bool:
    fc1, fc2 = (state.get(f"blocks.0.mlp.{name}.weight") for name in ("fc1", "fc2"))
    return fc1 is not None and fc2 is not None and fc1.shape[0] == 2 * fc2.shape[-1]
