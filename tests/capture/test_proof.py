"""The self-check: which queries are compared, by how much they differ, and how much rounding explains."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.capture.models import pixels
from tests.capture.tutorials import Block, FusedQkv, TutorialViT
from tests.comparing import assert_same
from vit_viz.capture import trace
from vit_viz.capture.layers import LayerAttention, projected, unknown_norms, value_norms
from vit_viz.capture.proof import largest_differences, proof_queries
from vit_viz.geometry import TokenLayout

HEADS, TOKENS, HEAD_DIM = 5, 9, 8


class InHalfPrecision(FusedQkv):
    """Attention in half precision within a model of single precision."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, 5, 8).permute(2, 0, 3, 1, 4).bfloat16()
        said = F.scaled_dot_product_attention(q, k, v).float()
        return self.proj(said.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


@pytest.mark.parametrize("layer", [0, 2])
def test_the_coarsest_precision_of_any_layer_sets_what_rounding_explains(layer: int) -> None:
    model, layout = TutorialViT(FusedQkv).eval(), TokenLayout(grid=(4, 6))
    assert trace(model, pixels(), layout=layout).tolerance == 1e-4
    model.layers[layer] = Block(InHalfPrecision()).eval()
    assert trace(model, pixels(), layout=layout).tolerance == 4e-2


@pytest.mark.parametrize(
    ("tokens", "rows", "expected"),
    [
        (25, 5, [0, 6, 12, 18, 24]),
        (25, 4, [0, 8, 16, 24]),
        (9, 16, [*range(9)]),
        (9, 1, [0, 8]),
        (1, 16, [0]),
    ],
)
def test_compared_queries_are_evenly_spaced_from_the_first(
    tokens: int, rows: int, expected: list[int]
) -> None:
    assert [*range(tokens)][proof_queries(tokens, rows)] == expected


def test_differences_are_shares_of_the_largest_number_of_the_output() -> None:
    q, k, v = torch.randn(3, HEADS, TOKENS, HEAD_DIM)
    layer = LayerAttention(q, k, 0.3)
    output = layer.rows(None, None) @ v
    wrong = output.clone()
    wrong[3, 4, 5] += 0.5
    found = largest_differences(layer, v, wrong[:, ::2], slice(0, TOKENS, 2))
    size = float(wrong[:, ::2].abs().max())
    assert found.tolist() == [pytest.approx(0.5 / size, rel=1e-4)]
    assert largest_differences(layer, v, wrong[:, 1::2], slice(1, TOKENS, 2))[0] < 1e-5


def test_layers_side_by_side_are_compared_each_by_itself() -> None:
    q, k, v = torch.randn(3, 3 * HEADS, TOKENS, HEAD_DIM)
    v[HEADS : 2 * HEADS] *= 1000
    both = LayerAttention(q, k, 0.3)
    wrong = both.rows(None, None) @ v
    wrong[HEADS + 1, 4, 2] += 0.5
    wrong[2 * HEADS + 3, 2, 1] -= 0.5
    queries = slice(0, TOKENS, 2)
    found = largest_differences(both, v, wrong[:, queries], queries, count=3)
    for i in range(3):
        heads = slice(i * HEADS, (i + 1) * HEADS)
        layer = LayerAttention(q[heads], k[heads], 0.3)
        alone = largest_differences(layer, v[heads], wrong[heads, queries], queries)
        assert_same(found[i : i + 1], alone, floor=1e-7)
    assert found[0] < 1e-5
    assert 1e-4 < found[1] < 1e-2 < found[2]


def test_an_output_of_zeros_differs_from_zeros_by_nothing() -> None:
    q, zeros = torch.randn(HEADS, TOKENS, HEAD_DIM), torch.zeros(HEADS, TOKENS, HEAD_DIM)
    assert largest_differences(LayerAttention(q, q, 0.3), zeros, zeros, slice(None)).tolist() == [0.0]


def test_a_value_is_as_long_as_what_the_projection_makes_of_it() -> None:
    v, projection = torch.randn(HEADS, TOKENS, HEAD_DIM), torch.randn(11, HEADS * HEAD_DIM)
    parts = projection.unflatten(1, (HEADS, HEAD_DIM))
    expected = torch.stack([(v[head] @ parts[:, head].T).norm(dim=-1) for head in range(HEADS)])
    before = v.clone()
    assert_same(value_norms(v, projected(projection, HEADS)), expected, relative=1e-4)
    assert torch.equal(v, before)
    unknown = unknown_norms(v)
    assert unknown.shape == (HEADS, TOKENS)
    assert bool(unknown.isnan().all())
