"""Traces of models whose scores have a bias for offsets, or whose queries turn as EVA-02's: rows, columns, proof, edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.comparing import assert_same
from tests.model.inside import look_inside
from vit_viz.analyses.registers import add_register
from vit_viz.capture import edit, trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.explorer.packing import layer_bytes
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.numbers

Make = Callable[..., VisionTransformer]
KINDS: dict[str, dict[str, Any]] = {
    "a table per block": {"position": "none", "relative_bias": True, "pooling": "mean"},
    "a shared table": {"position": "none", "shared_bias": True},
    "both": {"relative_bias": True, "shared_bias": True},
    "EVA-02": {"rotary_grid": (3, 5), "rotary_base": 10_000.0, "mlp": "swiglu", "mlp_norm": True},
}
each_kind = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


def picture(height: int = 16, width: int = 36) -> Tensor:
    return torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(1))


def attention_of(model: VisionTransformer, pixels: Tensor) -> list[Tensor]:
    """softmax(scale q k^T + bias) of each layer, [heads, tokens, tokens], of what the model hands to the kernel."""
    return [one[0] for one in look_inside(model, model.blocks, lambda: model(pixels))[1].attention]


@each_kind
@pytest.mark.parametrize("size", [(16, 36), (20, 24)], ids=["its own grid", "another grid"])
def test_rows_and_columns_are_those_of_the_kernel(
    make_model: Make, options: dict[str, Any], size: tuple[int, int]
) -> None:
    model, pixels = make_model(**options), picture(*size)
    recorded = trace(model, pixels)
    assert max(recorded.proof) <= 1e-4
    assert recorded.proof_status == "proven"
    for layer, expected in enumerate(attention_of(model, pixels)):
        assert_same(recorded.attention(layer), expected)
        assert_same(recorded.attention(layer, heads=[3], queries=[0, 7]), expected[3:4, [0, 7]])
        assert_same(recorded.received(layer, [0, 5]), expected[:, :, [0, 5]])


@pytest.mark.parametrize(
    ("options", "count"), [("a table per block", 3), ("a shared table", 1), ("both", 3), ("EVA-02", 0)]
)
def test_a_bias_is_kept_once_per_layer_and_once_where_it_is_shared(
    make_model: Make, options: str, count: int
) -> None:
    recorded = trace(make_model(**KINDS[options]), picture())
    biases = [layer.bias for layer in recorded.layers if layer.bias is not None]
    assert len({bias.untyped_storage().data_ptr() for bias in biases}) == count
    assert {bias.shape for bias in biases} <= {(5, 25, 25)}
    assert sum({id(b.untyped_storage()): b.untyped_storage().nbytes() for b in biases[:1]}.values()) in (
        0,
        12_500,
    )
    assert recorded.nbytes >= 4 * 5 * 25 * 25 * count


@each_kind
def test_each_kind_of_entry_moves_weights(make_model: Make, options: dict[str, Any]) -> None:
    model, pixels = make_model(**options), picture()
    before = trace(model, pixels).attention(0)
    tables = [parameter for name, parameter in model.named_parameters() if name.endswith("bias_table")]
    assert bool(tables) == (options.get("relative_bias", False) or options.get("shared_bias", False))
    for table in tables[: 1 + (len(tables) == 4)]:  # the shared one, and that of the first block
        for entry in (0, 38, -3, -2, -1):
            old = table[entry].clone()
            with torch.no_grad():
                table[entry] += 1
            assert not torch.equal(trace(model, pixels).attention(0), before)
            with torch.no_grad():
                table[entry] = old


@each_kind
def test_a_forbidden_edge_leaves_the_bias_of_the_others(make_model: Make, options: dict[str, Any]) -> None:
    model, pixels = make_model(**options), picture()
    whole = trace(model, pixels).attention(0)
    with edit(knockout={0: [(3, 0)]}):
        cut = trace(model, pixels).attention(0)
    expected = whole.clone()
    expected[:, 3, 0] = 0
    assert_same(cut, expected / expected.sum(-1, keepdim=True))


@each_kind
def test_a_layer_reaches_the_browser_whole(make_model: Make, options: dict[str, Any]) -> None:
    recorded = trace(make_model(**options), picture(), keep_norms=True)
    kind, data = layer_bytes(recorded, 1)
    assert kind == ("qk" if recorded.layers[1].bias is None else "attention")
    if kind == "attention":
        norms = torch.frombuffer(bytearray(data[: 4 * 125]), dtype=torch.float32).reshape(5, 25)
        halves = torch.frombuffer(bytearray(data[4 * 125 :]), dtype=torch.float16).reshape(5, 25, 25)
        assert_same(norms, recorded.value_norms(1))
        assert_same(halves.float(), recorded.attention(1), relative=5e-4)


def test_biases_that_are_too_large_for_a_trace_are_refused(make_model: Make) -> None:
    model = make_model(**KINDS["a table per block"])
    assert trace(model, picture(), max_attention_bytes=3 * 12_500)
    with pytest.raises(CaptureError, match="attention masks of this model need more than"):
        trace(model, picture(), max_attention_bytes=3 * 12_500 - 1)


def test_a_register_can_be_added_beside_rotated_patches(make_model: Make) -> None:
    added = add_register(make_model(**KINDS["EVA-02"]), picture(), factor=0.5)
    assert added.name == "register 0"
    assert added.attention[1].values.shape == (4, 6)


@pytest.mark.parametrize("options", ["a table per block", "a shared table"])
def test_no_register_is_added_where_it_would_have_no_bias(make_model: Make, options: str) -> None:
    with pytest.raises(ParameterError, match="entries for a class token and patches alone"):
        add_register(make_model(**KINDS[options]), picture(), factor=0.1)
