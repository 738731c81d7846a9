"""What people hand over is taken for what it plainly means, and else refused in a sentence that says what to pass."""

from __future__ import annotations

import functools
import warnings
from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from tests.capture.models import pixels, timm_vit, transformers_vit
from tests.capture.tutorials import FusedQkv, TutorialViT
from vit_viz.analyses.explain import explain
from vit_viz.capture import trace
from vit_viz.capture.given import as_picture, as_pixels, class_index, dtype_of
from vit_viz.errors import CaptureError, ImageError, ParameterError
from vit_viz.geometry import TokenLayout


def test_a_text_is_the_path_of_a_picture() -> None:
    assert as_picture("photos/a b.png") == Path("photos/a b.png")


def test_a_picture_a_path_and_pixels_are_taken_as_they_are() -> None:
    for given in (Image.new("RGB", (7, 5)), torch.zeros(1, 3, 5, 7)):
        assert as_picture(given) is given
    assert as_picture(Path("a.png")) == Path("a.png")


@pytest.mark.parametrize(
    ("given", "what"),
    [(None, "none was given"), (3.5, "not an object of type float"), (nn.Linear(2, 3), "not a model")],
)
def test_what_is_no_picture_is_refused(given: object, what: str) -> None:
    with pytest.raises(ParameterError, match=f"as a tensor, {what}"):
        as_picture(given)


def test_finite_pixels_whose_sum_overflows_are_taken() -> None:
    pixels = torch.full((1, 3, 4, 6), 3e4).half()
    assert pixels.sum().isinf()
    assert torch.equal(as_pixels(pixels, nn.Linear(2, 3).half()), pixels)


def test_a_word_that_is_no_file_and_no_sample_is_refused_and_what_may_be_a_file_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImageError, match=r"no file and no sample 'shape'.*shapes"):
        as_picture("shape")
    (tmp_path / "shape").touch()
    assert as_picture("shape") == Path("shape")
    for text in ("shape.png", "folder/shape"):
        assert as_picture(text) == Path(text)
    assert as_picture(Path("other")) == Path("other")


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 6, 2), np.uint8), r"not \[4, 6, 2\]"),
        (np.zeros((1, 3, 4, 6), np.float32), r"not \[1, 3, 4, 6\]"),
        (np.zeros((0, 6, 3), np.uint8), r"not \[0, 6, 3\]"),
        (np.zeros(6, np.uint8), r"not \[6\]"),
        (np.full((4, 6), 1.01), "values from 0 to 1"),
        (np.full((4, 6), -0.01), "values from 0 to 1"),
        (np.full((4, 6), np.nan), "values from 0 to 1"),
        (np.zeros((4, 6), bool), "not bool"),
        (np.zeros((4, 6), np.int64), "not int64"),
    ],
)
def test_an_array_that_is_no_picture_is_refused(array: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        as_picture(array)


@pytest.mark.parametrize(
    ("shape", "mode"), [((4, 6), "L"), ((4, 6, 1), "L"), ((4, 6, 3), "RGB"), ((4, 6, 4), "RGBA")]
)
def test_an_array_is_a_picture_of_bytes_or_of_shares_of_255(shape: tuple[int, ...], mode: str) -> None:
    tones = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    for array in (tones, tones / 255):
        picture = as_picture(array)
        assert isinstance(picture, Image.Image)
        assert (picture.mode, picture.size) == (mode, (6, 4))
        assert np.array_equal(np.asarray(picture).reshape(shape), tones)


def test_a_class_is_found_by_its_index_or_its_name() -> None:
    assert class_index(" 12 ", None) == 12
    with pytest.raises(ParameterError, match="'lion' cannot be found, since this model came without names"):
        class_index("lion", None)


@pytest.mark.parametrize("shape", [(3, 4, 6), (2, 3, 4, 6)])
def test_pixels_of_one_image_have_four_axes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="A trace is of one image"):
        as_pixels(torch.zeros(shape), nn.Linear(2, 3))


