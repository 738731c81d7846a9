"""A model within other modules: torch's wrappers are left out, and a part is believed only where it is given the same pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import vit_viz as vv
from tests.checkpoints.test_plain_module import timm_vit, vit
from tests.comparing import assert_same
from vit_viz.capture.wrappers import answer_within, preprocess_within, unwrapped_module
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.numbers


class Lightning(nn.Module):
    """As a LightningModule holds its model beside its loss."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()

    def forward(self, pixels: Tensor) -> Any:
        return self.model(pixels)


class Distributed(nn.Module):
    """As DistributedDataParallel passes its arguments on, without a process group."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def compiled(model: nn.Module) -> Any:
    return torch.compile(model, backend="eager")


WRAPPED: dict[str, Callable[[nn.Module], nn.Module]] = {
    "DataParallel": nn.DataParallel,
    "torch.compile": compiled,
    "averaged": torch.optim.swa_utils.AveragedModel,
    "several": lambda model: nn.DataParallel(compiled(nn.DataParallel(model))),
    "Lightning": Lightning,
    "distributed": Distributed,
    "Sequential": nn.Sequential,
    "compiled within": lambda model: nn.DataParallel(Lightning(compiled(model))),
}


@pytest.mark.parametrize("way", WRAPPED)
def test_a_model_within_others_is_traced_and_explained_as_by_itself(
    make_model: Callable[..., VisionTransformer], way: str
) -> None:
    model = make_model(reg_tokens=2)
    wrapped = WRAPPED[way](model).train()
    pixels = torch.randn(1, 3, 16, 36)
    alone, within = vv.trace(model, pixels), vv.trace(wrapped, pixels)
    assert within.layout == alone.layout
    assert_same(within.logits, alone.logits)
    for layer in range(3):
        assert_same(within.attention(layer), alone.attention(layer))
    explained = [
        vv.explain(one, pixels, methods=("relevance",), target=2)["relevance"] for one in (wrapped, model)
    ]
    assert_same(torch.tensor(explained[0].values), torch.tensor(explained[1].values))
    assert wrapped.training
    assert not any(part._forward_pre_hooks for part in wrapped.modules())


def test_wrappers_of_torch_are_left_out_by_their_type() -> None:
    model = nn.Linear(3, 5)
    for wrapped in (model, nn.DataParallel(model), compiled(nn.DataParallel(compiled(model)))):
        assert unwrapped_module(wrapped) is model
    lookalike = Distributed(model)
    assert unwrapped_module(lookalike) is lookalike  # perhaps it does more


class Changing(nn.Module):
    """Gives its model something else than its own pixels."""

    def __init__(self, model: nn.Module, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self._change = model, change

    def forward(self, pixels: Tensor) -> Any:
        return self.model(self._change(pixels))


class Two(nn.Module):
    """Averages two models."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.first, self.second = first, second

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.first(pixels) + self.second(pixels)
        return logits


def test_what_a_part_says_does_not_count_where_it_is_given_other_pixels(
    make_model: Callable[..., VisionTransformer],
) -> None:
    pixels = torch.randn(1, 3, 16, 36)
    for other in (Changing(make_model(), lambda pixels: pixels * 2), Two(make_model(), make_model())):
        with pytest.raises(ParameterError, match="is not known"):
            vv.trace(other, pixels)
    for change in (
        lambda pixels: pixels.flip(-1),
        lambda pixels: torch.cat([pixels[..., 18:], pixels[..., :18]], -1),
    ):
        with pytest.raises(CaptureError, match="are not the 4 x 6 patches of its image in this order"):
            vv.trace(Changing(make_model(), change), pixels)


def as_timms(model: VisionTransformer) -> nn.Module:
    """A model that says of itself what timm's do."""
    model.pretrained_cfg = {"input_size": (3, 16, 36), "mean": (0.1, 0.2, 0.3), "std": (0.5, 0.6, 0.7)}  # type: ignore[assignment]
    model.patch_embed.patch_size, model.patch_embed.img_size = (4, 6), (16, 36)  # type: ignore[assignment]
    return model


