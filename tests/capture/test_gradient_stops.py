"""A gradient that a part of the model keeps from a layer is refused by name; one that is 0 is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from tests.capture.cuts import (
    CLASSES,
    LAYOUT,
    Cut,
    CutBlock,
    Keeping,
    Rounded,
    Stored,
    StraightThrough,
    Unseen,
    cut_after,
    cut_whole,
    cut_within,
    whole,
    with_layers,
)
from tests.capture.models import own, pixels, timm_vit, transformers_vit
from tests.comparing import assert_same
from vit_viz.capture import Trace, trace
from vit_viz.capture.gradient_stops import GradientStops
from vit_viz.errors import CaptureError

pytestmark = pytest.mark.numbers


def traced(model: nn.Module, target: int | Callable[[Tensor], Tensor] = 3) -> Trace:
    return trace(model, pixels(), layout=LAYOUT, target=target)


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("detach", "Cut detaches the output of `backbone`"),
        ("data", "Cut detaches the output of `backbone`"),
        ("no_grad", "`backbone` runs under torch.no_grad"),
        ("inference_mode", "`backbone` runs under torch.inference_mode"),
        ("numpy", "Cut detaches the output of `backbone`"),
    ],
)
def test_a_backbone_without_a_gradient_is_refused(how: str, words: str, is_frozen: bool) -> None:
    with pytest.raises(CaptureError, match=f"no gradient in any layer: {words}"):
        traced(cut_whole(how).requires_grad_(not is_frozen))


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("detach", "`backbone` detaches the output of `backbone.blocks.0`"),
        ("data", "`backbone` detaches the output of `backbone.blocks.0`"),
        ("no_grad", "`backbone.blocks.0` runs under torch.no_grad"),
        ("output", "`backbone.blocks.0` detaches a tensor after `backbone.blocks.0.mlp`"),
    ],
)
def test_layers_below_a_cut_have_no_gradient_and_those_above_have_theirs(
    how: str, words: str, is_frozen: bool
) -> None:
    recorded, expected = traced(cut_after(how).requires_grad_(not is_frozen)), traced(whole())
    with pytest.raises(CaptureError, match=f"No gradient of the target reaches layer 0: {words}"):
        recorded.attention_gradient(0)
    for layer in (1, 2):
        assert_same(recorded.attention_gradient(layer), expected.attention_gradient(layer))
    with pytest.raises(CaptureError, match=words):
        assert recorded.output_grad
    assert_same(recorded.attention(0), expected.attention(0))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("attention", "detaches the output of `backbone.blocks.1.proj`"),
        ("attention no_grad", "runs under torch.no_grad"),
        ("weights", "detaches a tensor after `backbone.blocks.1.qkv`"),
        ("weights no_grad", "runs under torch.no_grad"),
        ("mlp", "detaches the output of `backbone.blocks.1.mlp`"),
    ],
)
def test_what_passes_by_a_cut_branch_is_not_taken_for_the_whole(how: str, words: str) -> None:
    recorded = traced(cut_within(how))
    with pytest.raises(CaptureError, match=f"Not the whole .* layers 0-1: `backbone.blocks.1.* {words}"):
        recorded.attention_gradient(0)
    assert_same(recorded.attention_gradient(2), traced(whole()).attention_gradient(2))


class _Around(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, pixels: Tensor) -> Tensor:
        return self.module.forward(pixels)


def test_a_wrapped_model_is_named_as_it_names_its_parts() -> None:
    with pytest.raises(CaptureError, match="layer: Cut detaches the output of `backbone`"):
        traced(_Around(cut_whole("detach")))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: with_layers(Rounded), r"`backbone.blocks.2.proj` rounds to torch.int8"),
        (lambda: with_layers(Unseen), "`backbone.blocks.2.proj` detaches a tensor"),
        (lambda: quantised(whole(), head=True), "`head` computes with quantized.linear_dynamic"),
        (lambda: quantised(whole()), "`backbone.blocks.2.mlp.2` computes with quantized.linear_dynamic"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*quantiz:DeprecationWarning", "ignore:.*quantize_per_tensor:UserWarning")
@pytest.mark.filterwarnings("ignore:.*autograd kernel was not registered:UserWarning")
def test_layers_that_compute_outside_autograd_are_named(model: Callable[[], nn.Module], words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        traced(model())


def quantised(model: Cut, *, head: bool = False) -> nn.Module:
    kept = model.head
    if not head:
        model.head = nn.Identity()  # type: ignore[assignment]
    model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
    if not head:
        model.head = kept
    return model


def test_an_operation_without_a_derivative_is_refused_in_words_of_torch() -> None:
    with pytest.raises(CaptureError, match=r"no gradient here: .*vit_viz_tests.* no autograd formula"):
        traced(with_layers(lambda layer: nn.Sequential(layer, _Doubled())))


@torch.library.custom_op("vit_viz_tests::doubled", mutates_args=())
def _doubled(x: Tensor) -> Tensor:
    return 2 * x


class _Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return _doubled(x)


@pytest.mark.parametrize("model", [lambda: with_layers(Keeping), lambda: with_layers(Keeping, "mlp")])
def test_a_tensor_that_is_only_kept_keeps_no_gradient(model: Callable[[], nn.Module]) -> None:
    recorded, expected = traced(model()), traced(whole())
    for layer in range(3):
        assert torch.equal(recorded.attention_gradient(layer), expected.attention_gradient(layer))


class _Stable(CutBlock):
    """Attention that is written out, less the maximum of each row, which is detached as it changes nothing."""

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 5, 8)).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) * 8**-0.5
        scores = scores - scores.amax(-1, keepdim=True).detach()
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def test_a_maximum_that_is_detached_changes_nothing() -> None:
    model = whole()
    for place, block in enumerate(model.backbone.blocks):
        model.backbone.blocks[place] = _Stable()
        model.backbone.blocks[place].load_state_dict(block.state_dict())
    recorded, expected = traced(model.eval()), traced(whole())
    for layer in range(3):
        assert_same(recorded.attention_gradient(layer), expected.attention_gradient(layer), relative=1e-5)


def test_a_straight_through_gradient_and_weights_in_eight_bits_are_taken_as_they_are() -> None:
    for kind in (StraightThrough, Stored):
        recorded, expected = traced(with_layers(kind)), traced(whole())
        for layer in range(3):
            assert_same(recorded.attention_gradient(layer), expected.attention_gradient(layer), relative=0.3)


class _Unread(Cut):
    """Its last block runs, and the answer is read before it."""

    def forward(self, pixels: Tensor) -> Tensor:
        read: list[Tensor] = []
        handle = self.backbone.blocks[2].register_forward_pre_hook(lambda _, given: read.append(given[0]))
        self.backbone(pixels)
        handle.remove()
        return self.head(self.backbone.norm(read[0])[:, 0])


def test_a_layer_that_the_target_does_not_depend_on_has_gradient_zero() -> None:
    model = _Unread()
    model.load_state_dict(whole().state_dict())
    recorded = traced(model.eval())
    assert recorded.attention_gradient(2).abs().max() == 0
    assert recorded.attention_gradient(1).abs().max() > 0


def test_a_branch_that_is_multiplied_by_zero_has_gradient_zero() -> None:
    model = with_layers(Keeping)
    with torch.no_grad():
        model.backbone.blocks[1].scale.zero_()
    recorded = traced(model)
    assert recorded.attention_gradient(1).abs().max() == 0
    assert recorded.attention_gradient(0).abs().max() > 0


@pytest.mark.parametrize("is_parameter", [False, True])
@pytest.mark.parametrize("model", [whole, own])
def test_a_target_that_is_constant_has_gradient_zero(
    model: Callable[[], nn.Module], is_parameter: bool
) -> None:
    recorded = traced(model(), target=lambda _: torch.tensor(2.0, requires_grad=is_parameter))
    assert all(recorded.attention_gradient(layer).abs().max() == 0 for layer in range(3))


class _Detaching(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.detach()


def test_a_part_behind_our_model_is_named() -> None:
    with pytest.raises(CaptureError, match="no gradient in any layer: `1` detaches the output of `0"):
        traced(nn.Sequential(own(), _Detaching()))


class _Names(TorchFunctionMode):
    """The names of all functions of torch that are called inside."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.__name__ if func.__name__ != "__get__" else func.__self__.__name__)
        return func(*args, **(kwargs or {}))


