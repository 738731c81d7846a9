"""One attention call as a value: its operands by head, whatever axes the model gave them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.comparing import assert_same
from vit_viz.capture.calls import AttentionCall, as_bias, by_head, causal_bias
from vit_viz.errors import CaptureError


@pytest.mark.parametrize("lead", [(), (1,), (1, 1)])
def test_the_heads_of_one_image_come_without_its_axes(lead: tuple[int, ...]) -> None:
    heads = torch.randn(5, 7, 8)
    assert torch.equal(by_head(heads.reshape(*lead, *heads.shape)), heads)


def test_one_head_without_an_axis_gets_one() -> None:
    head = torch.randn(7, 8)
    assert torch.equal(by_head(head), head[None])


def test_heads_may_stand_before_the_batch() -> None:
    heads = torch.randn(5, 7, 8)
    assert torch.equal(by_head(heads[:, None]), heads)


def test_several_images_are_refused() -> None:
    with pytest.raises(CaptureError, match=r"\[2, 5, 7, 8\] runs within several windows or images"):
        by_head(torch.randn(2, 5, 7, 8))


def test_the_operands_of_an_unbatched_call_are_its_own() -> None:
    q, k, v = torch.randn(3, 5, 7, 8)
    assert all(map(torch.equal, AttentionCall(q, k, v).operands(), (q, k, v)))


def forms() -> dict[str, AttentionCall]:
    """Calls of every form, 7 queries and 9 keys."""
    q, k, v = torch.randn(2, 6, 7, 8), torch.randn(2, 6, 9, 8), torch.randn(2, 6, 9, 8)
    allowed = torch.rand(7, 9) > 0.4
    allowed[:, 2] = True
    return {
        "plain": AttentionCall(q, k, v),
        "scale": AttentionCall(q, k, v, scale=0.7),
        "Boolean mask": AttentionCall(q, k, v, allowed),
        "bias": AttentionCall(q, k, v, torch.randn(6, 7, 9)),
        "causal": AttentionCall(q, k, v, is_causal=True),
        "shared keys": AttentionCall(q, k[:, :3], v[:, :3], enable_gqa=True),
    }


@pytest.mark.parametrize("form", forms())
def test_weights_are_those_of_the_kernel(form: str) -> None:
    call = forms()[form]
    expected = F.scaled_dot_product_attention(*call[:6], **dict(zip(call._fields[6:], call[6:], strict=True)))
    value = call.value.repeat_interleave(2, dim=1) if call.enable_gqa else call.value
    assert_same(call.weights() @ value, expected)
    assert torch.equal(call.run(), expected)


@pytest.mark.parametrize(
    ("form", "is_known"), [("plain", True), ("scale", True), ("causal", True), ("bias", False)]
)
def test_the_kernels_normaliser_is_that_of_the_scores(form: str, is_known: bool) -> None:
    call = forms()[form]
    with torch.no_grad():
        output, normaliser = call.run_with_normaliser()
        assert_same(output, call.run())
    assert (normaliser is not None) == is_known
    if normaliser is not None:
        scores = call.query @ call.key.transpose(-2, -1) * call.factor
        seen = (
            torch.ones(7, 9, dtype=torch.bool).tril()
            if call.is_causal
            else torch.ones(7, 9, dtype=torch.bool)
        )
        assert_same(normaliser, scores.masked_fill(~seen, -torch.inf).logsumexp(-1))


@pytest.mark.parametrize("form", ["shared keys", "unbatched", "gradients", "autocast", "broadcast"])
def test_a_kernel_without_a_normaliser_gives_none(form: str) -> None:
    q, k, v = torch.randn(3, 1, 6, 7, 8)
    call = {
        "shared keys": AttentionCall(q, k[:, :3], v[:, :3], enable_gqa=True),
        "unbatched": AttentionCall(q[0], k[0], v[0]),
        "broadcast": AttentionCall(q, k[:, :1], v[:, :1]),
    }.get(form, AttentionCall(q, k, v))
    with torch.set_grad_enabled(form == "gradients"), torch.autocast("cpu", enabled=form == "autocast"):
        assert call.run_with_normaliser()[1] is None


def test_operands_that_heads_share_are_given_to_each() -> None:
    q, k, v = torch.randn(1, 6, 7, 8), torch.randn(1, 1, 7, 8), torch.randn(1, 6, 7, 8)
    operands = AttentionCall(q, k, v).operands()
    assert [tuple(part.shape) for part in operands] == [(6, 7, 8)] * 3
    assert torch.equal(operands[1], k[0].expand(6, 7, 8))


def test_operands_are_in_the_precision_of_the_kernel() -> None:
    q, k, v = torch.randn(3, 1, 6, 7, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert {part.dtype for part in AttentionCall(q, k, v).operands()} == {torch.bfloat16}
    assert {part.dtype for part in AttentionCall(q, k, v).operands()} == {torch.float32}


def test_as_many_queries_as_keys_make_a_layer() -> None:
    q, k = torch.zeros(2, 6, 7, 9), torch.zeros(2, 6, 9, 7)
    assert AttentionCall(q, q, q).is_square
    assert not AttentionCall(q, k, k).is_square


def test_a_mask_is_added_as_a_bias() -> None:
    bias = as_bias(torch.tensor([[True, False]]))
    assert (bias.dtype, bias.tolist()) == (torch.float32, [[0, float("-inf")]])
    assert as_bias(torch.tensor([[2.5]]).double()).dtype == torch.float32
    inf = float("-inf")
    assert causal_bias(2, 3, torch.device("cpu")).tolist() == [[0, inf, inf], [0, 0, inf]]
