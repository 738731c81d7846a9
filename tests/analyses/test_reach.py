"""Every method that reads a gradient is right or refuses by name; what needs none is not lost with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import vit_viz as vv
from tests.capture.cuts import (
    LAYOUT,
    Cut,
    Keeping,
    Rounded,
    StraightThrough,
    Unseen,
    cut_after,
    cut_whole,
    cut_within,
    whole,
    with_layers,
)
from tests.capture.models import own, pixels
from vit_viz.analyses.ablation import head_importance
from vit_viz.analyses.explain import Maps, explain, explain_subject
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.checkpoints.plain_module import plain_module
from vit_viz.errors import CaptureError, VitVizError
from vit_viz.images import Preprocess

pytestmark = pytest.mark.numbers

OF_PIXELS = ("saliency", "input_x_gradient", "integrated_gradients", "smoothgrad", "gradient_shap")
OF_LAYERS = ("relevance", "gradient_rollout")


def maps_of(model: nn.Module, *methods: str, layers: tuple[int, int] | None = None) -> Maps:
    subject = PreparedImage.of(model, pixels(), layout=LAYOUT, has_classes=True)
    return explain_subject(subject, methods=methods, target=3, layers=layers)


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_no_method_reads_a_gradient_that_is_not_there(how: str, is_frozen: bool) -> None:
    model = cut_whole(how).requires_grad_(not is_frozen)
    for method in (*OF_PIXELS, *OF_LAYERS):
        with pytest.raises(CaptureError, match=r"o gradient .*`backbone`"):
            maps_of(model, method)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: cut_after("detach"), "No gradient .* the pixels: .* output of `backbone.blocks.0`"),
        (lambda: cut_after("no_grad"), "No gradient .* the pixels: `backbone.blocks.0` runs under"),
        (lambda: cut_within("attention", 0), "whole gradient .* the pixels: `backbone.blocks.0` detaches"),
        (lambda: cut_within("weights"), "whole gradient .* the pixels: `backbone.blocks.1` detaches"),
        (
            lambda: cut_within("weights no_grad"),
            "whole gradient .* the pixels: `backbone.blocks.1` runs under",
        ),
        (lambda: cut_within("mlp"), "whole gradient .* the pixels: `backbone.blocks.1` detaches"),
        (lambda: with_layers(Rounded), "whole gradient .* the pixels: `backbone.blocks.2.proj` rounds"),
        (lambda: with_layers(Unseen), "whole gradient .* the pixels: `backbone.blocks.2.proj` detaches"),
        (lambda: cut_whole("numpy"), "No gradient .* the pixels: Cut detaches the output of `backbone`"),
    ],
)
def test_a_gradient_by_pixels_that_is_none_or_not_the_whole_is_refused(
    model: Callable[[], Cut], words: str
) -> None:
    with pytest.raises(CaptureError, match=words):
        maps_of(model(), "saliency")


@pytest.mark.parametrize("method", ["saliency", "gradient_shap"])
def test_what_is_only_kept_or_meant_so_refuses_nothing(method: str) -> None:
    assert np.array_equal(
        maps_of(with_layers(Keeping), method)[method].values, maps_of(whole(), method)[method].values
    )
    assert maps_of(with_layers(StraightThrough), method)[method].values.any()


def test_a_target_that_no_pixel_changes_has_a_map_of_zeros() -> None:
    model = whole()
    model.features = lambda x: torch.ones_like(x)
    for method in (*OF_PIXELS, *OF_LAYERS):
        assert not maps_of(model, method)[method].values.any()


@pytest.mark.parametrize("method", OF_LAYERS)
def test_the_layers_that_a_refusal_names_give_the_map_of_the_whole_model(method: str) -> None:
    with pytest.raises(CaptureError, match=r"reaches layer 0: .*layers=\(1, 3\)"):
        maps_of(cut_after("detach"), method)
    there = maps_of(cut_after("detach"), method, layers=(1, 3))[method]
    assert np.array_equal(there.values, maps_of(whole(), method, layers=(1, 3))[method].values)


@pytest.mark.parametrize("model", [lambda: cut_after("detach"), lambda: cut_whole("detach")])
def test_maps_that_need_no_gradient_are_there_beside_one_that_does(
    model: Callable[[], Cut], caplog: pytest.LogCaptureFixture
) -> None:
    asked = ("relevance", "rollout", "saliency", "attention", "occlusion")
    maps = explain(
        model(), pixels(), methods=asked, layout=LAYOUT, target=3, has_classes=True, progress=False
    )
    expected = maps_of(whole(), *asked)
    assert list(maps) == ["rollout", "attention", "occlusion"]
    for name, one in maps.items():
        assert np.array_equal(one.values, expected[name].values), name
    assert set(maps.missing) == {"relevance", "saliency"}
    assert "no map by relevance" in caplog.text
    with pytest.raises(CaptureError, match=r"backbone"):
        assert maps["relevance"]
    with pytest.raises(KeyError):
        assert maps["smoothgrad"]


def test_surfaces_keep_the_maps_that_need_no_gradient() -> None:
    recipe = Preprocess(input_size=(64, 96), patch_size=(16, 16), mean=(0.5,) * 3, std=(0.5,) * 3)
    loaded = plain_module(cut_after("detach"), preprocess=recipe, layout=LAYOUT).with_output("softmax")
    photo = Image.fromarray((255 * torch.rand(64, 96, 3)).byte().numpy())
    for options in ({}, {"methods": "rollout,relevance,attention"}):
        maps = vv.run(loaded, photo, "comparison", target=3, **options)
        assert {"rollout", "attention"} <= set(maps.maps)
        assert "`backbone.blocks.0`" in maps.missing["relevance"]
    with pytest.raises(VitVizError, match=r"`backbone.blocks.0`"):
        vv.run(loaded, photo, "relevance", target=3)
    with pytest.raises(VitVizError, match=r"`backbone.blocks.0`"):
        vv.run(loaded, photo, "comparison", target=3, methods="saliency,relevance")
    assert "Without Relevance: No gradient" in vv.run(loaded, photo, "agreement", target=3).note


def test_the_estimate_of_heads_needs_the_gradient_of_every_layer() -> None:
    subject = PreparedImage.of(cut_after("detach"), pixels(), layout=LAYOUT, has_classes=True)
    with pytest.raises(CaptureError, match="No gradient of the target reaches layer 0"):
        head_importance(subject, target=3)


def all_maps(model: nn.Module) -> dict[str, np.ndarray]:
    names = [name for name in METHODS if name not in ("kernel_shap", "occlusion")]
    names = names if type(model).__name__ == "VisionTransformer" else [*OF_PIXELS, *OF_LAYERS]
    subject = PreparedImage.of(model, pixels(), layout=LAYOUT, has_classes=True)
    maps = explain_subject(subject, methods=names, target=3)
    assert not maps.missing
    return {name: one.values for name, one in maps.items()} | {
        "heads": head_importance(subject, target=3).values
    }


@pytest.mark.parametrize("make", [own, whole])
@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_the_mode_around_a_call_changes_no_number(
    make: Callable[[], nn.Module], around: Callable[[], torch.no_grad]
) -> None:
    model = make()
    expected = all_maps(model)
    with around():
        seen = all_maps(model)
        assert not torch.is_grad_enabled()
    for name, values in seen.items():
        assert np.array_equal(values, expected[name]), name


@pytest.mark.parametrize("make", [own, whole])
def test_pixels_and_weights_made_in_inference_mode_change_no_number(make: Callable[[], nn.Module]) -> None:
    torch.manual_seed(3)
    expected = all_maps(make())
    torch.manual_seed(3)
    with torch.inference_mode():
        model = make()
    before = dict(model.named_parameters())
    assert next(iter(before.values())).is_inference()
    for name, values in all_maps(model).items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-4, atol=1e-7, err_msg=name)
    assert all(parameter is before[name] for name, parameter in model.named_parameters())
    assert all(parameter.grad is None for parameter in model.parameters())
