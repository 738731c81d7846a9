"""A temperature divides q k^T * scale and leaves what is added to it, whether the attention is fused or written out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor, nn

from tests.capture.models import lively, pixels
from tests.capture.tutorials import DIM, HEAD_DIM, HEADS, TutorialViT
from tests.comparing import assert_same
from vit_viz.capture import edit, trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

SCALE = HEAD_DIM**-0.5
LAYOUT = TokenLayout(grid=(4, 6))


def position_bias() -> Tensor:
    """[heads, tokens, tokens], as large as the scores; the third token sees no fifth."""
    bias = 2 * torch.randn(HEADS, 25, 25, generator=torch.Generator().manual_seed(3))
    bias[:, 2, 4] = -torch.inf
    return bias


BIAS = position_bias()
Write = Callable[[Tensor, Tensor], Tensor]


def in_place(q: Tensor, k: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1)
    scores *= SCALE
    scores += BIAS
    return scores


def in_place_at_once(q: Tensor, k: Tensor) -> Tensor:
    """The product itself becomes the scores: what is followed is overwritten."""
    scores = (q * SCALE) @ k.transpose(-2, -1)
    scores += BIAS
    return scores


def in_place_below_a_root(q: Tensor, k: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1)
    scores /= HEAD_DIM**0.5
    scores -= -BIAS
    return scores


def scaled_last(q: Tensor, k: Tensor) -> Tensor:
    """What was added is scaled with the product, in place."""
    scores = q @ k.transpose(-2, -1) + BIAS / SCALE
    scores *= SCALE
    return scores


def divided_last(q: Tensor, k: Tensor) -> Tensor:
    scores = BIAS * HEAD_DIM**0.5 + q @ k.transpose(-2, -1)
    return scores.div_(HEAD_DIM**0.5)


def subtracted_at_once(q: Tensor, k: Tensor) -> Tensor:
    return ((q * SCALE) @ k.transpose(-2, -1)).sub_(-BIAS)


def masked_in_place(q: Tensor, k: Tensor) -> Tensor:
    forbidden = BIAS.isneginf()
    scores = (q * SCALE) @ k.transpose(-2, -1)
    scores.masked_fill_(forbidden, -torch.inf)
    return scores.add_(BIAS.masked_fill(forbidden, 0))


def added_to_a_view(q: Tensor, k: Tensor) -> Tensor:
    """As SAM and MViT add decomposed positions: over queries and keys as maps."""
    scores = (q * SCALE) @ k.transpose(-2, -1)
    return (scores.view(len(q), HEADS, 5, 5, 25) + BIAS.view(HEADS, 5, 5, 25)).view(len(q), HEADS, 25, 25)


def masked(q: Tensor, k: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) * SCALE
    forbidden = BIAS.isneginf()
    return (scores + BIAS.masked_fill(forbidden, 0)).masked_fill(forbidden, -torch.inf)


def chosen(q: Tensor, k: Tensor) -> Tensor:
    scores = torch.matmul(q, k.mT).mul(SCALE).float()
    forbidden = BIAS.isneginf()
    return torch.where(forbidden, -torch.inf, BIAS.masked_fill(forbidden, 0) + scores)


def batched(q: Tensor, k: Tensor) -> Tensor:
    bias = BIAS.expand(len(q), -1, -1, -1).flatten(0, 1)
    return torch.baddbmm(bias, q.flatten(0, 1), k.flatten(0, 1).mT, alpha=SCALE).view(len(q), HEADS, 25, 25)


WRITTEN: dict[str, Write] = {
    "q k^T * scale + bias": lambda q, k: q @ k.transpose(-2, -1) * SCALE + BIAS,
    "bias + q k^T / sqrt(d)": lambda q, k: BIAS + torch.matmul(q, k.transpose(-2, -1)) / HEAD_DIM**0.5,
    "einsum": lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k).mul(SCALE).add(BIAS),
    "einops": lambda q, k: rearrange(torch.einsum("bhid,bhjd->bhij", q * SCALE, k), "b h i j -> b h i j") + BIAS,
    "(q k^T + bias / scale) * scale": lambda q, k: (q @ k.transpose(-2, -1) + BIAS / SCALE) * SCALE,
    "in place": in_place,
    "in place, at once": in_place_at_once,
    "in place, divided": in_place_below_a_root,
    "in place, scaled last": scaled_last,
    "in place, divided last": divided_last,
    "in place, subtracted": subtracted_at_once,
    "in place, masked": masked_in_place,
    "view": added_to_a_view,
    "masked_fill": masked,
    "where": chosen,
    "baddbmm": batched,
    "two biases": lambda q, k: (q @ k.mT * SCALE + 3 * BIAS) - 2 * BIAS.masked_fill(BIAS.isneginf(), 0),
}  # fmt: skip


class Biased(nn.Module):
    """Attention with position biases, fused or as `write` writes its scores."""

    write: Write | None = None

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).reshape(len(x), -1, 3, HEADS, HEAD_DIM).permute(2, 0, 3, 1, 4)
        if self.write is None:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=BIAS.expand(len(x), -1, -1, -1))
        else:
            out = self.write(q, k).softmax(-1) @ v
        return self.proj(out.transpose(1, 2).flatten(2))


def model(write: Write | None) -> TutorialViT:
    torch.manual_seed(0)
    built = lively(TutorialViT(Biased))
    for layer in built.layers:  # type: ignore[union-attr]
        layer.attention.write = write  # type: ignore[union-attr]
    return built  # type: ignore[return-value]


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("temperature", [0.4, 2.5, [0.7, 3.0]])
def test_a_temperature_leaves_biases_as_they_are(name: str, temperature: float | list[float]) -> None:
    image = pixels(2)
    with torch.no_grad():
        plain = model(None)(image)
        with edit(temperature={1: temperature}):
            fused = model(None)(image)
        with edit(temperature={1: temperature}):
            written = model(WRITTEN[name])(image)
        assert_same(model(WRITTEN[name])(image), plain)
    assert_same(written, fused)
    assert (fused - plain).abs().max() > 1e-2 * plain.abs().max()


def test_a_temperature_of_two_by_hand() -> None:
    """Scores 2 and 4 with biases 1 and 0: at T = 2 they are 1 + 1 and 2 + 0, so both tokens get 1/2; the row below likewise."""
    q, k = torch.tensor([[[[2.0], [1.0]]]]), torch.tensor([[[[1.0], [2.0]]]])
    bias = torch.tensor([[1.0, 0.0], [0.5, 0.0]])
    v = torch.tensor([[[[1.0], [3.0]]]])
    with edit(temperature={0: 2.0, 1: 2.0}):
        written = (q @ k.mT + bias).softmax(-1) @ v
        fused = F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None, None], scale=1.0)
    assert written.flatten().tolist() == pytest.approx([2.0, 2.0])
    assert fused.flatten().tolist() == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize("write", [None, *WRITTEN.values()])
def test_a_trace_inside_a_temperature_has_the_same_attention(write: Write | None) -> None:
    image = pixels()
    with edit(temperature={1: 0.5}):
        recorded = trace(model(write), image, layout=LAYOUT)
    plain = trace(model(None), image, layout=LAYOUT)
    layer = plain.layers[1]
    expected = (layer.q @ layer.k.mT * SCALE / 0.5 + BIAS).softmax(-1)
    assert_same(recorded.attention(1), expected)
    assert_same(recorded.attention(0), plain.attention(0))


@pytest.mark.parametrize("write", [None, WRITTEN["q k^T * scale + bias"], WRITTEN["in place"]])
def test_nested_temperatures_multiply(write: Write | None) -> None:
    built, image = model(write), pixels()
    with torch.no_grad():
        with edit(temperature={0: 0.5}), edit(temperature={0: 6.0, 2: 2.0}):
            nested = built(image)
            recorded = trace(built, image, layout=LAYOUT)
        with edit(temperature={0: 3.0, 2: 2.0}):
            expected = built(image)
    assert_same(nested, expected)
    assert_same(recorded.logits, expected[0])


@pytest.mark.parametrize("write", [None, WRITTEN["q k^T * scale + bias"], WRITTEN["in place"]])
@pytest.mark.parametrize("order", ["temperature first", "head first"])
def test_a_temperature_goes_with_another_edit_around_it(write: Write | None, order: str) -> None:
    built, image = model(write), pixels()
    edits = [edit(temperature={1: 0.5}), edit(heads={(0, 2): 0.0, (1, 3): "mean"})]
    outer, inner = edits if order == "temperature first" else edits[::-1]
    with torch.no_grad():
        with outer, inner:
            nested = built(image)
            recorded = trace(built, image, layout=LAYOUT)
        with edit(temperature={1: 0.5}, heads={(0, 2): 0.0, (1, 3): "mean"}):
            expected = built(image)
        with edit(heads={(0, 2): 0.0, (1, 3): "mean"}):
            plain = built(image)
    assert_same(nested, expected)
    assert_same(recorded.logits, expected[0])
    assert (nested - plain).abs().max() > 1e-2 * plain.abs().max()


UNKNOWN: dict[str, Write] = {
    "clamped": lambda q, k: (q @ k.mT * SCALE + BIAS).clamp(min=-30),
    "two products": lambda q, k: q @ k.mT * SCALE + k @ k.mT,
    "no product": lambda q, k: -torch.cdist(q, k),
    "bias minus scores": lambda q, k: BIAS - q @ k.mT,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_scores_that_cannot_be_told_apart_are_one_sentence(name: str) -> None:
    built, image = model(UNKNOWN[name]), pixels()
    with torch.no_grad():
        with edit(heads={(1, 0): 0.0}):
            built(image)
        with (
            pytest.raises(CaptureError, match="No temperature can be set in layer 1"),
            edit(temperature={1: 2.0}),
        ):
            built(image)


def test_gradients_pass_through_a_temperature() -> None:
    gradients = []
    for write in (None, WRITTEN["q k^T * scale + bias"]):
        image = pixels().requires_grad_()
        with edit(temperature={0: 0.5, 2: 3.0}):
            model(write)(image)[0, 2].backward()
        gradients.append(image.grad)
    assert_same(gradients[1], gradients[0])
