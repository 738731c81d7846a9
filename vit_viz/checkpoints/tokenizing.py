"""Tokens of sentences, by the tokenizer that came with a checkpoint: bounded, since it may be anybody's."""

from __future__ import annotations

import gzip
import json
import re
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from vit_viz.checkpoints.local import MAX_TOKENIZER_BYTES, TOKENIZER_FILES, read_json
from vit_viz.checkpoints.weights import check_regular
from vit_viz.errors import CheckpointError
from vit_viz.model import TextConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Cleaning = Literal["canonicalize", "lower", "whitespace"]
"""What is done to a sentence before its tokenizer sees it, in the words of open_clip: lower case without punctuation, lower case,
or only white space put in order."""

_MERGES = ("merges.txt", "bpe_simple_vocab_16e6.txt.gz")
_START, _END = "<|startoftext|>", "<|endoftext|>"
_MAX_GROWTH = 1000  # characters that the steps of a tokenizer may make of one
_MAX_CHARSMAP = 1_000_000  # characters of a sentencepiece table; that of SigLIP and T5 has 0.3 million
_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


@dataclass(frozen=True)
class SentenceTokenizer:
    """Makes the tokens of a sentence as its tower was trained to read them.

    Args:
        tokenizer: with its start and end tokens, cut to the tower's context so that they stay; padded to it where all places see
            each other.
        config: of the tower.
        cleaning: what comes before it.
    """

    tokenizer: Tokenizer
    config: TextConfig
    cleaning: Cleaning | None

    def ids(self, text: str) -> list[int]:
        """The numbers of a sentence's tokens, up to the one that is read: the first end token, or the last place of all."""
        with _errors_in_words():
            ids: list[int] = self.tokenizer.encode(_cleaned(text, self.cleaning)).ids
            ends: list[int] = self.tokenizer.encode("").ids[-1:] if self.config.causal else []
        if not ids or max(ids) >= self.config.vocabulary or (self.config.causal and not ends):
            raise CheckpointError(
                f"The tokenizer does not belong to this text tower, which knows {self.config.vocabulary:,} tokens and reads "
                f"{'the end token' if self.config.causal else 'the last'}: lay the one of this model beside its weights."
            )
        return ids[: ids.index(ends[0]) + 1] if ends else ids

    def unknown_words(self, text: str) -> list[str]:
        """Words of a sentence that there is no token for, and that are all read as one and the same."""
        text, unknown = _cleaned(text, self.cleaning), getattr(self.tokenizer.model, "unk_token", None)
        with _errors_in_words():
            read = self.tokenizer.encode(text)
        parts = zip(read.tokens, read.offsets, strict=True)
        words = [text[slice(*ends)] for token, ends in parts if token == unknown]
        return [word for word in words if any(map(str.isalnum, word))]


def cleaning_of(name: Any) -> Cleaning | None:
    """The cleaning of that name; None where there is none."""
    if name is not None and name not in get_args(Cleaning):
        raise CheckpointError(
            f"A tokenizer cannot clean its text by {str(name)[:40]!r}; {', '.join(get_args(Cleaning))} are known."
        )
    return name  # type: ignore[no-any-return]


def find_tokenizer(
    folder: Path, settings: Mapping[str, Any], config: TextConfig, cleaning: Cleaning | None, *, name: str
) -> Callable[[], SentenceTokenizer]:
    """What reads the tokenizer of a text tower: from the file's own metadata, or from the files beside it.

    Args:
        folder: where the weights are.
        settings: metadata of the weights, in which "tokenizer" is the text of a tokenizer.json.
        config: of the tower.
        cleaning: as its configuration says; None leaves it to the kind of tokenizer.
        name: of the model, for messages.

    Raises:
        CheckpointError: there is none; the message says which file is missing.
    """
    if isinstance(own := settings.get("tokenizer"), Mapping):
        return lambda: _ready(own, {}, config, cleaning)
    if (path := folder / TOKENIZER_FILES[0]).exists():
        return lambda: _ready(read_json(path), read_json(folder / TOKENIZER_FILES[1]), config, cleaning)
    merges = next((folder / file for file in _MERGES if (folder / file).exists()), None)
    if merges is not None and config.causal:
        return lambda: SentenceTokenizer(
            _with_limits(_clips(merges, config), config, "", "right"), config, cleaning
        )
    if (folder / "spiece.model").exists():
        raise CheckpointError(
            f"The tokenizer of {name!r} lies beside it as spiece.model, which is not read here: lay the tokenizer.json of its "
            "repository on the Hub there, too."
        )
    wanted = "tokenizer.json, or merges.txt of CLIP," if config.causal else "tokenizer.json"
    raise CheckpointError(
        f"{name!r} has a text tower and no tokenizer: lay the {wanted} of this model beside its weights."
    )


