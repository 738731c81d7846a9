"""RADIO and C-RADIO as NVIDIA and transformers save them: several class tokens, and positions on a table of their own size."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from vit_viz.checkpoints.families.base import (
    CLIP,
    Checkpoint,
    Inferred,
    Recipe,
    State,
    activation,
    infer,
    rename,
)
from vit_viz.errors import KeyMismatch

NAME = "RADIO"
RECIPE = Recipe(*CLIP, crop_fraction=1.0)

_WITHIN = re.compile(r"^(radio_model\.)?(model\.)?")
_TOKENS = "patch_generator.cls_token.token"
_RULES = [
    (_WITHIN.pattern, ""),
    (r"^patch_generator\.embedder\.", "patch_embed.proj."),
    (r"^patch_generator\.patch_normalizer\.", "norm_pre."),
    (r"^patch_generator\.pos_embed$", "pos_embed"),
    (r"\.ls([12])\.grandma$", r".ls\1.gamma"),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
    (r"\.mlp\.gate_proj\.", ".mlp.fc1_g."),
    (r"\.mlp\.up_proj\.", ".mlp.fc1_x."),
    (r"\.mlp\.down_proj\.", ".mlp.fc2."),
]
_OWN = re.compile(_WITHIN.pattern + r"(input_conditioner\.|summary_idxs$|patch_generator\.cls_token\.token$)")
_LEFT_OUT = re.compile(
    r"("
    + _WITHIN.pattern
    + r"(adaptors\.[^.]+|(inter_)?feature_normalizer|head|reg_token|patch_generator\.video_embedder))(\.|$)"
)
"""What reads the tokens of this model for something else, and a table of registers that timm makes and RADIO does not use."""

_HEADS = {"tiny": 3, "small": 6, "base": 12, "large": 16, "so400m": 16, "huge": 16, "giant": 24}
_WIDTHS = {192: 3, 384: 6, 768: 12, 1024: 16, 1152: 16, 1280: 16, 1536: 24}


def matches(checkpoint: Checkpoint) -> bool:
    """Patches, positions and class tokens come from a part that is called so nowhere else."""
    return any(_WITHIN.sub("", name, count=1).startswith("patch_generator.") for name in checkpoint.state)


def convert(checkpoint: Checkpoint) -> State:
    """timm's names: class tokens and registers apart, and the linear map of the patches as a convolution."""
    state = rename(checkpoint.state, _RULES, drop=[_OWN.pattern, _LEFT_OUT.pattern])
    weight = state.get("patch_embed.proj.weight")
    if weight is not None and weight.ndim == 2:
        side = math.isqrt(weight.shape[1] // 3)
        if 3 * side * side == weight.shape[1]:  # else its shape is told
            state["patch_embed.proj.weight"] = weight.reshape(-1, 3, side, side)
    tokens = _tensor(checkpoint, _TOKENS)
    count = _class_tokens(checkpoint)[0]
    state["cls_token"] = tokens[None, :count]
    if len(tokens) > count:
        state["reg_token"] = tokens[None, count:]
    return state


def infer_config(checkpoint: Checkpoint, state: State) -> Inferred:
    """From config.json for what shapes do not say: heads, which class tokens are read, the size of pictures."""
    settings, arguments = _settings(checkpoint), _arguments(checkpoint)
    assumed: list[str] = []
    count, guess = _class_tokens(checkpoint)
    patch = state["patch_embed.proj.weight"].shape[-1] if "patch_embed.proj.weight" in state else 1
    side = math.isqrt(_tensor(checkpoint, "patch_generator.pos_embed").shape[-2])
    size = settings.get("preferred_resolution") or settings.get("image_size")
    if not size:
        size = min(14, side) * patch
        assumed.append(f"pictures of {size} pixels a side, because no config.json says their size")
    sides = tuple(size) if isinstance(size, list | tuple) else (size, size)
    sides = tuple(max(1, int(length) // patch) * patch for length in sides)
    if not any(name.endswith("input_conditioner.norm_mean") for name in checkpoint.state):
        assumed.append("mean and deviation of CLIP, because the file has none")
    resample, way = _resample(checkpoint)
    parameters: dict[str, Any] = {"norm_eps": settings.get("layer_norm_eps", 1e-6)}
    if "blocks.0.mlp.fc1_g.weight" not in state:
        parameters["mlp"] = activation(settings.get("hidden_act"))
    if arguments.get("model_norm"):
        parameters["final_norm"] = True
    inferred = infer(
        state,
        img_size=sides,
        num_heads=_heads(checkpoint, state["cls_token"].shape[-1]),
        assumed=(*guess, *assumed, *way),
        class_tokens=count,
        class_read=_class_read(checkpoint, count),
        no_embed_class=True,
        position_grid=(side, side),
        resample=resample,
        **parameters,
    )
    left = dict.fromkeys(match[1] for name in checkpoint.state if (match := _LEFT_OUT.match(name)))
    return Inferred(inferred.config, inferred.assumed, tuple(left), _preprocess(checkpoint, sides))


# --- what config.json says, in NVIDIA's words or in those of transformers


def _settings(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """config.json, or its part for the vision tower of a language model."""
    vision = checkpoint.config.get("vision_config")
    return vision if isinstance(vision, Mapping) else checkpoint.config


def _arguments(checkpoint: Checkpoint) -> Mapping[str, Any]:
    arguments = _settings(checkpoint).get("args")
    return arguments if isinstance(arguments, Mapping) else {}


def _teachers(checkpoint: Checkpoint) -> list[Mapping[str, Any]]:
    teachers = _arguments(checkpoint).get("teachers")
    return [one for one in teachers if isinstance(one, Mapping)] if isinstance(teachers, list) else []


def _class_tokens(checkpoint: Checkpoint) -> tuple[int, tuple[str, ...]]:
    """How many of the learned tokens are class tokens, and what had to be assumed for it; the others are registers."""
    settings, arguments, teachers = _settings(checkpoint), _arguments(checkpoint), _teachers(checkpoint)
    total, registers = len(_tensor(checkpoint, _TOKENS)), None
    guess: tuple[str, ...] = ()
    if "num_cls_tokens" in settings:
        count, registers = settings["num_cls_tokens"], settings.get("num_registers")
    elif "cls_token_per_teacher" in arguments and (teachers or not arguments["cls_token_per_teacher"]):
        is_each = arguments["cls_token_per_teacher"]
        count = len({str(one.get("name")) for one in teachers}) if is_each else 1
        multiple = arguments.get("register_multiple") or 0
        registers = arguments.get("cpe_num_registers") or (multiple and multiple - count % multiple)
    else:
        count = 1 + max(_stored_read(checkpoint), default=0)
        if total > count:
            guess = (
                f"{count} class tokens before {total - count} registers, because no config.json says it",
            )
    if not isinstance(count, int) or count < 1 or (registers is not None and count + registers != total):
        raise KeyMismatch(
            f"config.json says {count} class tokens and {registers} registers, and the file has {total} in {_TOKENS}."
        )
    if count > total:
        raise KeyMismatch(f"The {count} class tokens that are read are more than the {total} of the file.")
    return count, guess


def _class_read(checkpoint: Checkpoint, count: int) -> tuple[int, ...]:
    """The class tokens of the summary: as the file says, else of the teachers that have one, else all."""
    configured = _settings(checkpoint).get("summary_idxs")
    names = list(dict.fromkeys(str(one.get("name")) for one in _teachers(checkpoint)))
    wanted = {str(one.get("name")) for one in _teachers(checkpoint) if one.get("use_summary", True)}
    teachers = [i for i, name in enumerate(names) if name in wanted]
    return (
        _stored_read(checkpoint)
        or tuple(configured or ())
        or tuple(teachers if count > 1 else ())
        or tuple(range(count))
    )


def _stored_read(checkpoint: Checkpoint) -> tuple[int, ...]:
    stored = next((one for name, one in checkpoint.state.items() if name.endswith("summary_idxs")), None)
    return () if stored is None else tuple(int(index) for index in stored.flatten())


def _heads(checkpoint: Checkpoint, dim: int) -> int | None:
    arguments = _arguments(checkpoint)
    of_timm = arguments.get("model_kwargs")
    heads = _settings(checkpoint).get("num_attention_heads") or (
        of_timm.get("num_heads") if isinstance(of_timm, Mapping) else None
    )
    words = str(arguments.get("model", "")).lower().split("_")
    return heads or next((usual for size, usual in _HEADS.items() if size in words), _WIDTHS.get(dim))


def _resample(checkpoint: Checkpoint) -> tuple[str, tuple[str, ...]]:
    """How positions are brought to another grid, which C-RADIOv4 changed, and what had to be assumed for it."""
    version = str(_settings(checkpoint).get("version") or checkpoint.name).lower()
    if _settings(checkpoint).get("model_type") == "radio" or "radio_v4" in version or "radiov4" in version:
        return "radio_v4", ()
    if re.search(r"radio_?v?[12]([._-]|$)", version):
        return "radio", ()
    return "radio", ("positions resampled with their corners aligned, as before C-RADIOv4",)


def _preprocess(checkpoint: Checkpoint, size: tuple[int, ...]) -> dict[str, Any]:
    """The file's own mean and deviation, which the model subtracts and divides by itself, and pictures of the preferred size."""
    recipe: dict[str, tuple[float, ...]] = {"mean": RECIPE.mean, "std": RECIPE.std}
    for name in recipe:
        for key, tensor in checkpoint.state.items():
            if key.endswith(f"input_conditioner.norm_{name}"):
                recipe[name] = tuple(float(value) for value in tensor.flatten())
    return {
        **recipe,
        "input_size": size,
        "resize_to": min(size),
        "interpolation": "bicubic",
        "crop": "center",
    }


def _tensor(checkpoint: Checkpoint, name: str) -> Any:
    tensor = next(
        (one for key, one in checkpoint.state.items() if _WITHIN.sub("", key, count=1) == name), None
    )
    if tensor is None or tensor.ndim < 2:
        what = "is missing" if tensor is None else f"has shape {list(tensor.shape)}"
        raise KeyMismatch(f"The checkpoint cannot be loaded: {name} {what}.")
    return tensor
