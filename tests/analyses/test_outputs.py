"""What a model's outputs are: what it says of itself, by its head, its configuration, its notes or the name of its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from vit_viz.checkpoints.declared_outputs import outputs_of
from vit_viz.model import VisionTransformer


class Tail(nn.Module):
    """A body, then parts under telling or other names."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        self.body = nn.Linear(3, 4)
        for name, part in parts.items():
            setattr(self, name, part)


class Own(nn.Module):
    """No container, though its last part is linear."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 7)


def linear() -> nn.Module:
    return nn.Linear(4, 7)


CLASSIFIER = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 7))
HEADS: dict[str, tuple[dict[str, nn.Module], str]] = {
    "a linear head": ({"head": linear()}, "classes"),
    "torchvision's heads": ({"heads": nn.Sequential(nn.Sequential(linear()))}, "classes"),
    "a linear fc": ({"fc": linear()}, "classes"),
    "a linear classifier": ({"classifier": linear()}, "classes"),
    "a norm and a linear layer": ({"mlp_head": CLASSIFIER}, "classes"),
    "a classification head": ({"classification_head": linear()}, "classes"),
    "the first name counts": ({"fc": nn.Identity(), "head": linear()}, "classes"),
    "a head that hands on": ({"head": nn.Identity()}, "embedding"),
    "a norm, then nothing more": ({"fc": nn.Sequential(nn.LayerNorm(4), nn.Identity())}, "embedding"),
    "a head that ends in a norm": ({"head": nn.Sequential(linear(), nn.LayerNorm(7))}, "unknown"),
    "a head without parts": ({"head": nn.Sequential()}, "unknown"),
    "a head of a class of its own": ({"head": Own()}, "unknown"),
    "a projection": ({"proj": linear()}, "unknown"),
    "no head": ({}, "unknown"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_module_tells_by_its_head_what_its_outputs_are(name: str) -> None:
    parts, expected = HEADS[name]
    module = Tail(**parts, other=nn.LayerNorm(4))
    assert outputs_of(module) == expected
    assert outputs_of(nn.Sequential(module)) == expected
    assert outputs_of(nn.Sequential(nn.Sequential(module))) == expected


def test_a_module_without_parts_does_not_say_what_its_outputs_are() -> None:
    assert outputs_of(nn.Linear(4, 7)) == "unknown"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "classes"),
        ({"num_classes": 1}, "classes"),
        ({"num_classes": 0}, "embedding"),
        ({"projection": True}, "embedding"),
    ],
    ids=["classes", "one class", "no classes", "projection"],
)
def test_our_own_models_tell_by_their_configuration(
    make_model: Callable[..., VisionTransformer], options: dict[str, Any], expected: str
) -> None:
    assert outputs_of(make_model(**options)) == expected


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("vit_tiny_patch16_224", {"num_classes": 7}, "classes"),
        ("vit_tiny_patch16_224", {"num_classes": 1}, "classes"),
        ("vit_tiny_patch16_224", {"num_classes": 0}, "embedding"),
        ("vit_tiny_patch16_224.augreg_in21k_ft_in1k", {}, "classes"),
        ("vit_tiny_patch16_224.augreg_in21k", {}, "classes"),  # as many outputs as it was trained with
        ("vit_base_patch32_clip_224.openai", {}, "embedding"),
        ("vit_base_patch32_clip_224.openai", {"num_classes": 7}, "classes"),
        ("vit_base_patch32_clip_224.openai_ft_in1k", {}, "classes"),
        ("vit_base_patch16_siglip_224.webli", {}, "embedding"),
        ("vit_base_patch16_siglip_224.webli", {"num_classes": 7}, "classes"),
    ],
)
def test_timms_models_tell_by_their_notes(name: str, options: dict[str, Any], expected: str) -> None:
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        model = timm.create_model(name, pretrained=False, depth=1, **options)
    assert outputs_of(model) == expected


@pytest.mark.parametrize(
    ("architecture", "tag", "outputs", "expected"),
    [
        ("vit_base_patch32_clip_224", "openai", 512, "embedding"),
        ("vit_base_patch32_clip_224", "openai", 7, "classes"),
        ("vit_base_patch32_clip_224", "openai_ft_in1k", 512, "classes"),
        ("vit_giantopt_patch16_siglip_256", "v2_webli", 512, "embedding"),
        ("vit_tiny_patch16_224", "augreg_in21k", 512, "classes"),
    ],
)
def test_notes_may_be_a_dictionary(architecture: str, tag: str, outputs: int, expected: str) -> None:
    module = Tail()
    module.pretrained_cfg = {"architecture": architecture, "tag": tag, "num_classes": 512}
    module.num_classes = outputs
    assert outputs_of(module) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("SomeForImageClassification", "classes"), ("SomeForMaskedImage", "unknown")]
)
def test_transformers_classifiers_tell_by_the_name_of_their_class(name: str, expected: str) -> None:
    module = type(name, (Tail,), {})(other=nn.LayerNorm(4))
    assert outputs_of(module) == expected
