"""What all families share: renaming, joining q, k and v, and reading the architecture from the shapes of timm-named parameters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vit_viz.errors import KeyMismatch, UnknownFamily
from vit_viz.lazy import Tensor, torch
from vit_viz.model import ViTConfig
from vit_viz.model.positions import num_biases

State = dict[str, Tensor]
BIASES = "blocks.0.attn.relative_position_bias_table", "rel_pos_bias.relative_position_bias_table"
"""Tables of relative position biases: of a block, and of all blocks."""
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and standard deviation of the channels, likewise:"""
CLIP = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class Checkpoint:
    """A file as it was found: parameters under their own names, what came with them as JSON, and its name."""

    state: Mapping[str, Tensor]
    config: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class Inferred:
    """An architecture, and what had to be assumed because neither the file nor its configuration says it.

    Args:
        left_out: parameters of the model that ours does not have, by the beginnings of their names.
        preprocess: what the parameters say of preprocessing, as files of our own do; it has precedence over what lies beside them.
    """

    config: ViTConfig
    assumed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    preprocess: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Recipe:
    """The preprocessing that a family's published checkpoints share; used where a file brings none of its own."""

    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (0.5, 0.5, 0.5)
    crop_fraction: float = 0.9


class Family(Protocol):
    """A way of naming the parameters of a Vision Transformer; each module of this package is one."""

    NAME: str
    RECIPE: Recipe

    def matches(self, checkpoint: Checkpoint) -> bool:
        """Whether the names are those of this family."""

    def convert(self, checkpoint: Checkpoint) -> State:
        """The parameters under timm's names; what the family does not know keeps its name, so that it is listed."""

    def infer_config(self, checkpoint: Checkpoint, state: State) -> Inferred:
        """The architecture, from the configuration that came with the file and the shapes of the converted parameters."""


def rename(
    state: Mapping[str, Tensor], rules: Sequence[tuple[str, str]], *, drop: Iterable[str] = ()
) -> State:
    """Apply each rule (a pattern and its replacement) once to every name; names that `drop` matches from their start go."""
    dropped = [re.compile(pattern) for pattern in drop]
    compiled = [(re.compile(pattern), new) for pattern, new in rules]
    renamed: State = {}
    for name, tensor in state.items():
        if any(pattern.match(name) for pattern in dropped):
            continue
        # a model without registers may keep an empty table of them
        if not tensor.numel() and _REGISTERS.search(name):
            continue
        for pattern, new in compiled:
            name = pattern.sub(new, name)
        renamed[name] = tensor
    return renamed


