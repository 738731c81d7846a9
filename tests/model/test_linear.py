"""oneDNN's kernel for linear layers: torch's numbers, true gradients of every order, and out of the way where it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import forward_ad

from tests.model.inside import TINY
from vit_viz.model import VisionTransformer, ViTConfig, linear
from vit_viz.model.linear import Linear, forced_kernel

pytestmark = pytest.mark.numbers


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.Size]]:
    """The shape of each weight that oneDNN's kernel is given, while that kernel is forced."""
    seen: list[torch.Size] = []
    computed = linear._onednn

    def counted(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        seen.append(weight.shape)
        return computed(x, weight, bias)

    monkeypatch.setattr(linear, "_onednn", counted)
    with forced_kernel("onednn"):
        yield seen


def frozen(*, bias: bool = True) -> Linear:
    return Linear(11, 7, bias=bias).requires_grad_(False)


def assert_same(one: Tensor, other: Tensor) -> None:
    assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert (one - other).abs().max() <= 1e-5 * other.abs().max()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(11,), (5, 11), (2, 3, 11)])
def test_gradients_of_frozen_weights_are_those_of_autograd(
    calls: list[torch.Size], shape: tuple[int, ...], bias: bool
) -> None:
    layer, leaf, other = frozen(bias=bias), torch.randn(shape).requires_grad_(), torch.randn(shape)
    weights = torch.randn(*shape[:-1], 7)
    got = torch.autograd.grad((layer(leaf) * weights).sum(), leaf)[0]
    assert calls == [(7, 11), (11, 7)]  # once forwards, once backwards
    expected = torch.autograd.grad((F.linear(leaf, layer.weight, layer.bias) * weights).sum(), leaf)[0]
    assert_same(got, expected)
    assert_same(layer(leaf), F.linear(leaf, layer.weight, layer.bias))
    assert_same(layer(other), F.linear(other, layer.weight, layer.bias))
    assert not layer(other).requires_grad


def test_second_and_third_derivatives_are_those_of_autograd(calls: list[torch.Size]) -> None:
    layer, leaf = frozen(), torch.randn(2, 3, 11).requires_grad_()

    def derivatives(apply: Callable[[Tensor], Tensor]) -> list[Tensor]:
        found, value = [], apply(leaf).pow(4).sum()
        for _ in range(3):
            (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
            found.append(gradient)
            value = gradient.pow(2).sum()
        return found

    expected = derivatives(lambda x: F.linear(x, layer.weight, layer.bias))
    for one, other in zip(derivatives(layer), expected, strict=True):
        assert_same(one, other)
    assert calls


def test_weights_that_are_trained_keep_torchs_kernel(calls: list[torch.Size]) -> None:
    for trained in ("weight", "bias"):
        layer, x = frozen(), torch.randn(2, 11)
        parameter = getattr(layer, trained).requires_grad_()
        layer(x).sum().backward()
        assert_same(parameter.grad, x.sum(0).expand(7, 11) if trained == "weight" else torch.full((7,), 2.0))
        assert calls == []


def test_a_model_whose_weights_are_trained_has_the_gradients_of_torch(calls: list[torch.Size]) -> None:
    model, pixels = VisionTransformer(ViTConfig.from_dict(TINY)), torch.randn(2, 3, 24, 42)
    model.requires_grad_(False)
    model.blocks[1].mlp.fc1.requires_grad_()
    found = torch.autograd.grad(model(pixels)[:, 3].sum(), model.blocks[1].mlp.fc1.weight)[0]
    assert calls
    with forced_kernel("torch"):
        expected = torch.autograd.grad(model(pixels)[:, 3].sum(), model.blocks[1].mlp.fc1.weight)[0]
    assert_same(found, expected)


def test_other_precisions_and_autocast_keep_torchs_kernel(calls: list[torch.Size]) -> None:
    for dtype in (torch.bfloat16, torch.float64):
        layer, x = frozen().to(dtype), torch.randn(2, 11, dtype=dtype)
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    layer, x = frozen(), torch.randn(2, 11)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        assert layer(x).dtype == torch.bfloat16
    assert calls == []


@pytest.mark.filterwarnings(
    "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
)  # torch's own use of it
def test_transforms_and_forward_gradients_keep_torchs_kernel(calls: list[torch.Size]) -> None:
    layer, x, tangent = frozen(), torch.randn(2, 3, 11), torch.randn(2, 3, 11)
    assert_same(torch.func.jvp(layer, (x,), (tangent,))[1], tangent @ layer.weight.T)
    assert_same(torch.func.grad(lambda x: layer(x).sum())(x), layer.weight.sum(0).expand(2, 3, 11))
    assert_same(torch.func.vmap(layer)(x), F.linear(x, layer.weight, layer.bias))
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients), forward_ad.dual_level():
            output = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, tangent)))
            assert_same(output.tangent, tangent @ layer.weight.T)
    assert calls == []


def test_hooks_see_the_layer_and_its_gradient(calls: list[torch.Size]) -> None:
    layer, leaf, seen = frozen(), torch.randn(2, 11).requires_grad_(), []
    layer.register_forward_hook(lambda *call: seen.append(call[2]))
    layer.register_full_backward_hook(lambda *call: seen.append(call[1][0]))
    output = layer(leaf)
    output.register_hook(lambda gradient: 3 * gradient)
    output.sum().backward()
    assert torch.equal(seen[0], output)
    assert_same(seen[1], 3 * layer.weight.sum(0).expand(2, 11))
    assert_same(leaf.grad, seen[1])
    assert len(calls) == 2


def test_inference_mode_and_no_grad_use_the_kernel(calls: list[torch.Size]) -> None:
    layer, x = nn.Sequential(Linear(11, 7)), torch.randn(2, 11)
    for mode in (torch.inference_mode(), torch.no_grad()):
        with mode:
            assert_same(layer(x), F.linear(x, layer[0].weight, layer[0].bias))
    assert len(calls) == 2
