"""Which preprocessing and which class names belong to a checkpoint: from what came with it, else its family's usual ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from vit_viz.checkpoints.families.base import CLIP, IMAGENET, Recipe
from vit_viz.checkpoints.published_recipes import published_recipe
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.labels import Labels, imagenet1k
from vit_viz.model import ViTConfig
from vit_viz.outputs import PROBLEMS, Output

_Read = TypeVar("_Read")

_UNREADABLE = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError)
_PIL_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}

_HALF = {"image_mean": (0.5,) * 3, "image_std": (0.5,) * 3}
_OF_CLIP = {"image_mean": CLIP[0], "image_std": CLIP[1]}
_OF_IMAGENET = {"image_mean": IMAGENET[0], "image_std": IMAGENET[1]}
_STANDARD = {"resample": 2, "default_to_square": True, "rescale_factor": 1 / 255, "crop_size": 224}
_SHORT_SIDE = {
    "default_to_square": False,
    "size": {"shortest_edge": 224},
    "do_center_crop": True,
    "resample": 3,
}
_PROCESSORS: dict[str, dict[str, Any]] = {
    "ViT": _HALF | {"size": 224},
    "DeiT": _HALF | {"size": 256, "do_center_crop": True, "resample": 3},
    "Beit": _HALF | {"size": 224, "resample": 3},
    "Siglip": _HALF | {"size": {"height": 224, "width": 224}, "default_to_square": False, "resample": 3},
    "CLIP": _OF_CLIP | _SHORT_SIDE,
    "ChineseCLIP": _OF_CLIP | _SHORT_SIDE,
    "Bit": _OF_CLIP | _SHORT_SIDE,
    "Blip": _OF_CLIP | {"size": 384, "resample": 3},
    "OwlViT": _OF_CLIP | {"size": 768, "crop_size": 768, "resample": 3},
    "Pvt": _OF_IMAGENET | {"size": 224, "resample": 3},
    "DINOv3ViT": _OF_IMAGENET | {"size": 224},
    "ConvNext": _HALF
    | _SHORT_SIDE
    | {"size": {"shortest_edge": 384}, "do_center_crop": False, "crop_pct": 224 / 256},
    "EfficientNet": _HALF | {"size": 346, "crop_size": 289, "resample": 3, "include_top": True},
}
"""transformers' processors by the name of their class: what they take for keys that a file leaves out, beside `_STANDARD`."""

_MODELS = {
    "vit": "ViT", "ijepa": "ViT", "deit": "DeiT", "beit": "Beit", "data2vec": "Beit", "dinov2": "Bit", "pixio": "Bit",
    "dinov3": "DINOv3ViT", "clip": "CLIP", "aimv2": "CLIP", "metaclip": "CLIP", "siglip": "Siglip", "blip": "Blip",
    "owlvit": "OwlViT",
}  # fmt: skip
"""The processor of a file that names none, by the first word of the `model_type`."""

_OF_SOME = {"crop_pct": ("ConvNext",), "rescale_offset": ("EfficientNet",), "include_top": ("EfficientNet",)}
"""Keys that the other processors do not read."""

_OBEYED = {
    "size", "crop_size", "pad_size", "default_to_square", "resample", "rescale_factor", "image_mean", "image_std",
    "do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_pad", *_OF_SOME,
}  # fmt: skip
_WITHOUT_EFFECT = {
    "image_processor_type", "feature_extractor_type", "processor_class", "auto_map", "transformers_version", "name_or_path",
    "data_format", "input_data_format", "return_tensors", "device", "disable_grouping", "model_input_names", "backend", "use_fast",
    "do_convert_rgb", "do_reduce_labels", "reduce_labels", "image_seq_length",
}  # fmt: skip
"""Keys that change no pixels of a colour picture."""
PROCESSORS: dict[str, Any] = {
    "standard": _STANDARD,
    "by_name": _PROCESSORS,
    "by_model": _MODELS,
    "of_some": _OF_SOME,
    "obeyed": sorted(_OBEYED),
    "without_effect": sorted(_WITHOUT_EFFECT),
}
"""All of these tables, for the page that reads such files itself (vit_viz/browser/recipes.js)."""