def mapping_of(value: Any) -> Mapping[str, Any]:
    """An object of JSON; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def depth_of(state: Mapping[str, Tensor]) -> int:
    """How many blocks timm-named parameters belong to."""
    return 1 + max((int(m[1]) for name in state if (m := re.match(r"blocks\.(\d+)\.", name))), default=-1)


def fuse_qkv(state: State) -> State:
    """Join blocks.{i}.attn.{q,k,v}.{weight,bias} into attn.qkv; a key without a bias (DINOv3) gets zeros."""
    fused = {name: tensor for name, tensor in state.items() if not _QKV.fullmatch(name)}
    parts: dict[tuple[str, str], dict[str, Tensor]] = {}
    for name, tensor in state.items():
        if match := _QKV.fullmatch(name):
            parts.setdefault((match[1], match[3]), {})[match[2]] = tensor
    for (block, kind), tensors in parts.items():
        if kind == "bias" and "k" not in tensors and {"q", "v"} <= set(tensors):
            tensors["k"] = torch.zeros_like(tensors["q"])
        if set(tensors) == {"q", "k", "v"}:
            fused[f"{block}.attn.qkv.{kind}"] = torch.cat([tensors["q"], tensors["k"], tensors["v"]])
        else:  # incomplete: keep what is there, so that it is listed
            fused.update({f"{block}.attn.{which}.{kind}": tensor for which, tensor in tensors.items()})
    return fused


_REGISTERS = re.compile(r"(^|\.)(reg_token|register_tokens|storage_tokens)$")
_QKV = re.compile(r"(blocks\.\d+)\.attn\.([qkv])\.(weight|bias)")


def infer(
    state: State,
    *,
    img_size: Any = None,
    num_heads: int | None = None,
    assumed: Sequence[str] = (),
    **settings: Any,
) -> Inferred:
    """The architecture of timm-named parameters: shapes say most of it, `settings` the rest.

    Args:
        img_size: input size that came with the checkpoint, where one did; used only where it fits the position table, or where
            `settings` says that the table has a grid of its own.
        num_heads: where it is known and no table of biases says it; else heads of 64 are assumed, and said.
        assumed: what the family had to assume itself.
        settings: entries of ViTConfig that the family or the checkpoint's configuration settles.
    """
    weight = _need(state, "patch_embed.proj.weight", 4)
    dim, channels, *patch = weight.shape
    guesses = list(assumed)
    tables = [_need(state, name, 2) for name in BIASES if name in state]
    if tables:
        num_heads = tables[0].shape[1]
    if num_heads is None:
        if dim % 64:
            raise KeyMismatch(
                f"The number of heads that share the {dim} numbers of a token follows neither from the shapes nor from anything "
                "beside the file: put the file into a folder of its own, with a config.json that says the number of heads."
            )
        num_heads = dim // 64
        guesses.append(f"{num_heads} heads of 64, because the file does not say how many")
    values: dict[str, Any] = {
        "patch_size": tuple(patch),
        "in_chans": channels,
        "embed_dim": dim,
        "depth": depth_of(state),
        "num_heads": num_heads,
        **_parts(state),
        **_block_parts(state),
        **settings,
    }
    if "position_grid" in values:
        values["img_size"] = img_size
    else:
        config_prefix = values["class_token"] + values["dist_token"] + values["reg_tokens"]
        values.update(_positions(state, tuple(patch), img_size, config_prefix, values))
    return Inferred(ViTConfig(**values), tuple(guesses))


def _parts(state: State) -> dict[str, Any]:
    """Choices that show in which parameters exist outside the blocks."""
    head = state.get("head.weight")
    class_token = "cls_token" in state
    pooling = "attention" if "attn_pool.latent" in state else "class" if class_token else "mean"
    return {
        "class_token": class_token,
        "dist_token": "dist_token" in state,
        "reg_tokens": state["reg_token"].shape[1]
        if "reg_token" in state and state["reg_token"].ndim == 3
        else 0,
        "num_classes": 0 if head is None else head.shape[0],
        "head_bias": "head.bias" in state,
        "pool_concat": class_token
        and head is not None
        and head.ndim == 2
        and head.shape[1] == 2 * state["cls_token"].shape[-1],
        "dist_head": "head_dist.weight" in state,
        "patch_bias": "patch_embed.proj.bias" in state,
        "patch_norm": "patch_embed.norm.weight" in state,
        "relative_bias": BIASES[0] in state,
        "shared_bias": BIASES[1] in state,
        "pre_norm": "norm_pre.weight" in state,
        "final_norm": "norm.weight" in state,
        "fc_norm": "fc_norm.weight" in state,
        "pooling": "mean" if "fc_norm.weight" in state and pooling == "class" else pooling,
    }


def _block_parts(state: State) -> dict[str, Any]:
    """Choices that show in the parameters of the first block."""

    def has(name: str) -> bool:
        return f"blocks.0.{name}" in state

    fc1, fc2 = (state.get(f"blocks.0.mlp.{name}.weight") for name in ("fc1", "fc2"))
    gated = state.get("blocks.0.mlp.fc1_g.weight")
    values: dict[str, Any] = {
        "qkv_bias": has("attn.qkv.bias"),
        "proj_bias": has("attn.proj.bias"),
        "mlp_bias": has("mlp.fc2.bias"),
        "qk_norm": has("attn.q_norm.weight"),
        "attn_norm": has("attn.norm.weight"),
        "mlp_norm": has("mlp.norm.weight"),
        "layer_scale": has("ls1.gamma"),
        "norm": "layer" if has("norm1.bias") or not has("norm1.weight") else "rms",
    }
    if gated is not None:
        values |= {"mlp": "swiglu", "mlp_hidden": gated.shape[0]}
    elif fc1 is not None:
        packed = fc2 is not None and fc2.ndim == 2 and fc1.shape[0] == 2 * fc2.shape[1]
        values |= {"mlp_hidden": fc1.shape[0]} | ({"mlp": "swiglu_packed"} if packed else {})
    return values


def _positions(
    state: State, patch: tuple[int, ...], img_size: Any, prefix: int, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The input size and which tokens have positions, from the length of the table; `img_size` decides where it fits."""
    hinted = _hinted_grid(img_size, patch)
    if "pos_embed" not in state:
        tables = [state[name] for name in BIASES if name in state]
        own = _grid_of_biases(len(tables[0]), hinted) if tables else hinted or (14, 14)
        size = _input_size(own, patch, img_size)
        return {"position": settings.get("position", "none"), **size}
    length = _need(state, "pos_embed", 3).shape[1]
    for patches, patches_only in ((length - prefix, False), (length, True)):
        grid = hinted if hinted and hinted[0] * hinted[1] == patches else _square(patches)
        if grid:
            return {**_input_size(grid, patch, img_size), "no_embed_class": patches_only and prefix > 0}
    raise KeyMismatch(
        f"The position table has {length} entries, which fit no square patch grid with {prefix} prefix tokens; "
        "a config.json that says the size of the pictures is needed."
    )


