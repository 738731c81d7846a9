"""Edits while blocks are checkpointed: the backward pass runs them again, and has to meet the same edits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from tests.capture.models import lively, pixels, timm_vit, transformers_vit
from tests.capture.tutorials import FusedQkv, MultiHead, TutorialViT
from tests.comparing import assert_same
from vit_viz.capture import edit, trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

EDITS = {
    "heads": {(0, 1): 0.0, (1, 3): -2.0, (2, 4): "mean"},
    "temperature": {1: 0.4, 2: 3.0},
    "knockout": {0: [(0, 4)]},
}


Way = Callable[[nn.Module, Tensor], Tensor]


class Checkpointed(TutorialViT):
    """Blocks that are run as `how` says: (block, x) -> x."""

    how: Way = staticmethod(lambda block, x: block(x))

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        for layer in self.layers:
            x = self.how(layer, x)
        return self.head(x.mean(1))


class Looped(Checkpointed):
    """One block, three times: nothing but the order tells which layer it is."""

    def forward(self, image: Tensor) -> Tensor:
        self.layers = nn.ModuleList([self.layers[0]] * 3)
        return super().forward(image)


def reentrant(block: nn.Module, x: Tensor) -> Tensor:
    return checkpoint(block, x, use_reentrant=True)


def not_reentrant(block: nn.Module, x: Tensor) -> Tensor:
    return checkpoint(block, x, use_reentrant=False)


def nested(block: nn.Module, x: Tensor) -> Tensor:
    return checkpoint(lambda x: checkpoint(block, x, use_reentrant=False) + x, x, use_reentrant=False)


def unchecked(block: nn.Module, x: Tensor) -> Tensor:
    return block(x) + x


WAYS = {"reentrant": reentrant, "not reentrant": not_reentrant}


def gradients(
    model: nn.Module, *, backward: str = "inside", edits: list[dict[str, object]] | None = None
) -> list[Tensor]:
    """Gradient of a logit with respect to every parameter, under edits; the backward pass runs inside the edit, or after it."""
    model.zero_grad()
    with edit(**(edits or [EDITS])[0]):  # type: ignore[arg-type]
        with edit(**edits[1]) if edits else nullcontext():  # type: ignore[arg-type]
            loss = model(pixels(2))[:, 2].sum()
            if backward == "inside":
                loss.backward()
        if backward == "autograd.backward":
            torch.autograd.backward(loss)
    if backward == "after":
        loss.backward()
    elif backward == "inside another edit":
        with edit(heads={(1, 0): 5.0}, temperature={0: 9.0}):
            loss.backward()
            model(pixels(2))
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def plainly(block: nn.Module, x: Tensor) -> Tensor:
    return block(x)


def tutorial(
    how: Way, *, attention: type[nn.Module] = FusedQkv, kind: type[Checkpointed] = Checkpointed
) -> Checkpointed:
    torch.manual_seed(0)
    model = kind(attention)
    model.how = how
    return lively(model)  # type: ignore[return-value]


def assert_all_same(got: list[Tensor], expected: list[Tensor]) -> None:
    assert len(got) == len(expected) > 20
    for one, other in zip(got, expected, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("backward", ["inside", "after", "autograd.backward", "inside another edit"])
@pytest.mark.parametrize("attention", [FusedQkv, MultiHead])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_under_an_edit_are_those_without_checkpoints(
    way: str, attention: type[nn.Module], backward: str
) -> None:
    expected = gradients(tutorial(plainly, attention=attention))
    assert_all_same(gradients(tutorial(WAYS[way], attention=attention), backward=backward), expected)


@pytest.mark.parametrize("way", WAYS)
def test_layers_that_share_one_module_are_told_apart(way: str) -> None:
    expected = gradients(tutorial(plainly, kind=Looped), edits=[EDITS, {"heads": {(1, 1): 0.0}}])  # fmt: skip
    got = gradients(tutorial(WAYS[way], kind=Looped), edits=[EDITS, {"heads": {(1, 1): 0.0}}])
    for one, other in zip(got, expected, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("backward", ["inside", "after"])
@pytest.mark.parametrize("way", WAYS)
def test_nested_edits_hold_in_the_second_run(way: str, backward: str) -> None:
    edits: list[dict[str, object]] = [EDITS, {"mask_keys": [3, 7], "temperature": {1: 5.0}}]
    expected = gradients(tutorial(plainly, attention=MultiHead), edits=edits)
    got = gradients(tutorial(WAYS[way], attention=MultiHead), edits=edits, backward=backward)
    assert_all_same(got, expected)


@pytest.mark.parametrize("backward", ["inside", "after"])
def test_checkpoints_within_checkpoints(backward: str) -> None:
    assert_all_same(gradients(tutorial(nested), backward=backward), gradients(tutorial(unchecked)))


@pytest.mark.parametrize("way", WAYS)
def test_several_blocks_in_one_checkpoint(way: str) -> None:
    class Segments(TutorialViT):
        def forward(self, image: Tensor) -> Tensor:
            x = self.embed(image).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
            x = checkpoint_sequential(list(self.layers), 2, x, use_reentrant=way == "reentrant")
            return self.head(x.mean(1))

    torch.manual_seed(0)
    model = lively(Segments(FusedQkv))
    assert_all_same(gradients(model), gradients(tutorial(plainly)))


class Logits(nn.Module):
    """A model of transformers that returns its logits alone."""

    def __init__(self) -> None:
        super().__init__()
        self.model = transformers_vit()

    def forward(self, image: Tensor) -> Tensor:
        return self.model(image).logits


@pytest.mark.parametrize("make", [timm_vit, Logits])
@pytest.mark.parametrize("backward", ["inside", "after"])
def test_the_checkpoints_of_libraries(make: Callable[[], nn.Module], backward: str) -> None:
    torch.manual_seed(0)
    plain = make()
    torch.manual_seed(0)
    model = make()
    if isinstance(model, Logits):
        model.train()  # transformers checkpoints in training mode alone; its dropout is 0
        model.model.activation_checkpointing_enable()
    else:
        model.set_grad_checkpointing()  # type: ignore[operator]
    assert_all_same(gradients(model, backward=backward), gradients(plain))


def test_a_backward_pass_may_be_repeated() -> None:
    model, plain = tutorial(not_reentrant), tutorial(plainly)
    expected = gradients(plain)
    with edit(**EDITS):  # type: ignore[arg-type]
        loss = model(pixels(2))[:, 2].sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert_all_same([p.grad / 2 for p in model.parameters() if p.grad is not None], expected)


def test_a_pass_without_an_edit_is_not_edited_when_it_is_run_again() -> None:
    model = tutorial(not_reentrant)
    loss = model(pixels(2))[:, 2].sum()
    plain = tutorial(plainly)
    plain(pixels(2))[:, 2].sum().backward()
    with edit(heads={(0, 0): 0.0}):
        model(pixels(2))
        loss.backward()
    assert_all_same(*([p.grad for p in each.parameters() if p.grad is not None] for each in (model, plain)))


def test_a_trace_with_a_target_inside_an_edit() -> None:
    layout = TokenLayout(grid=(4, 6))
    found = []
    for how in (not_reentrant, plainly):
        with edit(**EDITS):  # type: ignore[arg-type]
            found.append(trace(tutorial(how, attention=MultiHead), pixels(), layout=layout, target=2))
    for layer in range(3):
        assert_same(found[0].attention_gradient(layer), found[1].attention_gradient(layer))


def test_a_block_that_attends_more_often_the_second_time_is_one_sentence() -> None:
    class Moody(FusedQkv):
        runs = 0

        def forward(self, x: Tensor) -> Tensor:
            self.runs += 1
            return super().forward(x) if self.runs == 1 else super().forward(super().forward(x))

    model = tutorial(reentrant, attention=Moody)
    with pytest.raises(CaptureError, match="more often when it ran again"):
        gradients(model)
