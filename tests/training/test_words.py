from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from tokenizers import Tokenizer

from tests.comparing import assert_same
from training import words
from training.scenes import draw, scene
from training.words import Batch, Pair, Run, contrastive, share_of_patches, tokenizer, tokens_of
from vit_viz.checkpoints import load


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(words, "COUNT", 5)
    return 5


def test_with_one_true_pair_in_each_row_the_loss_is_that_of_clip() -> None:
    logits = torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    diagonal = torch.eye(5, dtype=torch.bool)
    torch.testing.assert_close(
        contrastive(logits, diagonal, ~diagonal), F.cross_entropy(logits, torch.arange(5))
    )


def test_a_true_pair_is_no_negative_of_another_and_what_is_neither_does_not_count() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.5, 9.0], [7.0, 7.0, 7.0, 7.0]])
    is_true = torch.tensor(
        [[True, True, False, False], [False] * 4]
    )  # of the second row nothing is true: it is left out
    is_false = torch.tensor([[False, False, True, False], [True] * 4])
    by_hand = (math.log(1 + math.exp(0.5 - 2)) + math.log(1 + math.exp(0.5 - 1))) / 2
    assert contrastive(logits, is_true, is_false).item() == pytest.approx(by_hand, rel=1e-6)


def test_the_tokenizer_reads_whole_words_and_takes_any_other_for_one_unknown() -> None:
    own = tokenizer()
    assert own.encode("A RED circle.").tokens == ["[START]", "a", "red", "circle", ".", "[END]"]
    assert own.encode("a zebra").tokens == ["[START]", "a", "[UNK]", "[END]"]
    assert own.encode("a " * 50).tokens[-1] == "[END]"
    tokens, ends = tokens_of(own, ["red", "a red circle"])
    assert tokens.shape == (2, 5)
    assert ends.tolist() == [2, 4]


def test_patches_are_told_what_lies_on_them(few: int) -> None:
    batch = Batch(tokenizer(), 0, 7, 48, 0.0)
    assert batch.pixels.shape == (few, 3, 48, 48)
    assert batch.truth.shape == (few, few * (words.SENTENCES + 1) + 1)
    assert not batch.truth[:, -1].any()  # the ground, which no sentence of a whole scene is about
    assert batch.truth.any(1).all()
    on_ground = batch.names[:, -1]
    assert (batch.names[:, :-1].any(1) | on_ground)[
        ~on_ground
    ].float().mean() > 0.9  # most things are named by some sentence
    assert not batch.names[on_ground][:, :-1].any()
    for at, is_ground in zip(batch.places.tolist(), on_ground.tolist(), strict=True):
        number, place = divmod(at, 36)
        _, masks = draw(scene(0, 7 * few + number), 48)
        covered = share_of_patches(masks).reshape(len(masks), -1)[:, place]
        assert is_ground == (covered.max() < 1 - covered.sum())


def test_the_share_of_a_patch_that_a_mask_covers() -> None:
    mask = np.zeros((1, 16, 24), dtype=bool)
    mask[0, 8:16, 20:24] = True
    with pytest.raises(ValueError, match="reshape"):
        share_of_patches(mask)  # patches are counted on squares
    square = np.zeros((1, 24, 24), dtype=bool)
    square[0, 8:16, 20:24] = True
    assert share_of_patches(square)[0].tolist() == [[0, 0, 0], [0, 0, 0.5], [0, 0, 0]]


def test_the_pair_gives_the_pictures_what_the_model_itself_gives(few: int) -> None:
    torch.manual_seed(0)
    own = tokenizer()
    pair, batch = Pair(own.get_vocab_size()), Batch(own, 0, 0, 96, 0.0)
    with torch.no_grad():
        logits, patches, values = pair(batch.pixels, batch.tokens, batch.ends)
        sentences = F.normalize(pair.text(batch.tokens, batch.ends), dim=-1)  # all of one width
        pictures = F.normalize(pair.vision(batch.pixels), dim=-1)
    torch.testing.assert_close(logits, 10 * pictures @ sentences.T, atol=1e-4, rtol=1e-4)
    assert patches.shape == values.shape == (few, 144, len(sentences))


