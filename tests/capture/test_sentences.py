"""What is said of models that cannot be traced or proven names the true reason."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import Attend, Model, blocks, ready
from tests.capture.models import pixels, timm_vit
from vit_viz.capture import trace
from vit_viz.errors import CaptureError
from vit_viz.geometry import TokenLayout

LAYOUT = TokenLayout(grid=(4, 6))


class BiasKeys(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(40, 5, batch_first=True, add_bias_kv=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


class PooledKeys(Attend):
    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:  # noqa: ARG002
        return F.scaled_dot_product_attention(q, k[:, :, ::2], v[:, :, ::2])


class BlurredValues(Attend):
    def gathered(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        blurred = F.avg_pool1d(v.transpose(2, 3).flatten(1, 2), 3, 1, 1)
        return super().gathered(q, k, blurred.unflatten(1, v.shape[1::2]).transpose(2, 3), x)


@pytest.mark.parametrize(("kind", "keys"), [(BiasKeys, 26), (PooledKeys, 13)])
def test_extra_and_pooled_keys_are_named(kind: type[nn.Module], keys: int) -> None:
    with pytest.raises(CaptureError, match=rf"to {keys} keys over .*add_bias_kv, null keys, pooled keys"):
        trace(ready(Model(blocks(kind, kind))), pixels(), layout=LAYOUT)


def test_values_that_are_averaged_over_tokens_are_not_said_to_be_the_embedding() -> None:
    report = trace(ready(Model(blocks(BlurredValues, Attend))), pixels(), layout=LAYOUT).proof_report
    assert report.placed.status == "fails"
    assert "or queries, keys or values are averaged over tokens" in report.placed.sentence


@pytest.mark.parametrize("way", ["wrapped", "in place"])
def test_compiled_blocks_are_proven(way: str) -> None:
    model = timm_vit()
    for place, block in enumerate(model.blocks):  # type: ignore[arg-type]
        if way == "wrapped":
            model.blocks[place] = torch.compile(block, backend="eager")  # type: ignore[operator, index, union-attr]
        else:
            block.compile(backend="eager")
    recorded = trace(model, pixels())
    assert recorded.proof_status == "proven", recorded.proof_report.sentence


def test_a_model_that_also_reads_text_is_refused_in_one_sentence() -> None:
    from transformers import CLIPConfig, CLIPModel

    sizes = {"hidden_size": 40, "num_hidden_layers": 2, "num_attention_heads": 5, "intermediate_size": 56}
    config = CLIPConfig(text_config=sizes, vision_config=sizes | {"image_size": 64, "patch_size": 16})
    with pytest.raises(
        CaptureError, match=r"CLIPModel does not run on pixels alone .*part .* \.vision_model\."
    ):
        trace(CLIPModel(config), pixels(size=(64, 64)))


def test_a_vision_model_alone_speaks_for_itself() -> None:
    from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

    config = CLIPVisionConfig(
        hidden_size=40,
        intermediate_size=56,
        num_hidden_layers=2,
        num_attention_heads=5,
        image_size=64,
        patch_size=16,
    )
    with pytest.raises(ValueError, match=r"(?i)image size"):
        trace(CLIPVisionModelWithProjection(config).eval(), torch.randn(1, 3, 96, 96))


def test_a_memory_that_is_too_small_is_no_lack_of_text() -> None:
    class Starved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vision_model, self.text_model = nn.Linear(2, 3), nn.Linear(2, 3)

        def forward(self, pixels: Tensor) -> Tensor:  # noqa: ARG002
            raise torch.OutOfMemoryError("no room")

    with pytest.raises(torch.OutOfMemoryError):
        trace(Starved(), torch.randn(1, 3, 64, 96))
