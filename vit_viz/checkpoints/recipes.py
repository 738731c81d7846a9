"""Which preprocessing and which class names belong to a checkpoint: from what came with it, else its family's usual ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

from vit_viz.checkpoints.families.base import IMAGENET, Recipe
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.labels import Labels, imagenet1k
from vit_viz.model import ViTConfig
from vit_viz.outputs import PROBLEMS, Output

_UNREADABLE = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError)
_PIL_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def preprocess_of(config: ViTConfig, settings: Mapping[str, Any], recipe: Recipe) -> tuple[Preprocess, str]:
    """The evaluation recipe of a checkpoint, and in words where it comes from.

    Args:
        settings: everything that came with the file: "preprocess" (our own files), "pretrained_cfg" (timm), "preprocessor"
            (transformers).
        recipe: what the family's checkpoints usually want.
    """
    for name, reader in (("preprocess", _ours), ("preprocessor", _transformers), ("pretrained_cfg", _timm)):
        values = settings.get(name)
        if isinstance(values, Mapping) and values:
            try:
                return Preprocess(**_common(config) | reader(values, config)), f"from the checkpoint ({name})"
            except _UNREADABLE as error:
                raise ParameterError(
                    "The preprocessing that came with the checkpoint cannot be read."
                ) from error
    side = min(config.img_size)
    values = {"mean": recipe.mean, "std": recipe.std, "resize_to": math.floor(side / recipe.crop_fraction)}
    return Preprocess(**_common(config) | _grey(values, config)), "assumed: the file brings none"


def labels_of(config: ViTConfig, settings: Mapping[str, Any]) -> Labels | None:
    """Class names that came with the checkpoint, those of ImageNet-1k for 1000 classes, or None.

    Raises:
        ParameterError: names came with it that cannot be read.
    """
    if not config.num_classes or config.projection:
        return None
    if (labels := class_names(settings)) is not None and len(labels) == config.num_classes:
        return labels
    return imagenet1k() if config.num_classes == 1000 else None


def class_names(settings: Mapping[str, Any]) -> Labels | None:
    """Class names in the settings of a model; None where there are none, or none but "LABEL_0", "LABEL_1", ...

    Raises:
        ParameterError: they cannot be read.
    """
    try:
        names, synsets = _names(settings)
    except _UNREADABLE as error:
        raise ParameterError("The class names that came with the checkpoint cannot be read.") from error
    return Labels(tuple(names), tuple(synsets) if len(synsets) == len(names) else ()) if names else None


def output_of(config: ViTConfig, settings: Mapping[str, Any]) -> Output | None:
    """What one output is, as our own files ("output") or transformers ("problem_type") say it; None where nothing does."""
    if not config.num_classes or config.projection:
        return None
    own = settings.get("output")
    if own in get_args(Output):
        return own  # one of them
    return PROBLEMS.get(str(settings.get("problem_type")))


def _names(settings: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """(names, synsets) as our own files, timm or transformers write them; empty where there are none."""
    if isinstance(own := settings.get("labels"), list):
        synsets = settings.get("synsets")
        return [str(name) for name in own], [str(key) for key in synsets] if isinstance(synsets, list) else []
    if isinstance(keys := settings.get("label_names"), list):  # timm: synsets, and what they mean beside them
        described = settings.get("label_descriptions")
        names = [described.get(key, key) for key in keys] if isinstance(described, Mapping) else keys
        return [str(name) for name in names], [str(key) for key in keys]
    if isinstance(by_index := settings.get("id2label"), Mapping):
        names = [str(name) for _, name in sorted(by_index.items(), key=lambda item: int(item[0]))]
        if any(name != f"LABEL_{i}" for i, name in enumerate(names)):
            return names, []
    return [], []


def _common(config: ViTConfig) -> dict[str, Any]:
    return {
        "input_size": config.img_size,
        "patch_size": config.patch_size,
        "channels": config.in_chans,
        "drop_remainder": config.drop_remainder,
    }


def _grey(values: dict[str, Any], config: ViTConfig) -> dict[str, Any]:
    """One mean and one std for a model of one channel."""
    if config.in_chans != 1:
        return values
    return values | {name: (sum(values[name]) / len(values[name]),) for name in ("mean", "std")}


def _ours(values: Mapping[str, Any], config: ViTConfig) -> dict[str, Any]:
    known = {
        name: values[name]
        for name in ("mean", "std", "resize_to", "interpolation", "crop", "input_size")
        if name in values
    }
    known = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    if "size" in values:  # the pilot's wording: one number and the rest in words
        known |= {"resize_to": int(values["size"]), "interpolation": "bicubic", "crop": "center"}
    return _grey(known, config)


def _timm(values: Mapping[str, Any], config: ViTConfig) -> dict[str, Any]:
    size = tuple((values.get("input_size") or (config.in_chans, *config.img_size))[1:])
    return _grey({"input_size": size} | timm_recipe(values, size), config)


def timm_recipe(values: Mapping[str, Any], size: tuple[int, ...]) -> dict[str, Any]:
    """What a `pretrained_cfg` of timm says of preprocessing, for an input of this size."""
    return {
        "resize_to": math.floor(min(size) / float(values.get("crop_pct") or 0.875)),
        "interpolation": str(values.get("interpolation") or "bicubic"),
        "crop": "squash" if values.get("crop_mode") == "squash" else "center",
        "mean": tuple(values.get("mean") or IMAGENET[0]),
        "std": tuple(values.get("std") or IMAGENET[1]),
    }


def _transformers(values: Mapping[str, Any], config: ViTConfig) -> dict[str, Any]:
    """preprocessor_config.json: resize to a short side or to both sides, then perhaps a centre crop."""
    size, crop = _sides(values.get("size")), _sides(values.get("crop_size"))
    cropped = bool(values.get("do_center_crop")) and crop is not None
    wanted = crop if cropped else size
    result: dict[str, Any] = {
        "interpolation": _PIL_FILTERS.get(int(values.get("resample") or 2), "bilinear"),
        "mean": tuple(values["image_mean"]) if values.get("do_normalize", True) else (0.0,) * config.in_chans,
        "std": tuple(values["image_std"]) if values.get("do_normalize", True) else (1.0,) * config.in_chans,
    }
    if wanted is not None and _fits(wanted, config):
        result["input_size"] = wanted
    if size is not None:
        result["resize_to"] = min(size)
        squashed = isinstance(values.get("size"), Mapping) and "height" in values["size"]
        result["crop"] = "squash" if squashed else "center"
    return _grey(result, config)


def _sides(value: Any) -> tuple[int, int] | None:
    if isinstance(value, Mapping):
        if "height" in value and "width" in value:
            return int(value["height"]), int(value["width"])
        value = value.get("shortest_edge")
    return (int(value), int(value)) if isinstance(value, int) else None


def _fits(size: tuple[int, int], config: ViTConfig) -> bool:
    """Whether the patches divide an input of that size, or the model leaves out what they do not cover."""
    sides = list(zip(size, config.patch_size, strict=True))
    if config.drop_remainder:
        return all(side >= patch for side, patch in sides)
    return all(side % patch == 0 and side > 0 for side, patch in sides)
