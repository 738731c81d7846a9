"""What is seen of a foreign model: the projection behind each attention, where the values are to be weighed by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.models import own, pixels, timm_vit
from tests.capture.tutorials import HEAD_DIM, HEADS, Fused, FusedQkv, KeysFirst, MultiHead, TutorialViT
from tests.comparing import assert_same
from vit_viz.capture import edit, trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))
KEPT: list[dict[str, bool]] = [{"keep_norms": True}, {"keep_values": True}]


def tutorial(attention: type[nn.Module]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        torch.manual_seed(3)
        return TutorialViT(attention).eval()

    return make


def projection(model: nn.Module, layer: int) -> Tensor:
    """The weight that reads the attention of a layer, [dim, heads * head_dim]."""
    names = (f"blocks.{layer}.attn.proj", f"layers.{layer}.attention.proj")
    names = (*names, f"layers.{layer}.attention.attention.out_proj")
    (found,) = (part.weight for name, part in model.named_modules() if name in names)
    return found.detach()  # type: ignore[operator, no-any-return, union-attr]


MAKERS = {
    "own": own,
    "timm": timm_vit,
    "fused": tutorial(Fused),
    "written out": tutorial(FusedQkv),
    "keys first": tutorial(KeysFirst),
    "nn.MultiheadAttention": tutorial(MultiHead),
}


@pytest.mark.parametrize("kept", KEPT, ids=["norms", "values"])
@pytest.mark.parametrize("name", MAKERS)
def test_value_norms_of_a_foreign_model_are_lengths_of_its_projected_values(
    name: str, kept: dict[str, bool]
) -> None:
    model = MAKERS[name]()
    recorded = trace(model, pixels(), layout=LAYOUT, **kept)
    values = trace(model, pixels(), layout=LAYOUT, keep_values=True).v
    for layer in range(3):
        for head in range(HEADS):
            part = projection(model, layer)[:, HEAD_DIM * head : HEAD_DIM * (head + 1)]
            expected = (values[layer, head].double() @ part.double().T).norm(dim=-1)
            assert_same(recorded.value_norms(layer)[head].double(), expected)


@pytest.mark.parametrize("name", MAKERS)
def test_a_trace_without_values_has_the_same_attention_and_no_norms(name: str) -> None:
    model = MAKERS[name]()
    plain = trace(model, pixels(), layout=LAYOUT)
    kept = trace(model, pixels(), layout=LAYOUT, keep_norms=True)
    for layer in range(3):
        assert_same(plain.attention(layer), kept.attention(layer), relative=1e-6)
    with pytest.raises(CaptureError, match="keep_norms=True or keep_values=True"):
        plain.value_norms(0)


@pytest.mark.parametrize("name", ["own", "timm", "fused", "nn.MultiheadAttention"])
def test_norms_inside_edits_are_those_that_the_edited_heads_hand_on(name: str) -> None:
    model = MAKERS[name]()
    with edit(heads={(0, 1): 0.0, (0, 2): -0.5, (0, 3): "mean"}):
        edited = trace(model, pixels(), layout=LAYOUT, keep_norms=True)
    plain = trace(model, pixels(), layout=LAYOUT, keep_norms=True)
    share = torch.tensor([1.0, 0.0, 0.5, 0.0, 1.0])[:, None]
    assert_same(edited.value_norms(0), share * plain.value_norms(0))


def detour(seen: Callable[[Tensor], Tensor]) -> nn.Module:
    """A model in which another linear layer reads something first, of which nothing comes into the answer."""

    class Detour(Fused):
        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, HEAD_DIM)).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            read = seen(out)
            unused = F.linear(read, torch.ones(1, read.shape[-1])).sum()
            return self.proj(out) + 0 * unused

    return tutorial(Detour)()


@pytest.mark.parametrize(
    "seen",
    [
        lambda out: out[..., :16],
        lambda out: out.repeat(1, 2, 1),
        lambda out: out[:, :0],
        lambda out: out.flip(-1),
    ],
    ids=["some features", "each token twice", "no token", "features in another order"],
)
def test_a_linear_layer_that_reads_something_else_is_no_output_projection(
    seen: Callable[[Tensor], Tensor],
) -> None:
    recorded = trace(detour(seen), pixels(), layout=LAYOUT, keep_norms=True)
    with pytest.raises(CaptureError, match="The output projection of layer 1 is not known"):
        recorded.value_norms(1)


@pytest.mark.parametrize("count", [1, 24, 25])
def test_a_linear_layer_that_reads_the_first_tokens_weighs_the_values_of_all(count: int) -> None:
    recorded = trace(detour(lambda out: out[:, :count]), pixels(), layout=LAYOUT, keep_values=True)
    assert_same(recorded.value_norms(1), recorded.v[1].sum(-1).abs())
