"""What is said of models that cannot be traced or proven names the true reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.capture.misleading import (
    COLS,
    DIM,
    HEADS,
    PATCH,
    ROWS,
    Attend,
    Block,
    Model,
    attending,
    blocks,
    ready,
)
from tests.capture.models import pixels, timm_vit
from vit_viz.capture import trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import TokenLayout
from vit_viz.session.run import run

LAYOUT = TokenLayout(grid=(4, 6))


class BiasKeys(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(40, 5, batch_first=True, add_bias_kv=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x, x, need_weights=False)[0]  # type: ignore[no-any-return]


PooledKeys = attending(lambda q, k, v: F.scaled_dot_product_attention(q, k[:, :, ::2], v[:, :, ::2]))


def of_blurred_values(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    blurred = F.avg_pool1d(v.transpose(2, 3).flatten(1, 2), 3, 1, 1)
    return F.scaled_dot_product_attention(q, k, blurred.unflatten(1, v.shape[1::2]).transpose(2, 3))


@pytest.mark.parametrize(("kind", "keys"), [(BiasKeys, 26), (PooledKeys, 13)])
def test_extra_and_pooled_keys_are_named(kind: type[nn.Module], keys: int) -> None:
    with pytest.raises(CaptureError, match=rf"to {keys} keys over .*add_bias_kv, null keys, pooled keys"):
        trace(ready(Model(blocks(kind, kind))), pixels(), layout=LAYOUT)


def test_values_that_are_averaged_over_tokens_are_not_said_to_be_the_embedding() -> None:
    report = trace(
        ready(Model(blocks(attending(of_blurred_values), Attend))), pixels(), layout=LAYOUT
    ).proof_report
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


class Scaled(Block):
    """Each branch times a number, as LayerScale or a gate at the beginning of training."""

    factor = 0.0

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.factor * self.attention(self.norm1(x))
        return x + self.factor * self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class HardlyScaled(Scaled):
    factor = 1e-12


def overwriting(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What the output is multiplied by is gone afterwards, so that nobody can do it again."""
    factor = torch.full_like(v, 1)
    output = F.scaled_dot_product_attention(q, k, v) * factor
    factor.zero_()
    return output


NotANumber = attending(lambda q, k, v: F.scaled_dot_product_attention(q * torch.nan, k, v))


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (
            lambda: Scaled(Attend),
            "layer 1 does not read what layer 0 wrote .*an output that is multiplied by zero",
        ),
        (lambda: HardlyScaled(Attend), "What layer 0 writes hardly shows at layer 1 in this precision"),
        (
            lambda: Block(NotANumber),
            "not compared with what the model computed, which was not seen or is no number",
        ),
        (lambda: Block(attending(overwriting)), "What layer 0 passes on could not be checked"),
    ],
    ids=["a gate of zero", "a gate of nearly zero", "no numbers", "nothing to run again"],
)
def test_what_could_not_be_seen_is_not_said_to_be_otherwise(
    block: Callable[[], nn.Module], words: str
) -> None:
    report = trace(ready(Model([block() for _ in range(3)])), pixels(), layout=LAYOUT).proof_report
    assert report.status == "captured, not proven"
    assert re.search(words, report.sentence)


