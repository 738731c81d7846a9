"""Heads that share keys and values, and hybrids of convolutions and attention: traced right, or refused in a sentence."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import HEADS, Model, attending, blocks
from tests.capture.models import lively, pixels
from tests.comparing import assert_same
from vit_viz import TokenLayout, VitVizError, ablate_heads, edit, explain, trace
from vit_viz.analyses.relevance import relevance

LAYERS, LAYOUT, PIXELS = 3, TokenLayout(grid=(4, 6)), pixels()


def sharing(*, keys_alone: bool = False, repeat: bool = False) -> type[nn.Module]:
    """Attention in which all heads have one key and one value, or key; torch's kernel broadcasts them, or they are repeated."""

    def gathered(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = k[:, :1], v if keys_alone else v[:, :1]
        if repeat:
            k, v = (part.expand(-1, HEADS, -1, -1).contiguous() for part in (k, v))
        return F.scaled_dot_product_attention(q, k, v)

    return attending(gathered)


def pair(**choices: bool) -> tuple[nn.Module, nn.Module]:
    """The same model with shared keys as they are, and with keys and values repeated for each head."""
    shared, repeated = (
        lively(Model(blocks(*[sharing(**choices, repeat=repeat)] * LAYERS))) for repeat in (False, True)
    )
    repeated.load_state_dict(shared.state_dict())
    return shared, repeated


@pytest.mark.parametrize("choices", [{}, {"keys_alone": True}], ids=["keys and values", "keys"])
def test_keys_that_heads_share_are_each_heads_own(choices: dict[str, bool]) -> None:
    shared, repeated = (
        trace(model, PIXELS, layout=LAYOUT, keep_values=True, target=2) for model in pair(**choices)
    )
    assert (shared.num_layers, shared.num_heads, shared.num_tokens) == (LAYERS, HEADS, 25)
    assert max(shared.proof) <= shared.tolerance
    for layer in range(LAYERS):
        assert_same(shared.attention(layer), repeated.attention(layer))
        assert_same(shared.received(layer, [0, 7]), repeated.received(layer, [0, 7]))
        assert_same(shared.attention_gradient(layer), repeated.attention_gradient(layer))
    assert shared.v.shape == repeated.v.shape  # type: ignore[union-attr]
    assert_same(relevance(shared).values, relevance(repeated).values)


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
