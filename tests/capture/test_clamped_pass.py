"""Outputs of attention that are changed: by how much, and at which tokens."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.capture.clamped_pass import Change, ClampedPass
from vit_viz.capture.structure import probed_calls, pushed_token
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6), prefix=())
SHOWN = 5
"""Features that a pass keeps as they are: queries, keys and values together have fewer than sixteen."""


class TwoLayers(nn.Module):
    """The second layer attends to what the first one gathered, of another size."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.size = size

    def forward(self, pixels: Tensor) -> Tensor:
        x = pixels.flatten(2).transpose(1, 2)[:, None]  # [images, 1, tokens, channels]
        x = F.scaled_dot_product_attention(x, x, self.size * x)
        return F.scaled_dot_product_attention(x, x, x)


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize("push", [0.5, 20.0])
def test_an_output_is_changed_in_proportion_to_its_largest_number(size: float, push: float) -> None:
    pixels = torch.randn(1, SHOWN, *LAYOUT.grid, generator=torch.Generator().manual_seed(2))
    pushed = torch.arange(LAYOUT.num_tokens) % 3 == 1
    change = Change(pushes=[push, 0.0], pushed=pushed)
    seen = ClampedPass(LAYOUT, [None, change]).over(TwoLayers(size), pixels.expand(2, -1, -1, -1))
    assert seen is not None
    ((photo, other),) = seen.calls[1]  # type: ignore[misc]
    away = (other - photo).abs().amax(-1) / photo.abs().max()
    assert not away[~pushed].any()
    assert 0.9 * push < away[pushed].mean() < 2.5 * push  # the largest of five numbers of chance


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e3])
@pytest.mark.parametrize(("dtype", "push"), [(torch.float32, 1e4), (torch.bfloat16, 100.0)])
def test_where_nothing_attends_one_token_is_changed_in_proportion_too(
    size: float, dtype: torch.dtype, push: float
) -> None:
    pixels = torch.randn(1, SHOWN, *LAYOUT.grid, generator=torch.Generator().manual_seed(2)).to(dtype)
    calls = probed_calls(TwoLayers(size), pixels.expand(3, -1, -1, -1), LAYOUT)
    assert calls is not None
    moves = calls[1].moves(calls[1].values, "pushed")
    assert moves is not None
    assert moves.nonzero().flatten().tolist() == [pushed_token(LAYOUT, 0)]
    assert 0.5 * push < moves.max() < 4 * push  # the largest of five numbers of chance
