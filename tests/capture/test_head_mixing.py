"""Mixtures, norms and gates of heads are found however they are written, in every precision, and honest projections hold."""

from __future__ import annotations

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

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


def in_turn(*kinds: type[nn.Module]) -> list[tuple[type[nn.Module], torch.dtype]]:
    """Each with one precision, all precisions in turn."""
    return list(zip(kinds, itertools.cycle(PRECISIONS)))


@pytest.mark.parametrize(("kind", "dtype"), in_turn(*TRICKS))
def test_what_is_not_attention_times_values_is_told(kind: type[nn.Module], dtype: torch.dtype) -> None:
    finding = checked(kind, dtype)
    assert finding.status == "fails"
    assert "What layer 1 passes on is not attention @ v as it is, but" in finding.sentence
    assert TRICKS[kind] in finding.sentence  # type: ignore[index]


@pytest.mark.parametrize(("kind", "dtype"), in_turn(*TWINS, MultiHead))
def test_honest_projections_hold(kind: type[nn.Module], dtype: torch.dtype) -> None:
    finding = checked(kind, dtype)
    assert finding.status == "holds", finding.sentence


@pytest.mark.parametrize("kind", [*list(TWINS)[:2], MultiHead])
def test_honest_projections_hold_in_the_last_layer(kind: type[nn.Module]) -> None:
    finding = checked(kind, place=2)
    assert finding.status == "holds", finding.sentence


class Bare(nn.Module):
    """No projection at all: what a layer reads is the stream itself, or as a trick what the layer before gathered."""

    def __init__(self, *, adds: bool) -> None:
        super().__init__()
        self.adds, self.head = adds, nn.Linear(8, 7)

    def forward(self, pixels: Tensor) -> Tensor:
        x = pixels.unflatten(1, (1, 3)).flatten(3).unflatten(-1, (-1, 8))  # [1, 1, 3, tokens, 8]
        x = x.flatten(1, 2)
        for _ in range(2):
            x = F.scaled_dot_product_attention(x, x, x) + (x if self.adds else 0)
        return self.head(F.layer_norm(x, (8,)).mean((1, 2)))


@pytest.mark.parametrize(("adds", "status"), [(True, "holds"), (False, "fails")])
def test_a_stream_that_a_layer_reads_without_projection_is_no_output_once_more(
    adds: bool, status: str
) -> None:
    finding = check_heads(Bare(adds=adds), torch.randn(1, 3, 4, 12))
    assert (finding.status, "once more" in finding.sentence) == (status, not adds), finding.sentence
