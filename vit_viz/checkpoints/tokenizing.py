"""Tokens of sentences, by the tokenizer that came with a checkpoint: bounded, since it may be anybody's."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_viz.checkpoints.local import TOKENIZER_FILES, read_json
from vit_viz.errors import CheckpointError
from vit_viz.model import TextConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
CLEANINGS: Mapping[str | None, Callable[[str], str]] = {
    "canonicalize": lambda text: _spaced(text.lower().translate(_NO_PUNCTUATION)),
    "lower": lambda text: _spaced(text.lower()),
    "whitespace": lambda text: _spaced(text),
    None: lambda text: text,
}
"""What is done to a sentence before its tokenizer sees it, in the words of open_clip; None leaves it to the kind of tokenizer.

As `get_clean_fn` of open_clip, but for repairing the text's encoding, and as SiglipTokenizer of transformers.
"""

_MAX_GROWTH = 1000  # characters that the steps of a tokenizer may make of one
_MAX_CHARSMAP = 1_000_000  # characters of a sentencepiece table; that of SigLIP and T5 has 0.3 million


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Turn what the tokenizers library raises into one sentence; over a damaged tokenizer it may panic, which is no Exception."""
    try:
        yield
    except CheckpointError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CheckpointError(
            f"The tokenizer cannot be used: {' '.join(str(error).split())[:120]}."
        ) from error


@dataclass(frozen=True)
class SentenceTokenizer:
    """Makes the tokens of a sentence as its tower was trained to read them.

    Args:
        tokenizer: with its start and end tokens, cut to the tower's context so that they stay; padded to it where all places see
            each other.
        config: of the tower.
        cleaning: what comes before it, of `CLEANINGS`.
    """

    tokenizer: Tokenizer
    config: TextConfig
    cleaning: str | None

    @_errors_in_words()
    def ids(self, text: str) -> list[int]:
        """The numbers of a sentence's tokens, up to the one that is read: the first end token, or the last place of all."""
        ids: list[int] = self.tokenizer.encode(CLEANINGS[self.cleaning](text)).ids
        ends: list[int] = self.tokenizer.encode("").ids[-1:] if self.config.causal else []
        if not ids or max(ids) >= self.config.vocabulary or (self.config.causal and not ends):
            raise CheckpointError(
                f"The tokenizer does not belong to this text tower, which knows {self.config.vocabulary:,} tokens and reads "
                f"{'the end token' if self.config.causal else 'the last'}: lay the one of this model beside its weights."
            )
        return ids[: ids.index(ends[0]) + 1] if ends else ids

    @_errors_in_words()
    def unknown_words(self, text: str) -> list[str]:
        """Words of a sentence that there is no token for, and that are all read as one and the same."""
        text, unknown = CLEANINGS[self.cleaning](text), getattr(self.tokenizer.model, "unk_token", None)
        read = self.tokenizer.encode(text)
        parts = zip(read.tokens, read.offsets, strict=True)
        words = [text[slice(*ends)] for token, ends in parts if token == unknown]
        return [word for word in words if any(map(str.isalnum, word))]


def find_tokenizer(
    folder: Path, settings: Mapping[str, Any], config: TextConfig, cleaning: str | None, *, name: str
) -> Callable[[], SentenceTokenizer]:
    """What reads the tokenizer of a text tower: from the file's own metadata, or from the files beside it.

    Args:
        folder: where the weights are.
        settings: metadata of the weights, in which "tokenizer" is the text of a tokenizer.json.
        config: of the tower.
        cleaning: as its configuration says, of `CLEANINGS`.
        name: of the model, for messages.

    Raises:
        CheckpointError: there is none.
    """
    if isinstance(own := settings.get("tokenizer"), Mapping):
        return lambda: _ready(own, {}, config, cleaning)
    if (path := folder / TOKENIZER_FILES[0]).exists():
        return lambda: _ready(read_json(path), read_json(folder / TOKENIZER_FILES[1]), config, cleaning)
    raise CheckpointError(
        f"{name!r} has a text tower and no tokenizer: lay the tokenizer.json of its repository on the Hub beside its weights; a "
        "CLIP that open_clip trained takes that of openai/clip-vit-base-patch32."
    )


@_errors_in_words()
def _ready(
    content: Mapping[str, Any], beside: Mapping[str, Any], config: TextConfig, cleaning: str | None
) -> SentenceTokenizer:
    """A tokenizer.json as its tower needs it; tokenizer_config.json beside it says how it pads and ends."""
    from tokenizers import Tokenizer, models, normalizers, processors

    _check_growth(content)
    tokenizer = Tokenizer.from_str(json.dumps(content))
    is_siglip1 = isinstance(tokenizer.model, models.Unigram)
    if cleaning is None and not config.causal:
        if is_siglip1:
            cleaning = "canonicalize"
        else:  # SigLIP 2, whose sentences are in lower case, as Siglip2Tokenizer has it
            steps = [normalizers.Lowercase(), *([tokenizer.normalizer] if tokenizer.normalizer else [])]
            tokenizer.normalizer = normalizers.Sequence(steps)
    end = _text(beside.get("eos_token")) or "<eos>"
    if beside.get("add_eos_token") is True and not tokenizer.encode("").ids and tokenizer.token_to_id(end):
        ends = [(end, tokenizer.token_to_id(end))]
        tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {end}", special_tokens=ends)
    pad = _text(beside.get("pad_token")) or (tokenizer.padding or {}).get("pad_token")
    pad = pad or ("</s>" if is_siglip1 else "<pad>")
    tokenizer.no_padding()
    tokenizer.enable_truncation(config.context)
    if not config.causal:
        number = tokenizer.token_to_id(pad)
        if number is None:
            raise CheckpointError(f"The tokenizer has no token {pad[:40]!r} to fill a sentence up with.")
        side = "left" if beside.get("padding_side") == "left" else "right"
        tokenizer.enable_padding(direction=side, length=config.context, pad_id=number, pad_token=pad)
    return SentenceTokenizer(tokenizer, config, cleaning)


def _text(token: Any) -> str:
    """A token as tokenizer_config.json writes it, as a text or an object; "" for none."""
    token = token.get("content") if isinstance(token, Mapping) else token
    return token if isinstance(token, str) else ""


def _check_growth(content: Mapping[str, Any]) -> None:
    """Refuse a tokenizer whose steps would make many characters of one."""
    growth, waiting = 1, [content.get("normalizer"), content.get("pre_tokenizer")]
    while waiting:
        step = waiting.pop()
        if isinstance(step, list):
            waiting.extend(step)
        if not isinstance(step, Mapping):
            continue
        waiting.extend(step.values())
        put = step.get("content", step.get("prepend", step.get("replacement")))
        growth *= max(len(put), 1) if isinstance(put, str) else 1
        charsmap = step.get("precompiled_charsmap")
        if growth > _MAX_GROWTH or (isinstance(charsmap, str) and len(charsmap) > _MAX_CHARSMAP):
            raise CheckpointError("The tokenizer would make too much of a short text, so it is not used.")


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
