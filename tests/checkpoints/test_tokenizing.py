"""Tokens of sentences are those of the models' own tokenizers, on texts of many kinds; a stranger's tokenizer is bounded."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from vit_viz.checkpoints.local import MAX_TOKENIZER_BYTES
from vit_viz.checkpoints.tokenizing import SentenceTokenizer, find_tokenizer
from vit_viz.errors import CheckpointError
from vit_viz.model.text import TextConfig

transformers = pytest.importorskip("transformers", reason="transformers is the oracle of these tests")

CONTEXT = 13
TEXTS = [
    "a photo of a dog",
    "A Photo of TWO Red circles.",
    "  white \t space \n everywhere  ",
    "it's the dog's; they'll, we've!",
    "naïve café, Ünïcödé, Å and Å",
    "привет, мир: красный круг",
    "שלום עולם",
    "مرحبا \u200f بالعالم",
    "你好 世界",
    "👩\u200d🚀 and 🐕🐕",
    "2024 x 77.5 = ?",
    "snake_case, kebab-case, {braces} <b>tags</b> &amp;",
    "ΟΔΟΣ İstanbul ﬁne ½",
    "a photo of a dog " * 40,
    "supercalifragilisticexpialidocious" * 9,
    "x" * 2000,
    "\u0000\u0007control\u202e",
    "",
    "   ",
    "…!?",
]
LINES = [
    "a photo of the small red circle and the large blue square",
    "two dogs and three cats on a green field",
    "the dog's café is naïve",
    "привет мир",
    "שלום",
    "a photo of 12 circles",
]


def config(vocabulary: int, *, causal: bool = True) -> TextConfig:
    return TextConfig(
        vocabulary=vocabulary, context=CONTEXT, width=8, depth=1, num_heads=2, embed_dim=3, causal=causal
    )


def ours(folder: Path, made: TextConfig, **settings: Any) -> SentenceTokenizer:
    return find_tokenizer(folder, settings, made, None, name="tiny")()


Merges = tuple[tuple[str, str], ...]


@cache
def few_merges() -> Merges:
    """Of a byte-level BPE with an end of words, learnt from a few lines."""
    bpe: Any = models.BPE(end_of_word_suffix="</w>")
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=640, end_of_word_suffix="</w>", initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(LINES * 5, trainer)
    found = [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
    assert len(found) > 60
    return tuple((one, two) for one, two in found)


@cache
def real_merges() -> Merges:
    """Those of CLIP, as many as its vocabulary has."""
    open_clip = pytest.importorskip("open_clip", reason="open_clip brings the merges of CLIP")
    source = Path(open_clip.__file__).with_name("bpe_simple_vocab_16e6.txt.gz")
    lines = gzip.decompress(source.read_bytes()).decode().split("\n")[1 : 49_152 - 256 - 2 + 1]
    return tuple((one, two) for one, two in map(str.split, lines))


def clip_tokenizer(merges: Merges) -> Any:
    """CLIP's tokenizer as transformers has it."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = [*letters, *(f"{one}</w>" for one in letters), *("".join(pair) for pair in merges)]
    words += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {word: number for number, word in enumerate(words)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=list(merges))


def up_to_the_end(ids: list[int], end: int) -> list[int]:
    return ids[: ids.index(end) + 1]


@pytest.mark.parametrize("merges", [few_merges, real_merges])
def test_tokens_of_clip_are_those_of_transformers(tmp_path: Path, merges: Callable[[], Merges]) -> None:
    theirs = clip_tokenizer(merges())
    theirs.save_pretrained(tmp_path)
    tokenizer = ours(tmp_path, config(len(theirs)))
    for text in [*TEXTS, "ends <|endoftext|> early"]:
        expected = theirs(text, truncation=True, max_length=CONTEXT).input_ids
        assert tokenizer.ids(text) == up_to_the_end(expected, theirs.eos_token_id), text
        assert len(tokenizer.ids(text)) <= CONTEXT
    assert [tokenizer.unknown_words(text) for text in TEXTS] == [[]] * len(TEXTS)  # bytes make every word


def test_tokens_of_clip_are_those_of_open_clip_by_its_own_merges(tmp_path: Path) -> None:
    open_clip = pytest.importorskip("open_clip", reason="open_clip is the oracle of this test")
    clip_tokenizer(real_merges()).save_pretrained(tmp_path)
    theirs = open_clip.SimpleTokenizer(context_length=CONTEXT)
    tokenizer = ours(tmp_path, config(49_408))
    dog = [49_406, 320, 1125, 539, 320, 1929, 49_407]
    assert tokenizer.ids("a photo of a dog") == dog
    for text in TEXTS:
        if (
            "&amp;" in text or "ﬁ" in text or "\u0000" in text
        ):  # which ftfy and html.unescape make another text of
            continue
        (expected,) = theirs([text]).tolist()
        assert tokenizer.ids(text) == up_to_the_end(expected, theirs.eot_token_id), text


@pytest.fixture(scope="module")
def siglip(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """SigLIP's tokenizer as transformers has it, of few pieces, in a folder with the tokenizer.json that says the same."""
    sentencepiece = pytest.importorskip(
        "sentencepiece", reason="sentencepiece is what SigLIP's tokenizer is made of"
    )
    from transformers.convert_slow_tokenizer import SpmConverter

    folder = tmp_path_factory.mktemp("siglip")
    (folder / "lines.txt").write_text("\n".join(LINES * 40))
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "lines.txt"),
        model_prefix=str(folder / "spiece"),
        vocab_size=90,
        model_type="unigram",
        normalization_rule_name="nmt_nfkc",
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    theirs = transformers.SiglipTokenizer(str(folder / "spiece.model"))
    converter: Any = SpmConverter
    fast = converter(theirs).converted()
    fast.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast.save(str(folder / "tokenizer.json"))
    return folder, theirs


