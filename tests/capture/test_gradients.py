"""The gradient of a target with respect to attention, against autograd through a written-out attention."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import lively, own, pixels, timm_vit, torchvision_vit, transformers_vit, written_out
from tests.capture.tutorials import Fused, FusedQkv, KeysFirst, MultiHead, TutorialViT
from tests.comparing import assert_same
from vit_viz.capture import trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers


def by_autograd(model: nn.Module, image: Tensor, target: Callable[[Tensor], Tensor]) -> list[Tensor]:
    seen: list[Tensor] = []
    with written_out(seen), torch.enable_grad():
        output = model(image)
        logits = output if isinstance(output, Tensor) else output.logits
        return [g[0] for g in torch.autograd.grad(target(logits[0]), seen)]


@pytest.mark.parametrize("make", [own, lambda: own(reg_tokens=4, qk_norm=True), timm_vit, transformers_vit])
@pytest.mark.parametrize("frozen", [True, False])
def test_gradient_of_attention_agrees_with_autograd(make: Callable[[], nn.Module], frozen: bool) -> None:
    model, image = make().requires_grad_(not frozen), pixels()
    recorded = trace(model, image, target=4)
    for layer, expected in enumerate(by_autograd(model, image, lambda logits: logits[4])):
        assert_same(recorded.attention_gradient(layer), expected)


def test_a_target_may_be_a_function_of_the_logits() -> None:
    def margin(logits: Tensor) -> Tensor:
        return logits[2] - logits[5]

    model, image = own(), pixels()
    recorded = trace(model, image, target=margin)
    expected = by_autograd(model, image, margin)[1]
    assert_same(
        recorded.attention_gradient(1, heads=[3], queries=[0, 9]), expected[[3]][:, [0, 9]], relative=3e-6
    )


def test_multihead_attention_has_gradients_too() -> None:
    model, image = torchvision_vit(), pixels(size=(64, 64))
    recorded = trace(model, image, target=1)
    for layer, expected in enumerate(by_autograd(model, image, lambda logits: logits[1])):
        assert_same(recorded.attention_gradient(layer), expected)


def test_written_out_attention_has_gradients_too() -> None:
    layout, image = TokenLayout(grid=(4, 6)), pixels()
    model, fused = TutorialViT(FusedQkv).eval(), TutorialViT(Fused).eval()
    fused.load_state_dict(model.state_dict())
    recorded, expected = (trace(one, image, layout=layout, target=3) for one in (model, fused))
    assert_same(recorded.attention_gradient(1), expected.attention_gradient(1), relative=1e-6)


def test_pooling_attention_has_a_gradient() -> None:
    model, image = own(pooling="attention", class_token=False), pixels()
    recorded = trace(model, image, target=0)
    expected = by_autograd(model, image, lambda logits: logits[0])[-1]  # the pool is the last call
    assert_same(recorded.pooling_gradient, expected[:, 0])


def test_tokens_that_the_target_does_not_depend_on_have_gradient_zero() -> None:
    recorded = trace(own(), pixels(), target=0)
    last = recorded.attention_gradient(2)
    assert last[:, 0].abs().max() > 0
    assert last[:, 1:].abs().max() == 0  # only the class token's row of the last layer is read


@pytest.mark.parametrize(
    ("target", "error", "message"),
    [
        (7, ParameterError, "Output 7 does not exist: this model has outputs 0-6"),
        (-1, ParameterError, "Output -1 does not exist"),
        (lambda logits: logits, ParameterError, "one number"),
        (lambda _: 3.0, ParameterError, "one number"),
        (lambda logits: logits.detach().sum(), CaptureError, "no gradient"),
    ],
)
def test_a_bad_target_is_one_sentence_and_leaves_no_trace_behind(
    target: object, error: type[Exception], message: str
) -> None:
    model = own().train()
    with pytest.raises(error, match=message):
        trace(model, pixels(), target=target)  # type: ignore[arg-type]
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_tracing_works_inside_no_grad() -> None:
    with torch.no_grad():
        recorded = trace(TutorialViT(MultiHead).eval(), pixels(), layout=TokenLayout(grid=(4, 6)), target=1)
    assert recorded.attention_gradient(0).abs().max() > 0


@pytest.mark.parametrize("attention", [FusedQkv, KeysFirst])
def test_a_frozen_model_has_the_gradients_of_one_that_is_not(attention: type[nn.Module]) -> None:
    model, image = lively(TutorialViT(attention)), pixels()
    expected = trace(model, image, layout=TokenLayout(grid=(4, 6)), target=3)
    recorded = trace(model.requires_grad_(False), image, layout=TokenLayout(grid=(4, 6)), target=3)
    for layer in range(3):
        assert_same(recorded.attention_gradient(layer), expected.attention_gradient(layer))
