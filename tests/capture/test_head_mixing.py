"""Mixtures, norms and gates of heads are found however they are written, in every precision, and honest projections hold."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.capture.head_tricks import TRICKS, TWINS
from tests.capture.stand_ins import SIZE, Attention, MultiHead, StandIn
from vit_viz.capture.head_mixing import check_heads
from vit_viz.capture.report import Check

PRECISIONS = (torch.float32, torch.float16, torch.bfloat16)


def checked(kind: type[nn.Module], dtype: torch.dtype = torch.float32, *, place: int = 1) -> Check:
    """What is found of three blocks, of which one attends in this way."""
    torch.manual_seed(5)
    kinds = [Attention, Attention, Attention]
    kinds[place] = kind  # type: ignore[assignment]
    model = StandIn(kinds).eval().to(dtype)
    return check_heads(model, torch.randn(1, 3, *SIZE, generator=torch.Generator().manual_seed(1)).to(dtype))


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("kind", TRICKS)
def test_what_is_not_attention_times_values_is_told(kind: type[nn.Module], dtype: torch.dtype) -> None:
    finding = checked(kind, dtype)
    assert finding.status == "fails"
    assert "What layer 1 passes on is not attention @ v as it is, but" in finding.sentence
    assert TRICKS[kind] in finding.sentence  # type: ignore[index]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("kind", [*TWINS, MultiHead])
@pytest.mark.parametrize("place", [1, 2])
def test_honest_projections_hold(kind: type[nn.Module], dtype: torch.dtype, place: int) -> None:
    finding = checked(kind, dtype, place=place)
    assert finding.status == "holds", finding.sentence
