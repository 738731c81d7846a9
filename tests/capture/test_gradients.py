"""The gradient of a target with respect to attention, against autograd through a written-out attention."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import lively, own, pixels, timm_vit, torchvision_vit, transformers_vit, written_out
from tests.capture.tutorials import FusedQkv, KeysFirst, MultiHead, TutorialViT
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
    recorded = trace(model, image, target=1, keep_values=True)
    assert recorded.v is not None
    change = 1e-3 * torch.randn(5, 17, 17)
    logits = [shifted(model, image, 1, sign * change) for sign in (1, -1)]  # central difference
    expected = (logits[0] - logits[1])[1] / 2
    assert_same((recorded.attention_gradient(1) * change).sum(), expected, relative=1e-3)


def shifted(model: nn.Module, image: Tensor, layer: int, change: Tensor) -> Tensor:
    """Logits in double precision with a little added to the attention of one layer of a torchvision model."""
    from torch.nn import functional

    model, count = model.double(), [0]
    original = functional.scaled_dot_product_attention

    def attention(q: Tensor, k: Tensor, v: Tensor, *rest: object, **choices: object) -> Tensor:
        count[0] += 1
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return (weights + change.double() if count[0] == layer + 1 else weights) @ v

    functional.scaled_dot_product_attention = attention  # type: ignore[assignment]
    functional.multi_head_attention_forward.__globals__["scaled_dot_product_attention"] = attention
    try:
        with torch.no_grad():
            return model(image.double())[0].float()
    finally:
        functional.scaled_dot_product_attention = original
        functional.multi_head_attention_forward.__globals__["scaled_dot_product_attention"] = original
        model.float()


def test_written_out_attention_has_gradients_too() -> None:
    layout, image = TokenLayout(grid=(4, 6)), pixels()
    model = TutorialViT(FusedQkv).eval()
    recorded = trace(model, image, layout=layout, target=3)
    fused = timm_like(model)
    expected = trace(fused, image, layout=layout, target=3)
    assert_same(recorded.attention_gradient(1), expected.attention_gradient(1), relative=1e-6)


def timm_like(model: TutorialViT) -> TutorialViT:
    """The same model with the fused kernel."""

    class Fused(FusedQkv):
        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).reshape(1, -1, 3, 5, 8).permute(2, 0, 3, 1, 4)
            x = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            return self.proj(x.transpose(1, 2).reshape(1, -1, 40))

    fused = TutorialViT(Fused).eval()
    fused.load_state_dict(model.state_dict())
    return fused


def test_pooling_attention_has_a_gradient() -> None:
    model, image = own(pooling="attention", class_token=False), pixels()
    recorded = trace(model, image, target=0)
    expected = by_autograd(model, image, lambda logits: logits[0])[-1]  # the pool is the last call
    assert recorded.pooling_gradient is not None
    assert_same(recorded.pooling_gradient, expected[:, 0])


def test_tokens_that_the_target_does_not_depend_on_have_gradient_zero() -> None:
    recorded = trace(own(), pixels(), target=0)
    last = recorded.attention_gradient(2)
    assert last[:, 0].abs().max() > 0
    assert last[:, 1:].abs().max() == 0  # only the class token's row of the last layer is read


def test_parameters_get_no_gradient() -> None:
    model = own()
    trace(model, pixels(), target=0)
    assert all(parameter.grad is None for parameter in model.parameters())


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
