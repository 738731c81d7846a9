"""LeGrad: by hand, and against autograd on a model whose attention is written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.capture import models
from tests.capture.test_features import Model
from tests.comparing import assert_same
from vit_viz.analyses.explain import explain
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.relevance import legrad
from vit_viz.analyses.targets import Target, class_logit
from vit_viz.capture.gradient_stops import GradientStops
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

KINDS = [
    {},
    {"reg_tokens": 4},
    {"class_token": False, "pooling": "mean", "fc_norm": True},
    {"class_token": False, "pooling": "attention"},
    {"position": "rotary", "layer_scale": True},
    {"position": "none", "relative_bias": True},
    {"shared_bias": True, "pooling": "mean"},
    {"rotary_grid": (3, 5)},
]


def legrad_by_autograd(model, pixels, target, monkeypatch):
    """Per layer: run to it, answer from it, differentiate with respect to its written-out attention."""
    seen = []

    def attention(q, k, v, attn_mask=None, scale=None, **_):
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        bias = 0 if attn_mask is None else attn_mask
        weights = torch.softmax(q @ k.transpose(-1, -2) * scale + bias, dim=-1)
        if q.shape == k.shape:  # not the pool's
            weights = weights.detach().requires_grad_()
            seen.append(weights)
        return weights @ v

    total = 0
    places = model.places(model.grid_of(*pixels.shape[-2:]))
    with monkeypatch.context() as patch:
        patch.setattr(F, "scaled_dot_product_attention", attention)
        for layer in range(len(model.blocks)):
            seen.clear()
            x = model.tokens(pixels)
            for block in model.blocks[: layer + 1]:
                x = block(x, places)
            (gradient,) = torch.autograd.grad(target(model.classify(x)[0]), seen[layer])
            total = total + gradient[0].clamp(min=0).mean((0, 1))
    return total


@pytest.mark.parametrize("options", KINDS)
def test_legrad_equals_autograd_layer_by_layer(make_model, pixels, monkeypatch, options):
    model = make_model(**options)
    subject = PreparedImage.of(model, pixels)
    expected = legrad_by_autograd(model, pixels, class_logit(2), monkeypatch)[subject.layout.num_prefix :]
    got = legrad(subject, class_logit(2))
    assert_same(got.values.ravel(), expected.numpy())


def test_legrad_of_layers_adds_up(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    parts = sum(legrad(subject, class_logit(2), layers=(i, i + 1)).values for i in range(3))
    assert_same(legrad(subject, class_logit(2)).values, parts)


def plain_model(make_model, **options):
    """One head of two numbers, uniform attention, identity projection, no MLP, no final norm; class 0 reads (3, -1)."""
    model = make_model(embed_dim=2, num_heads=1, mlp_hidden=1, final_norm=False, img_size=(4, 24), **options)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm1" not in name:
                parameter.zero_()
        for block in model.blocks:
            block.norm1.weight.fill_(1)
            block.norm1.bias.zero_()
            block.attn.proj.weight.copy_(torch.eye(2))
        model.head.weight[0] = torch.tensor([3.0, -1.0])
    return model


def test_legrad_worked_by_hand(make_model):
    # values (1, 2) for every token: dA of the class row is 3 * 1 - 1 * 2 = 1, of other rows 0; 5 tokens, 2 layers: 2 / 5
    model = plain_model(make_model, depth=2)
    with torch.no_grad():
        for block in model.blocks:
            block.attn.qkv.bias[4:] = torch.tensor([1.0, 2.0])
    got = legrad(PreparedImage.of(model, torch.zeros(1, 3, 4, 24)), class_logit(0))
    assert_same(got.values, np.full((1, 4), 0.4))


class _Detaching(nn.Module):
    def forward(self, x):
        return x.detach()


def is_followed(model, pixels, monkeypatch, target):
    """Whether a pass of LeGrad is searched for gradients that the model keeps."""
    followed = []
    monkeypatch.setattr(
        "vit_viz.capture.tracing.GradientStops", lambda *given: followed.append(1) or GradientStops(*given)
    )
    legrad(PreparedImage.of(model, pixels), target)
    return bool(followed)


def test_our_own_parts_are_not_searched_for_what_keeps_a_gradient(make_model, pixels, monkeypatch):
    model = make_model()
    assert not is_followed(model, pixels, monkeypatch, class_logit(1))
    assert is_followed(model, pixels, monkeypatch, Target("function", function=lambda logits: logits[1]))
    model.blocks[1].mlp.register_forward_hook(lambda _part, _inputs, output: output)
    assert is_followed(model, pixels, monkeypatch, class_logit(1))


@pytest.mark.parametrize("how", ["part", "hook"])
def test_a_gradient_that_a_part_of_others_keeps_is_refused(make_model, pixels, how):
    model = make_model()
    if how == "part":
        model.blocks[1].ls1 = _Detaching()
    else:
        model.blocks[1].attn.register_forward_hook(lambda _part, _inputs, output: output.detach())
    with pytest.raises(CaptureError, match=r"layers 0-1: `model\.blocks\.1\b.* detaches"):
        legrad(PreparedImage.of(model, pixels), class_logit(0))


OF_OTHERS = {
    "timm": (
        lambda: models.timm_vit(reg_tokens=2),
        lambda model: model.blocks,
        lambda model, x: model.forward_head(model.norm(x)),
        (64, 96),
    ),
    "timm, learned pool": (
        lambda: models.timm_vit(class_token=False, global_pool="map"),
        lambda model: model.blocks,
        lambda model, x: model.forward_head(model.norm(x)),
        (64, 96),
    ),
    "transformers": (
        models.transformers_vit,
        lambda model: model.vit.layers,
        lambda model, x: model.classifier(model.vit.layernorm(x)[:, 0]),
        (64, 96),
    ),
    "torchvision": (
        models.torchvision_vit,
        lambda model: model.encoder.layers,
        lambda model, x: model.heads(model.encoder.ln(x)[:, 0]),
        (64, 64),
    ),
    "own, norm last": (
        lambda: models.lively(Model("one matrix, norm last", 3)),
        lambda model: model.blocks,
        lambda model, x: model.head(model.norm(x)[:, 0]),
        (16, 36),
    ),
}
"""Each with its blocks, what comes after them, and the size of its input."""


@pytest.mark.parametrize("name", OF_OTHERS)
def test_legrad_of_any_module_equals_autograd_layer_by_layer(name):
    make, blocks, rest, size = OF_OTHERS[name]
    torch.manual_seed(3)
    model, image, states, weights = make().requires_grad_(False), models.pixels(size=size), [], []
    handles = [block.register_forward_hook(lambda _m, _i, x: states.append(x)) for block in blocks(model)]
    with models.written_out(weights), torch.enable_grad():
        if name == "torchvision":  # torch calls its own attention there
            states, weights = _of_torchvision(model, image)
        else:
            model(image)
    for handle in handles:
        handle.remove()
    expected = sum(
        torch.autograd.grad(rest(model, x)[0, 4], w, retain_graph=True)[0][0].clamp(min=0).mean((0, 1))
        for x, w in zip(states, weights, strict=False)
    )
    got = explain(model, image, methods="legrad", target=4)["legrad"].values.ravel()
    assert_same(got, expected[-got.size :].numpy())


def _of_torchvision(model, image):
    """Its states and written-out attention, by its own parts."""
    x = model._process_input(image)
    x = torch.cat([model.class_token, x], dim=1) + model.encoder.pos_embedding
    states, weights = [], []
    for block in model.encoder.layers:
        mha, normed = block.self_attention, block.ln_1(x)
        q, k, v = (
            F.linear(normed, mha.in_proj_weight, mha.in_proj_bias)
            .unflatten(-1, (3, 5, 8))
            .permute(2, 0, 3, 1, 4)
        )
        weights.append((q @ k.transpose(-2, -1) / 8**0.5).softmax(-1).requires_grad_())
        x = x + mha.out_proj((weights[-1] @ v).transpose(1, 2).flatten(2))
        x = x + block.mlp(block.ln_2(x))
        states.append(x)
    return states, weights


class SumOfLayers(Model):
    def forward(self, pixels):
        x = torch.cat(
            [self.named.expand(len(pixels), -1, -1), self.embed(pixels).flatten(2).transpose(1, 2)], dim=1
        )
        total = 0
        for block in self.blocks:
            x = block(x)
            total = total + x
        return self.head(self.norm(total)[:, 0])


@pytest.mark.parametrize(
    ("module", "size", "why"),
    [
        (lambda: SumOfLayers("apart", 3), (16, 36), "computes its output from more than its last block"),
        (
            lambda: models.Detector(TokenLayout(grid=(4, 7), prefix=("class",))),
            (16, 42),
            "it has no list of blocks",
        ),
    ],
)
def test_a_module_whose_layers_cannot_be_read_alone_is_told_why(module, size, why):
    torch.manual_seed(1)
    with pytest.raises(CaptureError, match=why):
        explain(module().eval(), models.pixels(size=size), methods="legrad", target=0)


def test_a_module_is_as_it_was_after_legrad():
    model, image = models.timm_vit(), models.pixels()
    model.blocks[1].forward = kept = model.blocks[1].forward  # somebody's own
    before = [dict(vars(part)) for part in model.modules()]
    explain(model, image, methods="legrad", target=1)
    assert model.blocks[1].forward is kept
    assert [vars(part).keys() for part in model.modules()] == [part.keys() for part in before]
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
