"""The vision towers of CLIP, SigLIP and BLIP as transformers saves them, alone or with the text tower beside them.

InternViT, as its authors publish it, has CLIP's names with timm's blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints import quick_gelu
from vit_viz.checkpoints.families.base import (
    CLIP,
    Checkpoint,
    Inferred,
    Recipe,
    State,
    activation,
    fuse_qkv,
    infer,
    rename,
)
from vit_viz.checkpoints.families.transformers_vit import common
from vit_viz.lazy import Tensor

NAME = "transformers CLIP / SigLIP / BLIP"
RECIPE = Recipe(*CLIP, crop_fraction=1.0)

_MARK = "embeddings.patch_embedding.weight"
RULES = [
    (r"^vision_model\.", ""),
    (r"^embeddings\.class_embedding$", "cls_token"),
    (r"^embeddings\.patch_embedding\.", "patch_embed.proj."),
    (r"^embeddings\.position_embedding(\.weight)?$", "pos_embed"),
    (r"^encoder\.layers\.(\d+)\.", r"blocks.\1."),
    (r"^(blocks\.\d+)\.layer_norm([12])\.", r"\1.norm\2."),
    (r"\.self_attn\.([qkv])_proj\.", r".attn.\1."),
    (r"\.self_attn\.qkv\.", ".attn.qkv."),
    (r"\.self_attn\.(out_proj|projection)\.", ".attn.proj."),
    (r"\.ls([12])$", r".ls\1.gamma"),
    (r"^pre_layrnorm\.", "norm_pre."),
    (r"^post_layernorm\.", "norm."),
    (r"^head\.probe$", "attn_pool.latent"),
    (r"^head\.attention\.in_proj_", "attn_pool.in_proj."),
    (r"^head\.attention\.out_proj\.", "attn_pool.proj."),
    (r"^head\.layernorm\.", "attn_pool.norm."),
    (r"^head\.mlp\.", "attn_pool.mlp."),
    (r"^(visual_projection|vision_proj|classifier)\.", "head."),
]
_TEXT = [
    r"text_model\.",
    r"text_(projection|encoder|decoder|proj)\.",
    r"itm_head\.",
    r"logit_(scale|bias)$",
    r"(vision_model\.)?embeddings\.position_ids$",
]


def matches(checkpoint: Checkpoint) -> bool:
    """A patch embedding under CLIP's name."""
    return f"vision_model.{_MARK}" in checkpoint.state or _MARK in checkpoint.state


def convert(checkpoint: Checkpoint) -> State:
    """timm's names; the text tower is left out, and tokens and tables get the axis for the batch."""
    drop = list(_TEXT)
    if "classifier.weight" in checkpoint.state:  # a fine-tuned classifier averages the patches itself
        clip = any(name.endswith("class_embedding") for name in checkpoint.state)
        drop += [r"(vision_model\.)?post_layernorm\."] if clip else [r"(vision_model\.)?head\."]
    state = fuse_qkv(rename(checkpoint.state, RULES, drop=drop))
    if (token := state.get("cls_token")) is not None and token.ndim == 1:
        state["cls_token"] = token[None, None]
    if (table := state.get("pos_embed")) is not None and table.ndim == 2:
        state["pos_embed"] = table[None]
    if "visual_projection.weight" in checkpoint.state and _kind(checkpoint.state, state) == "blip":
        # BlipModel norms twice
        state |= {f"fc_norm.{kind}": state[f"norm.{kind}"] for kind in ("weight", "bias")}
    for kind in ("weight", "bias"):
        joined = state.pop(f"attn_pool.in_proj.{kind}", None)
        if joined is not None:
            third = joined.shape[0] // 3
            state[f"attn_pool.q.{kind}"], state[f"attn_pool.kv.{kind}"] = joined[:third], joined[third:]
    return state


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From config.json (its vision_config, where there are two towers), else from the shapes."""
    settings = checkpoint.config
    tower = settings.get("vision_config")
    vision = tower if isinstance(tower, Mapping) else settings
    kind = _kind(checkpoint.state, state)
    eps, act = _DEFAULTS[kind]
    parameters: dict[str, Any] = common(vision, default_eps=eps)
    parameters["mlp"] = activation(vision.get("hidden_act"), act)
    native = kind == "clip" and quick_gelu.hub_weights_are(checkpoint.name, settings)
    is_replaced = native and parameters["mlp"] != "quick_gelu"
    if native:
        parameters["mlp"] = "quick_gelu"
    if "classifier.weight" in checkpoint.state:
        parameters["pooling"] = "mean"
    elif "cls_token" in state:
        parameters |= {"projection": "head.weight" in state, "pooling": "class"}
    return infer(
        state, resample="transformers", **parameters, assumed=(quick_gelu.ASSUMED,) if is_replaced else ()
    )


_DEFAULTS = {  # epsilon of the norms and activation, where the configuration does not say
    "clip": (1e-5, "quick_gelu"),
    "siglip": (1e-6, "gelu_pytorch_tanh"),
    "blip": (1e-5, "gelu"),
    "internvit": (1e-6, "gelu"),
}


def _kind(own: Mapping[str, Tensor], state: State) -> str:
    """Which of the models with these names it is."""
    if any(name.endswith("encoder.layers.0.self_attn.qkv.weight") for name in own):
        return "blip"
    if "cls_token" not in state:
        return "siglip"
    return "internvit" if "blocks.0.ls1.gamma" in state else "clip"
