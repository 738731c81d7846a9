"""Layers packed for a file: every number comes back, and what is lost is measured."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch

from tests.traces import trace_from
from vit_viz.capture import Trace
from vit_viz.explorer.packing import Storage, layer_bytes, packed_error, packed_layer
from vit_viz.geometry import TokenLayout

LAYERS, HEADS, DIM, LAYOUT = 3, 5, 8, TokenLayout(grid=(4, 6), prefix=("class",))


def a_trace(sharpness: float = 2.0) -> Trace:
    make = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(LAYERS, HEADS, LAYOUT.num_tokens, DIM, generator=make) * sharpness for _ in range(3)
    )
    return trace_from(q=q, k=k, v=v, projections=[torch.eye(HEADS * DIM)] * LAYERS, layout=LAYOUT)


def test_fp16_layers_come_back_byte_by_byte() -> None:
    trace = a_trace()
    planes = np.frombuffer(zlib.decompress(packed_layer(trace, 1)), np.uint8)
    assert planes.reshape(2, -1).T.tobytes() == layer_bytes(trace, 1)[1]


def test_a_layer_holds_the_sums_of_its_own_rows_and_its_norms() -> None:
    trace = a_trace()
    kind, data = layer_bytes(trace, 1)
    sums, norms = np.frombuffer(data, "<f4", 2 * HEADS * LAYOUT.num_tokens).reshape(2, HEADS, -1)
    scores = np.einsum("hid,hjd->hij", trace.q[1].double(), trace.k[1].double()) * trace.scales[1]
    assert kind == "qk"
    np.testing.assert_allclose(np.exp(scores).sum(-1), np.exp(sums.astype(np.float64)), rtol=1e-5)
    np.testing.assert_allclose(norms, np.linalg.norm(trace.v[1], axis=-1), rtol=1e-5)


def test_int8_layers_hold_every_number_within_half_a_step_and_rows_that_sum_to_1() -> None:
    trace = a_trace()
    data = zlib.decompress(packed_layer(trace, 2, storage="int8"))
    cells = HEADS * LAYOUT.num_tokens
    floats = np.frombuffer(data, "<f4", 4 * cells).reshape(4, HEADS, -1)
    steps = np.frombuffer(data[16 * cells :], np.int8).reshape(2, HEADS, -1, DIM)
    q, k = steps * floats[2:, ..., None]
    for stored, own in ((q, trace.q[2]), (k, trace.k[2])):
        largest = np.abs(own.numpy()).max(-1, keepdims=True)
        assert (np.abs(stored - own.numpy()) <= largest / 254 * 1.001).all()
    np.testing.assert_allclose(floats[1], trace.value_norms(2).numpy(), rtol=1e-6)
    rows = np.exp(np.einsum("hid,hjd->hij", q, k) * trace.scales[2] - floats[0][..., None])
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=1e-4)


@pytest.mark.parametrize(("storage", "low", "high"), [("fp16", 1e-6, 5e-3), ("int8", 5e-3, 0.3)])
def test_the_error_is_that_of_the_rows_as_they_are_drawn(storage: Storage, low: float, high: float) -> None:
    error = packed_error(a_trace(), storage=storage)
    assert low < error < high
    assert packed_error(a_trace(sharpness=0.1), storage=storage) < error / 10


def test_attention_that_was_written_out_is_stored_as_it_is() -> None:
    attention = torch.rand(LAYERS, HEADS, 25, 25, generator=torch.Generator().manual_seed(1)).softmax(-1)
    trace = trace_from(attention=attention, layout=LAYOUT)
    packed = [packed_layer(trace, 0, storage="fp16"), packed_layer(trace, 0, storage="int8")]
    assert packed[0] == packed[1]
    planes = np.frombuffer(zlib.decompress(packed[0]), np.uint8)
    halves = np.frombuffer(planes.reshape(2, -1).T.tobytes(), "<f2")[2 * HEADS * 25 :]
    halves = halves.reshape(HEADS, 25, 25)
    np.testing.assert_array_equal(halves, attention[0].half().numpy())
    assert 0 < packed_error(trace, storage="fp16") < 1e-3
