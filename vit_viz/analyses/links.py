"""The strongest links of a head: which query looks at which key, as pairs of tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import (
    HeadFusion,
    OneHeadOptions,
    checked_head,
    fuse_heads,
    head_indices,
    head_words,
    to_numpy,
)
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Place, asks
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Query, TokenLayout, as_query
from vit_viz.indices import Index, as_index, layer_index
from vit_viz.lazy import Tensor, torch
from vit_viz.results import Ranking

LinkTokens = Literal["patches", "all"]
"""Between which tokens links are looked for."""

MOST_LINKS = 1000
_QUERIES_AT_ONCE = 256

_Best = tuple[NDArray[np.int64], NDArray[np.float32]]  # pairs [links, 2] and their weights [links]


@dataclass(frozen=True, eq=False, repr=False)
class Links(Ranking):
    """Pairs of tokens of which one looks at the other, with their weight, the strongest first.

    Args:
        pairs: indices of tokens, [links, 2]: the query, and the key that it looks at; `names` has each pair in words.
        share: what these links hold of the weight of all links that were compared, in [0, 1].
        crop_box: where the patches lie in the original image.
    """

    pairs: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    share: float = 0.0
    crop_box: CropBox | None = None
    caption: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", np.array(self.pairs, dtype=np.int64))
        super().__post_init__()
        if self.pairs.shape != (self.scores.size, 2):
            raise ParameterError(
                f"{self.scores.size} links need as many pairs of tokens, not an array of shape {self.pairs.shape}."
            )

    def __repr__(self) -> str:
        ends = f"{self.scores.max():.3g} to {self.scores.min():.3g}" if self.scores.size else "no"
        return f"Links({self.caption or self.method}: {ends} {self.unit}, {self.share:.1%} of all)"


def links(
    trace: Trace,
    *,
    layer: Index,
    head: Index | HeadFusion = "mean",
    query: Query | None = None,
    count: int = 20,
    tokens: LinkTokens = "patches",
    own: bool = False,
) -> Links:
    """Which query looks hardest at which key in one head: the `count` largest A[i, j].

    Of a whole head i and j run over the same tokens; with a query, i runs over the tokens of that query. Heads are fused before
    anything is compared. Of equal weights the pair that comes first in the sequence is taken, by its query and then by its key.

    Args:
        head: one head, or the mean, maximum or minimum over heads.
        query: a token, a region or "pool", also as text such as "3,4"; None asks for the whole head.
        count: how many links, from 1 to 1000; fewer come back where there are no more pairs.
        tokens: patches alone, or the class token, registers and others, too.
        own: whether a token's link to itself counts.

    Returns:
        Pairs of tokens with their attention weight, the strongest first.

    Raises:
        ParameterError: layer, head or query do not exist, or `count` or `tokens` is not possible.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> three = vv.links(vv.trace("mini", sample("shapes")), layer=5, head=0, query="3,4", count=3)
        >>> three.caption, len(three.scores)
        ('layer 5, head 0: the 3 strongest links of patch (3, 4)', 3)
    """
    trace, number = as_trace(trace), as_index("The count of links", count)
    if not 1 <= number <= MOST_LINKS:
        raise ParameterError(f"A count of links is a number from 1 to {MOST_LINKS}, not {number}.")
    layer, head = layer_index(layer, trace.num_layers), checked_head(head, trace.num_heads)
    query = None if query is None else as_query(query)
    if tokens not in get_args(LinkTokens):
        raise ParameterError(f"Links are between patches or all tokens, not {tokens!r}.")
    keys = torch.arange(trace.num_tokens, device=trace.device)
    if tokens == "patches":
        keys = keys[trace.layout.patch_slice]
    queries = keys if query is None else trace.query_weights(query).nonzero().flatten()
    whose = " between patches" if tokens == "patches" else ""
    whose = whose if query is None else f" of {trace.layout.describe(query)}"
    (pairs, scores), total = _strongest(trace, layer, head, (queries, keys), number, own=own)
    return Links(
        tuple(f"{_words(trace.layout, i)} looks at {_words(trace.layout, j)}" for i, j in pairs.tolist()),
        scores,
        share=min(1.0, float(scores.sum(dtype=np.float64)) / total) if total else 0.0,
        unit="attention weight",
        method="strongest links",
        pairs=pairs,
        provenance=trace.provenance.with_parameters(
            method="strongest links",
            layer=layer,
            head=head,
            query=query,
            count=number,
            tokens=tokens,
            own=own,
        ),
        crop_box=trace.crop_box,
        caption=f"layer {layer}, {head_words(head)}: the {len(scores)} strongest links{whose}",
    )


def _strongest(
    trace: Trace, layer: int, head: int | HeadFusion, between: tuple[Tensor, Tensor], count: int, *, own: bool
) -> tuple[_Best, float]:
    """The strongest links from some queries to some keys, and the weight of all links between them; rows are formed in blocks."""
    queries, keys = between
    fusion = head if isinstance(head, str) else "mean"
    best: _Best = np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    total = 0.0
    for block in torch.split(queries, _QUERIES_AT_ONCE):
        rows = fuse_heads(trace.attention(layer, heads=head_indices(head), queries=block), fusion)
        values = to_numpy(rows[:, keys])  # [block, keys]
        counts = np.ones(values.shape, bool) if own else to_numpy(block[:, None] != keys)
        pairs = np.stack([to_numpy(part) for part in torch.meshgrid(block, keys, indexing="ij")], axis=-1)
        total += float(values[counts].sum(dtype=np.float64))
        best = _merged(best, (pairs[counts], values[counts]), count)
    return best, total


def _merged(best: _Best, more: _Best, count: int) -> _Best:
    """The strongest of both, those that were found before coming first among equals."""
    scores = np.concatenate([best[1], more[1]])
    if scores.size > count:
        limit = np.partition(scores, scores.size - count)[scores.size - count]
        candidates = np.flatnonzero(scores >= limit)  # few, so that little is sorted
    else:
        candidates = np.arange(scores.size)
    chosen = candidates[np.argsort(-scores[candidates], kind="stable")[:count]]
    return np.concatenate([best[0], more[0]])[chosen], scores[chosen]


def _words(layout: TokenLayout, token: int) -> str:
    place = layout.place(token)
    return layout.describe(layout.name(token) if place is None else place)


@dataclass(frozen=True)
class LinkOptions(OneHeadOptions):
    """Which links are asked for."""

    count: Annotated[int, Option("links", "How many links, the strongest first.", low=1, high=MOST_LINKS)] = (
        20
    )
    tokens: Annotated[
        LinkTokens, Option("between", "Patches alone, or the class token, registers and others, too.")
    ] = "patches"
    own: Annotated[bool, Option("own", "Count a token's link to itself, too.")] = False


def _links(trace: Trace, *, query: Query | None, options: LinkOptions) -> Links:
    return links(trace, query=query, **options.values() | {"head": options.head_or_fusion})


LINKS = asks(
    _links,
    label="Strongest links",
    also_called="attention graph, bertviz, arrows, edges",
    shows="which token looks hardest at which in one layer: the best pairs of a head, or of one query.",
    hides="the many weak links, which together often hold more.",
    formula=r"the $k$ largest $A_{l h}[i, j]$, $i \ne j$",
    source="Vaswani et al. 2017, arXiv:1706.03762",
    class_blind=True,
    options=LinkOptions,
    reads="trace",
    place=Place(
        "heads",
        {"face": "matrix"},
        options={"count": "matrix_count", "tokens": ""},
        also=lambda given: {"matrix_links": "head" if given.get("query") is None else "query"},
    ),
    without_query="all of them",
)