def test_what_is_asked_of_the_tensors_of_a_pass_is_no_part_of_it() -> None:
    model, image, plain, followed = whole(), pixels(), _Names(), _Names()
    with plain:
        model(image)
    stops = GradientStops(model, lambda: 1)
    with followed, stops.around():
        model(image)
    assert followed.seen == plain.seen
    assert "linear" in plain.seen


def test_a_target_that_detaches_is_named() -> None:
    with pytest.raises(CaptureError, match="the target detaches"):
        traced(whole(), target=lambda logits: logits.detach().sum())


class _Checkpointed(nn.Module):
    def __init__(self, block: nn.Module, *, is_reentrant: bool, drop: float = 0.0) -> None:
        super().__init__()
        self.block, self.is_reentrant, self.drop = block, is_reentrant, nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(lambda x: self.block(self.drop(x)), x, use_reentrant=self.is_reentrant)


def checkpointed(*, is_reentrant: bool, drop: float = 0.0) -> Cut:
    model = whole()
    model.backbone.blocks = nn.ModuleList(
        _Checkpointed(block, is_reentrant=is_reentrant, drop=drop) for block in model.backbone.blocks
    )
    return model


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad:UserWarning")
def test_checkpoints_that_end_the_gradient_are_named() -> None:
    with pytest.raises(CaptureError, match=r"`backbone.blocks.2.*use_reentrant=True"):
        traced(checkpointed(is_reentrant=True))


