"""Preprocessing and class names: as our own files, timm and transformers write them, and as strangers may."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save_file

from vit_viz.browser import write_weights
from vit_viz.checkpoints import load
from vit_viz.checkpoints.families.base import CLIP, Recipe
from vit_viz.checkpoints.recipes import labels_of, output_of, preprocess_of
from vit_viz.errors import ParameterError, VitVizError
from vit_viz.model import VisionTransformer, ViTConfig
from vit_viz.outputs import Output

CONFIG = ViTConfig(img_size=48, patch_size=6, embed_dim=64, depth=1, num_heads=2, num_classes=3)


def test_a_model_of_one_channel_gets_one_mean() -> None:
    config = ViTConfig(img_size=48, patch_size=6, in_chans=1, embed_dim=64, depth=1, num_heads=2)
    preprocess, _ = preprocess_of(config, {}, Recipe(mean=(0.2, 0.4, 0.6)))
    assert preprocess.channels == 1
    assert preprocess.mean == pytest.approx((0.4,))


def test_the_familys_recipe_stands_in_and_says_so() -> None:
    preprocess, origin = preprocess_of(CONFIG, {}, Recipe(mean=CLIP[0], std=CLIP[1], crop_fraction=0.5))
    assert (preprocess.mean, preprocess.resize_to) == (CLIP[0], 96)
    assert origin == "assumed: the file brings none"


LABELS: list[tuple[dict[str, Any], tuple[str, ...] | None]] = [
    ({"labels": ["a", "b", "c"], "synsets": ["n1", "n2", "n3"]}, ("a", "b", "c")),
    ({"label_names": ["n1", "n2", "n3"], "label_descriptions": {"n1": "apple", "n3": "pear"}}, ("apple", "n2", "pear")),
    ({"id2label": {"2": "c", "0": "a", "1": "b"}}, ("a", "b", "c")),
    ({"id2label": {str(i): f"LABEL_{i}" for i in range(3)}}, None),
    ({"labels": ["a", "b"]}, None),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "names"), LABELS)
def test_class_names_are_read_as_each_library_writes_them(
    settings: dict[str, Any], names: tuple[str, ...] | None
) -> None:
    labels = labels_of(CONFIG, settings)
    assert (labels and labels.names) == names
    if labels is not None and "id2label" not in settings:
        assert labels.synsets == ("n1", "n2", "n3")


def test_a_thousand_nameless_classes_are_those_of_imagenet_and_an_embedding_has_none() -> None:
    config = replace(CONFIG, num_classes=1000)
    labels = labels_of(config, {})
    assert labels is not None
    assert "tench" in labels.name(0)
    assert labels_of(replace(config, projection=True), {}) is None


def test_names_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(ParameterError, match="class names that came with the checkpoint cannot be read"):
        labels_of(CONFIG, {"id2label": {"first": "a"}})


JUNK: list[Any] = [
    *(None, True, -1, 0, 10**30, 1e308, float("nan"), "x", "12", [], {}, [[]], [1, 2, 3], ["a", "b", "c"], {"a": []})
]  # fmt: skip
KEYS = [
    *("architecture", "model_args", "pretrained_cfg", "global_pool", "id2label", "label_names", "label_descriptions", "labels"),
    *("input_size", "embed_dim", "vision_config", "model_type", "image_size", "num_attention_heads"),
    *("layer_norm_eps", "hidden_act"),
]  # fmt: skip
INNER = ["input_size", "crop_pct", "crop_mode", "interpolation", "mean", "std"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    save_file(dict(VisionTransformer(CONFIG).state_dict()), path / "model.safetensors")
    return path


def loads_or_is_refused(folder: Path, config: Any, preprocessor: Any = None) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor or {}))
    try:
        said = load(folder, device="cpu").family
    except VitVizError as refusal:
        said = str(refusal)
    assert "\n" not in said


@pytest.mark.parametrize("key", KEYS)
def test_no_value_in_a_config_gives_anything_but_a_model_or_a_sentence(folder: Path, key: str) -> None:
    for value in JUNK:
        loads_or_is_refused(folder, {"architecture": "vit_tiny_patch16_224", key: value})


@pytest.mark.parametrize("key", INNER)
def test_no_value_in_a_timm_recipe_gives_anything_but_a_model_or_a_sentence(folder: Path, key: str) -> None:
    recipe = {"input_size": [3, 48, 48], "mean": [0.5] * 3, "std": [0.5] * 3}
    for value in JUNK:
        loads_or_is_refused(
            folder, {"architecture": "vit_tiny_patch16_224", "pretrained_cfg": {**recipe, key: value}}
        )


@pytest.mark.parametrize(
    "key",
    [
        "size",
        "crop_size",
        "resample",
        "image_mean",
        "image_std",
        "do_normalize",
        "do_center_crop",
        "do_rescale",
        "rescale_factor",
        "rescale_offset",
        "do_resize",
        "crop_pct",
        "do_pad",
        "pad_size",
        "default_to_square",
        "image_processor_type",
        "include_top",
    ],
)
def test_no_value_in_a_preprocessor_gives_anything_but_a_model_or_a_sentence(folder: Path, key: str) -> None:
    values = {"size": {"height": 48, "width": 48}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    if key == "pad_size":
        values["do_pad"] = True
    if key == "crop_size":
        values["do_center_crop"] = True
    for value in JUNK:
        loads_or_is_refused(folder, {"architecture": "vit_tiny_patch16_224"}, {**values, key: value})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, None),
        ({"problem_type": None}, None),
        ({"problem_type": "single_label_classification"}, None),
        ({"problem_type": "multi_label_classification"}, "sigmoid"),
        ({"problem_type": "regression"}, "value"),
        ({"problem_type": "regression", "output": "sigmoid"}, "sigmoid"),
        ({"output": {"of": "another library"}}, None),
    ],
)
def test_what_an_output_is_comes_from_the_configuration(
    settings: dict[str, Any], expected: str | None
) -> None:
    assert output_of(CONFIG, settings) == expected
    bare = replace(CONFIG, num_classes=0)
    assert output_of(bare, settings) is None


@pytest.mark.parametrize(
    ("outputs", "problem", "told", "expected"),
    [
        (1, None, None, "value"),
        (1, None, "sigmoid", "sigmoid"),
        (3, "multi_label_classification", None, "sigmoid"),
        (3, "multi_label_classification", "value", "value"),
        (3, "regression", None, "value"),
        (3, None, None, "softmax"),
        (2, None, "value", "value"),
    ],
)
def test_a_loaded_model_says_what_its_outputs_are(
    tmp_path: Path, outputs: int, problem: str | None, told: Output | None, expected: str
) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 40, "num_hidden_layers": 1, "num_attention_heads": 5, "intermediate_size": 48}
    config = transformers.ViTConfig(
        **sizes, image_size=16, patch_size=4, num_labels=outputs, problem_type=problem
    )
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path)
    model = load(tmp_path, device="cpu", output=told)
    assert model.output == expected
    assert ("output" in dict(model.provenance.parameters)) == (told is not None)
    file = tmp_path / "written.safetensors"
    write_weights(model, file, storage="fp32")
    assert load(file, device="cpu").output == expected


def test_an_output_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="'softmax', 'sigmoid', 'value'"):
        load("mini", device="cpu", output="logits")  # type: ignore[arg-type]  # as somebody may write
