"""Text towers: our own format, and those of CLIP and SigLIP under each name, against their authors' code."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor

from tests.comparing import assert_same
from tests.model.inside import randomise
from vit_viz.checkpoints import LoadedModel, load
from vit_viz.checkpoints.weights import Weights, read_weights
from vit_viz.errors import CheckpointError, ParameterError
from vit_viz.model import SentenceHead, VisionTransformer, ViTConfig
from vit_viz.model.text import TextConfig, TextTransformer

pytestmark = pytest.mark.numbers

WORDS = ["<start>", "<end>", "<pad>", "<unk>", "a", "photo", "of", "red", "blue", "circle", "square", "."]
PICTURE = ViTConfig(
    img_size=(24, 36),
    patch_size=(6, 6),
    embed_dim=40,
    depth=2,
    num_heads=5,
    num_classes=14,
    head_bias=False,
    projection=True,
)
TEXT = {
    "vocabulary": 13,
    "context": 9,
    "width": 24,
    "depth": 3,
    "num_heads": 4,
    "embed_dim": 14,
    "mlp_hidden": 56,
}


def word_tokenizer() -> Tokenizer:
    """One token a word, between start and end."""
    words: Any = models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>")
    tokenizer = Tokenizer(words)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<start>", "<end>", "<pad>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", 0), ("<end>", 1)]
    )
    return tokenizer


def own_file(path: Path, *, bias: float | None = None, **changes: Any) -> TextTransformer:
    """A file of our own format with both towers; returns its text tower."""
    declared = TEXT | changes
    text = TextTransformer(TextConfig(**declared))
    randomise(text)
    state: dict[str, Tensor] = dict(randomise(VisionTransformer(PICTURE)).state_dict())
    state |= {f"text.{name}": tensor for name, tensor in text.state_dict().items()}
    state["logit_scale"] = torch.tensor(2.3)
    state |= {} if bias is None else {"logit_bias": torch.tensor(bias)}
    settings = {"config": PICTURE.to_dict(), "text": {**declared, "sigmoid": bias is not None, "lower": True}}
    metadata = {name: json.dumps(value) for name, value in settings.items()}
    save_file(state, path, metadata | {"tokenizer": word_tokenizer().to_str()})
    return text.eval()


def by_hand(text: TextTransformer, *tokens: int) -> Tensor:
    """The unit vector of one sentence, read at its last token."""
    with torch.no_grad():
        embedding = text(torch.tensor([tokens]), torch.tensor([len(tokens) - 1]))
    return F.normalize(embedding, dim=-1)[0]


def test_our_own_format_reads_sentences(tmp_path: Path) -> None:
    text = own_file(tmp_path / "both.safetensors")
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    assert (loaded.config, loaded.text_missing) == (PICTURE, "")
    assert loaded.text is not None
    assert loaded.text.scale == pytest.approx(9.974182, rel=1e-6)
    assert (loaded.text.bias, loaded.text.sigmoid) == (0.0, False)
    embeddings = loaded.encode_text(["a red circle", "Blue  SQUARE"])
    assert_same(embeddings[0], by_hand(text, 0, 4, 7, 9, 1), relative=1e-5)
    assert_same(embeddings[1], by_hand(text, 0, 8, 10, 1), relative=1e-5)


def test_a_sigmoid_model_fills_each_sentence_up_and_reads_the_last_place(tmp_path: Path) -> None:
    text = own_file(tmp_path / "both.safetensors", bias=-7.5, causal=False, head_bias=True)
    tower = load(tmp_path / "both.safetensors", device="cpu").text
    assert tower is not None
    assert (tower.bias, tower.sigmoid) == (-7.5, True)
    assert_same(tower.encode(["red"])[0], by_hand(text, 0, 7, 1, *[2] * 6), relative=1e-5)


def test_templates_are_averaged_as_unit_vectors(tmp_path: Path) -> None:
    text = own_file(tmp_path / "both.safetensors")
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    mean = by_hand(text, 0, 4, 5, 6, 7, 11, 1) + by_hand(text, 0, 7, 7, 1)
    (embedding,) = loaded.encode_text(["red"], ["a photo of {}.", "{} red"])
    assert_same(embedding, F.normalize(mean, dim=0), relative=1e-5)


def test_a_sentence_that_is_too_long_keeps_its_end(tmp_path: Path) -> None:
    text = own_file(tmp_path / "both.safetensors")
    (embedding,) = load(tmp_path / "both.safetensors", device="cpu").encode_text(["red " * 500])
    assert_same(embedding, by_hand(text, 0, *[7] * 7, 1), relative=1e-5)


def test_the_same_sentences_in_one_call_and_in_many_are_the_same(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors")
    sentences = [" ".join(WORDS[4 + (i + j) % 8] for j in range(i % 5)) for i in range(150)]
    together = load(tmp_path / "both.safetensors", device="cpu").encode_text(sentences)
    alone = load(tmp_path / "both.safetensors", device="cpu")
    assert_same(together, torch.cat([alone.encode_text([one]) for one in sentences]), relative=1e-5)


def test_what_a_caller_does_to_an_embedding_stays_with_the_caller(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors")
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    first = loaded.encode_text(["red"])
    before = first.clone()
    first.zero_()
    assert_same(loaded.encode_text(["red", "red"])[1:], before)


def test_a_kept_sentence_is_not_computed_again_and_another_template_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_file(tmp_path / "both.safetensors")
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    assert loaded.text is not None
    rows: list[int] = []
    forward = TextTransformer.forward

    def counted(self: TextTransformer, tokens: Tensor, ends: Tensor) -> Tensor:
        rows.append(len(tokens))
        return forward(self, tokens, ends)

    monkeypatch.setattr(TextTransformer, "forward", counted)
    loaded.encode_text(["red", "blue", "red"])
    loaded.encode_text(["blue"])
    loaded.encode_text(["red", "square"])
    loaded.encode_text(["red"], ["a {}"])
    assert rows == [2, 1, 1]


def test_threads_share_one_tower(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors")
    tower = load(tmp_path / "both.safetensors", device="cpu").text
    assert tower is not None
    start, seen = threading.Barrier(4), []

    def ask() -> None:
        start.wait()
        seen.append((tower.model, tower.encode(["red", "blue"])))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(model) for model, _ in seen}) == 1
    for _, embeddings in seen:
        assert_same(embeddings, seen[0][1])


def test_the_tower_is_read_when_the_first_sentence_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "both.safetensors"
    own_file(path)
    loaded = load(path, device="cpu")
    own_file(path)  # another training run wrote over it
    with pytest.raises(CheckpointError, match=r"'both' has changed since it was loaded"):
        loaded.encode_text(["red"])


def test_nothing_of_the_file_is_kept_until_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_file(tmp_path / "both.safetensors")
    read: list[weakref.ref[Weights]] = []

    def noted(path: Path, *, max_numbers: int) -> Weights:
        weights = read_weights(path, max_numbers=max_numbers)
        read.append(weakref.ref(weights))
        return weights

    monkeypatch.setattr(import_module("vit_viz.checkpoints.load"), "read_weights", noted)
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    gc.collect()
    assert loaded.text is not None
    assert [one() for one in read] == [None]


def test_a_copy_on_another_device_has_its_own_tower(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors")
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    copy = loaded.copied_to(torch.device("cpu"))
    assert copy.text is not None
    assert loaded.text is not None
    assert copy.text.model is not loaded.text.model
    assert_same(copy.encode_text(["red"]), loaded.encode_text(["red"]))


def test_a_sentence_head_scores_by_the_towers_numbers(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors", bias=-7.5)
    loaded = load(tmp_path / "both.safetensors", device="cpu")
    assert loaded.text is not None
    directions = loaded.encode_text(["red", "blue circle", "a"])
    head = SentenceHead(loaded.model.head, directions, loaded.text.scale, loaded.text.bias)
    pooled = torch.randn(2, 40)
    cosines = F.cosine_similarity(loaded.model.head(pooled)[:, None], directions[None], dim=-1)
    assert_same(head(pooled), 9.974182 * cosines - 7.5, relative=1e-5)


def dino_txt(folder: Path) -> Path:
    """A file with the names of DINOv2 and DINOv3 with a text tower, whose text side is not read here."""
    vision = VisionTransformer(
        ViTConfig(img_size=24, patch_size=6, embed_dim=64, depth=2, num_heads=1, num_classes=0)
    )
    state = {f"visual_model.backbone.{name}": one for name, one in randomise(vision).state_dict().items()}
    state |= {f"visual_model.head.ln_final.{kind}": torch.ones(64) for kind in ("weight", "bias")}
    state |= {
        "visual_model.head.linear_projection.weight": torch.ones(14, 128),
        "text_model.backbone.token_embedding.weight": torch.ones(13, 24),
        "text_model.backbone.positional_embedding": torch.ones(9, 24),
        "text_model.head.linear_projection.weight": torch.ones(14, 24),
        "logit_scale": torch.tensor(2.3),
    }
    save_file(state, folder / "dinotxt.safetensors")
    return folder / "dinotxt.safetensors"


@pytest.mark.parametrize("name", ["mini", "dinotxt"])
def test_a_model_without_a_text_tower_that_is_read_says_what_to_load(tmp_path: Path, name: str) -> None:
    loaded = load("mini" if name == "mini" else dino_txt(tmp_path), device="cpu")
    assert loaded.text is None
    with pytest.raises(
        CheckpointError,
        match=rf"'{name}' has no text tower that is read here.*load a CLIP or SigLIP with both towers",
    ):
        loaded.encode_text(["a dog"])


@pytest.mark.parametrize(
    ("sentences", "templates", "message"),
    [
        ("a dog", ["{}"], "lists of one or more texts"),
        ([], ["{}"], "lists of one or more texts"),
        (["a"], "a {}", "lists of one or more texts"),
        (["a"], [], "lists of one or more texts"),
        (["a"], ["{}", "a photo"], r"has \{\} once.*not 'a photo'"),
    ],
)
def test_what_is_no_list_of_sentences_is_refused(
    tmp_path: Path, sentences: Any, templates: Any, message: str
) -> None:
    own_file(tmp_path / "both.safetensors")
    with pytest.raises(ParameterError, match=message):
        load(tmp_path / "both.safetensors", device="cpu").encode_text(sentences, templates)


def refusal(path: Path) -> str:
    """Why a file's pictures are seen and its sentences are not."""
    loaded = load(path, device="cpu")
    assert isinstance(loaded, LoadedModel)
    assert loaded.text is None
    with torch.no_grad():
        assert loaded.model(torch.randn(1, 3, 24, 36)).shape == (1, 14)
    return loaded.text_missing


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("logit_scale", None, "its logit_scale is missing or no number"),
        ("logit_scale", torch.ones(2), "its logit_scale is missing or no number"),
        ("logit_scale", torch.tensor(float("nan")), "out of range"),
        ("logit_scale", torch.tensor(1000.0), "out of range"),
        ("logit_bias", torch.tensor(float("inf")), "out of range"),
    ],
)
def test_a_text_tower_without_a_sound_scale_is_left_out(
    tmp_path: Path, name: str, tensor: Tensor | None, message: str
) -> None:
    path = tmp_path / "both.safetensors"
    own_file(path)
    changed(path, {name: tensor})
    assert message in refusal(path)


