"""Class activation maps on tokens: by hand, and against hooks on the whole model with the formulas of pytorch-grad-cam."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.analyses.test_layerwise import KINDS
from tests.capture import models
from tests.capture.readouts import readout, segmenter, unetr, with_skips
from tests.capture.test_features import Model
from tests.comparing import assert_same
from vit_viz.analyses.cams import gradcam, hirescam, layercam, token_cam, xgradcam
from vit_viz.analyses.explain import explain, explain_subject
from vit_viz.analyses.method_input import MethodInput
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.analyses.targets import class_logit
from vit_viz.capture import edit
from vit_viz.errors import CaptureError

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


def test_together_and_beside_relevance_they_take_one_pass_and_its_gradient(make_model, pixels, monkeypatch):
    model, seen, passes = make_model(), [], []
    subject, grad = PreparedImage.of(model, pixels), torch.autograd.grad

    def noted(value, inputs, **more):
        if any(
            tensor.ndim > 2 for tensor in inputs if isinstance(tensor, torch.Tensor)
        ):  # and not the scores
            seen.append(1)
        return grad(value, inputs, **more)

    monkeypatch.setattr(torch.autograd, "grad", noted)
    model.patch_embed.register_forward_hook(lambda *_: passes.append(1))
    explain_subject(subject, methods=[*(one.__name__ for one in ALL), "relevance"], target=2)
    assert (len(seen), len(passes)) == (1, 1)


def test_a_trace_that_kept_no_features_is_told_what_keeps_them(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    with pytest.raises(CaptureError, match="pass target= and keep_features=True"):
        token_cam(layercam, MethodInput(subject, class_logit(0), subject.trace(class_logit(0))))


def timm_with_registers():
    """Class token and registers in front, patches that are not square, and an odd grid."""
    from timm.models.eva import Eva

    return Eva(
        img_size=(24, 60), patch_size=(8, 12), embed_dim=40, depth=3, num_heads=5, num_classes=7, num_reg_tokens=2,
        use_rot_pos_emb=True, qkv_fused=False,
    )  # fmt: skip


def transformers_with_registers(how):
    from transformers import Dinov2WithRegistersConfig, Dinov2WithRegistersForImageClassification

    config = Dinov2WithRegistersConfig(
        hidden_size=40, num_hidden_layers=3, num_attention_heads=5, image_size=24, patch_size=8, num_labels=7,
        num_register_tokens=3,
    )  # fmt: skip
    model = Dinov2WithRegistersForImageClassification(config)
    model.set_attn_implementation(how)
    return model


OF_OTHERS = {
    "timm": (lambda: models.timm_vit(), lambda model: model.blocks[-1].norm1, (64, 96)),
    "timm, pooled": (
        lambda: models.timm_vit(class_token=False, global_pool="avg", fc_norm=True, qk_norm=True),
        lambda model: model.blocks[-1].norm1,
        (64, 96),
    ),
    "timm, q, k and v apart": (timm_with_registers, lambda model: model.blocks[-1].norm1, (24, 60)),
    "transformers": (
        lambda: models.transformers_vit(),
        lambda model: model.vit.layers[-1].layernorm_before,
        (64, 96),
    ),
    "transformers, registers": (
        lambda: transformers_with_registers("sdpa"),
        lambda model: model.dinov2_with_registers.encoder.layer[-1].norm1,
        (24, 40),
    ),
    "transformers, written out": (
        lambda: transformers_with_registers("eager"),
        lambda model: model.dinov2_with_registers.encoder.layer[-1].norm1,
        (24, 40),
    ),
    "torchvision": (models.torchvision_vit, lambda model: model.encoder.layers[-1].ln_1, (64, 64)),
}
"""Each with the layer that pytorch-grad-cam is to be given, and the size of its input."""


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("name", OF_OTHERS)
def test_of_any_module_each_equals_the_published_formula_on_its_last_first_norm(name, frozen):
    make, layer, size = OF_OTHERS[name]
    torch.manual_seed(3)
    model = models.lively(make())
    image = models.pixels(size=size)
    kept = []
    handle = layer(model).register_forward_hook(lambda _module, _args, output: kept.append(output))
    output = model(image)
    (gradient,) = torch.autograd.grad(getattr(output, "logits", output)[0, 4], kept[0])
    handle.remove()
    maps = explain(model.requires_grad_(not frozen), image, methods=[one.__name__ for one in ALL], target=4)
    rows, cols = maps["gradcam"].values.shape
    parts = [
        part.detach()[:, -rows * cols :].transpose(1, 2).reshape(1, -1, rows, cols).double().numpy()
        for part in (kept[0], gradient)
    ]
    for method, got in maps.items():
        expected = published(method, *parts)
        assert expected.any()
        assert_same(got.values, expected.astype(np.float32))


def test_edits_are_seen_by_what_the_last_attention_reads():
    model, image = models.timm_vit(), models.pixels()
    heads = {(layer, head): 0.0 for layer in range(2) for head in range(5)}
    with edit(heads=heads):
        edited = explain(model, image, methods="hirescam", target=4)["hirescam"]
    with torch.no_grad():
        for block in model.blocks[:2]:  # whose attention adds its bias alone
            block.attn.proj.weight.zero_()
    assert_same(edited.values, explain(model, image, methods="hirescam", target=4)["hirescam"].values)


def test_a_function_of_the_output_is_a_target_as_a_class_is():
    model, image = models.transformers_vit(), models.pixels()
    of_class = explain(model, image, methods="layercam", target=5)["layercam"]
    of_function = explain(model, image, methods="layercam", target=lambda scores: 3 * scores[5])["layercam"]
    assert_same(of_function.values, 3 * of_class.values)


class Turned(Model):
    """Its patches change places after the first block."""

    def forward(self, pixels):
        x = torch.cat(
            [self.named.expand(len(pixels), -1, -1), self.embed(pixels).flatten(2).transpose(1, 2)], dim=1
        )
        for number, block in enumerate(self.blocks):
            x = block(x)
            x = torch.cat([x[:, :3], x[:, 3:].flip(1)], dim=1) if number == 0 else x
        return self.head(self.norm(x)[:, 0])


def test_where_tokens_change_places_before_the_last_layer_no_map_is_drawn():
    torch.manual_seed(0)
    model = models.lively(Turned("apart", 3))
    with pytest.raises(CaptureError, match="change places"):
        explain(model, models.pixels(size=(16, 36)), methods="gradcam", target=1)


@pytest.mark.parametrize(("read", "note"), [(segmenter, ""), (with_skips, "Only "), (unetr, "Only ")])
def test_what_a_target_reads_around_the_last_layer_is_told_beside_the_map(read, note):
    drawn = explain(
        readout(read), models.pixels(), methods="hirescam", target=lambda out: out[0, :, 9, 17].sum()
    )
    rest = (
        "of what the target takes from the image passes through the last layer; this map leaves out the rest."
    )
    assert drawn["hirescam"].note.startswith(note)
    assert drawn["hirescam"].note.endswith(rest if note else "")
    assert bool(drawn["hirescam"].note) == bool(note)
