"""How a tensor answers to an attention's output, up to the rounding of the coarser of the two."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vit_viz.capture.head_mixing import CallOutput, HeadResponse, response

HEADS, TOKENS, FEATURES = 5, 7, 4
FINE, COARSE = torch.float32, torch.bfloat16
WEIGHT = torch.randn(HEADS * FEATURES, 11, generator=torch.Generator().manual_seed(3))


def answer(run: Callable[[Tensor], Tensor], dtype: torch.dtype) -> HeadResponse:
    """How what `run` makes of an output in this precision answers to it."""
    shape = (HEADS, TOKENS, FEATURES)
    like = torch.randn(shape, generator=torch.Generator().manual_seed(4)).to(dtype)
    return response(run, CallOutput(like, torch.arange(like.numel()).view(shape), shape))


def projected(output: Tensor) -> Tensor:
    """By a projection in half precision."""
    return output.transpose(0, 1).flatten(1).to(COARSE) @ WEIGHT.to(COARSE)


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (FINE, COARSE, "projection"),
        (COARSE, FINE, "projection"),
        (COARSE, COARSE, "projection"),
        (FINE, FINE, "not linear"),
    ],
)
def test_rounding_of_either_precision_is_linear_and_no_more(
    before: torch.dtype, after: torch.dtype, kind: str
) -> None:
    assert answer(lambda output: projected(output).to(after), before).kind == kind


@pytest.mark.parametrize(
    ("before", "after", "gain"),
    [(FINE, COARSE, "one"), (COARSE, FINE, "one"), (COARSE, COARSE, "one"), (FINE, FINE, "constant")],
)
def test_a_gain_within_the_rounding_of_either_precision_is_one(
    before: torch.dtype, after: torch.dtype, gain: str
) -> None:
    assert answer(lambda output: (output.float() * 1.03).to(after), before).gain == gain