def _grid_of_biases(length: int, hinted: tuple[int, int] | None) -> tuple[int, int]:
    """The grid that a table of so many biases was made for: the hinted one where it fits, else a square one."""
    if hinted and num_biases(hinted) == length:
        return hinted
    side = _square(length - 3)
    if side is None or side[0] % 2 == 0:
        raise KeyMismatch(
            f"The table of relative positions has {length} entries, which fit no square patch grid; a config.json that says "
            "the size of the pictures is needed."
        )
    return (side[0] + 1) // 2, (side[1] + 1) // 2


def activation(name: Any, default: str = "gelu") -> str:
    """Our name for an activation, from its name in configurations of transformers."""
    name = default if name is None else str(name)
    names = {
        "gelu": "gelu",
        "quick_gelu": "quick_gelu",
        "gelu_pytorch_tanh": "gelu_tanh",
        "gelu_new": "gelu_tanh",
    }
    if name not in names:
        raise UnknownFamily(
            f"The model's activation {name[:40]!r} is not supported; GELU, its tanh form and quick GELU are."
        )
    return names[name]


def _hinted_grid(img_size: Any, patch: tuple[int, ...]) -> tuple[int, int] | None:
    sides = img_size if isinstance(img_size, list | tuple) else (img_size, img_size)
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        return None
    rows, cols = sides[0] // patch[0], sides[1] // patch[1]
    return (rows, cols) if rows and cols else None


def _input_size(grid: tuple[int, int], patch: tuple[int, ...], img_size: Any) -> dict[str, Any]:
    """The input of a position table: that of the checkpoint, with the pixels that fill no patch, where it has this grid."""
    whole = (grid[0] * patch[0], grid[1] * patch[1])
    if _hinted_grid(img_size, patch) != grid:
        return {"img_size": whole}
    sides = tuple(img_size) if isinstance(img_size, list | tuple) else (img_size, img_size)
    return {"img_size": sides, "drop_remainder": sides != whole}


def _square(patches: int) -> tuple[int, int] | None:
    side = math.isqrt(max(patches, 0))
    return (side, side) if side and side * side == patches else None


def _need(state: State, name: str, ndim: int) -> Tensor:
    tensor = state.get(name)
    if tensor is None or tensor.ndim != ndim:
        what = "is missing" if tensor is None else f"has shape {list(tensor.shape)}, not {ndim} axes"
        raise KeyMismatch(f"The checkpoint cannot be loaded: {name} {what}.")
    return tensor