def test_a_run_that_goes_on_from_its_checkpoint_ends_with_the_same_weights(few: int, tmp_path: Path) -> None:
    whole, first, second = Run(3), Run(3), Run(3)
    batches = [Batch(whole.words, 3, step, 48, 0.0) for step in range(2)]
    for batch in batches:
        whole.train_step(batch, 0.6)
    first.train_step(batches[0], 0.6)
    words.store(tmp_path / "last.pt", first.state())
    second.restore(torch.load(tmp_path / "last.pt", weights_only=True))
    second.train_step(batches[1], 0.6)
    for name, one in whole.average.state_dict().items():
        torch.testing.assert_close(second.average.state_dict()[name], one, rtol=0, atol=0)
    moved = [
        not torch.equal(a, b) for a, b in zip(whole.pair.parameters(), Run(3).pair.parameters(), strict=True)
    ]
    assert all(moved)


def test_a_model_begins_as_the_first_blocks_of_mini_with_the_hidden_numbers_that_do_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(words, "VISION", words.VISION | {"img_size": 128, "mlp_ratio": 4})
    torch.manual_seed(0)
    whole, mini = Pair(10).vision, load("mini", device="cpu").model
    pixels = torch.rand(2, 3, 128, 128)
    with torch.no_grad():
        expected = mini.run_blocks(mini.tokens(pixels), mini.grid_of(128, 128), stop=4)
        found = whole.run_blocks(whole.tokens(pixels), whole.grid_of(128, 128))
    assert_same(found, expected, relative=1e-5)
    monkeypatch.undo()
    half = Pair(10).vision
    table = mini.pos_embed.unflatten(1, (16, 16))
    assert torch.equal(half.pos_embed.unflatten(1, (12, 12)), table[:, 2:14, 2:14])
    for one, all_of_it in zip(half.blocks, mini.blocks, strict=False):
        does = all_of_it.mlp.fc1.weight.norm(dim=1) * all_of_it.mlp.fc2.weight.norm(dim=0)
        kept = one.mlp.fc1.weight.norm(dim=1) * one.mlp.fc2.weight.norm(dim=0)
        torch.testing.assert_close(kept.sort().values, does.sort().values[len(does) // 2 :])


def test_a_small_picture_is_a_window_of_a_whole_one(few: int) -> None:
    torch.manual_seed(0)
    own = tokenizer()
    pair, batch = Pair(own.get_vocab_size()), Batch(own, 0, 0, 48, 1.0)
    assert all(0 <= place <= 6 for place in batch.corner)
    with torch.no_grad():
        here, there = (pair(batch.pixels, batch.tokens, batch.ends, corner)[1] for corner in ((0, 0), (4, 6)))
        table = pair.vision.pos_embed.unflatten(1, (12, 12))
        table[:, :6, :6] = table[:, 4:10, 6:].clone()
        moved = pair(batch.pixels, batch.tokens, batch.ends, (0, 0))[1]
    assert not torch.allclose(here, there, atol=1e-3)
    torch.testing.assert_close(moved, there)


def test_the_file_says_how_it_is_read(few: int, tmp_path: Path) -> None:
    run = Run(0)
    run.export(tmp_path / "pair.safetensors", {"name": "odd"})
    assert [path.name for path in tmp_path.iterdir()] == ["pair.safetensors"]
    with safe_open(tmp_path / "pair.safetensors", "pt") as file:
        notes, names = file.metadata(), set(file.keys())
        assert {file.get_slice(name).get_dtype() for name in names} == {"F16"}
    assert {"head.weight", "logit_scale", "text.token_embed.weight", "text.head.weight"} <= names
    assert Tokenizer.from_str(notes["tokenizer"]).encode("red star").ids == run.words.encode("red star").ids
    assert json.loads(notes["text"])["vocabulary"] == run.words.get_vocab_size()