def test_a_checkpointed_block_runs_in_eval_mode_both_times() -> None:
    model, expected = checkpointed(is_reentrant=False, drop=0.5), traced(whole())
    recorded = traced(model.train())
    assert all(part.training for part in model.modules())
    for layer in range(3):
        assert_same(recorded.attention_gradient(layer), expected.attention_gradient(layer))


@pytest.mark.parametrize("make", [whole, own, timm_vit, transformers_vit])
def test_weights_made_in_inference_mode_have_the_gradients_of_others(make: Callable[[], nn.Module]) -> None:
    with torch.inference_mode():
        torch.manual_seed(3)
        model = make()
    before = dict(model.named_parameters())
    torch.manual_seed(3)
    ordinary = make()
    ordinary.load_state_dict(model.state_dict())
    recorded, expected = traced(model), traced(ordinary)
    for layer in range(3):
        assert_same(recorded.attention_gradient(layer), expected.attention_gradient(layer))
    assert all(parameter is before[name] for name, parameter in model.named_parameters())


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_the_model_is_as_it_was(is_interrupted: bool) -> None:
    with torch.inference_mode():
        model = cut_within("mlp").train()
    model.backbone.blocks[1].requires_grad_(False)
    if is_interrupted:
        model.features = lambda x: x.reshape(CLASSES, 100)
    before = state(model)
    with torch.no_grad():
        if is_interrupted:
            with pytest.raises(CaptureError, match="invalid for input"):
                traced(model)
        else:
            traced(model)
        assert not torch.is_grad_enabled()
    assert state(model) == before


def state(model: nn.Module) -> list[object]:
    return [
        [(name, id(p), p.requires_grad, p.grad, p.is_inference()) for name, p in model.named_parameters()],
        [(part.training, len(part._forward_hooks), len(part._forward_pre_hooks)) for part in model.modules()],
        torch.get_rng_state().tolist(),
    ]
