"""What is said of models that cannot be traced or proven names the true reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import Attend, Model, blocks, ready
from tests.capture.models import pixels, timm_vit
from vit_viz.capture import trace
from vit_viz.errors import CaptureError, ParameterError
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


class Stopping(nn.Module):
    """Parts of these names, and an error in place of an answer."""

    def __init__(self, parts: Sequence[str], error: Exception) -> None:
        super().__init__()
        self.inner = nn.ModuleDict({part: nn.Linear(2, 3) for part in parts})
        self.error = error

    def forward(self, pixels: Tensor) -> Tensor:  # noqa: ARG002
        raise self.error


@pytest.mark.parametrize("text", ["text_model", "language_model", "token_embedding"])
@pytest.mark.parametrize("vision", ["vision_model", "visual"])
@pytest.mark.parametrize("error", [TypeError("input_ids"), RuntimeError("no text")])
def test_the_part_that_looks_at_the_image_is_named_wherever_it_stands(
    text: str, vision: str, error: Exception
) -> None:
    words = rf"Stopping does not run on pixels alone \({type(error).__name__}\); .* \.inner\.{vision}\.$"
    with pytest.raises(CaptureError, match=words):
        trace(Stopping([text, vision], error), pixels())


@pytest.mark.parametrize(
    ("parts", "error", "advice"),
    [
        (["vision_model"], ValueError("image size"), "; if it takes one size only, .*"),
        (["text_model"], ValueError("input_ids"), "; if it takes one size only, .*"),
        (["vision_model", "text_model"], KeyError("weights"), ""),
        (["vision_model"], TypeError("missing argument"), ""),
    ],
)
def test_what_is_no_lack_of_text_is_told_in_the_models_own_words(
    parts: Sequence[str], error: Exception, advice: str
) -> None:
    words = rf"Stopping does not run on pixels \[1, 3, 64, 96\] \({type(error).__name__}: {re.escape(str(error))}\){advice}\.$"
    with pytest.raises(CaptureError, match=words) as raised:
        trace(Stopping(parts, error), pixels())
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("no room"), ParameterError("no such token")])
def test_what_speaks_for_itself_is_left_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        trace(Stopping(["vision_model", "text_model"], error), pixels())
    assert raised.value is error
