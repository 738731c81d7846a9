"""timm's VisionTransformer (ViT, AugReg, DeiT, MAE, CLIP, SigLIP, DINOv2, ...): our own parameter names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints import quick_gelu
from vit_viz.checkpoints.architectures import architecture
from vit_viz.checkpoints.families.base import BIASES, Checkpoint, Inferred, Recipe, State, infer, rename
from vit_viz.model import ViTConfig

NAME = "timm ViT"
RECIPE = Recipe()
_MAE = "decoder_pos_embed"  # of its authors' whole model
_IMAGENET_CLASSES = (1000, 11_821, 21_841, 21_843)
_POOLING = {"token": "class", "avg": "mean", "map": "attention"}


def matches(checkpoint: Checkpoint) -> bool:
    """Blocks with a fused qkv and either MLP, and nothing that belongs to DINOv3, the original DINOv2, BEiT or EVA."""
    state = checkpoint.state
    fused = "blocks.0.attn.qkv.weight" in state
    others = (
        *BIASES,
        "blocks.0.attn.q_bias",
        "blocks.0.gamma_1",
        "storage_tokens",
        "register_tokens",
        *(() if _MAE in state else ("mask_token",)),
    )
    return fused and "patch_embed.proj.weight" in state and not any(name in state for name in others)


def convert(checkpoint: Checkpoint) -> State:
    """Nothing to rename; timm's first files stored the patch embedding as a linear layer, which becomes a convolution.

    Of an MAE with its decoder only the encoder is kept.
    """
    state = dict(checkpoint.state)
    if _MAE in state:
        state = rename(state, [], drop=[r"decoder_", r"mask_token$"])
    weight = state["patch_embed.proj.weight"]
    if weight.ndim == 2 and "embed_dim" not in checkpoint.config:
        for channels in (3, 1):
            side = math.isqrt(weight.shape[1] // channels)
            if channels * side * side == weight.shape[1]:
                state["patch_embed.proj.weight"] = weight.reshape(weight.shape[0], channels, side, side)
                break
    return state


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From our own metadata where the file has it, else from timm's configuration, the architecture's name and the shapes."""
    settings = checkpoint.config
    if "embed_dim" in settings and "depth" in settings:  # our own files say everything
        return Inferred(ViTConfig.from_dict(settings))
    name = str(settings.get("architecture") or checkpoint.name)
    parameters = dict(architecture(name) or {})
    hub_settings(parameters, settings)
    head = state.get("head.weight")
    if "norm_pre.weight" in state and head is not None and head.shape[0] not in _IMAGENET_CLASSES:
        parameters["projection"] = (
            True  # CLIP's own projection; fine-tuned ones end in the classes of ImageNet
        )
    native = quick_gelu.timm_weights_are(
        checkpoint.name, settings, head=None if head is None else head.shape[0]
    )
    is_replaced = parameters.get("mlp") != "quick_gelu"
    if native:
        parameters["mlp"] = "quick_gelu"
    sizes = {name: parameters.pop(name, None) for name in ("img_size", "num_heads")}
    return infer(
        state, **sizes, assumed=(quick_gelu.ASSUMED,) if native and is_replaced else (), **parameters
    )


def hub_settings(parameters: dict[str, Any], settings: Mapping[str, Any]) -> None:
    """Add to `parameters` what a config.json of timm on the Hub says beyond the architecture's name."""
    recipe = settings.get("pretrained_cfg")
    size = (recipe if isinstance(recipe, Mapping) else settings).get("input_size")
    if isinstance(size, list) and len(size) == 3:
        parameters["img_size"] = tuple(size[1:])
    arguments = settings.get("model_args")
    for name in ("img_size", "num_heads"):
        if isinstance(arguments, Mapping) and name in arguments:
            parameters[name] = arguments[name]
    pool = settings.get("global_pool")
    if isinstance(pool, str) and pool in _POOLING:
        parameters["pooling"] = _POOLING[pool]
