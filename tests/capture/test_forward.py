"""A pass that leaves the model as it was, and what is remembered of a model: its blocks, its number of layers."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vit_viz.capture import forward
from vit_viz.capture.forward import (
    USUAL_DEPTH,
    ResidualStream,
    block_list,
    expected_layers,
    remember_layers,
    undisturbed,
)
from vit_viz.errors import CaptureError

TOKENS, DIM = 7, 5


class Stack(nn.Module):
    """A stem of two parts, a list of parts of different kinds, and three blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Identity(), nn.Identity())
        self.mixed = nn.Sequential(nn.Linear(DIM, DIM), nn.GELU(), nn.Linear(DIM, DIM), nn.GELU())
        self.blocks = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_the_blocks_are_the_longest_list_of_parts_of_one_class() -> None:
    model = Stack()
    assert block_list(model) == [*model.blocks]
    assert block_list(nn.Linear(2, 3)) == []


def test_blocks_have_parts_of_their_own_where_a_longer_list_is_of_single_layers() -> None:
    heads = nn.ModuleList([nn.Linear(2, 1) for _ in range(31)])
    blocks = [nn.Sequential(nn.LayerNorm(2), nn.Linear(2, 2)) for _ in range(3)]
    assert block_list(nn.ModuleDict({"heads": heads, "blocks": nn.ModuleList(blocks)})) == blocks


def test_as_many_layers_are_expected_as_there_were_last_else_as_there_are_blocks() -> None:
    model, other = Stack(), Stack()
    assert (expected_layers(model), expected_layers(nn.Linear(2, 3))) == (3, USUAL_DEPTH)
    remember_layers(model, 6)
    assert (expected_layers(model), expected_layers(other)) == (6, 3)


def test_the_stream_is_what_enters_the_first_block_and_leaves_each() -> None:
    model, x = Stack(), torch.randn(1, TOKENS, DIM)
    with ResidualStream(model) as stream:
        output = model(x)
        thread = threading.Thread(target=lambda: model(2 * x))
        thread.start()
        thread.join()
    model(x)  # afterwards nothing is kept
    stacked = stream.stacked(layers=3, tokens=TOKENS)
    assert stacked.shape == (4, TOKENS, DIM)
    assert torch.equal(stacked[0], x[0])
    assert torch.equal(stacked[1], model.blocks[0](x)[0])
    assert torch.equal(stacked[3], output[0])


def test_the_stream_may_have_its_batch_second() -> None:
    model, x = Stack(), torch.randn(TOKENS, 1, DIM)
    with ResidualStream(model) as stream:
        model(x)
    assert torch.equal(stream.stacked(layers=3, tokens=TOKENS)[0], x[:, 0])


@pytest.mark.parametrize(
    ("shape", "layers", "words"),
    [
        ((1, TOKENS, DIM), 2, "one state per block, 3 in all; the blocks gave 4"),
        ((1, TOKENS + 1, DIM), 3, f"expects {TOKENS} tokens per block"),
        ((2, TOKENS, DIM), 3, f"expects {TOKENS} tokens per block"),
        ((TOKENS, DIM), 3, None),
    ],
)
def test_a_stream_that_is_not_one_vector_per_token_and_layer_is_refused(
    shape: tuple[int, ...], layers: int, words: str | None
) -> None:
    model = Stack()
    with ResidualStream(model) as stream:
        model(torch.randn(shape))
    if words is None:
        assert stream.stacked(layers=layers, tokens=TOKENS).shape == (layers + 1, TOKENS, DIM)
        return
    with pytest.raises(CaptureError, match=words):
        stream.stacked(layers=layers, tokens=TOKENS)


def test_a_model_without_blocks_has_no_stream() -> None:
    with pytest.raises(CaptureError, match="needs a model with a list of blocks"):
        ResidualStream(nn.Linear(2, 3))


def fail_inside(model: nn.Module) -> None:
    with undisturbed(model) as parts:
        assert {*parts} == {*model.modules()}
        assert not any(part.training for part in parts)
        torch.rand(3)
        raise KeyError


def test_each_part_gets_its_own_mode_back_and_the_random_state_too() -> None:
    model = Stack().train()
    model.blocks[1].eval()
    before, random = [part.training for part in model.modules()], torch.get_rng_state()
    with pytest.raises(KeyError):
        fail_inside(model)
    assert [part.training for part in model.modules()] == before
    assert torch.equal(torch.get_rng_state(), random)


def test_the_random_states_of_a_models_gpus_are_put_back_where_the_process_uses_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = [torch.device(name) for name in ("cuda:2", "cpu", "cuda", "cuda:2", "meta")]
    model: Any = SimpleNamespace(parameters=lambda: [SimpleNamespace(device=place) for place in places])
    for is_initialized, devices in ((True, [0, 2]), (False, [])):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda known=is_initialized: known)
        assert forward._random_devices(model) == devices