def test_the_preprocessing_is_that_of_the_model_within_only_where_its_input_is_passed_on(
    make_model: Callable[..., VisionTransformer],
) -> None:
    model = as_timms(make_model())
    photo = Image.effect_noise((72, 32), 80).convert("RGB")
    alone = vv.run(model, photo, "look", layer=1, head="2")
    for wrapped in (nn.DataParallel(model), Lightning(model), nn.Sequential(model)):
        assert_same(
            torch.tensor(vv.run(wrapped, photo, "look", layer=1, head="2").values), torch.tensor(alone.values)
        )
    normalising = Changing(model, lambda pixels: (pixels - 0.5) / 0.5)
    assert preprocess_within(normalising) == (None, "")
    with pytest.raises(ParameterError, match="Changing does not say how pictures become its input"):
        vv.run(normalising, photo, "look")


@pytest.mark.parametrize("make", [timm_vit, vit], ids=["timm", "transformers"])
def test_a_model_of_one_size_takes_a_wide_photo_alike_within_others(make: Callable[[], nn.Module]) -> None:
    model, photo = make(), Image.effect_noise((72, 32), 80).convert("RGB")
    alone = vv.trace(model, photo)
    assert "takes no other size than 32 x 32 pixels" in alone.problems[0]
    for wrapped in (nn.DataParallel(model), Lightning(model), nn.DataParallel(nn.Sequential(model))):
        within = vv.trace(wrapped, photo)
        assert within.problems == alone.problems
        assert within.provenance.parameters == alone.provenance.parameters
        assert_same(within.logits, alone.logits)


class Counting(Lightning):
    """Counts its passes, as metrics of a training do, and may be told to flip its photos."""

    passes, flips = 0, False

    def forward(self, pixels: Tensor) -> Any:
        self.passes += 1
        return super().forward(pixels.flip(-1) if self.flips else pixels)


def passes_of(module: Any, ask: Callable[[nn.Module], object]) -> int:
    before = module.passes
    ask(module)
    return int(module.passes) - before


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: vv.trace(model, torch.randn(1, 3, 32, 32)),
        lambda model: vv.trace(model, Image.effect_noise((32, 32), 80).convert("RGB")),
        lambda model: vv.explain(model, torch.randn(1, 3, 32, 32), methods="relevance", target=2),
    ],
    ids=["pixels", "photo", "map"],
)
def test_where_a_model_lies_within_others_is_found_once(ask: Callable[[nn.Module], object]) -> None:
    wrapped = Counting(timm_vit())
    counts = [passes_of(wrapped, ask) for _ in range(3)]
    assert counts[0] > counts[1] == counts[2] == (2 if "relevance" in ask.__code__.co_consts else 1)


def test_where_a_model_lies_is_found_anew_once_the_module_has_changed() -> None:
    model, pixels = nn.Flatten(), torch.randn(1, 3, 4, 6)
    wrapped = Counting(model)

    def is_told() -> bool:
        return answer_within(wrapped, pixels, lambda part: "itself" if part is model else None) == "itself"

    assert is_told()
    assert is_told()
    assert wrapped.passes == 1
    for flips in (True, False, True, False):
        wrapped.flips = flips
        assert is_told() != flips
    hook = wrapped.register_forward_pre_hook(lambda _, args: (args[0].flip(-2),))
    assert not is_told()
    hook.remove()
    assert is_told()
    wrapped.model = Changing(model, lambda pixels: pixels.flip(-1))
    assert not is_told()
    wrapped.model._change = torch.clone
    assert is_told()
    assert (
        answer_within(wrapped, pixels[..., 1:], lambda part: "itself" if part is model else None) == "itself"
    )


def test_where_a_model_lies_is_found_for_each_part_that_is_asked_for() -> None:
    wrapped, pixels = Counting(nn.Flatten()), torch.randn(1, 3, 4, 6)
    for part, said in ((wrapped.loss, None), (wrapped.model, "itself")):
        assert (
            answer_within(wrapped, pixels, lambda one, part=part: "itself" if one is part else None) == said
        )


def test_what_a_black_photo_shows_of_a_wrapper_is_not_believed() -> None:
    flipping = Changing(timm_vit(), lambda pixels: pixels.flip(-1))
    with pytest.raises(CaptureError, match="are not the 2 x 2 patches of its image in this order"):
        vv.trace(flipping, torch.zeros(1, 3, 32, 32))
