"""Class activation maps on tokens: by hand, and against hooks on the whole model with the formulas of pytorch-grad-cam."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.analyses.test_layerwise import KINDS, plain_model
from tests.comparing import assert_same
from vit_viz.analyses.cams import gradcam, hirescam, layercam, token_cam, xgradcam
from vit_viz.analyses.explain import explain_subject
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import Target, class_logit
from vit_viz.capture import trace as capture
from vit_viz.errors import CaptureError, ParameterError

pytestmark = pytest.mark.numbers

ALL = (gradcam, hirescam, layercam, xgradcam)


def published(name, activations, gradients):
    """As pytorch-grad-cam 1.5 has them, before its scaling: arrays [batch, channels, rows, cols] -> [rows, cols]."""
    if name == "gradcam":
        image = gradients.mean((2, 3))[:, :, None, None] * activations
    elif name == "hirescam":
        image = gradients * activations
    elif name == "layercam":
        image = np.maximum(gradients, 0) * activations
    else:
        sums = activations.sum((2, 3))[:, :, None, None]
        weights = (gradients * activations / (sums + 1e-7)).sum((2, 3))
        image = weights[:, :, None, None] * activations
    return np.maximum(image.sum(1)[0], 0)


def hooked(model, pixels, target):
    """What the last block's first norm returned and its gradient in a plain pass, as feature maps of the patches."""
    kept = []

    def keep(module, args, output):
        output.retain_grad()
        kept.append(output)

    handle = model.blocks[-1].norm1.register_forward_hook(keep)
    model(pixels)[0, target].backward()
    handle.remove()
    model.zero_grad(set_to_none=True)
    prefix = len(model.config.prefix)
    parts = (kept[0].detach(), kept[0].grad)
    return [part[:, prefix:].transpose(1, 2).reshape(1, -1, 4, 6).double().numpy() for part in parts]


@pytest.mark.parametrize("options", KINDS)
def test_each_equals_the_published_formula_on_hooks(make_model, pixels, options):
    model = make_model(**options)
    if options.keys() & {
        "relative_bias",
        "shared_bias",
    }:  # in single precision the two passes differ by 6e-5: a bias that wants a
        model, pixels = (
            model.double(),
            pixels.double(),
        )  # gradient is added by another kernel, and small sums magnify its rounding
    activations, gradients = hooked(model, pixels, 5)
    subject = PreparedImage.of(model, pixels)
    maps = explain_subject(subject, methods=[one.__name__ for one in ALL], target=5)
    for name, got in maps.items():
        expected = published(name, activations, gradients)
        assert expected.any()
        assert_same(got.values, expected.astype(np.float32))


@pytest.mark.parametrize(
    ("combine", "by_hand"),
    [
        # channels: (1, 2, 3) and (4, -1, 0); gradients (3, 0, 3) and (-1, 2, 0.5)
        (gradcam, [1 * 2 + 4 * 0.5, 2 * 2 - 0.5, 3 * 2]),
        (hirescam, [0, 0, 9]),  # 3 - 4 is cut off, and 0 - 2
        (layercam, [3, 0, 9]),
        (xgradcam, [2, 2 * 2 + 2, 3 * 2]),  # weights (3 + 9) / 6 and (-4 - 2) / 3: 2 - 8 is cut off
    ],
)
def test_each_is_worked_by_hand(combine, by_hand):
    a = torch.tensor([[1.0, 4], [2, -1], [3, 0]])
    g = torch.tensor([[3.0, -1], [0, 2], [3, 0.5]])
    expected = [max(value, 0) for value in by_hand]
    if combine is xgradcam:
        expected[0] = 0
    assert combine(a, g).clamp(min=0).tolist() == pytest.approx(expected)


def test_gradcam_of_a_model_is_worked_by_hand(make_model):
    # normed features (1, -1) or (-1, 1), values equal to them, uniform attention over 5 tokens: gradient (3, -1) / 5 each
    model = plain_model(make_model, depth=1)
    with torch.no_grad():
        model.blocks[0].attn.qkv.weight[4:] = torch.eye(2)
        model.pos_embed[0] = torch.tensor([[1.0, 0], [5, 0], [0, 5], [9, 1], [1, 2]])
    pixels = torch.zeros(1, 3, 4, 24)
    trace = capture(model, pixels, keep_residual=True)
    subject = PreparedImage.of(model, pixels)
    assert_same(token_cam(gradcam, MethodInput(subject, class_logit(0), trace)).values, [[0.8, 0, 0.8, 0]])


def test_where_all_patches_have_one_gradient_three_of_them_are_the_same():
    """The identity of the family: no patch is told from another, so weights of channels are gradients of patches."""
    random = torch.Generator().manual_seed(3)
    a, g = torch.rand(6, 5, generator=random), torch.randn(5, generator=random).expand(6, 5)
    assert_same(hirescam(a, g).numpy(), gradcam(a, g).numpy())
    assert_same(xgradcam(a, g).numpy(), gradcam(a, g).numpy())
    assert_same(layercam(a, g.abs()).numpy(), gradcam(a, g.abs()).numpy())


def test_a_channel_that_sums_to_zero_has_no_weight():
    a, g = torch.tensor([[1.0, 2], [-1, 3]]), torch.tensor([[5.0, 1], [4, 1]])
    assert xgradcam(a, g).tolist() == [2, 3]


def test_a_channel_whose_patches_nearly_cancel_has_the_weight_of_its_exact_sum():
    random = torch.Generator().manual_seed(5)
    a, g = torch.randn(196, 8, generator=random), torch.randn(196, 8, generator=random)
    a -= a.mean(0)
    exact_a, exact_g = a.numpy().astype(np.float64), g.numpy().astype(np.float64)
    weights = (exact_g * exact_a).sum(0) / [math.fsum(channel) for channel in exact_a.T]
    assert_same(xgradcam(a, g).numpy(), (exact_a @ weights).astype(np.float32))


def test_together_they_take_one_gradient(make_model, pixels, monkeypatch):
    subject, seen = PreparedImage.of(make_model(), pixels), []
    grad = torch.autograd.grad
    monkeypatch.setattr(torch.autograd, "grad", lambda *args, **more: seen.append(1) or grad(*args, **more))
    explain_subject(subject, methods=[one.__name__ for one in ALL], target=2)
    assert len(seen) == 1


def test_after_the_last_block_the_gradient_of_patches_is_exactly_zero(make_model, pixels):
    model = make_model()
    x = model.run_blocks(model.tokens(pixels), (4, 6)).detach().requires_grad_()
    model.classify(x)[0, 5].backward()
    assert (x.grad[0, 1:] == 0).all()  # why they are taken before the last attention


def test_nothing_is_left_on_the_parameters(make_model, pixels):
    model = make_model()
    subject = PreparedImage.of(model, pixels)
    token_cam(hirescam, MethodInput(subject, Target("own embedding"), subject.trace(keep_residual=True)))
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


def test_they_need_the_residual_stream_and_a_model_of_ours(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    with pytest.raises(CaptureError, match="keep_residual"):
        token_cam(layercam, MethodInput(subject, class_logit(0), subject.trace()))
    other = PreparedImage.of(torch.nn.Sequential(make_model()), pixels, layout=make_model().layout(16, 36))
    with pytest.raises(ParameterError, match="Token Grad-CAM needs the blocks"):
        token_cam(xgradcam, MethodInput(other, class_logit(0), subject.trace()))
