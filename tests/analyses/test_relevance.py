"""Relevance and gradient rollout: row chains against the published, materialised forms, and gradients against autograd."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.comparing import assert_same
from vit_viz.analyses.relevance import gradient_rollout, relevance
from vit_viz.capture import trace as capture
from vit_viz.errors import CaptureError, ParameterError

pytestmark = pytest.mark.numbers


def gradients(trace):
    """dL/dA = (dL/do) v^T in fp64, [layers, heads, tokens, tokens]."""
    return trace.output_grad.double() @ trace.v.double().transpose(-1, -2)


def published_relevance(attention, gradient, layers=None):
    """Chefer 2021b as its authors publish it: every matrix written out, R updated from the first layer to the last."""
    tokens = attention.shape[-1]
    first, end = layers or (0, len(attention))
    relevance = torch.eye(tokens, dtype=torch.float64)
    for cam, grad in zip(attention[first:end], gradient[first:end], strict=True):
        averaged = (grad * cam).clamp(min=0).mean(dim=0)
        relevance = relevance + torch.matmul(averaged, relevance)
    return relevance


def published_gradient_rollout(attention, gradient, share=0.5):
    """Gradient rollout with whole matrices, clamped before the mean over heads, rows normalised with keepdim."""
    result = torch.eye(attention.shape[-1], dtype=torch.float64)
    for cam, grad in zip(attention, gradient, strict=True):
        layer = share * (grad * cam).clamp(min=0).mean(0) + (1 - share) * torch.eye(
            len(result), dtype=torch.float64
        )
        result = (layer / layer.sum(-1, keepdim=True)) @ result
    return result


@pytest.mark.parametrize("layers", [None, (0, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("prefix", [1, 5])
def test_relevance_equals_the_materialised_published_form(make_trace, matrices, prefix, layers):
    trace = make_trace(prefix=prefix)
    expected = published_relevance(matrices(trace), gradients(trace), layers)[0]
    got = relevance(trace, layers=layers)
    assert_same(got.values.ravel(), expected[prefix:].numpy())
    assert_same(list(got.prefix.values()), expected[:prefix].numpy())


def test_relevance_of_a_mean_pool_is_what_is_added_to_its_start(make_trace, matrices):
    trace = make_trace(prefix=0)
    expected = published_relevance(matrices(trace), gradients(trace)).mean(0) - 1 / 24
    got = relevance(trace)
    assert_same(got.values.ravel(), expected.numpy())
    assert "change" in got.note


def test_relevance_of_an_attention_pool_starts_gradient_weighted(make_trace, matrices):
    attention, gradient = torch.rand(5, 24), torch.randn(5, 24)
    attention /= attention.sum(-1, keepdim=True)
    trace = make_trace(prefix=0, pooling="attention", pooling_attention=attention, pooling_gradient=gradient)
    start = (attention * gradient).clamp(min=0).mean(0).double()
    expected = start @ published_relevance(matrices(trace), gradients(trace)) - start
    assert_same(relevance(trace).values.ravel(), expected.numpy())


ONE_LAYER = [[[[0.5, 0.5], [0.2, 0.8]], [[0.25, 0.75], [0.6, 0.4]]]]


def test_relevance_worked_by_hand_clamps_before_the_mean_over_heads(trace_of):
    # the class row: head 0 gives (0.5 * 2, 0.5 * -4) -> (1, 0), head 1 (0.25 * 4, 0.75 * 4) -> (1, 3); mean (1, 1.5)
    gradient = [[[[2.0, -4.0], [0.0, 0.0]], [[4.0, 4.0], [0.0, 0.0]]]]
    got = relevance(trace_of(ONE_LAYER, gradient=gradient))
    assert got.values.item() == pytest.approx(1.5)  # clamped after the mean it would be 0.5
    assert got.prefix["class"] == pytest.approx(2)  # 1 of the identity


def test_relevance_of_two_layers_worked_by_hand(trace_of):
    # Abar_1 = [[0 1] [0 2]], Abar_0 = [[0 0.5] [3 0]]: r = e_0 -> (1 1) -> (1 1) + (1 1) Abar_0 = (4 1.5)
    attention = [[[[0.5, 0.5], [0.75, 0.25]]], [[[0.5, 0.5], [0.5, 0.5]]]]
    gradient = [[[[-1.0, 1.0], [4.0, -1.0]]], [[[0.0, 2.0], [0.0, 4.0]]]]
    got = relevance(trace_of(attention, gradient=gradient))
    assert got.values.item() == pytest.approx(1.5)
    assert got.prefix["class"] == pytest.approx(4)


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("prefix", [1, 5])
def test_gradient_rollout_equals_its_matrices_and_rows_sum_to_one(make_trace, matrices, prefix, share):
    trace = make_trace(prefix=prefix)
    expected = published_gradient_rollout(matrices(trace), gradients(trace), share)[0]
    got = gradient_rollout(trace, attention_share=share)
    assert_same(got.values.ravel(), expected[prefix:].numpy())
    assert got.values.sum() + sum(got.prefix.values()) == pytest.approx(1, abs=1e-5)


def test_gradient_rollout_with_share_one_keeps_a_row_that_nothing_supports(trace_of):
    gradient = [
        [[[-1.0, -1.0], [1.0, 1.0]], [[-1.0, -1.0], [1.0, 1.0]]]
    ]  # the class row is clamped away entirely
    got = gradient_rollout(trace_of(ONE_LAYER, gradient=gradient), attention_share=1.0)
    assert got.prefix["class"] == 1
    assert got.values.item() == 0


def written_out_gradients(model, pixels, target, monkeypatch):
    """Attention and dL/dA of every layer by autograd, on attention written out in place of the fused kernel."""
    seen = []

    def attention(q, k, v, attn_mask=None, scale=None, **_):
        bias = 0 if attn_mask is None else attn_mask
        weights = torch.softmax(q @ k.transpose(-1, -2) * scale + bias, dim=-1)
        weights.retain_grad()
        seen.append(weights)
        return weights @ v

    with monkeypatch.context() as patch:
        patch.setattr(F, "scaled_dot_product_attention", attention)
        target(model(pixels)[0]).backward()
    model.zero_grad(set_to_none=True)
    square = [weights for weights in seen if weights.shape[-1] == weights.shape[-2]]
    return [weights.detach()[0] for weights in square], [weights.grad[0] for weights in square]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reg_tokens": 4},
        {"position": "none", "relative_bias": True},
        {"class_token": False, "pooling": "mean", "fc_norm": True},
        {"qk_norm": True, "mlp": "swiglu"},
    ],
)
def test_the_gradient_of_attention_is_that_of_autograd_on_a_written_out_attention(
    make_model, pixels, monkeypatch, options
):
    model = make_model(**options)
    if "relative_bias" in options:  # each is 1.5e-5 away from it in single precision
        model, pixels = model.double(), pixels.double()
    attention, gradient = written_out_gradients(model, pixels, lambda logits: logits[3], monkeypatch)
    trace = capture(model, pixels, target=3, keep_values=True)
    for layer in range(3):
        assert_same(trace.attention(layer), attention[layer].float())
        assert_same(trace.attention_gradient(layer), gradient[layer].float())
    expected = published_relevance(torch.stack(attention).double(), torch.stack(gradient).double())
    start = torch.as_tensor(trace.layout.weights("pool"))
    expected = start @ expected - (0 if trace.layout.pooling == "class" else start)
    got = relevance(trace).values.ravel()
    assert_same(got, expected[trace.layout.num_prefix :].numpy())


def test_relevance_without_a_target_says_what_is_missing(make_model, pixels):
    with pytest.raises(CaptureError, match="target="):
        relevance(capture(make_model(), pixels))


def test_a_share_outside_its_range_is_refused(make_trace):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        gradient_rollout(make_trace(), attention_share=-0.1)
