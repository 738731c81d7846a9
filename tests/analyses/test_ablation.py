"""Head ablation: the restarted batch against plain loops and against weights set to zero."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.capture.models import lively
from tests.capture.models import pixels as tutorial_pixels
from tests.capture.tutorials import Block, FusedQkv, MultiHead, TutorialViT
from tests.comparing import assert_same
from vit_viz.analyses.ablation import ablate_heads, estimated_head_map, head_map, without_heads
from vit_viz.analyses.subject import Subject
from vit_viz.capture import edit
from vit_viz.capture import trace as capture
from vit_viz.errors import Cancelled, CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

KINDS = [
    {},
    {"reg_tokens": 4},
    {"class_token": False, "pooling": "mean", "fc_norm": True},
    {"class_token": False, "pooling": "attention"},
    {"position": "rotary"},
]


@pytest.mark.parametrize("how", ["zero", "mean", "uniform"])
@pytest.mark.parametrize("options", KINDS)
def test_the_head_map_equals_the_plain_loop_from_the_pixels(make_model, pixels, options, how):
    model = make_model(**options)
    got = ablate_heads(model, pixels, target=2, how=how).values
    value = {"zero": 0.0}.get(how, how)
    expected = np.zeros((3, 5))
    with torch.no_grad():
        whole = float(model(pixels)[0, 2])
        for layer, head in np.ndindex(3, 5):
            with edit(heads={(layer, head): value}):
                expected[layer, head] = float(model(pixels)[0, 2]) - whole
    assert_same(got, expected)


def test_a_head_set_to_zero_equals_a_projection_without_its_columns(make_model, pixels):
    model = make_model()
    got = ablate_heads(model, pixels, target=2).values
    with torch.no_grad():
        for layer, head in ((0, 0), (1, 4), (2, 2)):
            changed = copy.deepcopy(model)
            changed.blocks[layer].attn.proj.weight[:, 8 * head : 8 * head + 8] = 0
            expected = float(changed(pixels)[0, 2] - model(pixels)[0, 2])
            assert got[layer, head] == pytest.approx(expected, abs=1e-5)


def test_a_head_whose_values_are_zero_changes_nothing(make_model, pixels):
    model = make_model()
    with torch.no_grad():
        model.blocks[1].attn.qkv.weight[80 + 8 : 80 + 16] = 0  # the values of head 1
        model.blocks[1].attn.qkv.bias[80 + 8 : 80 + 16] = 0
    values = ablate_heads(model, pixels, target=2).values
    assert values[1, 1] == pytest.approx(0, abs=1e-5)
    assert np.abs(np.delete(values[1], 1)).min() > 1e-4


def test_one_head_worked_by_hand(make_model):
    # one token pair, values (1, 2), projection the identity: the class reads 3 * 1 - 1 * 2 = 1 from the only head
    model = make_model(embed_dim=2, num_heads=1, depth=1, mlp_hidden=1, final_norm=False, img_size=(4, 6))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.blocks[0].attn.qkv.bias[4:] = torch.tensor([1.0, 2.0])
        model.blocks[0].attn.proj.weight.copy_(torch.eye(2))
        model.head.weight[0] = torch.tensor([3.0, -1.0])
    table = ablate_heads(model, torch.zeros(1, 3, 4, 6), target=0)
    assert table.values.tolist() == [[pytest.approx(-1)]]
    assert table.signed


def test_any_module_takes_the_plain_loop(make_model, pixels):
    model = make_model()
    subject = Subject.of(nn.Sequential(model), pixels, layout=model.layout(16, 36))
    assert_same(
        head_map(subject, target=2).values, ablate_heads(model, pixels, target=2).values, relative=3e-6
    )


def test_blocks_before_the_layer_do_not_run_again(make_model, pixels):
    model = make_model()
    calls = [0, 0, 0]
    for i, block in enumerate(model.blocks):
        block.register_forward_hook(lambda *_, i=i: calls.__setitem__(i, calls[i] + 1))
    ablate_heads(model, pixels)
    assert calls == [2, 3, 4]  # once traced; then one batch for each layer at or before it


def test_the_estimate_is_the_derivative_of_the_exact_map(make_model, pixels):
    model = make_model()
    estimate = estimated_head_map(capture(model, pixels, target=2, keep_values=True))
    step = 1e-3
    with torch.no_grad():
        for layer, head in ((0, 1), (1, 3), (2, 0)):
            values = []
            for factor in (1 - step, 1 + step):
                with edit(heads={(layer, head): factor}):
                    values.append(float(model(pixels)[0, 2].double()))
            slope = (values[1] - values[0]) / (2 * step)
            assert estimate[layer, head] == pytest.approx(-slope, abs=2e-2 * max(1, abs(slope)))


def test_an_estimate_needs_a_gradient(make_model, pixels):
    with pytest.raises(CaptureError, match="target="):
        estimated_head_map(capture(make_model(), pixels))


def test_switching_heads_off_shows_the_new_answer(make_model, pixels):
    model = make_model()
    subject = Subject.of(model, pixels)
    result = without_heads(subject, [(0, 1), (2, 4)], target=2)
    with edit(heads={(0, 1): 0.0, (2, 4): 0.0}):
        expected = model(pixels)[0].detach()
    whole = model(pixels)[0].detach()
    assert_same(result.after, expected)
    assert result.change == pytest.approx(float(expected[2] - whole[2]), abs=1e-5)
    probabilities = expected.softmax(-1)
    assert [index for index, _ in result.top] == probabilities.topk(5).indices.tolist()
    assert result.probability_change == pytest.approx(
        float(probabilities[2] - whole.softmax(-1)[2]), abs=1e-5
    )


def test_a_model_without_classes_has_a_change_but_no_top_five(make_model, pixels):
    result = without_heads(Subject.of(make_model(num_classes=0), pixels), [(0, 1)])
    assert result.top == ()
    assert math.isnan(result.probability_change)
    assert result.change != 0
    assert ablate_heads(make_model(num_classes=0), pixels).values.shape == (3, 5)


def test_what_does_not_exist_is_refused(make_model, pixels):
    subject = Subject.of(make_model(), pixels)
    with pytest.raises(ParameterError, match="zero, mean, uniform"):
        head_map(subject, how="shuffle")
    with pytest.raises(ParameterError, match="heads 0-4"):
        without_heads(subject, [(0, 14)])
    with pytest.raises(ParameterError, match="layers 0-2"):
        without_heads(subject, [(3, 0)])


def test_progress_and_cancelling(make_model, pixels):
    model, seen = make_model(), []
    ablate_heads(model, pixels, progress=seen.append)
    assert seen[-1] == pytest.approx(1)
    with pytest.raises(Cancelled):
        ablate_heads(model, pixels, cancelled=lambda: True)


class TwoAttentions(Block):
    """One attention that is written out, and a fused one beside the MLP."""

    def __init__(self) -> None:
        super().__init__(FusedQkv())
        self.second = MultiHead()

    def forward(self, x):
        return super().forward(x) + self.second(x)


def test_layers_of_blocks_with_two_attentions_are_the_calls_in_order():
    model = TutorialViT(FusedQkv)
    model.layers = nn.ModuleList(TwoAttentions() for _ in range(3))
    model, image = lively(model), tutorial_pixels()
    subject = Subject.of(model, image, layout=TokenLayout(grid=(4, 6)))
    values = head_map(subject, target=2).values
    assert values.shape == (6, 5)
    with torch.no_grad():
        whole = float(model(image)[0, 2])
        for layer in range(6):
            changed = copy.deepcopy(model)
            block = changed.layers[layer // 2]
            projection = block.second.attention.out_proj if layer % 2 else block.attention.proj
            projection.weight[:, 8 * 3 : 8 * 4] = 0
            expected = float(changed(image)[0, 2]) - whole
            assert values[layer, 3] == pytest.approx(expected, abs=1e-5 * float(np.abs(values).max()))
            with edit(heads={(layer, 3): 0.0}):
                edited = float(model(image)[0, 2]) - whole
            assert edited == pytest.approx(expected, abs=1e-5 * float(np.abs(values).max()))