def test_pixels_come_in_the_precision_of_the_first_parameter_that_is_no_integer() -> None:
    module = nn.Module()
    module.register_parameter("counts", nn.Parameter(torch.zeros(2, dtype=torch.long), requires_grad=False))
    assert as_pixels(torch.zeros(1, 3, 4, 6).half(), module).dtype == torch.float16
    module.register_parameter("weights", nn.Parameter(torch.zeros(2, dtype=torch.float64)))
    assert as_pixels(torch.zeros(1, 3, 4, 6), module).dtype == torch.float64
    assert dtype_of(nn.Identity(), torch.zeros(1).half()) == torch.float16


def test_a_picture_needs_a_model_that_says_how_it_becomes_pixels() -> None:
    with pytest.raises(ParameterError, match="TutorialViT does not say how pictures become its input"):
        trace(TutorialViT(FusedQkv), Image.new("RGB", (96, 64)))


class Bring:
    """As accelerate's hook: the weights of a part are kept elsewhere, and brought while it runs."""

    def __init__(self, device: object) -> None:
        self.execution_device = device

    def on(self, part: nn.Module) -> None:
        kept = dict(part._parameters)

        def bring(*_: object) -> None:
            part._parameters.update(kept)

        def take(*_: object) -> None:
            for name, weight in kept.items():
                part._parameters[name] = None if weight is None else nn.Parameter(weight.to("meta"), False)

        part._hf_hook = self  # type: ignore[assignment]
        part.register_forward_pre_hook(bring)
        part.register_forward_hook(take)
        take()


class InTurn:
    """As accelerate's, of several hooks on one part."""

    def __init__(self, *hooks: object) -> None:
        self.hooks = hooks


def offloaded(module: nn.Module, device: object = "cpu") -> nn.Module:
    for part in list(module.modules()):
        if part._parameters:
            Bring(device).on(part)
            part._hf_hook = InTurn(object(), part._hf_hook)
    return module


@pytest.mark.parametrize("make", [timm_vit, transformers_vit])
@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_weights_that_are_brought_when_they_are_needed_give_the_same_attention(
    make: Callable[[], nn.Module], device: object
) -> None:
    whole = make().requires_grad_(False)
    expected = trace(whole, pixels(), target=3)
    maps = explain(whole, pixels(), methods=("relevance", "integrated_gradients"), target=3)
    module = offloaded(whole, device)
    assert next(module.parameters()).is_meta
    found = trace(module, pixels(), target=3)
    assert found.proof_status == "proven"
    for layer in range(3):
        assert torch.equal(found.attention(layer), expected.attention(layer))
    others = explain(module, pixels(), methods=("relevance", "integrated_gradients"), target=3)
    for name in ("relevance", "integrated_gradients"):
        np.testing.assert_array_equal(others[name].values, maps[name].values)


def test_weights_without_numbers_are_named() -> None:
    with torch.device("meta"):
        empty = timm_vit()
    with torch.device("meta"):
        brings_preprocess = transformers_vit()
    for module, given in ((empty, pixels()), (brings_preprocess, Image.new("RGB", (70, 50)))):
        with pytest.raises(ParameterError, match=r"weights of Vi\w+ are on the meta device.*load them first"):
            trace(module, given)
    with pytest.raises(ParameterError, match="pixels are on the meta device"):
        trace(timm_vit(), pixels().to("meta"))
    partly = timm_vit()
    partly.head.to("meta")  # type: ignore[operator, union-attr]
    with pytest.raises(CaptureError, match=r"weight head\.weight is on the meta device"):
        trace(partly, pixels())


def test_what_runs_outside_of_python_is_refused_with_what_to_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about a thing of the past that people still load
        scripted = torch.jit.script(nn.Sequential(nn.Conv2d(3, 8, 4, 4)))
        traced = torch.jit.trace(timm_vit().eval(), pixels())
    for module in (scripted, traced):
        with pytest.raises(ParameterError, match=r"TorchScript .* load_state_dict"):
            trace(module, pixels())


