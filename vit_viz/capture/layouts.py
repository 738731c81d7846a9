"""The token layout of a module, and the size of its patches, where it says so: our own model, timm, transformers, torchvision."""

from __future__ import annotations

from typing import Any

from vit_viz.geometry import Grid, Pooling, TokenLayout
from vit_viz.lazy import nn
from vit_viz.model import VisionTransformer
from vit_viz.model.submodules import submodules_of

_TIMM_POOLING: dict[str, Pooling] = {"token": "class", "map": "attention"}


def inferred_layout(module: nn.Module, *, size: tuple[int, int], tokens: int) -> TokenLayout | None:
    """The layout of an input of (height, width) pixels and so many tokens, where the module's attributes determine it."""
    own: Any = getattr(module, "layout", None)
    if callable(own):
        layout = own(*size)
        if isinstance(layout, TokenLayout):
            return layout
    for infer in (_timm, _transformers, _torchvision):
        inferred = infer(module, size, tokens)
        if inferred is not None and inferred.num_tokens == tokens:
            return inferred
    return None


def plain_layout(grid: Grid, before: int, after: int) -> TokenLayout:
    """The layout with these numbers of tokens before and after the patches, under names that they usually have."""
    prefix = _with_registers(["class"] if before else [], before) or ()
    return TokenLayout(grid, prefix, suffix=tuple(f"token {i}" for i in range(after)))


def patch_size_of(
    module: nn.Module, grid: Grid, size: tuple[int, int], *, declared: tuple[int, int] | None = None
) -> tuple[int, int] | None:
    """(height, width) of a patch in pixels, which need not divide the input; None where neither the module nor anybody tells.

    Args:
        size: height and width of the input.
        declared: what its preprocessing says, for a module that cuts its input otherwise than by a convolution.
    """
    if isinstance(module, VisionTransformer):
        return module.config.patch_size
    return next(iter(fitting([*strides(module), *([declared] if declared else [])], grid, size)), None)


def fitting(sizes: list[tuple[int, int]], grid: Grid, size: tuple[int, int]) -> list[tuple[int, int]]:
    """Those of which an input has so many rows and columns, the last of them cut off or padded where they do not divide it."""
    return [
        one
        for one in sizes
        if all(abs(side / step - count) < 1 for side, step, count in zip(size, one, grid, strict=True))
    ]


def strides(module: nn.Module) -> list[tuple[int, int]]:
    """Sizes of patches that a model's convolutions and foldings cut an image into."""
    sizes = [
        part.stride
        for part in submodules_of(module)
        if isinstance(part, nn.Conv2d | nn.Unfold) and part.stride == part.kernel_size
    ]
    pairs = [(side, side) if isinstance(side, int) else (int(side[0]), int(side[1])) for side in sizes]
    return list(dict.fromkeys(pair for pair in pairs if max(pair) > 1))


def _timm(module: Any, size: tuple[int, int], tokens: int) -> TokenLayout | None:  # noqa: ARG001
    embed = getattr(module, "patch_embed", None) or getattr(module, "embeds", None)  # the latter of NaFlexVit
    if embed is None or not hasattr(module, "num_prefix_tokens"):
        return None
    grid = getattr(embed, "grid_size", None)
    if callable(getattr(embed, "dynamic_feat_size", None)):
        grid = embed.dynamic_feat_size(size)
    if grid is None:
        return None
    names = [
        name
        for token, name in (("cls_token", "class"), ("dist_token", "distillation"))
        if _has(module, token) or _has(embed, token)
    ]
    prefix = _with_registers(names, int(module.num_prefix_tokens))
    if prefix is None:
        return None
    pooling = _TIMM_POOLING.get(getattr(module, "global_pool", "") or "token", "mean")
    if pooling == "class" and "class" not in prefix:
        pooling = "mean"
    return TokenLayout(grid=(int(grid[0]), int(grid[1])), prefix=prefix, pooling=pooling)


def _transformers(module: Any, size: tuple[int, int], tokens: int) -> TokenLayout | None:
    config = getattr(module, "config", None)
    config = getattr(config, "vision_config", config)
    grid = _grid(getattr(config, "patch_size", None), size)
    if grid is None:
        return None
    kind = str(getattr(config, "model_type", ""))
    names = [] if "siglip" in kind else ["class", "distillation"] if kind == "deit" else ["class"]
    # they come after the patches
    last = int(getattr(config, "num_detection_tokens", 0)) if kind == "yolos" else 0
    prefix = _with_registers(names, tokens - grid[0] * grid[1] - last)
    if prefix is None:
        return None
    pooling: Pooling | None = None
    if "siglip" in kind:  # a classifier of its own reads the patches beside the pool
        pooling = "mean" if _has(module, "classifier") else "attention"
    if getattr(config, "use_mean_pooling", False):  # BEiT, Data2Vec
        pooling = "mean"
    suffix = tuple(f"detection {i}" for i in range(last))
    width = getattr(getattr(module, "classifier", None), "in_features", 0)
    joins = "dinov2" in kind and width == 2 * config.hidden_size  # type: ignore[union-attr]  # a grid was found in it
    return TokenLayout(grid=grid, prefix=prefix, pooling=pooling, suffix=suffix, joins_patches=joins)


def _torchvision(module: Any, size: tuple[int, int], tokens: int) -> TokenLayout | None:  # noqa: ARG001
    grid = _grid(getattr(module, "patch_size", None), size)
    return TokenLayout(grid=grid, prefix=("class",)) if grid and _has(module, "class_token") else None


def _has(module: Any, name: str) -> bool:
    return getattr(module, name, None) is not None


def _grid(patch: Any, size: tuple[int, int]) -> Grid | None:
    """Patches that fit into the input; None where the patch size is not one or two numbers."""
    sides = (patch, patch) if isinstance(patch, int) else patch
    if (
        not isinstance(sides, list | tuple)
        or len(sides) != 2
        or not all(isinstance(side, int) for side in sides)
    ):
        return None
    rows, cols = size[0] // sides[0], size[1] // sides[1]
    return (rows, cols) if rows and cols else None


def _with_registers(names: list[str], count: int) -> tuple[str, ...] | None:
    """The prefix of `count` tokens that begins with these names; the rest are registers."""
    if count < len(names):
        return None
    return (*names, *(f"register {i}" for i in range(count - len(names))))
