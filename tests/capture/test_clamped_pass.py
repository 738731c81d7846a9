"""Outputs of attention that are changed: by how much, and at which tokens; and tokens that attend to themselves alone."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture import stand_ins
from tests.capture.misleading import Attend, Model, attending, blocks, ready, scores
from tests.capture.models import pixels
from vit_viz.capture.clamped_pass import Change, ClampedPass
from vit_viz.capture.responses import Responses
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
    ((photo, other),) = seen.calls[1]  # type: ignore[misc]
    away = (other - photo).abs().amax(-1) / photo.abs().max()
    assert not away[~pushed].any()
    assert 0.9 * push < away[pushed].mean() < 2.5 * push  # the largest of five numbers of chance


def squared(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The weights are changed after their softmax, so that what is passed on is not seen."""
    weights = scores(q, k).softmax(-1) ** 2
    return weights / weights.sum(-1, keepdim=True) @ v


def shared(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Two heads have a key and a value in common, the other three likewise."""
    four = F.scaled_dot_product_attention(q[:, :4], k[:, :2], v[:, :2], enable_gqa=True)
    return four.repeat(1, 2, 1, 1)[:, :5]


def alone(model: nn.Module, image: Tensor, layout: TokenLayout, place: tuple[int, int]) -> list[list[int]]:
    """Tokens that differ at each call, and after the last one, where one patch does and each token attends to itself."""
    patches = torch.zeros(layout.grid, dtype=torch.bool)
    patches[place] = True
    responses = Responses(model, image, layout).alone().of([Change(patches=patches)])
    return [moves.nonzero().flatten().tolist() for moves in (*responses[0].calls, responses[0].later)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", [Attend, attending(shared), attending(squared)])
def test_where_tokens_are_alone_each_passes_on_its_own_value(
    kind: type[nn.Module], dtype: torch.dtype
) -> None:
    layout = TokenLayout(grid=(4, 6))
    model = ready(Model(blocks(kind, kind, kind))).to(dtype)
    assert alone(model, pixels().to(dtype), layout, (2, 1)) == [[layout.token((2, 1))]] * 4


@pytest.mark.parametrize(
    "kind", [stand_ins.Attention, stand_ins.Sharpened, stand_ins.SharedKeys, stand_ins.MultiHead]
)
def test_tokens_are_alone_too_where_a_model_takes_one_image_at_a_time(kind: type[nn.Module]) -> None:
    image, layout = torch.randn(1, 3, *stand_ins.SIZE), TokenLayout(stand_ins.GRID)
    model = stand_ins.StandIn([kind] * 3).eval()
    assert alone(model, image, layout, (0, 1)) == [[layout.token((0, 1))]] * 4
