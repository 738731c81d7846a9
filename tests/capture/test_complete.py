"""What is concluded of layers from a pass without attention, beside what is known of what flows through them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.capture.report import HOLDS, UNCHECKED, Check
from vit_viz.capture.structure import check_structure
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(3, 5), prefix=())
PAST = Check("fails", "Something flows past the layers.")
UNSEEN = Check("unknown", "What flows was not seen.")


class Two(nn.Module):
    """Two layers over 15 tokens; `mean` reaches each of them before the first."""

    def __init__(self, *, mean: float) -> None:
        super().__init__()
        self.embed, self.mean = nn.Conv2d(3, 8, (4, 6), (4, 6)), mean

    def forward(self, image: Tensor) -> Tensor:
        x = self.embed(image).flatten(2).transpose(1, 2)
        x = x + self.mean * x.mean(1, keepdim=True)
        for _ in range(2):
            q = x[:, None]
            x = x + F.scaled_dot_product_attention(q, q, q)[:, 0]
        return F.layer_norm(x, (8,)).mean(1)


@pytest.mark.parametrize(
    ("mean", "flow", "found"),
    [
        (0.0, UNCHECKED, HOLDS),
        (0.0, HOLDS, HOLDS),
        (0.0, PAST, PAST),
        (0.0, UNSEEN, UNSEEN),
        (1.0, HOLDS, HOLDS),
        (1.0, PAST, PAST),
    ],
)
def test_what_flows_goes_before_what_this_pass_sees(mean: float, flow: Check, found: Check) -> None:
    pixels = torch.randn(1, 3, 12, 30, generator=torch.Generator().manual_seed(1))
    complete, _ = check_structure(Two(mean=mean), pixels, LAYOUT, is_placed=not mean, flow=flow)
    assert complete == found


@pytest.mark.parametrize("flow", [UNCHECKED, UNSEEN])
def test_where_every_token_differs_from_the_first_layer_on_nothing_is_seen(flow: Check) -> None:
    pixels = torch.randn(1, 3, 12, 30, generator=torch.Generator().manual_seed(1))
    complete, _ = check_structure(Two(mean=1.0), pixels, LAYOUT, is_placed=False, flow=flow)
    assert complete.status == "unknown"
    assert "reaches every token before the first layer" in complete.sentence