def of_masked_keys(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = (q @ k.transpose(2, 3)) * q.shape[-1] ** -0.5
    is_first = torch.arange(scores.shape[2])[:, None] == 3
    return scores.masked_fill(is_first, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize("block", [attending(of_masked_keys), NotANumber], ids=["written out", "fused"])
@pytest.mark.parametrize("name", ["look", "rollout", "mosaic", "heads", "links"])
def test_attention_that_is_no_number_is_refused_with_its_layer_and_the_cause(
    block: type[nn.Module], name: str
) -> None:
    model = ready(Model(blocks(Attend, block, Attend)))
    with pytest.raises(
        CaptureError, match=r"The attention of layer 1 is no number .* keys that are all masked, or"
    ):
        run(model, pixels(), name, layout=LAYOUT)


class ScoresOfPlaces(Model):
    """Classes of every patch, from two heads."""

    def read(self, x: Tensor) -> Tensor:
        maps = self.head(self.norm(x)[:, 1:]).transpose(1, 2).unflatten(2, (ROWS, COLS))
        return maps.softmax(1) + maps.relu().softmax(1)  # type: ignore[no-any-return]


class Routed(Block):
    """Experts, of which each token takes a mixture."""

    def __init__(self, attention: type[nn.Module]) -> None:
        super().__init__(attention)
        self.router = nn.Linear(DIM, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        shares = self.router(x)[:, None].softmax(-1)  # [images, 1, tokens, experts]
        return x + self.mlp(self.norm2(x)) * shares[:, 0, :, :1]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "build",
    [lambda: ScoresOfPlaces(blocks(Attend, Attend)), lambda: Model([Routed(Attend), Routed(Attend)])],
    ids=["classes of places", "experts"],
)
def test_a_softmax_that_weighs_no_tokens_is_no_further_attention(build: Callable[[], nn.Module]) -> None:
    report = trace(ready(build()), pixels(), layout=LAYOUT).proof_report
    assert (report.status, report.sentence) == ("proven", "")


def test_tokens_that_fill_up_a_batch_are_not_expected_to_answer() -> None:
    class FilledUp(Model):
        """Patches by hand, then six tokens that nothing attends to, and a pool that does not look at them either."""

        def __init__(self) -> None:
            super().__init__(blocks(Attend))
            self.weight = nn.Parameter(torch.randn(DIM, 3 * PATCH * PATCH))
            self.layers = nn.ModuleList([nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, 3 * DIM)])
            self.out = nn.Linear(DIM, DIM)
            self.query = nn.Parameter(torch.randn(1, 1, DIM))
            del self.embed, self.blocks, self.class_token

        def forward(self, image: Tensor) -> Tensor:
            x = F.unfold(image, PATCH, stride=PATCH).transpose(1, 2) @ self.weight.T + self.positions[:, 1:]
            x = F.pad(x, (0, 0, 0, 6))
            seen = torch.arange(30)[None, None, None] < 24
            for layer in self.layers:
                heads = layer(F.layer_norm(x, (DIM,))).unflatten(-1, (3, HEADS, -1))
                q, k, v = heads.permute(2, 0, 3, 1, 4)
                x = x + self.out(F.scaled_dot_product_attention(q, k, v, seen).transpose(1, 2).flatten(2))
            q, k = self.query.expand(len(x), -1, -1)[:, None], x[:, None]
            return self.head(F.scaled_dot_product_attention(q, k, k, seen[:, :1])[:, 0, 0])  # type: ignore[no-any-return]

    model = ready(FilledUp())
    with pytest.raises(
        ParameterError, match=r"grid=\(4, 6\), prefix=\(\), .*suffix=\('token 0', .*'token 5'\)"
    ):
        trace(model, pixels())
    filled = TokenLayout(
        grid=(4, 6), prefix=(), suffix=tuple(f"filling {i}" for i in range(6)), pooling="attention"
    )
    report = trace(model, pixels(), layout=filled).proof_report
    assert (report.status, report.sentence) == ("proven", "")


def test_a_model_that_runs_on_one_photo_alone_is_not_said_not_to_run() -> None:
    class Picky(Model):
        def forward(self, image: Tensor) -> Tensor:
            if not torch.equal(image, pixels()):
                raise RuntimeError("another photo")
            return super().forward(image)

    report = trace(ready(Picky(blocks(Attend))), pixels(), layout=LAYOUT).proof_report
    assert report.placed.sentence.endswith("what the first attention reads of changed pixels was not seen.")
    assert (
        report.complete.sentence
        == "Its layers could not be checked: with other pixels its calls were not seen."
    )