def _cleaned(text: str, cleaning: Cleaning | None) -> str:
    """As `get_clean_fn` of open_clip, but for repairing the text's encoding, and as SiglipTokenizer of transformers."""
    if cleaning == "canonicalize":
        text = text.lower().translate(str.maketrans("", "", string.punctuation))
    elif cleaning == "lower":
        text = text.lower()
    return text if cleaning is None else re.sub(r"\s+", " ", text).strip()


def _ready(
    content: Mapping[str, Any], beside: Mapping[str, Any], config: TextConfig, cleaning: Cleaning | None
) -> SentenceTokenizer:
    """A tokenizer.json as its tower needs it; tokenizer_config.json beside it says how it pads and ends."""
    from tokenizers import Tokenizer, normalizers, processors

    _check_growth(content)
    with _errors_in_words():
        tokenizer = Tokenizer.from_str(json.dumps(content))
    is_siglip1 = _mapping(content.get("model")).get("type") == "Unigram"
    if cleaning is None and not config.causal and is_siglip1:
        cleaning = "canonicalize"
    elif (
        cleaning is None and not config.causal
    ):  # SigLIP 2, whose sentences are in lower case, as Siglip2Tokenizer has it
        steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
    end = _text(beside.get("eos_token")) or "<eos>"
    if beside.get("add_eos_token") is True and not tokenizer.encode("").ids and tokenizer.token_to_id(end):
        ends = [(end, tokenizer.token_to_id(end))]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=ends)
    pad = _text(beside.get("pad_token")) or _text(_mapping(content.get("padding")).get("pad_token"))
    side = "left" if beside.get("padding_side") == "left" else "right"
    limited = _with_limits(tokenizer, config, pad or ("</s>" if is_siglip1 else "<pad>"), side)
    return SentenceTokenizer(limited, config, cleaning)


def _with_limits(tokenizer: Tokenizer, config: TextConfig, pad: str, side: str) -> Tokenizer:
    """Cut to the context, with its start and end; where all places see each other, filled up to the context, too."""
    tokenizer.no_padding()
    with _errors_in_words():
        tokenizer.enable_truncation(config.context)
    if not config.causal:
        number = tokenizer.token_to_id(pad)
        if number is None:
            raise CheckpointError(f"The tokenizer has no token {pad[:40]!r} to fill a sentence up with.")
        tokenizer.enable_padding(direction=side, length=config.context, pad_id=number, pad_token=pad)
    return tokenizer


def _text(token: Any) -> str:
    """A token as tokenizer_config.json writes it, as a text or an object; "" for none."""
    token = _mapping(token).get("content", token)
    return token if isinstance(token, str) else ""


def _clips(path: Path, config: TextConfig) -> Tokenizer:
    """CLIP's tokenizer from its merges: pairs of bytes, the end of a word marked, start and end tokens last.

    Source: CLIPTokenizer of transformers, simple_tokenizer.py of OpenAI.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    check_regular(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            lines = file.read(MAX_TOKENIZER_BYTES).decode("utf-8").split("\n")
        pairs = [(one, two) for one, two in map(str.split, lines[1:-1])]  # the first is a title
    except (OSError, EOFError, ValueError) as error:
        raise CheckpointError(f"{path.name} cannot be read: it is damaged.") from error
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = pairs[: max(config.vocabulary - 2 * len(letters) - 2, 0)]
    words = [*letters, *(f"{one}</w>" for one in letters), *("".join(pair) for pair in pairs), _START, _END]
    numbers = {word: number for number, word in enumerate(words)}
    with _errors_in_words():
        bpe: Any = models.BPE(numbers, pairs, unk_token=_END, end_of_word_suffix="</w>")
        tokenizer = Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{_START} $A {_END}", special_tokens=[(token, numbers[token]) for token in (_START, _END)]
    )
    tokenizer.add_special_tokens([_START, _END])
    return tokenizer


def _check_growth(content: Any) -> None:
    """Refuse a tokenizer whose steps would make many characters of one."""
    growth = 1
    for step in _parts(content.get("normalizer"), content.get("pre_tokenizer")):
        put = step.get("content", step.get("prepend", step.get("replacement")))
        growth *= max(len(put), 1) if isinstance(put, str) else 1
        charsmap = step.get("precompiled_charsmap")
        if growth > _MAX_GROWTH or (isinstance(charsmap, str) and len(charsmap) > _MAX_CHARSMAP):
            raise CheckpointError("The tokenizer would make too much of a short text, so it is not used.")


def _parts(*values: Any) -> Iterator[Mapping[str, Any]]:
    """The objects in JSON values, at any depth."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            yield value
        if isinstance(value, Mapping | list):
            waiting.extend(value.values() if isinstance(value, Mapping) else value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Turn what the tokenizers library raises into one sentence; over a damaged tokenizer it may panic, which is no Exception."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CheckpointError(
            f"The tokenizer cannot be used: {' '.join(str(error).split())[:120]}."
        ) from error
