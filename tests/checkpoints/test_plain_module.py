"""What a module of timm, transformers or torchvision says of itself: its recipe, its channels, and whether it takes other sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision
import transformers
from PIL import Image
from torch import nn

import vit_viz as vv
from vit_viz.checkpoints.declared_outputs import declared_labels
from vit_viz.checkpoints.plain_module import own_preprocess, plain_module, takes_one_size
from vit_viz.errors import ParameterError
from vit_viz.ui.app import session_of

TIMM = {"img_size": 32, "embed_dim": 32, "depth": 2, "num_heads": 4, "num_classes": 7}
HIDDEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
SHAPE: dict[str, Any] = HIDDEN | {"image_size": 32, "patch_size": 8}


def timm_vit(**options: Any) -> nn.Module:
    model: nn.Module = timm.create_model("vit_tiny_patch16_224", **TIMM | options)
    return model


def vit(**options: Any) -> nn.Module:
    return transformers.ViTForImageClassification(transformers.ViTConfig(**SHAPE | options))


MODELS = {
    "timm": timm_vit,
    "timm, dynamic": lambda: timm_vit(dynamic_img_size=True),
    "timm DINOv3": lambda: timm.create_model("vit_small_patch16_dinov3", **TIMM | {"embed_dim": 64}),
    "timm BEiT": lambda: timm.create_model("beit_base_patch16_224", **TIMM),
    "ViT": vit,
    "CLIP": lambda: transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**SHAPE)),
    "SigLIP": lambda: transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**SHAPE)),
    "DINOv2": lambda: transformers.Dinov2ForImageClassification(transformers.Dinov2Config(**SHAPE)),
    "BEiT": lambda: transformers.BeitForImageClassification(transformers.BeitConfig(**SHAPE)),
    "torchvision": lambda: torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 40),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_takes_one_size_if_it_stops_at_another(name: str) -> None:
    model = MODELS[name]().eval()
    assert takes_one_size(model) == stops(model, torch.zeros(1, 3, 32, 48))


def stops(model: nn.Module, pixels: torch.Tensor) -> bool:
    try:
        with torch.no_grad():
            model(pixels)
    except (AssertionError, RuntimeError, ValueError):
        return True
    return False


@pytest.mark.parametrize("make", [lambda: timm_vit(in_chans=1), lambda: vit(num_channels=1)])
def test_a_model_of_one_channel_sees_a_photo_in_gray(make: Any) -> None:
    photo = Image.linear_gradient("L").resize((60, 60))
    recipe = plain_module(make()).preprocess
    assert (recipe.channels, len(set(recipe.mean))) == (1, 1)
    assert vv.trace(make(), photo).logits is not None


@pytest.mark.parametrize("channels", [2, 4])
def test_a_model_of_two_or_four_channels_asks_for_pixels(channels: int) -> None:
    for model in (timm_vit(in_chans=channels), vit(num_channels=channels)):
        with pytest.raises(ParameterError, match=f"takes {channels} channels, but a picture gives 1 or 3"):
            vv.trace(model, "shapes")


def test_pixels_of_another_number_of_channels_are_refused_in_a_sentence() -> None:
    with pytest.raises(
        vv.CaptureError, match=r"does not run on pixels \[1, 4, 32, 32\] \(RuntimeError: .*\.$"
    ):
        vv.explain(timm_vit(), torch.zeros(1, 4, 32, 32))


def test_pixels_of_another_size_are_refused_in_a_sentence_that_says_what_to_do() -> None:
    with pytest.raises(vv.CaptureError, match=r'\(AssertionError: .*mode="crop".*dynamic_img_size=True'):
        vv.trace(timm_vit(), torch.zeros(1, 3, 32, 48))


def test_a_transformers_model_takes_mean_and_deviation_from_the_processor_beside_its_weights(
    tmp_path: Path,
) -> None:
    vit().save_pretrained(tmp_path)
    transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, image_mean=[0.1, 0.2, 0.3], image_std=[0.4, 0.5, 0.6]
    ).save_pretrained(tmp_path)
    module = transformers.ViTForImageClassification.from_pretrained(tmp_path)
    recipe, origin = own_preprocess(module)
    assert recipe == replace(vv.load(tmp_path).preprocess, drop_remainder=True, one_size=True)
    assert recipe is not None
    assert (recipe.mean, recipe.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert origin == "from the checkpoint (preprocessor)"


def test_a_transformers_model_without_a_processor_says_that_its_recipe_is_assumed() -> None:
    recorded = vv.trace(vit(), "shapes", mode="crop")
    assert dict(recorded.provenance.parameters)["preprocessing"].startswith("assumed: no processor")
    clip, _ = own_preprocess(transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**SHAPE)))
    assert clip is not None
    assert clip.mean == (0.48145466, 0.4578275, 0.40821073)


def test_what_lies_in_the_working_folder_is_no_processor_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"image_mean": [9, 9, 9], "image_std": [1, 1, 1]}')
    monkeypatch.chdir(tmp_path)
    recipe, _ = own_preprocess(vit())
    assert recipe is not None
    assert recipe.mean == (0.5, 0.5, 0.5)


def test_patches_that_do_not_divide_the_only_size_are_placed_right() -> None:
    """The last pixels that no patch covers are the model's to leave out, not the map's to stretch over."""
    model = timm_vit(img_size=40)  # two patches of 16 pixels, and eight that none covers
    recorded = vv.trace(model, Image.linear_gradient("L").resize((80, 80)), mode="stretch")
    assert recorded.crop_box is not None
    assert recorded.crop_box.patch_rect(1, 1, (2, 2)) == pytest.approx((32, 32, 64, 64))


# --- what its classes are called

ANIMALS: dict[str, Any] = {"id2label": {2: "lion", 0: "cat", 1: "dog"}}


def timm_with_names(count: int = 3) -> nn.Module:
    model = timm_vit(num_classes=count)
    described = {"n01": "cat", "n02": "dog"}
    model.pretrained_cfg |= {"label_names": ["n01", "n02", "n03"], "label_descriptions": described}
    return model


def teacher_vit(**options: Any) -> nn.Module:
    config = transformers.DeiTConfig(**SHAPE | options)
    return transformers.DeiTForImageClassificationWithTeacher(config)


def with_another_head(model: nn.Module, count: int) -> nn.Module:
    model.classifier = nn.Sequential(nn.Dropout(), nn.Linear(32, count))
    return model


NAMED = {
    "transformers": (lambda: vit(**ANIMALS), ("cat", "dog", "lion")),
    "two heads": (lambda: teacher_vit(**ANIMALS), ("cat", "dog", "lion")),
    "a new head of equal size": (lambda: with_another_head(vit(**ANIMALS), 3), ("cat", "dog", "lion")),
    "within another module": (lambda: nn.Sequential(vit(**ANIMALS)), ("cat", "dog", "lion")),
    "timm": (timm_with_names, ("cat", "dog", "n03")),
    "no names but LABEL_0": (lambda: vit(num_labels=3), None),
    "a new head of another size": (lambda: with_another_head(vit(**ANIMALS), 2), None),
    "timm, a new head": (lambda: timm_with_names(7), None),
    "names by something else": (lambda: with_config(vit(), {"id2label": {"cat": 0, "dog": 1}}), None),
    "torchvision": (MODELS["torchvision"], None),
}


def with_config(model: nn.Module, config: Any) -> nn.Module:
    model.config = config
    return model


@pytest.mark.parametrize("name", NAMED)
def test_a_module_brings_names_of_its_classes_where_they_are_as_many_as_its_outputs(name: str) -> None:
    make, expected = NAMED[name]
    labels = declared_labels(make())
    assert (labels and labels.names) == expected


def test_a_module_with_names_is_asked_about_a_class_by_its_name() -> None:
    model, pixels = vit(**ANIMALS).eval(), torch.randn(1, 3, 32, 32)
    for picture in (pixels, "shapes"):
        by_name = vv.explain(model, picture, target="lion", methods=["relevance"], mode="crop")
        by_number = vv.explain(model, picture, target=2, methods=["relevance"], mode="crop")
        assert (by_name["relevance"].values == by_number["relevance"].values).all()
    with pytest.raises(ParameterError, match="wolf"):
        vv.trace(model, pixels, target="wolf")


def test_a_module_is_served_with_its_classes() -> None:
    assert session_of(timm_vit()).model().has_classes
    assert session_of(vit(**ANIMALS)).model().labels.find("dog") == 1
    own = vv.Labels(("a", "b", "c"))
    assert session_of(vit(**ANIMALS), labels=own).model().labels is own
    embedding = timm_vit(num_classes=0)
    assert not session_of(embedding).model().has_classes


def test_a_timm_model_whose_patches_have_one_number_for_both_sides_says_how_pictures_become_its_input() -> (
    None
):
    model = timm_vit()
    model.patch_embed.patch_size = 8
    preprocess, _ = own_preprocess(model)
    assert preprocess.patch_size == (8, 8)
