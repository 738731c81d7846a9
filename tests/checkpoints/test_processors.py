"""The recipes of transformers' processors and of timm: pixels as the library makes them, or a sentence that names the key."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from vit_viz.checkpoints import load
from vit_viz.checkpoints.families.base import Recipe
from vit_viz.checkpoints.local import local_checkpoint
from vit_viz.checkpoints.plain_module import own_preprocess, plain_module
from vit_viz.checkpoints.recipes import preprocess_of
from vit_viz.errors import ParameterError
from vit_viz.images import Preprocess
from vit_viz.model import ViTConfig

timm = pytest.importorskip("timm", reason="timm is an oracle of these tests")
transformers = pytest.importorskip("transformers", reason="transformers is an oracle of these tests")

CONFIG = ViTConfig(img_size=48, patch_size=6, embed_dim=64, depth=1, num_heads=2, num_classes=3)
SIZES = [(61, 173), (173, 61), (97, 101), (53, 48), (200, 75), (48, 48)]
LEVEL = 1 / 255


def picture(height: int, width: int) -> Image.Image:
    coarse = np.random.default_rng(height * 7 + width).integers(0, 256, (9, 13, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def recipe_of(preprocessor: dict[str, Any], **settings: Any) -> Preprocess:
    return preprocess_of(CONFIG, {"preprocessor": preprocessor, **settings}, Recipe())[0]


def agrees(recipe: Preprocess, image: Image.Image, theirs: torch.Tensor, *, levels: float = 1.0) -> None:
    """Pixels within so many levels of theirs, however these are scaled."""
    ours = recipe.apply(image, mode="crop").pixels[0]
    assert ours.shape == theirs.shape
    std = torch.tensor(recipe.std)[:, None, None]
    assert float(((ours - theirs) * std).abs().max()) <= levels * LEVEL + 1e-6


SIDE_48: dict[str, Any] = {"size": {"height": 48, "width": 48}}
CROP_48: dict[str, Any] = {"crop_size": {"height": 48, "width": 48}, "do_center_crop": True}
STATISTICS: dict[str, Any] = {"image_mean": [0.1, 0.4, 0.7], "image_std": [0.2, 0.3, 0.9]}

PROCESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "ViT": ("ViTImageProcessor", SIDE_48),
    "a number for both sides": ("ViTImageProcessor", {"size": 48}),
    "a pair": ("ViTImageProcessor", {"size": [36, 60]}),
    "ViT, cropped": ("ViTImageProcessor", {"size": {"height": 67, "width": 59}, **CROP_48}),
    "ViT, a short side": ("ViTImageProcessor", {"size": {"shortest_edge": 51}, **CROP_48}),
    "a crop that is no square": (
        "ViTImageProcessor",
        {"size": {"shortest_edge": 63}, "crop_size": {"height": 36, "width": 60}, "do_center_crop": True},
    ),
    "other statistics": ("ViTImageProcessor", SIDE_48 | STATISTICS),
    "one number": ("ViTImageProcessor", SIDE_48 | {"image_mean": 0.3, "image_std": 0.4}),
    "no normalisation": ("ViTImageProcessor", SIDE_48 | STATISTICS | {"do_normalize": False}),
    "to -1..1": (
        "ViTImageProcessor",
        SIDE_48 | {"rescale_factor": 1 / 127.5, "image_mean": 1.0, "image_std": 1.0},
    ),
    "no rescaling": (
        "ViTImageProcessor",
        SIDE_48 | {"do_rescale": False, "image_mean": 127.5, "image_std": 60},
    ),
    "levels as they are": (
        "ViTImageProcessor",
        SIDE_48 | {"do_rescale": False, "rescale_factor": 1.0, "do_normalize": False},
    ),
    "a factor of one": ("ViTImageProcessor", SIDE_48 | {"rescale_factor": 1.0, "do_normalize": False}),
    "padded to its size": (
        "ViTImageProcessor",
        SIDE_48 | {"do_pad": True, "pad_size": {"height": 48, "width": 48}},
    ),
    "nearest": ("ViTImageProcessor", SIDE_48 | {"resample": 0}),
    "lanczos": ("ViTImageProcessor", SIDE_48 | {"resample": 1}),
    "bicubic": ("ViTImageProcessor", SIDE_48 | {"resample": 3}),
    "DeiT": ("DeiTImageProcessor", {"size": 55, **CROP_48}),
    "BEiT": ("BeitImageProcessor", {"size": 59, "do_reduce_labels": True, **CROP_48}),
    "CLIP": ("CLIPImageProcessor", {"size": 48, **CROP_48, "do_convert_rgb": True}),
    "CLIP, a wider short side": ("CLIPImageProcessor", {"size": {"shortest_edge": 57}, "crop_size": 48}),
    "CLIP, smaller than its crop": ("CLIPImageProcessor", {"size": {"shortest_edge": 38}, "crop_size": 48}),
    "DINOv2": ("BitImageProcessor", {"size": {"shortest_edge": 55}, "crop_size": 48}),
    "SigLIP": ("SiglipImageProcessor", SIDE_48),
    "DINOv3": ("DINOv3ViTImageProcessor", SIDE_48),
    "DINOv3, cropped": ("DINOv3ViTImageProcessor", {"size": {"height": 54, "width": 61}, **CROP_48}),
    "BLIP": ("BlipImageProcessor", SIDE_48),
    "ChineseCLIP": ("ChineseCLIPImageProcessor", {"size": {"shortest_edge": 53}, "crop_size": 48}),
    "OWL-ViT": ("OwlViTImageProcessor", SIDE_48),
    "PVT": ("PvtImageProcessor", SIDE_48),
    "ConvNeXt, cropped": ("ConvNextImageProcessor", {"size": {"shortest_edge": 48}, "crop_pct": 0.83}),
    "ConvNeXt, whole": ("ConvNextImageProcessor", {"size": {"shortest_edge": 384}, "resample": 2}),
    "EfficientNet": ("EfficientNetImageProcessor", SIDE_48 | STATISTICS),
    "rescaled around 0": (
        "EfficientNetImageProcessor",
        SIDE_48 | {"rescale_factor": 1 / 127.5, "rescale_offset": True, "do_normalize": False, "include_top": False},
    ),
    "rescaled around 0 and normalised": (
        "EfficientNetImageProcessor",
        SIDE_48 | STATISTICS | {"rescale_factor": 1 / 127.5, "rescale_offset": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROCESSORS)
def test_pixels_are_those_of_the_processor(name: str) -> None:
    kind, values = PROCESSORS[name]
    processors = [getattr(transformers, kind)(**values)]
    if hasattr(transformers, f"{kind}Pil"):
        processors.append(getattr(transformers, f"{kind}Pil")(**values))
    # what save_pretrained writes, and what somebody wrote by hand, who leaves out what is usual
    for written in (json.loads(processors[0].to_json_string()), {"image_processor_type": kind, **values}):
        recipe = recipe_of(written)
        for size in SIZES:
            image = picture(*size)
            for processor in processors:
                if processor is not processors[0] and "smaller than" in name:
                    continue  # the two backends pad to different sides
                theirs = processor(image, return_tensors="pt")["pixel_values"][0].float()
                agrees(recipe, image, theirs)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("vit_mae", {"size": 59, "crop_size": 48, "do_center_crop": True, "resample": 3}),
        ("clip_vision_model", {"size": 59, "crop_size": 48}),
        ("dinov2_with_registers", {"size": 59, "crop_size": 48}),
        ("deit", {"size": 59, "crop_size": 48}),
    ],
)
def test_a_file_that_names_no_processor_is_read_as_that_of_its_kind_of_model(
    kind: str, values: dict[str, Any]
) -> None:
    processor = {"vit_mae": "ViT", "clip_vision_model": "CLIP", "deit": "DeiT"}.get(kind, "Bit")
    image = picture(97, 211)
    theirs = getattr(transformers, f"{processor}ImageProcessorPil")(**values)(image, return_tensors="pt")
    agrees(recipe_of(values, model_type=kind), image, theirs["pixel_values"][0])
    older = values | {"feature_extractor_type": f"{processor}FeatureExtractor"}
    agrees(recipe_of(older), image, theirs["pixel_values"][0])


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("do_resize", {"do_resize": False}),
    ("size", {"size": {"shortest_edge": 48}}),
    ("size", {"size": {"shortest_edge": 48, "longest_edge": 96}, **CROP_48}),
    ("size", {"size": {"longest_edge": 96}}),
    ("size", {"size": {"max_height": 48, "max_width": 48}}),
    ("size", {"size": {"height": 50, "width": 48}}),  # patches of 6
    ("size", {"size": [48, 48, 3]}),
    ("crop_size", {"crop_size": {"shortest_edge": 48}, "do_center_crop": True}),
    ("pad_size", {"do_pad": True, "pad_size": {"height": 60, "width": 60}}),
    ("resample", {"resample": 9}),
    ("rescale_factor", {"rescale_factor": "half"}),
    ("image_mean", {"image_mean": ["a", "b", "c"]}),
    ("rescale_offset", {"rescale_offset": True}),
    ("crop_pct", {"crop_pct": 0.9}),
    ("ensure_multiple_of", {"ensure_multiple_of": 14}),
    ("keep_aspect_ratio", {"keep_aspect_ratio": True}),
    ("do_flip_channel_order", {"do_flip_channel_order": True}),
    ("size_divisor", {"size_divisor": 32}),
    ("sharpness", {"sharpness": 0.5}),
    ("image_processor_type", {"image_processor_type": "DPTImageProcessor"}),
    ("image_processor_type", {"image_processor_type": "OfSomebodyElse"}),
    ("resample", {"image_processor_type": "DINOv3ViTImageProcessor", "resample": 3}),
    ("crop_pct", {"image_processor_type": "ConvNextImageProcessor"} | CROP_48 | SIDE_48),
]


@pytest.mark.parametrize(("key", "values"), REFUSED)
def test_what_a_processor_does_beyond_a_recipe_is_refused_by_name(key: str, values: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=rf"cannot be followed here: {key} is .*\.$") as refusal:
        recipe_of({"image_processor_type": "ViTImageProcessor", **SIDE_48, **values})
    assert "\n" not in str(refusal.value)


def test_keys_that_change_no_pixels_are_let_pass() -> None:
    written = {
        "do_convert_rgb": True, "do_reduce_labels": True, "_valid_processor_keys": ["images"], "processor_class": "CLIPProcessor",
        "do_pad": True, "data_format": "channels_first", "device": None, "ensure_multiple_of": None, "do_flip_channel_order": False,
        "auto_map": {"AutoImageProcessor": "a.B"}, "crop_size": 31, "pad_size": {"height": 48, "width": 48},
    }  # fmt: skip
    plain = {"image_processor_type": "ViTImageProcessorFast", **SIDE_48}
    assert recipe_of(plain | written) == recipe_of(plain)


@pytest.mark.parametrize("library", ["transformers", "vit_viz"])
def test_a_processor_of_pictures_beside_that_of_texts_is_found(tmp_path: Path, library: str) -> None:
    """transformers 5 writes both to processor_config.json, which goes before an older preprocessor_config.json."""
    sizes = {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 48}
    model = transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**sizes, image_size=48, patch_size=6))
    model.save_pretrained(tmp_path)
    own = {"image_processor_type": "CLIPImageProcessor", "size": 53, **CROP_48, **STATISTICS}
    nested = {"processor_class": "CLIPProcessor", "image_processor": own}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(own | {"image_mean": [0.9] * 3}))
    if library == "transformers":
        found = own_preprocess(transformers.CLIPVisionModel.from_pretrained(tmp_path))
        assert found is not None
        recipe = found[0]
    else:
        source = local_checkpoint(tmp_path)
        assert source is not None
        recipe = preprocess_of(CONFIG, source.settings, Recipe())[0]
    image = picture(97, 211)
    theirs = transformers.AutoImageProcessor.from_pretrained(tmp_path)(image, return_tensors="pt")
    agrees(recipe, image, theirs["pixel_values"][0])


def test_a_module_of_another_size_than_its_processors_says_so(tmp_path: Path) -> None:
    sizes = {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 48}
    transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=48, patch_size=6)).save_pretrained(
        tmp_path
    )
    transformers.ViTImageProcessor(size=60).save_pretrained(tmp_path)
    found = own_preprocess(transformers.ViTModel.from_pretrained(tmp_path))
    assert found is not None
    assert found[0].input_size == (48, 48)
    assert found[1].endswith("but for its size: this model takes 48 x 48 pixels and no others")


@pytest.mark.parametrize("kind", ["ViTImageProcessor", "ViTImageProcessorPil", "CLIPProcessor"])
def test_a_live_processor_prepares_pictures_as_it_does_by_itself(kind: str) -> None:
    sizes = {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 48}
    module = transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=48, patch_size=12))
    if kind == "CLIPProcessor":  # of texts and pictures
        own = transformers.CLIPImageProcessor(size=53, crop_size=48, rescale_factor=1 / 127.5)
        processor: Any = SimpleNamespace(image_processor=own)
    else:
        processor = own = getattr(transformers, kind)(size=48, do_rescale=False, **STATISTICS)
    image = picture(97, 211)
    recipe = plain_module(module, preprocess=processor).preprocess
    agrees(recipe, image, own(image, return_tensors="pt")["pixel_values"][0].float())


@pytest.mark.parametrize("given", [{"size": 48}, "ViTImageProcessor", transformers.ViTImageProcessor])
def test_what_is_no_recipe_is_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match="preprocess is a Preprocess or, for a model of transformers"):
        plain_module(torch.nn.Linear(3, 4), preprocess=given)


# --- timm

TIMM: dict[str, dict[str, Any]] = {
    "center": {"crop_pct": 0.9},
    "squash": {"crop_pct": 0.83, "crop_mode": "squash"},
    "border": {"crop_pct": 0.9, "crop_mode": "border"},
    "the whole picture in a border": {"crop_pct": 1.0, "crop_mode": "border"},
    "no square": {"input_size": (3, 36, 60), "crop_pct": 0.86},
    "no square, squash": {"input_size": (3, 60, 36), "crop_pct": 0.87, "crop_mode": "squash"},
    "no square, border": {"input_size": (3, 36, 66), "crop_pct": 0.86, "crop_mode": "border"},
    "nearest": {"crop_pct": 0.9, "interpolation": "nearest"},
    "lanczos": {"crop_pct": 0.9, "interpolation": "lanczos"},
    "box": {"crop_pct": 0.9, "interpolation": "box"},
    "statistics": {"mean": (0.2, 0.3, 0.4), "std": (0.3, 0.2, 0.1)},
    "of a test": {"crop_pct": 0.9, "test_input_size": (3, 96, 96), "test_crop_pct": 1.0, "fixed_input_size": True},
    "nothing": {},
}  # fmt: skip


@pytest.mark.parametrize("name", TIMM)
def test_pixels_are_those_of_timm(name: str) -> None:
    cfg = {"input_size": (3, 48, 48)} | TIMM[name]
    recipe = preprocess_of(CONFIG, {"pretrained_cfg": cfg}, Recipe())[0]
    transform = timm.data.create_transform(**timm.data.resolve_data_config(pretrained_cfg=cfg))
    for size in SIZES:
        image = picture(*size)
        agrees(recipe, image, transform(image), levels=0)


@pytest.mark.parametrize(
    ("key", "value"),
    [("crop_mode", "random"), ("interpolation", "random"), ("crop_pct", "most"), ("mean", "a")],
)
def test_what_timm_does_not_do_either_is_refused_by_name(key: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=key):
        preprocess_of(CONFIG, {"pretrained_cfg": {"input_size": (3, 48, 48), key: value}}, Recipe())


@pytest.mark.parametrize("mode", ["fit", "stretch"])
def test_other_modes_have_the_filter_and_the_scale_of_the_processor(mode: Any) -> None:
    values = {"size": 59, "crop_size": 48, "resample": 0, "rescale_factor": 1 / 127.5, "rescale_offset": True}
    recipe = recipe_of(values | {"do_normalize": False, "do_center_crop": True})
    image = picture(96, 144)
    size = (72, 48) if mode == "fit" else (48, 48)
    levels = np.asarray(image.resize(size, Image.Resampling.NEAREST), np.float64)
    pixels = recipe.apply(image, mode=mode).pixels[0].permute(1, 2, 0).numpy()
    np.testing.assert_allclose(pixels, levels / 127.5 - 1, atol=1e-6)


def test_a_checkpoint_beside_an_unknown_processor_is_loaded_with_a_recipe(tmp_path: Path) -> None:
    sizes = {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 48}
    model = transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=48, patch_size=6))
    model.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text('{"image_processor_type": "OfSomebodyElse"}')
    with pytest.raises(ParameterError, match=r"pass preprocess=Preprocess\(\.\.\.\) to load"):
        load(tmp_path)
    told = Preprocess(input_size=(36, 60), resize_to=67, mean=(0.1, 0.4, 0.7), crop="squash")
    loaded = load(tmp_path, preprocess=told)
    assert loaded.preprocess == replace(told, patch_size=(6, 6))
    assert dict(loaded.provenance.parameters)["preprocessing"] == "passed to load"
    assert loaded.provenance.preprocess == loaded.preprocess.describe()