@pytest.mark.parametrize("more", [{}, {"labels": torch.tensor([2])}, {"pixel_mask": np.ones((1, 64, 96))}])
def test_what_a_processor_returns_stands_for_its_pixels(more: dict[str, Any]) -> None:
    model, given = transformers_vit(), pixels()
    expected = trace(model, given).attention(2)
    for values in (given, given.numpy(), [given[0].numpy()]):
        for output in ({"pixel_values": values} | more, UserDict({"pixel_values": values} | more)):
            assert torch.equal(trace(model, output).attention(2), expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"pixel_values": pixels(), "bool_masked_pos": torch.zeros(1, 24)},
            r"partial\(model.forward, bool_masked_pos=...\)",
        ),
        (
            {"pixel_values": pixels(), "pixel_mask": torch.zeros(1, 64, 96)},
            "Beside 'pixel_values' 'pixel_mask' is given",
        ),
        (
            {"pixel_values": "shapes"},
            "pixel_values are a tensor or an array of numbers, not the text 'shapes'",
        ),
        ({"pixel_values": None}, "not None"),
        (
            {"patches": pixels(), "patch_coord": 0},
            r"'pixel_values' are taken, and this one has patches, patch_coord: pass a",
        ),
        ({}, "this one has nothing"),
        ([Image.new("RGB", (7, 5))] * 2, "not a list of 2: pass its pictures one by one"),
    ],
)
def test_more_than_pixels_is_refused_with_what_to_do(given: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        as_picture(given)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.bool, torch.complex64])
def test_pixels_that_are_not_normalised_numbers_are_refused(dtype: torch.dtype) -> None:
    with pytest.raises(ParameterError, match=r"floats, not (uint8|int64|bool|complex64): pass a photo as"):
        as_pixels(torch.zeros(1, 3, 4, 6).to(dtype), nn.Linear(2, 3))


def test_pixels_of_inference_mode_may_be_differentiated() -> None:
    with torch.inference_mode():
        given = pixels()
    assert trace(timm_vit(), given, target=3).attention_gradient(0).abs().sum() > 0


class Inputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = timm_vit()


class WithTime(Inputs):
    def forward(self, x: Tensor, time: float, *, scale: float = 1.0) -> Any:
        return self.inner(x * scale + time)


class ByKeyword(Inputs):
    def forward(self, x: Tensor, *, time: float, **_: Any) -> Any:
        return self.inner(x + time)


class ByName(Inputs):
    def forward(self, *, pixel_values: Tensor) -> Any:
        return self.inner(pixel_values)


@pytest.mark.parametrize("make", [WithTime, ByKeyword])
def test_a_second_input_is_named_and_may_be_bound(make: type[nn.Module]) -> None:
    model = make().eval()
    with pytest.raises(
        CaptureError, match=r"needs time beside pixels.*partial\(model\.forward, time=\.\.\.\)"
    ):
        trace(model, pixels())
    model.forward = functools.partial(model.forward, time=0.5)
    layout = TokenLayout(grid=(4, 6))
    assert trace(model, pixels(), layout=layout).proof_status == "proven"


def test_pixels_that_are_not_the_first_input_are_given_by_name() -> None:
    model = ByName().eval()
    with pytest.raises(CaptureError, match=r"lambda pixels: forward\(pixel_values=pixels\)"):
        trace(model, pixels())
    forward = model.forward
    model.forward = lambda pixels: forward(pixel_values=pixels)  # type: ignore[method-assign]
    assert trace(model, pixels(), layout=TokenLayout(grid=(4, 6))).proof_status == "proven"


def test_channels_that_come_last_are_recognised() -> None:
    with pytest.raises(CaptureError, match=r"\[1, 64, 96, 3\], whose channels seem to come last"):
        trace(timm_vit(), pixels().permute(0, 2, 3, 1))
