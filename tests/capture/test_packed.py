"""A packed trace is small, holds no tensors, and becomes the same trace again, up to the rounding of its operands to fp16."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from tests.capture.models import own, pixels
from tests.comparing import assert_same
from tests.traces import trace_from
from vit_viz.answer import Provenance
from vit_viz.capture import PackedTrace, Trace, trace
from vit_viz.geometry import CropBox, TokenLayout

LAYERS, HEADS, HEAD_DIM = 3, 5, 8
LAYOUT = TokenLayout(grid=(4, 6), prefix=("class", "register 0"))
N = LAYOUT.num_tokens
BOX = CropBox((40, 60), (32, 48), (0.0, 0.0, 40.0, 60.0))


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def made(**options: Any) -> Trace:
    shape = (LAYERS, HEADS, N, HEAD_DIM)
    operands = {name: random(*shape, seed=i) for i, name in enumerate(("q", "k", "v", "output_grad"))}
    return trace_from(
        **operands | options,
        layout=LAYOUT,
        logits=random(7, seed=5),
        residual=random(LAYERS + 1, N, 40, seed=6),
        scale=[0.1, 0.2, 0.3],
        projections=list(random(LAYERS, 40, HEADS * HEAD_DIM, seed=7)),
        pooling_attention=random(HEADS, N, seed=8).softmax(-1),
        pooling_gradient=random(HEADS, N, seed=9),
        proof=[1e-7, 2e-7, math.nan],
        crop_box=BOX,
        provenance=Provenance("a model", "weights", "image", "fit", (("family", "timm"),)),
    )


def travelled(trace: Trace) -> Trace:
    packed: PackedTrace = pickle.loads(pickle.dumps(PackedTrace.of(trace)))
    return packed.unpacked()


def test_operands_are_rounded_and_nothing_else_is() -> None:
    before = made()
    after = travelled(before)
    for name in ("q", "k", "v", "output_grad"):
        assert torch.equal(getattr(after, name), getattr(before, name).half().float())
    for name in ("logits", "residual", "pooling_attention", "pooling_gradient"):
        assert torch.equal(getattr(after, name), getattr(before, name))
    for layer in range(LAYERS):
        assert torch.equal(after.value_norms(layer), before.value_norms(layer))


def test_what_a_trace_says_of_itself_is_the_same() -> None:
    before = made()
    after = travelled(before)
    for name in ("layout", "scales", "tolerance", "problems", "crop_box", "provenance", "proof_status"):
        assert getattr(after, name) == getattr(before, name)
    told = trace(own(), pixels())
    assert told.place is not None
    assert travelled(told).place == told.place
    np.testing.assert_array_equal(after.proof, before.proof)


def test_a_mask_stays_a_mask_and_travels_once() -> None:
    bias = torch.where(random(1, N, N) > 0.5, -math.inf, 0.1)
    bias[..., 0] = 0.1  # every query sees some key
    before = made(bias=bias)
    after = travelled(before)
    assert torch.equal(after.layers[1].bias, bias)
    assert len({layer.bias.data_ptr() for layer in after.layers}) == 1
    assert after.source(0) == "rows"
    assert_same(after.attention(1), before.attention(1), relative=1e-3)
    assert bool((after.attention(1)[bias.expand(HEADS, N, N).isneginf()] == 0).all())


def test_written_out_attention_is_not_rounded() -> None:
    attention = random(LAYERS, HEADS, N, N).softmax(-1)
    before = made(q=None, k=None, attention=attention)
    after = travelled(before)
    assert after.source(0) == "attention"
    assert torch.equal(after.attention(2), attention[2])


def test_an_operand_beyond_fp16_keeps_its_precision() -> None:
    k = random(LAYERS, HEADS, N, HEAD_DIM)
    k[1, 2, 3, 4] = 1e5
    after = travelled(made(k=k))
    assert torch.equal(after.layers[1].k, k[1])
    assert torch.equal(after.layers[0].k, k[0].half().float())


def test_a_trace_without_extras_travels() -> None:
    shape = (LAYERS, HEADS, N, HEAD_DIM)
    before = trace_from(q=random(*shape), k=random(*shape, seed=1), layout=LAYOUT)
    after = travelled(before)
    assert after.v is None
    assert after.logits is None
    assert after.pooling is None


def test_packing_halves_what_travels() -> None:
    shape = (LAYERS, HEADS, N, HEAD_DIM)
    before = trace_from(q=random(*shape), k=random(*shape, seed=1), layout=LAYOUT)
    assert len(pickle.dumps(PackedTrace.of(before))) < 0.55 * before.nbytes + 4096


def test_the_packed_trace_shares_no_memory_with_the_trace() -> None:
    before = made()
    packed = PackedTrace.of(before)
    before.logits.zero_()
    assert packed.tensors["logits"].any()


@pytest.mark.parametrize("name", ["q", "k"])
def test_row_normalisers_follow_from_what_arrived(name: str) -> None:
    before = made(**{name: 30 * random(LAYERS, HEADS, N, HEAD_DIM)})
    before.lse  # noqa: B018 - known before it is packed
    after = travelled(before)
    torch.testing.assert_close(after.received(1, None), after.attention(1), atol=1e-6, rtol=1e-4)


def test_normalisers_that_were_recorded_do_not_travel_as_they_are_not_those_of_rounded_operands() -> None:
    before = trace(own(), pixels())
    after = travelled(before)
    assert before.layers[1].lse is not None
    assert after.layers[1].lse is None
    q, k = after.layers[1].q, after.layers[1].k
    expected = torch.logsumexp(q @ k.transpose(1, 2) * after.scales[1], -1)
    assert_same(after.layers[1].normaliser(), expected, relative=1e-6)
