"""CLIP's vision tower under the names of OpenAI's code and of open_clip, alone ("conv1") or beside the text tower ("visual.conv1").

Source: open_clip/transformer.py of open_clip 3.3, and clip/model.py of OpenAI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints.families.base import (
    CLIP,
    Checkpoint,
    Inferred,
    Recipe,
    State,
    infer,
    mapping_of,
    rename,
)

NAME = "open_clip"
RECIPE = Recipe(*CLIP, crop_fraction=1.0)

_MARK = "class_embedding", "conv1.weight", "transformer.resblocks.0.ln_1.weight"
RULES = [
    (r"^visual\.", ""),
    (r"^class_embedding$", "cls_token"),
    (r"^positional_embedding$", "pos_embed"),
    (r"^conv1\.", "patch_embed.proj."),
    (r"^ln_pre\.", "norm_pre."),
    (r"^ln_post\.", "norm."),
    (r"^transformer\.resblocks\.(\d+)\.", r"blocks.\1."),
    (r"^(blocks\.\d+)\.(ln|ls)_([12])\.", r"\1.\2\3."),
    (r"^(blocks\.\d+)\.ln([12])\.", r"\1.norm\2."),
    (r"\.attn\.in_proj_", ".attn.qkv."),
    (r"\.attn\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.c_fc\.", ".mlp.fc1."),
    (r"\.mlp\.c_proj\.", ".mlp.fc2."),
]
_HEADS_OF_16 = (
    1280,
    1408,
    1664,
    1792,
)  # widths of ViT-H, g, bigG and e, which have 16 heads; all others have heads of 64
_OPENAI = "input_resolution"  # a number that OpenAI's files have beside the parameters
_ACTIVATION = "GELU: neither the file nor what lies beside it says whether quick GELU was meant"


def matches(checkpoint: Checkpoint) -> bool:
    """The names of a tower's first layers."""
    return any(all(prefix + name in checkpoint.state for name in _MARK) for prefix in ("visual.", ""))


def convert(checkpoint: Checkpoint) -> State:
    """timm's names; the text tower is left out, tokens and tables get the axis for the batch, and the projection its other side."""
    is_beside_text = f"visual.{_MARK[0]}" in checkpoint.state
    state = rename(checkpoint.state, RULES, drop=[r"(?!visual\.)"] if is_beside_text else [])
    if (token := state.get("cls_token")) is not None and token.ndim == 1:
        state["cls_token"] = token[None, None]
    if (table := state.get("pos_embed")) is not None and table.ndim == 2:
        state["pos_embed"] = table[None]
    if (projection := state.pop("proj", None)) is not None:
        state["head.weight"] = projection.T
    return state


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From open_clip's own configuration where there is one, else from the shapes."""
    vision = mapping_of(model_settings(checkpoint).get("vision_cfg"))
    width = state["cls_token"].shape[-1]
    is_openais = _OPENAI in checkpoint.state
    head_width = vision.get("head_width", 64 if vision or is_openais else None)
    heads = 16 if width in _HEADS_OF_16 else None
    if isinstance(head_width, int) and head_width > 0 and width % head_width == 0:
        heads = width // head_width
    return infer(
        state,
        img_size=vision.get("image_size"),
        num_heads=heads,
        norm_eps=1e-5,
        mlp="quick_gelu" if is_quick(checkpoint) else "gelu",
        pooling="class",
        projection="head.weight" in state,
        assumed=() if vision or is_openais else (_ACTIVATION,),
    )


def model_settings(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """What open_clip's own configuration says of both towers."""
    return mapping_of(checkpoint.config.get("model_cfg", checkpoint.config))


def is_quick(checkpoint: Checkpoint) -> bool:
    """Whether both towers were trained with quick GELU."""
    return _OPENAI in checkpoint.state or model_settings(checkpoint).get("quick_gelu") is True
