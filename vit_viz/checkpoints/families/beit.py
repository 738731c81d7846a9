"""BEiT, BEiT v2, EVA and EVA-02 as timm names them (beit.py, eva.py), BEiT also as its authors published it."""

from __future__ import annotations

from dataclasses import replace

from vit_viz.checkpoints.architectures import architecture
from vit_viz.checkpoints.families.base import (
    BIASES,
    Checkpoint,
    Inferred,
    Recipe,
    State,
    fuse_qkv,
    infer,
    rename,
)
from vit_viz.checkpoints.families.timm import hub_settings
from vit_viz.lazy import torch
from vit_viz.model import ViTConfig

NAME = "BEiT / EVA"
RECIPE = Recipe()

_ASSUMED = "rotary positions of EVA-02 on a grid of 16 x 16, because the MLPs are gated as those of EVA-02"


def matches(checkpoint: Checkpoint) -> bool:
    """A table of biases; or a table of positions, and biases of queries and values but not of keys."""
    state = checkpoint.state
    if any(name in state for name in BIASES):
        return "patch_embed.proj.weight" in state
    fused, apart = "blocks.0.attn.q_bias", "blocks.0.attn.q_proj.bias"
    return "pos_embed" in state and (
        fused in state or (apart in state and "blocks.0.attn.k_proj.bias" not in state)
    )


def convert(checkpoint: Checkpoint) -> State:
    """timm's ViT names; keys have no bias, so theirs becomes zero."""
    rules = [(r"\.gamma_([12])$", r".ls\1.gamma"), (r"\.attn\.([qkv])_proj\.", r".attn.\1.")]
    state = rename(checkpoint.state, rules, drop=[r"mask_token$", r".*relative_position_index$"])
    for name in [name for name in state if name.endswith(".attn.q_bias")]:
        attention = name.removesuffix(".q_bias")
        if f"{attention}.v_bias" in state:
            q, v = state.pop(name), state.pop(f"{attention}.v_bias")
            state[f"{attention}.qkv.bias"] = torch.cat([q, torch.zeros_like(q), v])
    return fuse_qkv(state)


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From our own metadata where the file has it, else from timm's configuration, the architecture's name and the shapes."""
    settings = checkpoint.config
    if "embed_dim" in settings and "depth" in settings:  # our own files say everything
        return Inferred(ViTConfig.from_dict(settings))
    named = architecture(str(settings.get("architecture") or checkpoint.name))
    parameters = dict(named or {})
    hub_settings(parameters, settings)
    sizes = {name: parameters.pop(name, None) for name in ("img_size", "num_heads")}
    inferred = infer(state, **sizes, **parameters)
    config = inferred.config
    if named is not None or config.relative_bias or config.shared_bias or "swiglu" not in config.mlp:
        return inferred
    return Inferred(
        replace(config, rotary_grid=(16, 16), rotary_base=10_000.0), (*inferred.assumed, _ASSUMED)
    )
