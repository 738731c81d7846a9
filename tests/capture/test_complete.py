"""What is concluded of the recorded calls, beside what is known of what flows through them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_viz.capture.report import HOLDS, Check
from vit_viz.capture.responses import Responses
from vit_viz.capture.structure import check_calls
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


@pytest.mark.parametrize("flow", [HOLDS, PAST, UNSEEN])
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_where_nothing_is_missing_what_flows_stands(mean: float, flow: Check) -> None:
    pixels = torch.randn(1, 3, 12, 30, generator=torch.Generator().manual_seed(1))
    model = Two(mean=mean)
    run = Responses(model, pixels, LAYOUT)
    assert check_calls(model, run, LAYOUT, flow, is_placed=not mean) == flow
