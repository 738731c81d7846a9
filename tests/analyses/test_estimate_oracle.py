"""The estimate of an ablation against a difference quotient: a head's output moved a little by hooks, without our interception."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.capture.models import pixels, timm_vit
from vit_viz.analyses.ablation import estimated_head_map
from vit_viz.capture import trace

STEP = 1e-4


class Moved(nn.Module):
    """A timm model whose head moves by a share of the way to what would replace its output."""

    def __init__(self, model: nn.Module, layer: int, head: int, how: str, share: float) -> None:
        super().__init__()
        self.model, self.where, self.how, self.share = model, (layer, head), how, share

    def forward(self, image: Tensor) -> Tensor:
        layer, head = self.where
        attention: Any = self.model.blocks[layer].attn  # type: ignore[index, union-attr]
        values: list[Tensor] = []

        def see(_module: nn.Module, _given: Any, output: Tensor) -> None:
            values.append(output.unflatten(-1, (3, attention.num_heads, -1))[:, :, 2, head])

        def move(_module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor]:
            heads = given[0].unflatten(-1, (attention.num_heads, -1)).clone()
            output = heads[:, :, head]  # [1, tokens, head_dim]
            means = {"zero": 0 * output, "mean": output, "uniform": values[0]}[self.how].mean(1, keepdim=True)
            heads[:, :, head] = output + self.share * (means - output)
            return (heads.flatten(2),)

        handles = [
            attention.qkv.register_forward_hook(see),
            attention.proj.register_forward_pre_hook(move),
        ]
        try:
            logits: Tensor = self.model(image)
        finally:
            for handle in handles:
                handle.remove()
        return logits


@pytest.mark.parametrize("how", ["zero", "mean", "uniform"])
def test_an_estimate_is_the_difference_quotient_of_the_model_itself(how: Any) -> None:
    model, image, target = timm_vit().double().eval(), pixels().double(), 3
    recorded = trace(model, image, target=target, keep_values=True)
    got = torch.from_numpy(estimated_head_map(recorded, how=how)).double()
    expected = torch.zeros_like(got)
    with torch.no_grad():
        for layer in range(recorded.num_layers):
            for head in range(recorded.num_heads):
                there, back = (
                    Moved(model, layer, head, how, share)(image)[0, target] for share in (STEP, -STEP)
                )
                expected[layer, head] = (there - back) / (2 * STEP)
    assert expected.abs().min() > 0
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))
