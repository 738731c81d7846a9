"""torchvision's VisionTransformer."""

from __future__ import annotations

from vit_viz.checkpoints.families.base import IMAGENET, Checkpoint, Inferred, Recipe, State, infer, rename

NAME = "torchvision ViT"
RECIPE = Recipe(*IMAGENET, crop_fraction=0.875)

_RULES = [
    (r"^class_token$", "cls_token"),
    (r"^conv_proj\.", "patch_embed.proj."),
    (r"^encoder\.pos_embedding$", "pos_embed"),
    (r"^encoder\.layers\.encoder_layer_(\d+)\.", r"blocks.\1."),
    (r"\.ln_([12])\.", r".norm\1."),
    (r"\.self_attention\.in_proj_", ".attn.qkv."),
    (r"\.self_attention\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.(0|linear_1)\.", ".mlp.fc1."),
    (r"\.mlp\.(3|linear_2)\.", ".mlp.fc2."),
    (r"^encoder\.ln\.", "norm."),
    (r"^heads\.head\.", "head."),
]
_HEADS = {1280: 16}  # ViT-H/14; all others have heads of 64


def matches(checkpoint: Checkpoint) -> bool:
    """The convolution and the first layer under torchvision's names."""
    return {"conv_proj.weight", "encoder.layers.encoder_layer_0.self_attention.in_proj_weight"} <= set(
        checkpoint.state
    )


def convert(checkpoint: Checkpoint) -> State:
    """timm's names; nn.MultiheadAttention keeps q, k and v joined, as we do."""
    return rename(checkpoint.state, _RULES)


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From the shapes; there is no configuration file, but num_heads is read where someone wrote one."""
    dim = state["cls_token"].shape[-1] if "cls_token" in state else 0
    heads = checkpoint.config.get("num_heads") or _HEADS.get(dim)
    return infer(
        state,
        num_heads=heads,
        norm_eps=1e-6,
        resample="torchvision",
        img_size=checkpoint.config.get("image_size"),
    )
