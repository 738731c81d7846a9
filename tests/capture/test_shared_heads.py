"""Heads that share keys and values, and hybrids of convolutions and attention: traced right, or refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import lively
from vit_viz import TokenLayout, VitVizError, ablate_heads, edit, explain, trace
from vit_viz.analyses.relevance import relevance

HEADS, DIM, LAYERS, LAYOUT = 5, 8, 3, TokenLayout(grid=(4, 6), prefix=("class",))


class SharedKeys(nn.Module):
    """Attention in which all heads have one key and one value; torch's kernel broadcasts them, or they are repeated first."""

    def __init__(self, *, values: int, repeat: bool) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(40, HEADS * DIM), nn.Linear(40, DIM)
        self.v, self.proj = nn.Linear(40, values * DIM), nn.Linear(HEADS * DIM, 40)
        self.norm = nn.LayerNorm(40)
        self.values, self.repeat = values, repeat

    def forward(self, x: Tensor) -> Tensor:
        x, stream = self.norm(x), x
        q, k, v = (
            part.reshape(len(x), -1, heads, DIM).transpose(1, 2)
            for part, heads in ((self.q(x), HEADS), (self.k(x), 1), (self.v(x), self.values))
        )
        if self.repeat:
            k, v = (part.expand(-1, HEADS, -1, -1).contiguous() for part in (k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        return stream + self.proj(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, *, values: int = 1, repeat: bool = False) -> None:
        super().__init__()
        self.embed, self.cls = nn.Conv2d(3, 40, 16, 16), nn.Parameter(torch.randn(1, 1, 40))
        self.blocks = nn.ModuleList(SharedKeys(values=values, repeat=repeat) for _ in range(LAYERS))
        self.head = nn.Linear(40, 7)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.embed(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def pair(**choices: object) -> tuple[nn.Module, nn.Module]:
    """The same model with shared keys as they are, and with keys and values repeated for each head."""
    shared, repeated = lively(Model(**choices)), lively(Model(**choices, repeat=True))  # type: ignore[arg-type]
    repeated.load_state_dict(shared.state_dict())
    return shared, repeated


def assert_same(actual: Any, expected: Any) -> None:
    """max |actual - expected| <= 1e-5 * max |expected|."""
    actual, expected = (torch.as_tensor(numbers + 0).double() for numbers in (actual, expected))
    assert actual.shape == expected.shape
    assert (actual - expected).abs().max() <= 1e-5 * expected.abs().max()


PIXELS = torch.randn(1, 3, 64, 96, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("choices", [{}, {"values": HEADS}], ids=["keys and values", "keys"])
def test_keys_that_heads_share_are_each_heads_own(choices: dict[str, int]) -> None:
    shared, repeated = (
        trace(model, PIXELS, layout=LAYOUT, keep_values=True, target=2) for model in pair(**choices)
    )
    assert (shared.num_layers, shared.num_heads, shared.num_tokens) == (LAYERS, HEADS, 25)
    assert max(shared.proof) <= shared.tolerance
    for layer in range(LAYERS):
        assert_same(shared.attention(layer), repeated.attention(layer))
        assert_same(shared.received(layer, [0, 7]), repeated.received(layer, [0, 7]))
        assert_same(shared.attention_gradient(layer), repeated.attention_gradient(layer))
    assert shared.v is not None
    assert shared.v.shape == repeated.v.shape  # type: ignore[union-attr]
    assert_same(torch.tensor(relevance(shared).values), torch.tensor(relevance(repeated).values))


def test_heads_that_share_keys_are_edited_and_explained_alike() -> None:
    shared, repeated = pair()
    tables = [ablate_heads(model, PIXELS, target=2, layout=LAYOUT).values for model in (shared, repeated)]
    assert_same(*tables)
    maps = [
        explain(model, PIXELS, target=2, layout=LAYOUT)["relevance"].values for model in (shared, repeated)
    ]
    assert_same(*maps)
    outputs = []
    for model in (shared, repeated):
        with torch.no_grad(), edit(heads={(1, 2): 0.0}, mask_keys=[3], temperature={0: 2.0}):
            outputs.append(model(PIXELS))
    assert_same(*outputs)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("caformer_s18", (64, 96)),
        ("efficientvit_b0", (64, 96)),
        ("efficientvit_m0", (224, 224)),
        ("mobilenetv4_hybrid_medium", (64, 96)),
    ],
)
@pytest.mark.parametrize("layout", [None, TokenLayout(grid=(2, 3), prefix=())], ids=["untold", "told"])
@pytest.mark.parametrize("target", [None, 2])
def test_hybrids_end_in_a_sentence(
    name: str, size: tuple[int, int], layout: TokenLayout | None, target: int | None
) -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model(name, pretrained=False, num_classes=7).eval()
    with pytest.raises(VitVizError) as caught:
        trace(model, torch.randn(1, 3, *size), layout=layout, target=target)
    assert str(caught.value).endswith(".")