def test_tokens_of_siglip_are_those_of_transformers(siglip: Any) -> None:
    folder, theirs = siglip
    tokenizer = ours(folder, config(len(theirs), causal=False))
    for text in TEXTS:
        expected = theirs(text, truncation=True, padding="max_length", max_length=CONTEXT).input_ids
        assert tokenizer.ids(text) == expected, text


@pytest.mark.parametrize("lowers", [True, False])
@pytest.mark.parametrize("ends", ["by tokenizer.json", "by tokenizer_config.json"])
def test_tokens_of_siglip_2_are_those_of_transformers(tmp_path: Path, lowers: bool, ends: str) -> None:
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces += [*"abcdefghijklmnopqrstuvwxyz▁é", "▁d", "do", "og", "▁do", "▁dog", "ph", "▁photo"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    rules = [("▁", "d"), ("d", "o"), ("o", "g"), ("▁d", "o"), ("▁do", "g")]
    theirs = transformers.Siglip2Tokenizer(vocab=vocabulary, merges=rules, padding_side="right")
    theirs.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", 1)]
    )
    theirs.save_pretrained(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    if not lowers:  # as Gemma's own file, whose class does not know lower case
        content["normalizer"] = content["normalizer"]["normalizers"][-1]
        assert content["normalizer"]["type"] == "Replace"
    if ends == "by tokenizer_config.json":
        content["post_processor"] = None
        beside = json.loads((tmp_path / "tokenizer_config.json").read_text())
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({**beside, "add_eos_token": True}))
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = ours(tmp_path, config(len(theirs), causal=False))
    for text in TEXTS:
        expected = theirs(text, truncation=True, padding="max_length", max_length=CONTEXT).input_ids
        assert tokenizer.ids(text) == expected, text


def test_padding_is_on_the_side_and_with_the_token_that_the_files_say(siglip: Any, tmp_path: Path) -> None:
    folder, theirs = siglip
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    beside = {"pad_token": {"content": "<unk>"}, "padding_side": "left"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(beside))
    ids = ours(tmp_path, config(len(theirs), causal=False)).ids("dog")
    spoken = theirs("dog").input_ids
    assert ids == [2] * (CONTEXT - len(spoken)) + spoken


# --- files that are not there, or that nobody should trust


def message(folder: Path, made: TextConfig, text: str = "a dog") -> str:
    with pytest.raises(CheckpointError) as caught:
        ours(folder, made).ids(text)
    return str(caught.value)


@pytest.mark.parametrize("beside", ["", "merges.txt", "bpe_simple_vocab_16e6.txt.gz", "spiece.model"])
@pytest.mark.parametrize("causal", [False, True])
def test_a_missing_tokenizer_names_the_file_to_lay_beside(tmp_path: Path, beside: str, causal: bool) -> None:
    if beside:
        (tmp_path / beside).write_text("#version: 0.2\na b\n")
    expected = "lay the tokenizer.json of its repository on the Hub beside its weights"
    assert expected in message(tmp_path, config(9, causal=causal))


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    clip_tokenizer(few_merges()).save_pretrained(tmp_path)
    assert "does not belong to this text tower, which knows 300 tokens" in message(tmp_path, config(300))


def test_a_tokenizer_without_an_end_token_cannot_be_read_at_it(tmp_path: Path) -> None:
    theirs = clip_tokenizer(few_merges())
    theirs.backend_tokenizer.post_processor = None
    theirs.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert "reads the end token" in message(tmp_path, config(len(theirs)))


def word_level(tmp_path: Path, **changes: Any) -> None:
    """A tokenizer.json of one token a word, with other steps."""
    words: Any = models.WordLevel({"a": 0, "</s>": 1}, unk_token="a")
    content = json.loads(Tokenizer(words).to_str()) | changes
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))


def test_steps_that_make_much_of_a_short_text_are_refused(tmp_path: Path) -> None:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"}
    word_level(tmp_path, normalizer={"type": "Sequence", "normalizers": [step] * 3})
    message_of_three = message(tmp_path, config(2))
    assert (
        "would make too much" not in message_of_three
    )  # a thousand is allowed: the end token is what is missing
    word_level(tmp_path, normalizer={"type": "Sequence", "normalizers": [step] * 4})
    assert "would make too much of a short text" in message(tmp_path, config(2))
    word_level(tmp_path, normalizer={"type": "Precompiled", "precompiled_charsmap": "A" * 1_000_001})
    assert "would make too much of a short text" in message(tmp_path, config(2))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", "is not JSON"),
        ("[1]", "must hold a JSON object"),
        ("{}", "The tokenizer cannot be used"),
        ('{"model": {"type": "Invention"}}', "The tokenizer cannot be used"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_damaged_tokenizer_is_refused_in_one_sentence(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    assert expected in message(tmp_path, config(9))


def test_a_tokenizer_that_is_larger_than_any_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "tokenizer.json").open("wb") as file:
        file.truncate(MAX_TOKENIZER_BYTES + 1)  # sparse: no bytes are written
    assert "larger than any tokenizer" in message(tmp_path, config(9))


def test_a_tower_that_fills_up_needs_a_token_for_it(tmp_path: Path) -> None:
    word_level(tmp_path)
    assert "no token '<pad>' to fill a sentence up with" in message(tmp_path, config(2, causal=False))
