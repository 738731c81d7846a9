"""Many images in one pass: every layer is shown once, image by image, with the operands that each image alone has."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.capture.models import SIZE, own, pixels, timm_vit, torchvision_vit, transformers_vit
from tests.comparing import assert_same
from vit_viz.capture import edit, trace
from vit_viz.capture.batch import NotBatched, visit_layers
from vit_viz.capture.calls import AttentionCall
from vit_viz.errors import CaptureError, ParameterError

pytestmark = pytest.mark.numbers

IMAGES, TOKENS = 3, 25
MODELS = {"own": own, "timm": timm_vit, "transformers": transformers_vit, "torchvision": torchvision_vit}


@pytest.fixture(params=MODELS)
def module(request):
    return MODELS[request.param]()


def test_each_layer_of_a_batch_is_that_of_each_image_alone(module):
    square = getattr(module, "image_size", None)
    images = pixels(IMAGES, size=(square, square) if isinstance(square, int) else SIZE)
    first = trace(module, images[:1])
    seen = []
    outputs = visit_layers(module, images, seen.append, tokens=first.num_tokens)
    assert [layer.shape for layer in seen] == [
        (IMAGES * first.num_heads, first.num_tokens, first.num_tokens)
    ] * first.num_layers
    for i in range(IMAGES):
        alone = trace(module, images[i : i + 1], keep_residual=True)
        heads = slice(i * alone.num_heads, (i + 1) * alone.num_heads)
        for layer, own_layer in zip(seen, alone.layers, strict=True):
            assert_same(layer.q[heads], own_layer.q)
            assert_same(layer.k[heads], own_layer.k)
            assert_same(layer.rows(None, None)[heads], own_layer.rows(None, None))
        assert_same(outputs.logits[i], alone.logits)
        assert_same(outputs.norms[:, i], alone.residual.norm(dim=-1))


def test_the_kernels_normalisers_are_those_of_the_rows():
    seen = []
    visit_layers(own(), pixels(IMAGES), seen.append, tokens=TOKENS)
    assert len(seen) == 3
    for layer in seen:
        logarithm = layer.log_rows(slice(2, 9))
        assert_same(logarithm.exp(), layer.rows(None, slice(2, 9)))


def test_a_visit_that_fails_leaves_the_module_as_it_was():
    module = own().train()

    def fail(layer):
        raise KeyError("in the middle")

    with pytest.raises(KeyError, match="in the middle"):
        visit_layers(module, pixels(IMAGES), fail, tokens=TOKENS)
    assert module.training
    assert [part for part in module.modules() if part._forward_hooks or part._forward_pre_hooks] == []


def test_edits_around_a_batch_hold_for_every_image():
    module, plain, edited = own(), [], []
    visit_layers(module, pixels(IMAGES), plain.append, tokens=TOKENS)
    with edit(heads={(0, 2): 0.0}):
        visit_layers(module, pixels(IMAGES), edited.append, tokens=TOKENS)
    assert_same(edited[0].q, plain[0].q)
    for i in range(IMAGES):
        assert (edited[1].q[5 * i : 5 * i + 5] - plain[1].q[5 * i : 5 * i + 5]).abs().max() > 1e-3


def test_written_out_attention_is_left_to_single_images():
    with pytest.raises(NotBatched, match="writes its attention out"):
        visit_layers(transformers_vit("eager"), pixels(IMAGES), lambda _: None, tokens=TOKENS)


def test_attention_over_another_number_of_tokens_is_left_to_single_images():
    with pytest.raises(NotBatched, match="tokens of one image"):
        visit_layers(own(), pixels(IMAGES), lambda _: None, tokens=TOKENS + 1)


def test_masked_attention_is_left_to_single_images():
    class Causal(nn.Module):
        def forward(self, x):
            x = x.flatten(2).transpose(1, 2)[:, None, :TOKENS]
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0, 0]

    with pytest.raises(NotBatched, match="masks"):
        visit_layers(Causal(), pixels(IMAGES), lambda _: None, tokens=TOKENS)


@pytest.mark.parametrize("shape", [(2 * IMAGES, 5, 7, 4), (5, 7, 4)])
def test_a_first_axis_that_is_not_that_of_the_images_is_refused(shape):
    call = AttentionCall(*(torch.zeros(shape) for _ in range(3)))
    with pytest.raises(NotBatched, match="first axis"):
        call.operands_of(IMAGES)


def test_heads_that_share_keys_are_repeated_image_by_image():
    q = torch.randn(IMAGES, 6, 7, 4)
    k = torch.randn(IMAGES, 2, 7, 4)
    together = AttentionCall(q, k, k, enable_gqa=True).operands_of(IMAGES)
    for i in range(IMAGES):
        one = slice(i, i + 1)
        alone = AttentionCall(q[one], k[one], k[one], enable_gqa=True).operands()
        for part, own_part in zip(together, alone[:2], strict=True):
            assert torch.equal(part[6 * i : 6 * i + 6], own_part)


def test_a_module_without_attention_is_refused():
    with pytest.raises(CaptureError, match="No self-attention was seen"):
        visit_layers(nn.Sequential(nn.Flatten()), pixels(IMAGES), lambda _: None, tokens=TOKENS)


@pytest.mark.parametrize("images", [torch.zeros(3, *SIZE), torch.zeros(0, 3, *SIZE)])
def test_a_batch_has_four_axes_and_an_image(images):
    with pytest.raises(ParameterError, match="A batch is of pixels"):
        visit_layers(own(), images, lambda _: None, tokens=TOKENS)