def preprocess_of(
    config: ViTConfig, settings: Mapping[str, Any], recipe: Recipe, *, name: str = ""
) -> tuple[Preprocess, str]:
    """The evaluation recipe of a checkpoint, and in words where it comes from.

    Args:
        settings: everything that came with the file: "preprocess" (our own files), "pretrained_cfg" (timm), "preprocessor"
            (transformers).
        recipe: what the family's checkpoints usually want.
        name: of the file; where it brings nothing and timm has published weights of that name, theirs is taken.
    """
    for source, reader in (("preprocess", _ours), ("preprocessor", _transformers), ("pretrained_cfg", _timm)):
        values = settings.get(source)
        if isinstance(values, Mapping) and values:
            try:
                recipe_of_file = reader(values, config, settings)
                return Preprocess(**_common(config) | recipe_of_file), f"from the checkpoint ({source})"
            except ParameterError:
                raise
            except _UNREADABLE as error:
                raise ParameterError(
                    "The preprocessing that came with the checkpoint cannot be read."
                ) from error
    if published := published_recipe(name):
        return Preprocess(**_common(config) | _timm(published, config, {})), "of timm's weights of this name"
    side = min(config.img_size)
    values = {"mean": recipe.mean, "std": recipe.std, "resize_to": math.floor(side / recipe.crop_fraction)}
    return Preprocess(**_common(config) | _grey(values, config)), "assumed: the file brings none"


def labels_of(config: ViTConfig, settings: Mapping[str, Any]) -> Labels | None:
    """Class names that came with the checkpoint, those of ImageNet-1k for 1000 classes, or None."""
    if not config.num_classes or config.projection:
        return None
    if (labels := class_names(settings)) is not None and len(labels) == config.num_classes:
        return labels
    return imagenet1k() if config.num_classes == 1000 else None


def class_names(settings: Mapping[str, Any]) -> Labels | None:
    """Class names in the settings of a model; None where there are none, or none but "LABEL_0", "LABEL_1", ..."""
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


def _ours(values: Mapping[str, Any], config: ViTConfig, _: Mapping[str, Any]) -> dict[str, Any]:
    recipe = {
        name: values[name]
        for name in ("mean", "std", "resize_to", "interpolation", "crop", "input_size", "rounds_down")
        if name in values
    }
    recipe = {name: tuple(value) if isinstance(value, list) else value for name, value in recipe.items()}
    if "size" in values:  # the pilot's wording: one number and the rest in words
        recipe |= {"resize_to": int(values["size"]), "interpolation": "bicubic", "crop": "center"}
    return _grey(recipe, config)


def _timm(values: Mapping[str, Any], config: ViTConfig, _: Mapping[str, Any]) -> dict[str, Any]:
    size = _read(values, "input_size", lambda one: tuple(one[1:]), (config.in_chans, *config.img_size))
    return _grey({"input_size": size} | timm_recipe(values, size), config)


def timm_recipe(values: Mapping[str, Any], size: tuple[int, ...]) -> dict[str, Any]:
    """What a `pretrained_cfg` of timm says of preprocessing, for an input of this size.

    Its other keys change nothing in what timm's `create_transform` makes of `resolve_model_data_config`; `test_input_size` and
    `test_crop_pct` are for whoever asks for them.
    """
    target = _read(
        values, "crop_pct", lambda share: [math.floor(side / float(share)) for side in size], 0.875
    )
    mode = values.get("crop_mode") or "center"
    if mode not in ("center", "squash", "border"):
        raise _refused("crop_mode", mode)
    return {
        "resize_to": target[0] if len(set(size)) == 1 else tuple(target),
        "interpolation": str(values.get("interpolation") or "bicubic"),
        "crop": mode,
        "mean": _read(values, "mean", _numbers, IMAGENET[0]),
        "std": _read(values, "std", _numbers, IMAGENET[1]),
    }


