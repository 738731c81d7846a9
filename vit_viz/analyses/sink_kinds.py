"""Kinds of sinks: whether a head that looks at one token alone writes nothing with it, or the same everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.spec import asks
from vit_viz.answer import Answer, Provenance, Table, axes
from vit_viz.capture.given import as_trace
from vit_viz.capture.layers import exact, value_norms
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError
from vit_viz.lazy import Tensor, torch

Kind = Literal["no sink", "no-op", "broadcast", "sink, of neither kind"]

WEIGHT, QUERIES = 0.5, 0.9
"""A sink is where at least this share of the queries put at least this weight on one token."""
NO_OP, BROADCAST = 0.2, 0.5
"""A no-op writes at most this share of what the head's other tokens would; a broadcast at least this share,"""
STABLE_RANK = 1.5
"""and along so few directions."""


@dataclass(frozen=True, eq=False, repr=False)
class SinkKinds(Answer):
    """What every head does with the token that draws most of its attention; all arrays are [layers, heads].

    Args:
        kinds: of the sink of each head, layer by layer; see `sink_kinds`.
        tokens: which token it is, in words: "class", "register 0", "patch (3, 5)".
        received: the mean weight on it.
        queries: share of the queries that put at least half of their attention on it.
        ratio: how long what it writes is, in means of the head's other tokens.
        value_ratio: the same of the values, before the projection.
        stable_rank: of what the head writes at all queries; 1 is one direction.
        written: mean length of what the head writes.
    """

    kinds: tuple[tuple[Kind, ...], ...]
    tokens: tuple[tuple[str, ...], ...]
    received: NDArray[np.float32]
    queries: NDArray[np.float32]
    ratio: NDArray[np.float32]
    value_ratio: NDArray[np.float32]
    stable_rank: NDArray[np.float32]
    written: NDArray[np.float32]
    provenance: Provenance

    AXES = axes(
        **dict.fromkeys(
            ("received", "queries", "ratio", "value_ratio", "stable_rank", "written"), ("layer", "head")
        )
    )

    @property
    def numbers(self) -> Mapping[str, NDArray[np.float32]]:
        """All numbers by name."""
        return {name: getattr(self, name) for name in self.AXES}

    def to_table(self) -> Table:
        """Of each head the kind of its sink, the token, and the numbers."""
        rows = (
            (layer, head, kind, token, *(float(one[layer, head]) for one in self.numbers.values()))
            for layer, names in enumerate(zip(self.kinds, self.tokens, strict=True))
            for head, (kind, token) in enumerate(zip(*names, strict=True))
        )
        return Table(("layer", "head", "kind", "token", *self.numbers), rows)


def sink_kinds(trace: Trace) -> SinkKinds:
    """What every head does with the token that draws most of its attention, s = argmax_j mean_i A_ij.

    It is a sink where at least 90% of the queries i have A_is >= 0.5. With u_j = g W_O,h v_j, what token j writes into the stream
    behind the projection and, where there is one, LayerScale, and U = A u:

    - no-op: ||u_s|| <= 0.2 of the mean of ||u_j|| over j != s. The head writes next to nothing.
    - broadcast: at least 0.5 of it, and U has a stable rank ||U||_F^2 / sigma_1^2 <= 1.5. It writes one direction everywhere.
    - else it is a sink of neither kind.

    Of a head that an edit scales, U and u are what is left of them; of one at its mean, every row of U is the mean of A u.

    Args:
        trace: with values: `trace(..., keep_values=True)`. A LayerScale of modules that are not vit_viz's own counts where it is
            the next product that the projection's output takes part in.

    Returns:
        Kinds, tokens and numbers of all heads; ratio and stable rank are 0 where a head writes nothing at all.

    Raises:
        CaptureError: the trace kept no values, or an output projection is not known.

    Source: Fesser et al. 2026, arXiv:2606.08105.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> found = vv.sink_kinds(vv.trace("mini", sample("shapes"), keep_values=True))
        >>> found.kinds[5][3], round(float(found.queries[5, 3]), 2)
        ('no sink', 0.87)
    """
    trace = as_trace(trace)
    layers = [_of_layer(trace, layer) for layer in range(trace.num_layers)]
    places = torch.stack([layer.pop("place") for layer in layers]).tolist()
    numbers = {name: to_numpy(torch.stack([layer[name] for layer in layers])) for name in layers[0]}
    ratio = numbers["ratio"]
    is_broadcast = (ratio >= BROADCAST) & (numbers["stable_rank"] <= STABLE_RANK)
    chosen = np.select([numbers["queries"] < QUERIES, ratio <= NO_OP, is_broadcast], [0, 1, 2], 3)
    kinds: tuple[Kind, ...] = get_args(Kind)
    return SinkKinds(
        tuple(tuple(kinds[kind] for kind in row) for row in chosen),
        tuple(tuple(trace.layout.name(token) for token in row) for row in places),
        **numbers,
        provenance=trace.provenance.with_parameters(method="sink_kinds"),
    )


