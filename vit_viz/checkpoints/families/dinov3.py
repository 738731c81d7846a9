"""DINOv3 as timm names it (eva.py) and as its authors published it: registers and rotary positions."""

from __future__ import annotations

from vit_viz.checkpoints.architectures import architecture
from vit_viz.checkpoints.families.base import IMAGENET, Checkpoint, Inferred, Recipe, State, infer, rename
from vit_viz.checkpoints.families.timm import hub_settings
from vit_viz.lazy import torch

NAME = "DINOv3"
RECIPE = Recipe(*IMAGENET, crop_fraction=1.0)


def matches(checkpoint: Checkpoint) -> bool:
    """No position table, a fused qkv, and registers; where there are none, the name or the rotary periods identify it."""
    state = checkpoint.state
    registers = "storage_tokens" in state or ("reg_token" in state and "blocks.0.gamma_1" in state)
    named = any(
        "dinov3" in str(name).lower() for name in (checkpoint.config.get("architecture"), checkpoint.name)
    )
    is_rotary = registers or "rope_embed.periods" in state or (named and "blocks.0.gamma_1" in state)
    return is_rotary and "pos_embed" not in state and "blocks.0.attn.qkv.weight" in state


def convert(checkpoint: Checkpoint) -> State:
    """timm's ViT names; the key's bias, which DINOv3 masks to zero, becomes zero."""
    state = rename(
        checkpoint.state,
        [
            (r"^storage_tokens$", "reg_token"),
            (r"\.gamma_(\d)$", r".ls\1.gamma"),
            (r"\.mlp\.w1\.", ".mlp.fc1_g."),
            (r"\.mlp\.w2\.", ".mlp.fc1_x."),
            (r"\.mlp\.w3\.", ".mlp.fc2."),
        ],
        drop=[
            r"mask_token$",
            r"rope_embed\.periods$",
            r"rope\.periods$",
            r".*\.bias_mask$",
            r"local_cls_norm\.",
        ],
    )
    for name in [name for name in state if name.endswith(".attn.q_bias")]:
        block = name.removesuffix(".q_bias")
        if f"{block}.v_bias" in state:
            q, v = state.pop(name), state.pop(f"{block}.v_bias")
            state[f"{block}.qkv.bias"] = torch.cat([q, torch.zeros_like(q), v])
    masked = [name.removesuffix("_mask") for name in checkpoint.state if name.endswith(".qkv.bias_mask")]
    for name in masked:
        if name in state:
            q, k, v = state[name].chunk(3)
            state[name] = torch.cat([q, torch.zeros_like(k), v])
    return state


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From timm's configuration or the architecture's name where there is one; the authors pool the class token."""
    name = str(checkpoint.config.get("architecture") or checkpoint.name)
    parameters = dict(architecture(name) or {"pooling": "class"})
    hub_settings(parameters, checkpoint.config)
    dim = state["cls_token"].shape[-1] if "cls_token" in state else 0
    heads = parameters.pop("num_heads", None) or {4096: 32}.get(dim, dim // 64 or None)
    parameters["norm_eps"] = 1e-5
    return infer(state, num_heads=heads, position="rotary", rotary_base=100.0, **parameters)
