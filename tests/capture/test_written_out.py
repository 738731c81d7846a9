"""Softmax written by hand, in every precision: its tokens are known by their queries and keys, whatever is done to the scores."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.capture.misleading import HEAD_DIM, Model, WindowModel, attending, blocks, ready
from tests.capture.models import SIZE, pixels
from vit_viz.capture import trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))
PRECISIONS = (torch.float32, torch.float16, torch.bfloat16)


def by_matmul(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) * HEAD_DIM**-0.5


def by_einsum(q: Tensor, k: Tensor) -> Tensor:
    return torch.einsum("bhid,bhjd->bhij", q, k) * HEAD_DIM**-0.5


def by_baddbmm(q: Tensor, k: Tensor) -> Tensor:
    none = torch.zeros(1, 1, 1, dtype=q.dtype)
    product = torch.baddbmm(none, q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2), alpha=HEAD_DIM**-0.5)
    return product.unflatten(0, q.shape[:2])


def of_top_keys(q: Tensor, k: Tensor) -> Tensor:
    """Each query attends to its 7 largest scores alone."""
    scores = by_matmul(q, k)
    least = scores.topk(7, dim=-1).values[..., -1:]
    return scores.masked_fill(scores < least, -1e9 if scores.dtype == torch.float32 else -3e4)


KINDS = {
    scores.__name__: attending(lambda q, k, v, scores=scores: scores(q, k).softmax(-1) @ v)
    for scores in (by_matmul, by_einsum, by_baddbmm, of_top_keys)
} | {  # the softmax in fp32 whatever the model's precision, as transformers computes it
    "in fp32": attending(lambda q, k, v: by_matmul(q, k).softmax(-1, dtype=torch.float32).to(q.dtype) @ v)
}


class WindowsByHand(nn.Module):
    """Attention within two windows of one head, in the place of heads."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(40, 120), nn.Linear(40, 40)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch * 2, tokens // 2, 3, 40).permute(2, 0, 1, 3)
        return self.proj(((q @ k.transpose(1, 2) / 7).softmax(-1) @ v).reshape(batch, tokens, 40))  # type: ignore[no-any-return]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_written_out_attention_is_proven_in_every_precision(
    kind: Callable[[], nn.Module], dtype: torch.dtype
) -> None:
    recorded = trace(ready(Model(blocks(*[kind] * 3))).to(dtype), pixels().to(dtype), layout=LAYOUT)
    assert recorded.proof_status == "proven", recorded.proof_report.sentence


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_windows_written_out_are_still_no_heads(dtype: torch.dtype) -> None:
    model = WindowModel()
    for block in model.blocks:
        block.attention = WindowsByHand()  # type: ignore[assignment]
    with pytest.raises(CaptureError, match="windows stand in the place of heads"):
        trace(ready(model).to(dtype), pixels().to(dtype), layout=TokenLayout(grid=(2, 6), prefix=()))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("zero", "dtype"), [(False, torch.float32), *((True, dtype) for dtype in PRECISIONS)]
)
def test_tokens_that_begin_as_zeros_are_proven(implementation: str, dtype: torch.dtype, zero: bool) -> None:
    from transformers import YolosConfig, YolosModel

    torch.manual_seed(3)
    config = YolosConfig(
        hidden_size=40, num_hidden_layers=3, num_attention_heads=5, intermediate_size=56, image_size=list(SIZE),
        patch_size=16, num_detection_tokens=3,
    )  # fmt: skip
    model = YolosModel(config).eval()
    model.set_attn_implementation(implementation)
    for name, parameter in model.embeddings.named_parameters():
        if zero and ("token" in name or "position" in name):
            nn.init.zeros_(parameter)
    layout = TokenLayout(grid=(4, 6), suffix=("query 0", "query 1", "query 2"))
    for choice in (None, layout):
        recorded = trace(model.to(dtype), pixels().to(dtype), layout=choice)
        assert recorded.proof_status == "proven", recorded.proof_report.sentence
