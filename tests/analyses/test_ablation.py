"""Head ablation: the restarted batch against plain loops and against weights set to zero."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from tests.capture.models import lively, pixels as tutorial_pixels
from tests.capture.tutorials import Block, FusedQkv, MultiHead, TutorialViT
from tests.comparing import assert_same
from vit_viz.analyses.ablation import (
    ablate_heads,
    causal_map,
    estimated_head_map,
    head_importance,
    head_map,
)
from vit_viz.analyses.prepared_image import PreparedImage
from vit_viz.capture import edit, trace as capture
from vit_viz.errors import Cancelled, CaptureError, ParameterError
from vit_viz.geometry import TokenLayout

pytestmark = pytest.mark.numbers

KINDS = [
    {},
    {"reg_tokens": 4},
    {"class_token": False, "pooling": "mean", "fc_norm": True},
    {"class_token": False, "pooling": "attention"},
    {"position": "rotary"},
    {"position": "none", "relative_bias": True},
    {"shared_bias": True, "pooling": "mean"},
    {"rotary_grid": (3, 5)},
    {"scale": 0.9},  # instead of 8 ** -0.5
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


@pytest.mark.parametrize("num_heads", [1, 2, 4])
@pytest.mark.parametrize("how", ["zero", "mean", "uniform"])
def test_layers_that_share_a_batch_give_the_numbers_of_the_plain_loop(make_model, pixels, num_heads, how):
    model = make_model(num_heads=num_heads, depth=5)  # 8, 4 and 2 layers to a batch
    edits = {"zero": 0.0, "mean": "mean", "uniform": "uniform"}
    with torch.no_grad():
        outputs = model(pixels)[0]
        expected = np.zeros((5, num_heads))
        for layer, head in np.ndindex(5, num_heads):
            with edit(heads={(layer, head): edits[how]}):
                expected[layer, head] = model(pixels)[0, 2] - outputs[2]
    subject, rounding = PreparedImage.of(model, pixels), 1e-5 * float(outputs.abs().max())
    told: list[int] = []
    found = causal_map(
        subject, target=2, how=how, partial=lambda so_far: told.append(int(so_far.known.sum()))
    )
    assert_same(found.table.values, expected, relative=0, floor=rounding)
    assert_same(ablate_heads(model, pixels, target=2, how=how).values, expected, relative=0, floor=rounding)
    assert told[-1] == 5 * num_heads
    assert len(told) == -(-5 // max(1, 8 // num_heads))


def test_what_stands_before_the_heads_is_computed_once_for_all_of_them(make_model, pixels):
    model, images = make_model(), []
    for block in model.blocks:
        block.attn.qkv.register_forward_hook(lambda *call: images.append(len(call[2])))
    ablate_heads(model, pixels)
    assert images == [1, 1, 1, 1, 5, 5, 1, 5, 1]  # the trace; then each layer, and five variants behind it


class WrittenOut(nn.Module):
    """The attention of our model with its softmax written out, as somebody may put it into a block."""

    def __init__(self, fused):
        super().__init__()
        self.fused = fused

    def forward(self, x, rotary=None, *, read=None):
        assert rotary.rotary is None
        qkv = self.fused.qkv(x).unflatten(-1, (3, self.fused.num_heads, self.fused.head_dim))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attention = (q @ k.transpose(-2, -1) * self.fused.scale).softmax(-1)
        return self.fused.proj((attention @ v)[:, :, :read].transpose(1, 2).flatten(2))


def test_a_block_with_an_attention_of_its_own_is_not_restarted(make_model, pixels):
    model = make_model()
    expected = ablate_heads(model, pixels, target=2).values
    changed = copy.deepcopy(model)
    changed.blocks[1].attn = WrittenOut(changed.blocks[1].attn)
    assert_same(ablate_heads(changed, pixels, target=2).values, expected)


def test_an_estimate_needs_a_gradient_also_where_values_are_kept(make_model, pixels):
    with pytest.raises(CaptureError, match="target="):
        estimated_head_map(capture(make_model(), pixels, keep_values=True))


def test_what_does_not_exist_is_refused(make_model, pixels):
    subject = PreparedImage.of(make_model(), pixels)
    with pytest.raises(ParameterError, match="zero, mean, uniform"):
        head_map(subject, how="shuffle")


def test_progress_and_cancelling(make_model, pixels):
    model, seen = make_model(), []
    ablate_heads(model, pixels, progress=seen.append)
    assert seen[-1] == pytest.approx(1)
    with pytest.raises(Cancelled):
        ablate_heads(model, pixels, cancelled=lambda: True)


@pytest.mark.parametrize("how", ["zero", "mean", "uniform"])
def test_the_causal_map_is_the_head_map_with_what_matters_first(make_model, pixels, how):
    subject, seen = PreparedImage.of(make_model(), pixels), []
    result = causal_map(subject, target=2, how=how, partial=seen.append)
    assert_same(result.table.values, head_map(subject, target=2, how=how).values, relative=3e-6)
    assert [int(found.known.sum()) for found in seen] == [5, 10, 15]  # the heads of a layer share a batch
    filled = [int(found.known[:, 0].argmax()) for found in seen[:1]]
    assert filled == [int(np.abs(result.estimate.values).max(1).argmax())]
    last = int(np.abs(result.estimate.values).max(1).argmin())
    assert not seen[1].known[last].any()
    assert not seen[1].table.values[last].any()
    assert result.known.all()


def test_heads_beyond_a_batch_are_taken_by_their_estimate(make_model, pixels, monkeypatch):
    monkeypatch.setattr("vit_viz.analyses.ablation.BATCH", 2)
    subject, seen = PreparedImage.of(make_model(), pixels), []
    result = causal_map(subject, target=2, partial=seen.append)
    size = np.abs(result.estimate.values)
    first = seen[0].known
    assert first.sum() == 2
    assert first[np.unravel_index(size.argmax(), size.shape)]
    assert len(seen) == 9
    assert_same(result.table.values, head_map(subject, target=2).values, relative=3e-6)


@pytest.mark.parametrize("how", ["zero", "mean", "uniform"])
@pytest.mark.parametrize("options", KINDS)
def test_the_estimate_without_a_trace_is_that_of_a_trace(make_model, pixels, options, how):
    model = make_model(**options)
    trace = capture(model, pixels, target=2, keep_values=True)
    expected = estimated_head_map(trace, how=how)
    subject = PreparedImage.of(model, pixels)
    assert_same(causal_map(subject, target=2, how=how).estimate.values, expected)
    assert_same(head_importance(subject, target=2, how=how).values, expected)
    with torch.inference_mode():
        assert_same(head_importance(subject, target=2, how=how).values, expected)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_inside_an_edit_estimate_and_map_are_those_of_the_edited_model(make_model, pixels):
    model = make_model()
    subject = PreparedImage.of(model, pixels)
    plain = causal_map(subject, target=2)
    with edit(temperature={1: 3.0}):
        trace = capture(model, pixels, target=2, keep_values=True)
        edited = causal_map(subject, target=2)
        assert_same(edited.estimate.values, estimated_head_map(trace))
        with torch.no_grad():
            whole = float(model(pixels)[0, 2])
            with edit(heads={(0, 1): 0.0}):
                expected = float(model(pixels)[0, 2]) - whole
    assert edited.table.values[0, 1] == pytest.approx(
        expected, abs=1e-5 * float(np.abs(edited.table.values).max())
    )
    assert (
        np.abs(edited.estimate.values - plain.estimate.values).max()
        > 1e-3 * np.abs(plain.estimate.values).max()
    )


@pytest.mark.parametrize("hidden", [[(0, 3), (0, 4), (5, 3)], [(i, 2) for i in range(25)]])
def test_uniform_under_a_knockout_is_over_the_tokens_that_are_visible(make_model, pixels, hidden):
    model = make_model()
    with edit(knockout={1: hidden}):
        trace = capture(model, pixels, target=2, keep_values=True)
        estimate = estimated_head_map(trace, how="uniform")[1]
        with edit(heads={(1, head): "uniform" for head in range(5)}):
            uniform = capture(model, pixels).attention(1)
    allowed = torch.ones(25, 25)
    allowed[tuple(zip(*hidden, strict=True))] = 0
    expected = (allowed / allowed.sum(-1, keepdim=True)).expand(5, 25, 25)
    assert_same(uniform, expected)
    v, gradient = trace.v[1].double(), trace.output_grad[1].double()
    towards = (expected.double() @ v - trace.attention(1).double() @ v) * gradient
    assert_same(estimate, towards.sum((-2, -1)).numpy(), relative=1e-5)


def test_the_causal_map_reports_progress_and_ends_between_batches(make_model, pixels):
    subject, shares = PreparedImage.of(make_model(), pixels), []
    causal_map(subject, progress=shares.append)
    assert shares == pytest.approx([1 / 3, 2 / 3, 1])
    with pytest.raises(Cancelled):
        causal_map(subject, partial=shares.append, cancelled=lambda: len(shares) > 3)
    assert len(shares) == 4


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
    subject = PreparedImage.of(model, image, layout=TokenLayout(grid=(4, 6)))
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
