"""Which words a head writes: what it writes against a pass by hand, the words against a case that is worked out."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import vit_viz as vv
from tests.analyses.test_decomposition import (
    HEADS,
    SENTENCES,
    by_hand,
    edits_by_hand,
    held,
    picture,
    with_sentences,
)
from tests.comparing import assert_same
from vit_viz.analyses.direct_parts import written
from vit_viz.analyses.head_words import MOST, HeadWords, word_list, words_along
from vit_viz.capture import surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import Cancelled, ParameterError
from vit_viz.model import VisionTransformer

pytestmark = pytest.mark.numbers

WRITTEN = {name: SENTENCES[name] for name in ("CLIP, registers", "mean, projection with a bias")}
WRITTEN["norm in the attention"] = {"attn_norm": True, "head_bias": False, "num_classes": 9}


def heads_of(vit: VisionTransformer, edits: dict[str, Any] | None = None) -> Tensor:
    """What each head writes, [layers, heads, numbers]."""
    with vv.edit(**edits) if edits else nullcontext():
        trace = vv.trace(vit, picture(), keep_residual=True)
    with torch.no_grad(), vv.edit(**edits) if edits else nullcontext(), undisturbed(vit), exact():
        active = surrounding_edits(images=1) if edits else None
        rows = [[written(vit, trace, layer, head, active) for head in range(HEADS)] for layer in range(3)]
    return torch.stack([torch.stack(row) for row in rows])


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("edited", [False, True])
def test_what_a_head_writes_is_its_part_along_every_direction(name: str, edited: bool) -> None:
    vit = with_sentences(**WRITTEN[name])
    edits, scores, moved, removed = edits_by_hand()
    changes = {"scores": scores, "moved": moved, "removed": removed} if edited else {}
    found = heads_of(vit, edits if edited else None)
    assert found.shape == (3, HEADS, 9)
    for sentence, direction in enumerate(vit.head.directions.double()):
        weights = torch.zeros(4)
        weights[sentence] = 1
        expected = by_hand(vit, picture(), weights, **changes)["terms"].sum(-1)
        assert_same((11 * found @ direction).numpy(), expected, relative=1e-5)


def test_without_sentences_a_head_writes_the_same() -> None:
    vit = with_sentences(**SENTENCES["CLIP"])
    plain = copy.deepcopy(vit)
    plain.head, plain.config = vit.head.projection, replace(vit.config, num_classes=9, projection=True)
    assert_same(heads_of(plain), heads_of(vit))


@pytest.mark.parametrize("name", ["SigLIP", "SigLIP, norm behind"])
def test_a_head_writes_through_the_values_of_a_learned_pool(name: str) -> None:
    vit = with_sentences(**SENTENCES[name])
    found = heads_of(vit)
    vit = copy.deepcopy(vit).double()
    pool, first = vit.attn_pool, len(vit.config.prefix)
    stream = [vit.tokens(picture().double())[0]]
    for block in vit.blocks:
        stream.append(block(stream[-1][None])[0])
    x = vit.norm(stream[-1])[first:]
    k, v = pool.kv(x).reshape(len(x), 2, HEADS, -1).permute(1, 2, 0, 3)
    looks = (k @ pool.q(pool.latent)[0, 0].reshape(HEADS, -1, 1) * pool.head_dim**-0.5).softmax(
        1
    )  # [heads, patches, 1]

    def gathered(values: Tensor) -> Tensor:
        return pool.proj((looks * values).sum(1).flatten())

    whole = gathered(v)
    thought = pool.mlp(pool.norm(whole))
    length = vit.head.projection(vit.fc_norm(whole + thought)).norm()

    def read(z: Tensor) -> Tensor:
        normed = held(vit.norm, z, stream[-1])[first:]
        values = pool.kv(normed).reshape(len(normed), 2, HEADS, -1).permute(1, 2, 0, 3)[1]
        return vit.head.projection(held(vit.fc_norm, gathered(values) + thought, whole + thought)) / length

    for layer, head in ((0, 4), (1, 0), (2, 3)):
        attn, before = vit.blocks[layer].attn, vit.blocks[layer].norm1(stream[layer])
        q, k, v = attn.qkv(before).reshape(len(before), 3, HEADS, -1).permute(1, 2, 0, 3)
        weights = (q[head] @ k[head].T * attn.head_dim**-0.5).softmax(-1)
        of_head = slice(head * attn.head_dim, (head + 1) * attn.head_dim)
        wrote = weights @ v[head] @ attn.proj.weight[:, of_head].T
        expected = read(stream[-1]) - read(stream[-1] - wrote)
        assert expected.shape == (vit.config.num_classes and vit.head.directions.shape[1],)
        assert_same(found[layer, head], expected, relative=1e-5)


# --- the words


def test_the_words_of_a_vector_are_worked_by_hand() -> None:
    """Three words at right angles: less their mean, (2, -1, -1) / 3 and so on; both ends span a line."""
    found = words_along(torch.tensor([3.0, 1.0, -1.0, 4.0]), ("a", "b", "c"), torch.eye(3, 4))
    assert found["names"] == ("a", "c")
    assert found["scores"] == pytest.approx([2.0, -2.0])  # 3, 1, -1 less their mean, 1
    assert found["explained"] == pytest.approx(8 / 27)  # along (1, 0, -1): 4^2 / 2, of 9 + 1 + 1 + 16
    assert found["length"] == pytest.approx(27**0.5)


def unit(rows: int, cols: int, seed: int) -> Tensor:
    return F.normalize(torch.randn(rows, cols, generator=torch.Generator().manual_seed(seed)), dim=-1)


def told(vector: Tensor, embeddings: Tensor) -> HeadWords:
    words = tuple(f"word {i}" for i in range(len(embeddings)))
    return HeadWords(**words_along(vector, words, embeddings), unit="part", method="words of a head")


def is_weak(told: HeadWords) -> bool:
    assert ("weak evidence, no more than by chance" in told.to_words()) == (told.explained <= told.chance)
    return told.explained <= told.chance


def test_evidence_is_strong_for_what_was_made_of_few_words_and_weak_for_chance() -> None:
    embeddings = unit(300, 60, seed=1)
    made = told(embeddings[[7, 40]].sum(0) - embeddings[113], embeddings)
    assert set(made.names[:2]) == {"word 7", "word 40"}
    assert made.names[-1] == "word 113"
    assert not is_weak(made)
    assert made.explained > 0.9
    assert made.to_words().startswith("The words of a head: towards word ")
    assert "; away from word 113, " in made.to_words()
    anywhere = [told(one, embeddings) for one in unit(40, 60, seed=2)]
    assert 34 <= sum(map(is_weak, anywhere)) < 40  # one in twenty passes by chance


def test_the_list_has_each_word_once_and_no_more_than_two_thousand() -> None:
    words = word_list()
    assert 1000 < len(words) == len(set(words)) <= 2000
    assert {"red", "circle", "dog", "sitting", "blue sky"} <= set(words)
    assert all(word == " ".join(word.split()) and len(word) < 40 for word in words)


# --- the question


class Tower:
    """Unit vectors by the letters of a sentence."""

    scale, bias, sigmoid = 10.0, 0.0, False

    def __init__(self) -> None:
        self.read: list[str] = []
        self.tokenizer = SimpleNamespace(unknown_words=lambda _word: [])

    def encode(self, sentences: Any, _templates: Any = ("{}",)) -> Tensor:
        self.read += sentences
        return torch.cat([unit(1, 200, seed=sum(map(ord, one))) for one in sentences])


def loaded() -> LoadedModel:
    """The bundled model, with its head as a projection."""
    mini = vv.load("mini")
    config = replace(mini.config, projection=True)
    mini.model.config = config
    return replace(mini, config=config, labels=None, output=None, text=Tower())


def test_asked_by_name_a_head_has_its_words() -> None:
    model = loaded()
    found = vv.run(model, "lion", "head_words", layer=-1, head=4)
    words = word_list()
    assert found.method == "words that head 4 of layer 5 writes"
    assert model.text.read == list(words)
    assert len(set(found.names) & set(words)) == 2 * MOST
    assert (np.diff(found.scores) <= 0).all()
    first, last = found.names[0], found.names[-1]
    asked = vv.run(model, "lion", "decomposition", target=(first, last))
    assert asked.heads[5, 4] / 10 == pytest.approx(found.scores[0] - found.scores[-1], rel=1e-4)


def test_only_words_that_the_model_knows_are_named() -> None:
    found = vv.run("mini-clip", "shapes", "head_words", layer=3, head=0)
    knows = vv.load("mini-clip").text.tokenizer
    known = [word for word in word_list() if not knows.unknown_words(word)]
    assert {"square", "blue", "circle"} < set(known) < set(word_list())
    assert not {"dog", "navy blue"} & set(known)
    assert set(found.names) < set(known)
    assert found.note.endswith(f"The model knows {len(known)} of the {len(word_list()):,} words.")
    knows_none = loaded()
    knows_none.text.tokenizer.unknown_words = lambda word: [word]
    with pytest.raises(ParameterError, match="knows none of the"):
        vv.run(knows_none, "lion", "head_words")


def test_what_cannot_be_asked_is_refused_in_a_sentence() -> None:
    with pytest.raises(ParameterError, match="'mini' has no text tower"):
        vv.run("mini", "lion", "head_words")
    with pytest.raises(ParameterError, match="text tower of a module that is passed is not known"):
        vv.run(vv.load("mini").model, torch.zeros(1, 3, 128, 128), "head_words")
    with pytest.raises(ParameterError, match="Head 6 does not exist"):
        vv.run(loaded(), "lion", "head_words", head=6)
    with pytest.raises(ParameterError, match="Head 2 of layer 3 writes nothing here"):
        vv.run(loaded(), "lion", "head_words", layer=3, head=2, edits={"heads": {(3, 2): 0.0}})
    other = loaded()
    other.model.blocks[3].mlp.__class__ = type("Own", (type(other.model.blocks[3].mlp),), {})
    with pytest.raises(ParameterError, match="all modules are vit_viz's own"):
        vv.run(other, "lion", "head_words")
    with pytest.raises(Cancelled):
        vv.run(loaded(), "lion", "head_words", cancelled=lambda: True)