def _transformers(
    values: Mapping[str, Any], config: ViTConfig, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """preprocessor_config.json: resize, perhaps a centre crop, rescale and normalise; keys beyond that are refused by name."""
    kind, named = _processor_of(values, settings)
    present = {name: value for name, value in values.items() if value is not None}
    for name, value in present.items():
        if value is not False and not str(name).startswith("_") and name not in _OBEYED | _WITHOUT_EFFECT:
            raise _refused(name, value)
    for name, owners in _OF_SOME.items():
        if named and present.get(name) and kind not in owners:
            raise _refused(name, present[name], f", and not read by {kind}ImageProcessor")
    values = (
        _STANDARD
        | {"size": dict(zip(("height", "width"), config.img_size, strict=True))}
        | _PROCESSORS.get(kind, {})
        | present
    )
    result = _shape_of(values) | {
        "interpolation": _read(values, "resample", lambda one: _PIL_FILTERS[int(one)])
    }
    if kind == "DINOv3ViT" and result["interpolation"] in ("bicubic", "lanczos"):
        raise _refused(
            "resample", values["resample"], ", whose overshoots this processor keeps and pictures cannot hold"
        )
    if not _fits(result["input_size"], config):
        size = " x ".join(map(str, result["input_size"]))
        patch = " x ".join(map(str, config.patch_size))
        raise _refused("size", size, f": patches of {patch} pixels do not divide it")
    if (
        values.get("do_pad")
        and _read(values, "pad_size", _sides, result["input_size"]) != result["input_size"]
    ):
        raise _refused("pad_size", values["pad_size"])
    return _grey(result | _statistics(values), config)


def _processor_of(values: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[str, bool]:
    """The key of `_PROCESSORS`, and whether the file names it; "" where nothing tells."""
    name = values.get("image_processor_type") or values.get("feature_extractor_type")
    if not name:
        words = str(settings.get("model_type") or "").replace("-", "_").split("_")
        return _MODELS.get(words[0], ""), False
    kind = re.sub(r"(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", str(name))
    if kind not in _PROCESSORS:
        raise _refused("image_processor_type", name)
    return kind, True


def _shape_of(values: dict[str, Any]) -> dict[str, Any]:
    """The size of the input, and how a picture gets it."""
    if not values.get("do_resize", True):
        raise _refused("do_resize", False, ", and the model does not take pictures of every size")
    crops, size = bool(values.get("do_center_crop")), values["size"]
    if isinstance(size, int) and not values["default_to_square"]:
        size = {"shortest_edge": size}
    by_short_side = isinstance(size, Mapping) and [k for k, v in size.items() if v is not None] == [
        "shortest_edge"
    ]
    if values.get("crop_pct") and (crops or not by_short_side):
        raise _refused("crop_pct", values["crop_pct"], ", beside another crop or size")
    if by_short_side:
        short = _read(size, "shortest_edge", _whole)
        if not crops and "crop_pct" not in values:
            raise _refused("size", size, ", without do_center_crop, since inputs then have many shapes")
        if not crops:
            return _convnext(short, _read(values, "crop_pct", float))
        target = (short, short)
    else:
        target = _read({"size": size}, "size", _sides)
    cut = _read(values, "crop_size", _sides) if crops else target
    squares = target[0] == target[1] and cut[0] == cut[1]
    return {
        "input_size": cut,
        "resize_to": target[0] if squares else target,
        "crop": "center" if by_short_side else "squash",
        "rounds_down": True,
    }


def _convnext(side: int, share: float) -> dict[str, Any]:
    """A crop of the middle below 384 pixels, and from there on the whole picture, as ConvNextImageProcessor has it."""
    to = (
        {"resize_to": int(side / share), "crop": "center"}
        if side < 384
        else {"resize_to": side, "crop": "squash"}
    )
    return {"input_size": (side, side), "rounds_down": True} | to


def _statistics(values: Mapping[str, Any]) -> dict[str, Any]:
    """Mean and deviation of levels / 255 that do what rescaling and normalising do to levels."""
    rescales = values.get("do_rescale", True)
    scale = 255 * _read(values, "rescale_factor", float) if rescales else 255.0
    offset = 1.0 if rescales and values.get("rescale_offset") else 0.0
    mean, std = (
        _read(values, name, _numbers) if values.get("do_normalize", True) else (usual,)
        for name, usual in (("image_mean", 0.0), ("image_std", 1.0))
    )
    if values.get("include_top"):  # divided by the deviation once more
        again = _read(values, "image_std", _numbers)
        std = tuple(one**2 for one in again) if values.get("do_normalize", True) else again
    return {"mean": tuple((one + offset) / scale for one in mean), "std": tuple(one / scale for one in std)}


def _sides(value: Any) -> tuple[int, int]:
    """(height, width) of a size as transformers writes it: a number for both, a pair, or both by name."""
    if isinstance(value, Mapping):
        value = {name: side for name, side in value.items() if side is not None}
        value = (value.pop("height"), value.pop("width"), *value)
    height, width = value if isinstance(value, list | tuple) else (value, value)
    return _whole(height), _whole(width)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise ValueError
    return int(value)


def _numbers(value: Any) -> tuple[float, ...]:
    return tuple(float(one) for one in (value if isinstance(value, list | tuple) else (value,)))


def _read(values: Mapping[str, Any], name: str, convert: Callable[[Any], _Read], usual: Any = None) -> _Read:
    """One value of a recipe; of timm's, an empty one is the usual one."""
    value = values.get(name) if usual is None else values.get(name) or usual
    try:
        return convert(value)
    except _UNREADABLE as error:
        raise _refused(name, value) from error


def _refused(name: str, value: object, why: str = "") -> ParameterError:
    return ParameterError(
        f"The preprocessing that came with the checkpoint cannot be followed here: {name} is {str(value)[:60]!r}{why}. Correct it "
        "in its file, pass preprocess=Preprocess(...) to load or serve, or give a module pixels, already normalised, in place of a "
        "picture."
    )


def _fits(size: tuple[int, int], config: ViTConfig) -> bool:
    """Whether the patches divide an input of that size, or the model leaves out what they do not cover."""
    sides = list(zip(size, config.patch_size, strict=True))
    if config.drop_remainder:
        return all(side >= patch for side, patch in sides)
    return all(side % patch == 0 and side > 0 for side, patch in sides)
