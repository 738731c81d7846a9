"""How a product consumes a written-out attention: only a sum over keys is one."""

from __future__ import annotations

import pytest
import torch

from tests.comparing import assert_same
from vit_viz.capture.explicit_softmax import product_of

ATTENTION, VALUE = torch.rand(5, 7, 7).softmax(-1), torch.randn(5, 7, 8)


@pytest.mark.parametrize(
    ("equation", "keys_last"), [("hij,hjd->hid", True), ("hij, hjd -> hid", True), ("hij,hid->hjd", False)]
)
def test_an_einsum_that_sums_over_queries_or_keys_is_understood(equation: str, keys_last: bool) -> None:
    output = torch.einsum(equation, ATTENTION, VALUE)
    product = product_of(torch.einsum, (equation, ATTENTION, VALUE), output, [ATTENTION])
    assert product.keys_last is keys_last
    weights = ATTENTION if keys_last else ATTENTION.transpose(1, 2)
    assert_same(weights @ product.value, product.output)


@pytest.mark.parametrize("sums_over_keys", [True, False])
def test_a_transposed_product_says_where_its_tokens_are(sums_over_keys: bool) -> None:
    """(A v)^T = v^T A^T."""
    operands = VALUE.mT, (ATTENTION.mT if sums_over_keys else ATTENTION)
    output = operands[0] @ operands[1]
    product = product_of(torch.matmul, operands, output, [ATTENTION])
    assert (product.keys_last, product.tokens) == (sums_over_keys, -1)
    assert_same(operands[1].mT @ product.value, product.output)


@pytest.mark.parametrize(
    ("equation", "operands"),
    [
        ("hij,hkd->ijkd", (ATTENTION, VALUE)),
        ("hij,hjd->id", (ATTENTION, VALUE)),
        ("...ij,...jd->...id", (ATTENTION, VALUE)),
        ("hij,hjd", (ATTENTION, VALUE)),
        ("hij,hjk->hik", (ATTENTION, ATTENTION)),
        ("hij,hjd->hid", (ATTENTION.clone(), VALUE)),
        ("hij,hjd,d->hid", (ATTENTION, VALUE, torch.rand(8))),
    ],
)
def test_another_einsum_is_no_attention(equation: str, operands: tuple[torch.Tensor, ...]) -> None:
    output = torch.einsum(equation, *operands)
    assert product_of(torch.einsum, (equation, *operands), output, [ATTENTION]) is None
