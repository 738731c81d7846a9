"""DINOv3-ViT as transformers saves it."""

from __future__ import annotations

from collections.abc import Mapping

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
from vit_viz.checkpoints.families.transformers_vit import GATED, RULES, common
from vit_viz.errors import UnknownFamily

NAME = "transformers DINOv3"
RECIPE = Recipe(*IMAGENET, crop_fraction=1.0)

_PLAIN = [(r"\.mlp\.up_proj\.", ".mlp.fc1."), (r"\.mlp\.down_proj\.", ".mlp.fc2.")]


def matches(checkpoint: Checkpoint) -> bool:
    """A patch embedding that is the convolution itself, registers, and no position table."""
    state = checkpoint.state
    return {"embeddings.patch_embeddings.weight", "embeddings.register_tokens"} <= set(state)


def convert(checkpoint: Checkpoint) -> State:
    """timm's names; keys have no bias, so theirs becomes zero."""
    gated = any(".mlp.gate_proj." in name for name in checkpoint.state)
    rules = [*RULES, *(GATED if gated else _PLAIN)]
    return fuse_qkv(rename(checkpoint.state, rules, drop=[r"embeddings\.mask_token$", r"rope_embeddings\."]))


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From config.json where there is one, else from the shapes; the class token is the output."""
    settings = checkpoint.config
    parameters = common(settings, default_eps=1e-5)
    gated = "blocks.0.mlp.fc1_g.weight" in state
    if gated and settings.get("hidden_act", "silu") != "silu":
        raise UnknownFamily(
            f"The gate {str(settings['hidden_act'])[:40]!r} of this MLP is not supported; only SiLU is."
        )
    if not gated:
        parameters["mlp"] = activation(settings.get("hidden_act"))
    nested = settings.get("rope_parameters")
    base = (nested if isinstance(nested, Mapping) else settings).get("rope_theta", 100.0)
    return infer(state, position="rotary", rotary_base=base, **parameters)
