"""Which words a head writes: its part of the picture's embedding, in the space that a text tower shares with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.direct_parts import written
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.answer import Answer, Provenance, Table, axes, checked_array
from vit_viz.bundled import bundled_file
from vit_viz.capture import are_ours, is_edited, surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.checkpoints import LoadedModel
from vit_viz.errors import ParameterError
from vit_viz.indices import checked_index, layer_index
from vit_viz.lazy import Tensor, torch
from vit_viz.model.submodules import submodules_of
from vit_viz.results import Ranking
from vit_viz.sentences import percent

MOST = 5
"""Words that are named at each end."""

_BATCH = 32  # words that the text tower reads at a time
_DRAWS, _RARE = 400, 0.95  # of what is compared with chance


@dataclass(frozen=True, eq=False, repr=False)
class HeadWords(Answer):
    """Words along which a head writes into the picture's embedding, and how much of what it wrote they explain.

    Args:
        values: part of the picture's cosine with each word that the head writes, less the mean over all words, [words]; the
            largest first.
        words: in the order of `values`.
        explained: share of the squared length of what the head wrote that lies in the span of the `MOST` first and last words,
            in [0, 1], each word less the mean of all.
        random_words: the same of as many words drawn at random, the mean.
        chance: what the words named in the same way of a vector that points anywhere explain, at most in 95% of draws.
        length: of what the head wrote, in lengths of the whole embedding.
        evidence: whether the words explain more than chance does, in a sentence; it follows from the numbers, whatever is given.
    """

    values: NDArray[np.float32]
    words: tuple[str, ...]
    explained: float
    random_words: float
    chance: float
    length: float
    layer: int
    head: int
    provenance: Provenance = field(default_factory=Provenance)
    note: str = ""
    evidence: str = ""

    AXES = axes(values=("word",))

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", checked_array(self.values, 1, "Words of a head"))
        object.__setattr__(self, "words", tuple(self.words))
        judged = "weak evidence, no more than by chance" if self.is_weak else "more than by chance"
        evidence = (
            f"The {2 * MOST} words at both ends explain {percent(self.explained)} of what the head wrote: {judged} (as many random "
            f"words {percent(self.random_words)}; those named of a random direction up to {percent(self.chance)})."
        )
        object.__setattr__(self, "evidence", evidence)
        super().__post_init__()

    @property
    def is_weak(self) -> bool:
        """Whether the words explain no more of what the head wrote than chance does."""
        return self.explained <= max(self.chance, self.random_words)

    @property
    def ends(self) -> Ranking:
        """The words at both ends, the largest first."""
        return Ranking(
            self.words[:MOST] + self.words[-MOST:],
            np.concatenate((self.values[:MOST], self.values[-MOST:])),
            unit="part of the cosine with the word, less the mean over all words",
            method=f"words that head {self.head} of layer {self.layer} writes",
            provenance=self.provenance,
            note=f"{self.evidence} {self.note}".strip(),
        )

    def to_table(self) -> Table:
        """Each word with its part, the largest first."""
        return Table(("word", "value"), zip(self.words, self.values.tolist(), strict=True))

    def to_words(self) -> str:
        """The words at both ends, and what speaks for them."""
        most, least = ", ".join(self.words[:MOST]), ", ".join(self.words[: -MOST - 1 : -1])
        whose = f"Head {self.head} of layer {self.layer}"
        return f"{whose} writes towards {most}, and away from {least}. {self.evidence}"


@lru_cache(maxsize=1)
def word_list() -> tuple[str, ...]:
    """The words that come with vit_viz, theme by theme."""
    lines = bundled_file("words.txt").read_text(encoding="utf-8").splitlines()
    themes = (line.split(": ", 1)[1] for line in lines if not line.startswith("#"))
    return tuple(word.strip() for theme in themes for word in theme.split(","))


def words_along(vector: Tensor, words: tuple[str, ...], embeddings: Tensor) -> dict[str, Any]:
    """The fields of `HeadWords` that come from a vector [numbers] and the words' embeddings [words, numbers], of length 1."""
    ends, tells = min(MOST, len(words) // 2), embeddings.double() - embeddings.double().mean(0)
    vector = vector.to(tells)
    random = torch.Generator().manual_seed(0)

    def named(parts: Tensor) -> Tensor:
        order = parts.argsort(dim=-1, descending=True, stable=True)
        return torch.cat((order[..., :ends], order[..., -ends:]), -1)

    parts = tells @ vector
    draws = torch.rand(_DRAWS, len(words), generator=random).argsort(-1)[:, : 2 * ends]
    anywhere = torch.randn(_DRAWS, len(vector), generator=random, dtype=torch.float64)
    order = parts.argsort(descending=True, stable=True)
    return {
        "values": parts[order].numpy(),
        "words": tuple(words[i] for i in order.tolist()),
        "explained": float(_explained(vector, tells[named(parts)])),
        "random_words": float(_explained(vector, tells[draws]).mean()),
        "chance": float(_explained(anywhere, tells[named(anywhere @ tells.T)]).quantile(_RARE)),
        "length": float(vector.norm()),
    }


def _explained(vectors: Tensor, words: Tensor) -> Tensor:
    """Share of the squared length of vectors [..., numbers] that lies in the span of words [..., few, numbers]."""
    along = torch.einsum("...wn,...n->...w", words, vectors)
    inverse = torch.linalg.pinv(words @ words.transpose(-1, -2), hermitian=True)
    return torch.einsum("...w,...wv,...v->...", along, inverse, along) / vectors.square().sum(-1)


_POOL = "Through the values of the learned pool, whose attention is held; what the pool's MLP makes of it is not among it."


def _head_words(
    job: Job,
    *,
    layer: Annotated[
        int,
        Option("layer", "Of the head, counted from 0; -1 is the last.", low=-999, high=999, is_layer=True),
    ] = -1,
    head: Annotated[int, Option("head", "The head, counted from 0.", low=0, high=999)] = 0,
) -> HeadWords:
    """The words along which one head of a layer writes."""
    if not isinstance(job.loaded, LoadedModel) or job.loaded.text is None:
        raise ParameterError(
            getattr(job.loaded, "text_missing", "")
            or "The words of a head need a text tower: open a CLIP or SigLIP with vit_viz.load."
        )
    trace, subject = job.tokens, job.image
    model = subject.transformer("What a head writes")
    if not are_ours(submodules_of(model)):
        raise ParameterError(
            "What a head writes is known where all modules are vit_viz's own; some of these are not."
        )
    number = layer_index(layer, trace.num_layers)
    checked_index("Head", head, trace.num_heads)
    trace.wait()
    with torch.no_grad(), subject.turn(), undisturbed(model), exact():
        edits = surrounding_edits(images=1) if is_edited() else None
        vector = written(model, trace, number, head, edits).cpu()
    if not vector.any():
        raise ParameterError(
            f"Head {head} of layer {number} writes nothing here, so there are no words to name."
        )
    listed, tokenizer = word_list(), job.loaded.text.tokenizer
    words = tuple(word for word in listed if not tokenizer.unknown_words(word))
    if len(words) < 2:
        raise ParameterError(
            f"{job.loaded.name!r} knows none of the {len(listed):,} words that heads are named by."
        )
    watch, embeddings = job.watch(len(words)), []
    for first in range(0, len(words), _BATCH):
        watch.check()
        part = words[first : first + _BATCH]
        with subject.turn():
            embeddings.append(job.loaded.encode_text(part).cpu())
        watch.advance(len(part))
    known = f"The model knows {len(words)} of the {len(listed):,} words." if len(words) < len(listed) else ""
    return HeadWords(
        **words_along(vector, words, torch.cat(embeddings)),
        layer=number,
        head=head,
        provenance=trace.provenance.with_parameters(method="head_words", layer=number, head=head),
        note=" ".join(filter(None, (known, _POOL if model.attn_pool is not None else ""))),
    )


HEAD_WORDS = asks(
    _head_words,
    label="Words that a head writes",
    also_called="text span, textspan, concepts, what a head means, clip heads, name a head, decompose clip",
    shows="the words towards which, and away from which, a head of a CLIP or SigLIP writes for this photo, and how much of it they "
    "explain.",
    hides="what the head does through later layers, and what it writes that no word of the list says.",
    formula=r"$p_k = w \cdot (t_k - \bar t)$ with the head's direct part $w$ of the embedding, in units of its length, and the "
    r"embeddings $t_k$ of the words; explained: $\lVert P w \rVert^2 / \lVert w \rVert^2$ with $P$ onto the span of the words "
    "that are named",
    source="Gandelsman, Efros & Steinhardt 2024, arXiv:2310.05916, section 5; of one photo and one head, without its greedy search",
    class_blind=True,
    reads="image",
    place=Place("heads", {"face": "atlas"}, {"layer": "layer", "head": "head"}),
    cost="many passes",
    runs="one pass; the first time, the text tower reads each word of the list once",
)
