"""flex_attention is recorded, proven and edited as the same attention written out by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from tests.capture.misleading import Attend, Model, attending, blocks
from tests.capture.models import lively, pixels
from tests.comparing import assert_same
from vit_viz.capture import edit, flex, trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

HEADS, TOKENS = 5, 25
LAYOUT = TokenLayout(grid=(4, 6))
BIAS = torch.randn(HEADS, TOKENS, TOKENS, generator=torch.Generator().manual_seed(3))
PLACES = torch.arange(TOKENS)
NEAR = (PLACES[:, None] - PLACES).abs() < 9


def near(image: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (query - key).abs() < 9


def biased(score: Tensor, image: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return score + BIAS[head, query, key]


def capped(score: Tensor, image: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return 2 * torch.tanh(score / 2) - 0.1 * head * (query - key).abs()


Scores = Callable[[Tensor], Tensor]
MADE: dict[str, tuple[dict[str, object], Scores]] = {
    "plain": ({}, lambda scores: scores / 8**0.5),
    "scaled": ({"scale": 0.7}, lambda scores: scores * 0.7),
    "biased": ({"score_mod": biased}, lambda scores: scores / 8**0.5 + BIAS),
    "capped": (
        {"score_mod": capped},
        lambda scores: (
            2 * torch.tanh(scores / 8**0.5 / 2)
            - 0.1 * torch.arange(HEADS)[:, None, None] * (PLACES[:, None] - PLACES).abs()
        ),
    ),
    "masked": (
        {
            "score_mod": biased,
            "block_mask": create_block_mask(near, None, None, TOKENS, TOKENS, device="cpu"),
        },
        lambda scores: (scores / 8**0.5 + BIAS).masked_fill(~NEAR, -torch.inf),
    ),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own: to compile it would be faster
        yield


def models(name: str, *, few_keys: bool = False) -> tuple[nn.Module, nn.Module]:
    """A model with flex_attention, and the same one with its attention written out."""
    arguments, scores_of = MADE[name]

    def by_flex(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys = slice(1 if few_keys else None)
        return flex_attention(q, k[:, keys], v[:, keys], enable_gqa=few_keys, **arguments)

    def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if few_keys:
            k, v = (part[:, :1].expand(-1, HEADS, -1, -1) for part in (k, v))
        return torch.softmax(scores_of(q @ k.transpose(-2, -1)), -1) @ v

    made, written = (
        lively(Model(blocks(*[attending(way)] * 3))).requires_grad_(False) for way in (by_flex, by_hand)
    )
    written.load_state_dict(made.state_dict())
    return made, written


@pytest.mark.parametrize("name", MADE)
def test_flex_attention_is_proven_and_has_the_weights_of_its_formula(name: str) -> None:
    made, by_hand = models(name)
    recorded, expected = (trace(model, pixels(), layout=LAYOUT) for model in (made, by_hand))
    assert (recorded.proof_status, recorded.proof_report.sentence) == ("proven", "")
    for layer in range(3):
        assert torch.allclose(recorded.attention(layer), expected.attention(layer), rtol=1e-4, atol=1e-6)
    assert torch.allclose(recorded.logits, made(pixels())[0], rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]


def test_heads_that_share_keys_are_recorded_one_by_one() -> None:
    recorded, expected = (trace(one, pixels(), layout=LAYOUT) for one in models("biased", few_keys=True))
    assert torch.allclose(recorded.attention(1), expected.attention(1), rtol=1e-4, atol=1e-6)


def test_an_edit_changes_flex_attention_as_it_changes_the_same_by_hand() -> None:
    found = []
    for model in models("biased"):
        with edit(heads={(1, 2): 0.0}, mask_keys=[3, 4]):
            found.append(trace(model, pixels(), layout=LAYOUT).logits)
    assert torch.allclose(*found, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(found[0], trace(models("biased")[0], pixels(), layout=LAYOUT).logits, atol=1e-3)


def test_another_output_than_that_of_its_scores_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    at_each_place = flex._at_each_place
    monkeypatch.setattr(flex, "_at_each_place", lambda *operands: at_each_place(*operands).roll(1, -1))
    with pytest.raises(
        CaptureError, match=r"flex_attention returns an output.* scaled_dot_product_attention"
    ):
        trace(models("masked")[0], pixels(), layout=LAYOUT)


class InGroups(Attend):
    """Four heads, the first two of which share keys and values, as do the last two; written out by hand or not."""

    is_written_out = False

    def gathered(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (
            part.transpose(1, 2).reshape(1, TOKENS, 4, 10).transpose(1, 2)[:, :heads]
            for part, heads in ((q, 4), (k, 2), (v, 2))
        )
        if self.is_written_out:
            k, v = k[:, [0, 0, 1, 1]], v[:, [0, 0, 1, 1]]
            output = torch.softmax(q @ k.transpose(-2, -1) / 10**0.5, -1) @ v
        else:
            output = flex_attention(q, k, v, enable_gqa=True)  # type: ignore[assignment]
        return output.transpose(1, 2).reshape(1, TOKENS, HEADS, 8).transpose(1, 2)


def test_neighbouring_heads_share_the_keys_of_their_group() -> None:
    model = lively(Model(blocks(InGroups, InGroups))).requires_grad_(False)
    recorded = trace(model, pixels(), layout=LAYOUT)
    for block in model.modules():
        block.is_written_out = True  # type: ignore[assignment]
    expected = trace(model, pixels(), layout=LAYOUT)
    assert torch.allclose(recorded.attention(1), expected.attention(1), rtol=1e-4, atol=1e-6)


def test_half_precision_is_recorded_and_proven() -> None:
    made, _ = models("biased")
    recorded = trace(made.bfloat16(), pixels().bfloat16(), layout=LAYOUT)
    assert recorded.proof_status == "proven"


@pytest.mark.parametrize("lonely", [[3], [0, 24]])
def test_a_query_that_sees_no_key_has_weights_of_zero_and_the_rest_is_proven(
    monkeypatch: pytest.MonkeyPatch, lonely: list[int]
) -> None:
    sees = ~(PLACES[:, None] == torch.tensor(lonely)).any(-1)
    mask = create_block_mask(lambda b, h, i, j: near(b, h, i, j) & sees[i], None, None, TOKENS, TOKENS, "cpu")
    monkeypatch.setitem(MADE, "lonely", ({"block_mask": mask}, lambda scores: scores))
    made, _ = models("lonely")
    kind = attending(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, NEAR & sees[:, None]))
    by_mask = lively(Model(blocks(kind, kind, kind)))
    by_mask.load_state_dict(made.state_dict())
    recorded, expected = (trace(model, pixels(), layout=LAYOUT) for model in (made, by_mask))
    assert (recorded.proof_status, recorded.proof_report.sentence) == ("proven", "")
    assert recorded.problems == ()
    for layer in range(3):
        assert not recorded.attention(layer)[:, lonely].any()
        assert_same(recorded.attention(layer), expected.attention(layer))
    assert_same(recorded.logits, made(pixels())[0])
