"""DINO and DINOv2 as their authors published them: timm's block names, with tokens and positions of their own."""

from __future__ import annotations

from vit_viz.checkpoints.families.base import IMAGENET, Checkpoint, Inferred, Recipe, State, infer, rename

NAME = "DINO / DINOv2 (original)"
RECIPE = Recipe(*IMAGENET, crop_fraction=0.875)


def matches(checkpoint: Checkpoint) -> bool:
    """DINOv2 has a mask token and LayerScale; DINO has exactly timm's names, so only its file name or its wrapper identifies it."""
    state = checkpoint.state
    if "backbone.blocks.0.attn.qkv.weight" in state:
        return True
    if "blocks.0.attn.qkv.weight" not in state or "pos_embed" not in state:  # DINOv3 has no position table
        return False
    dinov2 = "mask_token" in state and "blocks.0.ls1.gamma" in state
    return dinov2 or (checkpoint.name.startswith("dino_") and "head.weight" not in state)


def convert(checkpoint: Checkpoint) -> State:
    """Drop what only training needs; merge the class token's position where registers have none, as timm does."""
    state = rename(
        checkpoint.state,
        [
            (r"^backbone\.", ""),
            (r"\.mlp\.w12\.", ".mlp.fc1."),
            (r"\.mlp\.w3\.", ".mlp.fc2."),
            (r"^register_tokens$", "reg_token"),
        ],
        drop=[r"(backbone\.)?mask_token$", r"head\.mlp\.", r"head\.last_layer\."],
    )
    return merge_class_position(state)


def merge_class_position(state: State) -> State:
    """Add the class token's position to the token itself, so that no prefix token has a position (registers have none)."""
    table, token = state.get("pos_embed"), state.get("cls_token")
    if "reg_token" not in state or table is None or token is None:
        return state
    if table.ndim != 3 or token.shape[-1] != table.shape[-1]:
        return state
    return {**state, "cls_token": token + table[:, :1], "pos_embed": table[:, 1:]}


def infer_config(_checkpoint: Checkpoint, state: State) -> Inferred:
    """From the shapes; all published models have heads of 64."""
    second = "blocks.0.ls1.gamma" in state
    resample = ("dinov2_reg" if "reg_token" in state else "dinov2") if second else "dino"
    dim = state["cls_token"].shape[-1] if "cls_token" in state else 0
    return infer(state, num_heads=dim // 64 if dim >= 64 else None, norm_eps=1e-6, resample=resample)
