"""ViT, DeiT, MSN, I-JEPA, DINOv2 and InternViT as transformers saves them, and the backbones of DPT and Depth Anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints.families.base import (
    IMAGENET,
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

NAME = "transformers ViT / DeiT / DINOv2 / I-JEPA / InternViT"
RECIPE = Recipe(*IMAGENET, crop_fraction=0.875)

_MARK = "embeddings.patch_embeddings.projection.weight"
RULES = [  # the names of version 4 first, those of version 5 beside them
    (
        r"^(vit|deit|ijepa|dpt|backbone|dinov2|dinov2_with_registers|base_model|model)\."
        r"(?=embeddings|encoder|layers?\.|layernorm)",
        "",
    ),
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^embeddings\.distillation_token$", "dist_token"),
    (r"^embeddings\.register_tokens$", "reg_token"),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.patch_embeddings\.(projection\.)?", "patch_embed.proj."),
    (r"^(encoder\.|model\.)?layers?\.(\d+)\.", r"blocks.\2."),
    (r"\.attention\.attention\.([qkv])(?:uery|ey|alue)\.", r".attn.\1."),
    (r"\.attention\.output\.dense\.", ".attn.proj."),
    (r"\.attention\.([qkv])_proj\.", r".attn.\1."),
    (r"\.attention\.(o_proj|projection_layer)\.", ".attn.proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"^(blocks\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
    (r"\.layernorm_before\.", ".norm1."),
    (r"\.layernorm_after\.", ".norm2."),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
    (r"\.lambda_([12])$", r".ls\1.gamma"),
    (r"\.mlp\.weights_in\.", ".mlp.fc1."),
    (r"\.mlp\.weights_out\.", ".mlp.fc2."),
    (r"^layernorm\.", "norm."),
    (r"^(cls_)?classifier\.", "head."),
    (r"^distillation_classifier\.", "head_dist."),
]
GATED = [
    (r"\.mlp\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.mlp\.up_proj\.", ".mlp.fc1_x."),
    (r"\.mlp\.down_proj\.", ".mlp.fc2."),
]
_DROPPED = [r"((vit|deit|dinov2|ijepa|dpt)\.)?pooler\.", r"(\w+\.)?embeddings\.mask_token$", r"decoder\."]
_DENSE = [r"neck\.", r"head\.", r"auxiliary_head\."]  # what turns the tokens of a backbone into a depth map
_EPS = {"vit": 1e-12, "deit": 1e-12, "dpt": 1e-12}  # transformers' default; 1e-6 for all others


def matches(checkpoint: Checkpoint) -> bool:
    """A patch embedding under transformers' name, and a class token; I-JEPA has none, but positions."""
    prefixes = [name.removesuffix(_MARK) for name in checkpoint.state if name.endswith(_MARK)]
    tokens = [f"{prefix}embeddings.cls_token" for prefix in prefixes if prefix.count(".") <= 1]
    positions = [f"{prefix}embeddings.position_embeddings" for prefix in prefixes if prefix in ("", "ijepa.")]
    return any(name in checkpoint.state for name in (*tokens, *positions))


def convert(checkpoint: Checkpoint) -> State:
    """timm's names, with q, k and v joined; of a depth model only the backbone."""
    drop = [*_DROPPED, *_DENSE] if _is_dense(checkpoint) else _DROPPED
    return merge_class_position(fuse_qkv(rename(checkpoint.state, [*RULES, *GATED], drop=drop)))


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From config.json where there is one, else from the shapes."""
    settings = checkpoint.config
    nested = settings.get("backbone_config")
    settings = nested if isinstance(nested, Mapping) and nested else settings
    kind = str(settings.get("model_type") or ("dinov2" if "blocks.0.ls1.gamma" in state else "vit"))
    parameters = common(settings, default_eps=_EPS.get(kind, 1e-6))
    if "blocks.0.mlp.fc1_g.weight" not in state and not _packed(state):
        parameters["mlp"] = activation(settings.get("hidden_act"))
    parameters["resample"] = "dinov2_reg" if "reg_token" in state else "transformers"
    if kind == "internvl_vision" and "norm.weight" not in state:  # transformers: use_mean_pooling
        parameters["pooling"] = "mean"
    return infer(state, **parameters, assumed=(_BACKBONE,) if _is_dense(checkpoint) else ())


def common(settings: Mapping[str, Any], *, default_eps: float) -> dict[str, Any]:
    """What every config.json of transformers says under the same names."""
    return {
        "img_size": settings.get("image_size"),
        "num_heads": settings.get("num_attention_heads"),
        "norm_eps": settings.get("layer_norm_eps", default_eps),
    }


_BACKBONE = "only the backbone: what turns its tokens into a dense prediction is left out"


def _is_dense(checkpoint: Checkpoint) -> bool:
    return any(name.startswith("neck.") for name in checkpoint.state)


def _packed(state: State) -> bool:
    fc1, fc2 = (state.get(f"blocks.0.mlp.{name}.weight") for name in ("fc1", "fc2"))
    return fc1 is not None and fc2 is not None and fc1.shape[0] == 2 * fc2.shape[-1]