def _of_layer(trace: Trace, layer: int) -> dict[str, Tensor]:
    """The place of each head's sink and its numbers, [heads] each."""
    recorded = trace.layers[layer]
    if recorded.v is None:
        raise CaptureError("Kinds of sinks need the values: pass keep_values=True to trace().")
    if recorded.projected is None:
        raise CaptureError(f"The output projection of layer {layer} is not known: kinds of sinks need it.")
    value, projected = recorded.v, recorded.projected
    heads, tokens, _ = value.shape
    with exact():
        received = value.new_zeros(heads, tokens)
        written = torch.empty_like(value)  # before the projection
        for queries, attention in trace.tiles(layer):
            received += attention.sum(1)
            written[:, queries] = attention @ value
        if recorded.is_mean is not None:
            written = torch.where(recorded.is_mean[..., None] > 0, written.mean(1, keepdim=True), written)
        place = received.argmax(1)
        columns = trace.received(layer, place.tolist())  # [heads, tokens, heads]
        on_it = columns.diagonal(dim1=0, dim2=2).T  # [heads, tokens]
        # U^T U has the eigenvalues of P (A v)^T (A v), head_dim of them
        gram = (written.transpose(1, 2) @ written).double().cpu()
        values, vectors = torch.linalg.eigh(projected.double().cpu())
        root = vectors * values.clamp(min=0).sqrt()[:, None]
        squares = torch.linalg.eigvalsh(root.transpose(1, 2) @ gram @ root).clamp(min=0)
        return {
            "place": place,
            "received": received.amax(1) / tokens,
            "queries": (on_it >= WEIGHT).float().mean(1),
            "ratio": _ratio(value_norms(value, projected), place),
            "value_ratio": _ratio(value.norm(dim=-1), place),
            "stable_rank": (squares.sum(-1) / squares[:, -1]).nan_to_num(nan=0.0).float(),
            "written": value_norms(written, projected).mean(1),
        }


def _ratio(lengths: Tensor, place: Tensor) -> Tensor:
    """The length at a place over the mean of those at all others, [heads]."""
    at = lengths.gather(1, place[:, None])[:, 0]
    return (at / ((lengths.sum(1) - at) / (lengths.shape[1] - 1))).nan_to_num(nan=0.0)


SINK_KINDS = asks(
    lambda image: sink_kinds(image.trace(keep_values=True)),
    name="sink_kinds",
    label="Kinds of sinks",
    also_called="attention sinks, no-op heads, bos",
    shows="heads that look at one token alone, and whether they write nothing with it or the same everywhere.",
    hides="whether the answer depends on it: see the causal effect of heads.",
    formula=r"sink $s$: $A_{is} \geq 0.5$ for 90% of $i$; with $u_j = \gamma W_{O,h} v_j$ and $U = A u$: no-op if "
    r"$\lVert u_s \rVert \leq 0.2\, \mathrm{mean}_{j \neq s} \lVert u_j \rVert$, broadcast if it is at least 0.5 of it and "
    r"$\lVert U \rVert_F^2 / \sigma_1^2 \leq 1.5$",
    source="Fesser et al. 2026, arXiv:2606.08105",
    class_blind=True,
    reads="image",
    cost="pass",
    forwards=1,
)