def changed(path: Path, tensors: dict[str, Tensor | None], **metadata: Any) -> None:
    """The file again with other tensors, None for those that go, and other metadata."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        before = dict(file.metadata())
    state = {name: one for name, one in (load_file(path) | tensors).items() if one is not None}
    after = before | {name: json.dumps(value) for name, value in metadata.items()}
    save_file(state, path, after)


def test_sentences_of_another_size_than_pictures_are_left_out(tmp_path: Path) -> None:
    own_file(tmp_path / "both.safetensors", embed_dim=15)
    assert "their 15 numbers are compared" in refusal(tmp_path / "both.safetensors")


def test_a_description_out_of_bounds_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "both.safetensors"
    own_file(path)
    changed(path, {}, text={**TEXT, "context": 10**9})
    assert "context of a text tower lies between" in refusal(path)


@pytest.mark.parametrize("text", ["", {}, {**TEXT, "dropout": 0.1}])
def test_a_description_that_is_none_is_left_out(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "both.safetensors"
    own_file(path)
    changed(path, {}, text=text)
    assert "none that is known here has such a configuration" in refusal(path)


def test_parameters_that_do_not_fit_the_description_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "both.safetensors"
    own_file(path)
    changed(path, {"text.blocks.1.norm1.weight": None})
    assert "1 missing: blocks.1.norm1.weight" in refusal(path)


def test_numbers_that_are_not_finite_are_refused_with_the_first_sentence(tmp_path: Path) -> None:
    path = tmp_path / "both.safetensors"
    own_file(path)
    changed(path, {"text.norm.weight": torch.full((24,), torch.nan)})
    with pytest.raises(CheckpointError, match=r"norm.weight holds numbers that are not finite"):
        load(path, device="cpu").encode_text(["red"])
