"""What a token looks at in one layer, and who looks at it: maps, head fusion, mass mask.

Sources: DINO, Caron et al. 2021, arXiv:2104.14294 (mass mask); Kobayashi et al. 2020, arXiv:2004.10102 (norm weighting).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Job, Part, Place, asks
from vit_viz.answer import Answer, axes
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.geometry import Query, as_query
from vit_viz.indices import Index, as_index, checked_index, layer_index
from vit_viz.lazy import Tensor, torch
from vit_viz.results import PatchMap

HeadFusion = Literal["mean", "max", "min"]
Direction = Literal["row", "column"]


@dataclass(frozen=True)
class AttentionOptions(Options):
    """Which numbers of a query are shown."""

    direction: Annotated[
        Direction,
        Option(
            "direction",
            "What the query looks at (a row of A), or who looks at it (a column of A).",
            link="dir",
        ),
    ] = "row"
    norm: Annotated[
        bool,
        Option(
            "weight x size of the value",
            "Each weight times the length of the value that it moves, after the output projection (Kobayashi et al. 2020).",
            link="norm",
        ),
    ] = False


_QUERIES_AT_ONCE = 256  # rows of attention formed together: bounds the memory of a region or pool query


def attention_map(
    trace: Trace,
    *,
    layer: Index,
    query: Query | None = None,
    head: Index | HeadFusion = "mean",
    direction: Direction = "row",
    norm_weighted: bool = False,
) -> PatchMap:
    """Where the query token looks in one layer (row), or who looks at it (column).

    Row: sum_i w_i A[i, :], column: sum_j w_j A[:, j], with w the weights of the query: 1 for a token, the mean for a region, the
    pooling weights for the pool. Norm-weighted: A_ij * ||v_j W_O,h|| instead of A_ij. Heads are fused last.

    Args:
        query: a token, a region or "pool", also as text such as "3,4"; None asks for what the model's output is read from.
        head: one head, or the mean, maximum or minimum over heads.
        norm_weighted: weigh each value by how much it moves through the head's part of the output projection.

    Returns:
        Weights over the patch grid, raw; `prefix` and `suffix` have what fell on the other tokens. For one head or the mean, a
        row sums to 1 with them; a column does not.

    Raises:
        ParameterError: layer, head, direction or query do not exist.
        CaptureError: norm weighting without captured values.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> trace = vv.trace("mini", sample("shapes"))
        >>> vv.attention_map(trace, layer=5, head=0, query="3,4").caption
        'layer 5, head 0: patch (3, 4) looks at'
    """
    trace = as_trace(trace)
    layer, head = layer_index(layer, trace.num_layers), checked_head(head, trace.num_heads)
    query = trace.output_query() if query is None else as_query(query)
    parts = _gathered(trace, layer, trace.query_weights(query), head_indices(head), direction, norm_weighted)
    values = fuse_heads(parts, head if isinstance(head, str) else "mean")
    name = "attention weight x size of the value" if norm_weighted else "attention"
    words = "looks at" if direction == "row" else "is looked at by"
    return PatchMap(
        **token_map(trace, values),
        unit="attention weight x size of the value" if norm_weighted else "attention weight",
        value_range=(0.0, float("inf")) if norm_weighted else (0.0, 1.0),
        signed=False,
        method=f"{name} ({direction})",
        class_blind=True,
        provenance=trace.provenance.with_parameters(
            method=name, layer=layer, head=head, query=trace.as_parameter(query), direction=direction
        ),
        caption=f"layer {layer}, {head_words(head)}: {trace.describe(query)} {words}",
    )


def mosaic_maps(
    trace: Trace, *, query: Query | None = None, direction: Direction = "row"
) -> NDArray[np.float32]:
    """The same query in every head of every layer: [layers, heads, rows, cols], raw attention weights."""
    weights = trace.query_weights(trace.output_query() if query is None else query)
    layers = [_gathered(trace, layer, weights, None, direction, False) for layer in range(trace.num_layers)]
    maps: NDArray[np.float32] = trace.layout.patches(to_numpy(torch.stack(layers)))
    return maps.astype(np.float32, copy=False)


def mass_mask(patch_map: PatchMap, share: float = 0.6) -> NDArray[np.bool_]:
    """The smallest set of patches that holds at least `share` of the map's mass, [rows, cols].

    The map is renormalised over patches; equal values are taken in the order of their index. A map of zeros has an empty mask.

    Source: DINO, Caron et al. 2021, arXiv:2104.14294, Fig. 1 and appendix (mass 0.6).
    """
    if not 0 < share <= 1:
        raise ParameterError(f"The share of a mass mask must be above 0 and at most 1, not {share}.")
    values = patch_map.values.astype(np.float64).ravel()
    if (values < 0).any():
        raise ParameterError("A mass mask needs a map without negative values.")
    mask = np.zeros(values.size, dtype=bool)
    if values.sum() > 0:
        order = np.argsort(-values, kind="stable")
        mass = np.cumsum(values[order]) / values.sum()
        # rounding of fp32 must not ask for one patch more
        kept = int(np.searchsorted(mass, share - 1e-7)) + 1
        mask[order[:kept]] = True
    return mask.reshape(patch_map.grid)


# --- parts that other analyses share


def fuse_heads(attention: Tensor, fusion: HeadFusion) -> Tensor:
    """Heads to one: [heads, ...] -> [...] by mean, max or min; not renormalised."""
    if fusion == "mean":
        return attention.mean(0)
    if fusion == "max":
        return attention.amax(0)
    if fusion == "min":
        return attention.amin(0)
    raise ParameterError(f"Heads are fused by mean, max or min, not by {fusion!r}.")


def weighted_rows(trace: Trace, layer: int, weights: Tensor, heads: list[int] | None = None) -> Tensor:
    """sum_i w_i A[i, :] per head, [heads, tokens]: only rows with weight are formed, in blocks."""

    def part(chosen: Tensor) -> Tensor:
        rows = trace.attention(layer, heads=heads, queries=chosen)  # [heads, block, tokens]
        return torch.einsum("q,hqn->hn", weights[chosen].to(rows), rows)

    return _summed(part, weights)


def weighted_columns(trace: Trace, layer: int, weights: Tensor, heads: list[int] | None = None) -> Tensor:
    """sum_j w_j A[:, j] per head, [heads, tokens]."""

    def part(chosen: Tensor) -> Tensor:
        columns = trace.received(layer, keys=chosen, heads=heads)  # [heads, tokens, block]
        return columns @ weights[chosen].to(columns)

    return _summed(part, weights)


def _summed(part: Callable[[Tensor], Tensor], weights: Tensor) -> Tensor:
    """The sum of a part for each block of tokens that have weight; the weights of a query sum to 1, so there is one."""
    first, *others = torch.split(weights.nonzero().flatten(), _QUERIES_AT_ONCE)
    total = part(first)
    for chosen in others:
        total = total + part(chosen)
    return total


def checked_head(head: Index | HeadFusion, count: int) -> int | HeadFusion:
    """One head as an int, or the name of a fusion."""
    if isinstance(head, str):
        if head not in get_args(HeadFusion):
            raise ParameterError(f"Heads are fused by mean, max or min, not by {head!r}.")
        return head
    return checked_index("Head", as_index("A head", head), count)


def head_indices(head: int | HeadFusion) -> list[int] | None:
    """The heads that take part: one, or None for all."""
    return None if isinstance(head, str) else [head]


def head_words(head: int | HeadFusion) -> str:
    """A head or a fusion in words, for captions."""
    return f"head {head}" if isinstance(head, int) else f"{head} over heads"


def token_map(trace: Trace, values: Tensor) -> dict[str, Any]:
    """A number of each token, [tokens], as the fields of a `PatchMap`: on the patches, and on the tokens before and after them."""
    layout, numbers = trace.layout, values.tolist()
    return {
        "values": layout.patches(to_numpy(values)),
        "prefix": dict(zip(layout.prefix, numbers, strict=False)),
        "suffix": dict(zip(layout.suffix, numbers[layout.suffix_slice], strict=True)),
        "crop_box": trace.crop_box,
    }


def to_numpy(values: Tensor) -> NDArray[Any]:
    """A tensor as a NumPy array on the CPU."""
    array: NDArray[Any] = values.detach().cpu().numpy()
    return array


def _gathered(
    trace: Trace,
    layer: int,
    weights: Tensor,
    heads: list[int] | None,
    direction: Direction,
    norm_weighted: bool,
) -> Tensor:
    """Rows or columns of a query per head, [heads, tokens], norm-weighted where asked."""
    if direction not in get_args(Direction):
        raise ParameterError(f"The direction is row or column, not {direction!r}.")
    if not norm_weighted:
        gather = weighted_rows if direction == "row" else weighted_columns
        return gather(trace, layer, weights, heads)
    norms = trace.value_norms(layer)  # [heads, tokens]
    norms = norms if heads is None else norms[heads]
    if direction == "row":
        rows = weighted_rows(trace, layer, weights, heads)
        return rows * norms.to(rows)
    columns = [
        weighted_columns(trace, layer, weights * norm.to(weights), [head])
        for head, norm in zip(heads or range(trace.num_heads), norms, strict=True)
    ]  # the norm belongs to the key, which differs by head
    return torch.cat(columns)


@dataclass(frozen=True)
class OneHeadOptions(Options):
    """Which head of which layer is asked about."""

    layer: Annotated[
        int, Option("layer", "The layer, counted from 0; -1 is the last.", low=-999, high=999, is_layer=True)
    ] = -1
    head: Annotated[
        str,
        Option(
            "head",
            "One head, counted from 0, or how heads are fused: mean, max, min.",
            pattern=r"\d{1,3}|mean|max|min",
        ),
    ] = "mean"

    @property
    def head_or_fusion(self) -> int | HeadFusion:
        """The head as `attention_map` takes it."""
        return int(self.head) if self.head.isdigit() else self.head  # type: ignore[return-value]  # by its pattern


@dataclass(frozen=True)
class LookOptions(OneHeadOptions, AttentionOptions):
    """Which attention of a query is asked for."""


def _look(trace: Trace, *, query: Query | None, options: LookOptions) -> PatchMap:
    return attention_map(
        trace,
        layer=options.layer,
        query=query,
        head=options.head_or_fusion,
        direction=options.direction,
        norm_weighted=options.norm,
    )


LOOK = asks(
    _look,
    label="Attention",
    also_called="where the model looks, where does it look, attention map, attention heatmap, heat map, attention weights",
    shows="what a token looks at in one layer, in one head or in all fused.",
    hides="whether the answer depends on it: what is looked at need not be used.",
    formula=r"$A_{l h}[q, :] = \mathrm{softmax}(q k^\top / \sqrt{d})$; as a column: $A_{l h}[:, q]$",
    source="Vaswani et al. 2017, arXiv:1706.03762",
    class_blind=True,
    options=LookOptions,
    reads="trace",
    place=Place("look"),
)


@dataclass(frozen=True, eq=False, repr=False)
class HeadMaps(Answer):
    """The same query in every head of every layer: raw attention weights, [layers, heads, rows, cols]."""

    values: NDArray[np.float32]

    AXES = axes(values=("layer", "head", "row", "col"))


@dataclass(frozen=True, eq=False, repr=False)
class HeadRows(Answer):
    """One query in every head of one layer, over all tokens: raw attention weights, [heads, tokens]."""

    values: NDArray[np.float32]

    AXES = axes(values=("head", "token"))


def _mosaic(
    trace: Trace,
    *,
    query: Query | None,
    direction: Annotated[
        Direction,
        Option("direction", "What the query looks at (a row of A), or who looks at it (a column of A)."),
    ] = "row",
) -> HeadMaps:
    return HeadMaps(mosaic_maps(trace, query=query, direction=direction))


def _head_rows(job: Job) -> HeadRows:
    """What the first picture is drawn from: it does not wait for the check of the model's structure."""
    trace = job.answer_of("trace")
    gather = weighted_rows if job.parameters["direction"] == "row" else weighted_columns
    rows = gather(
        trace,
        layer_index(job.parameters["layer"], trace.num_layers),
        trace.query_weights(job.parameters["query"]),
    )
    return HeadRows(rows.float().cpu().numpy())


MOSAIC = asks(
    _mosaic,
    label="All heads",
    also_called="mosaic, grid of attention maps, multi-head attention",
    shows="what a token looks at in every head of every layer.",
    hides="whether the answer depends on it: what is looked at need not be used.",
    formula=r"$A_{l h}[q, :]$ for all $l$, $h$",
    source="Vaswani et al. 2017, arXiv:1706.03762",
    class_blind=True,
    reads="trace",
    place=Place("look"),
)

HEAD_ROWS = Part(name="head rows", run=_head_rows, reads="trace")
