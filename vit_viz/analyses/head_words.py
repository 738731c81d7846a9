"""Which words a head writes: its part of the picture's embedding, in the space that a text tower shares with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from vit_viz.analyses.direct_parts import written
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.bundled import bundled_file
from vit_viz.capture import are_ours, is_edited, surrounding_edits
from vit_viz.capture.forward import undisturbed
from vit_viz.capture.layers import exact
from vit_viz.errors import ParameterError
from vit_viz.indices import checked_index, layer_index
from vit_viz.lazy import Tensor, torch
from vit_viz.model.submodules import submodules_of
from vit_viz.results import Ranking
from vit_viz.sentences import percent

MOST = 5
"""Words that are named at each end."""

_BATCH = 32  # words that the text tower reads at a time
_DRAWS, _RARE = 400, 0.95  # vectors that point anywhere, and the share of them that chance stands for


@dataclass(frozen=True, eq=False, repr=False)
class HeadWords(Ranking):
    """Words along which a head writes into the picture's embedding, and how much of what it wrote they explain.

    The scores are the parts of the picture's cosine with each word that the head writes, less the mean over all words of the list:
    the `MOST` largest, and the `MOST` smallest.

    Args:
        explained: share of the squared length of what the head wrote that lies in the span of these words, in [0, 1], each word
            less the mean of all.
        chance: what the words named in the same way of a vector that points anywhere explain, at most in 95% of draws.
        length: of what the head wrote, in lengths of the whole embedding.
    """

    explained: float = 0.0
    chance: float = 0.0
    length: float = 0.0

    def to_words(self) -> str:
        """The words at both ends, and what speaks for them."""
        half = len(self.names) // 2
        most, least = ", ".join(self.names[:half]), ", ".join(reversed(self.names[half:]))
        return f"The {self.method}: towards {most}; away from {least}. {self.note}"


@lru_cache(maxsize=1)
def word_list() -> tuple[str, ...]:
    """The words that come with vit_viz, theme by theme."""
    lines = bundled_file("words.txt").read_text(encoding="utf-8").splitlines()
    themes = (line.split(": ", 1)[1] for line in lines if not line.startswith("#"))
    return tuple(word.strip() for theme in themes for word in theme.split(","))


def words_along(vector: Tensor, words: tuple[str, ...], embeddings: Tensor) -> dict[str, Any]:
    """The fields of `HeadWords` that come from a vector [numbers] and the words' embeddings [words, numbers], of length 1."""
    ends, tells = min(MOST, len(words) // 2), embeddings.double() - embeddings.double().mean(0)

    def named(vectors: Tensor) -> Tensor:
        order = (vectors @ tells.T).argsort(dim=-1, descending=True, stable=True)
        return torch.cat((order[..., :ends], order[..., -ends:]), -1)

    random = torch.Generator().manual_seed(0)
    anywhere = torch.randn(_DRAWS, len(vector), generator=random, dtype=torch.float64)
    vector = vector.to(tells)
    chosen = named(vector)
    explained = float(_explained(vector, tells[chosen]))
    chance = float(_explained(anywhere, tells[named(anywhere)]).quantile(_RARE))
    judged = "more than by chance" if explained > chance else "weak evidence, no more than by chance"
    return {
        "names": tuple(words[i] for i in chosen.tolist()),
        "scores": (tells[chosen] @ vector).numpy(),
        "explained": explained,
        "chance": chance,
        "length": float(vector.norm()),
        "note": f"The {2 * ends} words explain {percent(explained)} of what the head wrote: {judged} (words named in the same way "
        f"of a random direction up to {percent(chance)}).",
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
    tower = job.loaded.text
    if tower is None:
        raise ParameterError(job.loaded.text_missing)
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
    vocabulary = word_list()
    words = tuple(word for word in vocabulary if not tower.tokenizer.unknown_words(word))
    if len(words) < 2:
        raise ParameterError(
            f"{job.loaded.name!r} knows none of the {len(vocabulary):,} words that heads are named by."
        )
    watch, embeddings = job.watch(len(words)), []
    for first in range(0, len(words), _BATCH):
        watch.check()
        part = words[first : first + _BATCH]
        with subject.turn():
            embeddings.append(tower.encode(part).cpu())
        watch.advance(len(part))
    fields = words_along(vector, words, torch.cat(embeddings))
    if len(words) < len(vocabulary):
        fields["note"] += f" The model knows {len(words)} of the {len(vocabulary):,} words."
    if model.attn_pool is not None:
        fields["note"] += f" {_POOL}"
    return HeadWords(
        **fields,
        unit=f"part of the cosine with the word, less the mean over {len(words):,} words",
        method=f"words that head {head} of layer {number} writes",
        provenance=trace.provenance.with_parameters(method="head_words", layer=number, head=head),
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
