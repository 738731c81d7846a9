"""All heads at a glance: one number per head and layer, and the tokens that attention drains into.

Every statistic runs over blocks of rows, so that no N x N matrix of a whole layer is held.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vit_viz.analyses.attention import check_layer, to_numpy
from vit_viz.analyses.chains import Chain, output_query, run_chains, start_row
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query, TokenLayout
from vit_viz.results import HeadTable, ValueRange

Measure = Literal[
    "distance", "entropy", "prefix_mass", "suffix_mass", "diagonal_mass", "rollout_share", "norm"
]


def head_table(
    trace: Trace,
    *,
    measure: Measure,
    query: Query | None = None,
    patch_size: tuple[int, int] | None = None,
) -> HeadTable:
    """One statistic of every head, [layers, heads].

    - distance: how far patches look, sum_j a_ij d_ij averaged over patches i, with a renormalised over patch keys and d in pixels
      of the model's input between patch centres. Other keys are left out of a: with them a head that sends 60% of its mass to the
      class token would be understated by 60%.
    - entropy: how spread a row is, -sum a ln a / ln N, averaged over all queries: 0 for one key, 1 for all alike.
    - prefix_mass: share of the attention of patches that falls on prefix tokens.
    - suffix_mass: share of the attention of patches that falls on suffix tokens; 0 in a model without any.
    - diagonal_mass: share of the attention of patches that stays on the patch itself.
    - rollout_share: of what the query draws from the patches through this layer of its rollout, the part that comes in through
      this head; the heads of a layer sum to 1.
    - norm: sum_j A_ij ||v_j W_O,h|| averaged over all queries: how much a head moves.

    Args:
        query: whose rollout is followed in rollout_share; None asks for what the model's output is read from.
        patch_size: (height, width) of a patch in pixels, for the distance; None takes it from the trace's crop box.

    Raises:
        ParameterError: there is no such measure, or the distance lacks the size of a patch.
        CaptureError: norm without captured values.

    Source: Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 and 11 (distance); Kobayashi et al. 2020, arXiv:2004.10102 (norm).
    """
    trace = as_trace(trace)
    if measure not in get_args(Measure):
        raise ParameterError(f"Heads are measured by {', '.join(get_args(Measure))}, not by {measure!r}.")
    if measure == "rollout_share":
        values = _rollout_shares(trace, query)
    else:
        layers = range(trace.num_layers)
        parts = [
            _mean_over_queries(trace, layer, _statistic(trace, layer, measure, patch_size))
            for layer in layers
        ]
        values = torch.stack(parts)
    unit, value_range, over_patches = _UNITS[measure]
    if measure == "distance":
        value_range = (0.0, math.hypot(*_extent(trace, patch_size)) or 1.0)
    return HeadTable(
        to_numpy(values),
        unit=unit,
        value_range=value_range,
        signed=False,
        method=measure,
        provenance=trace.provenance.with_parameters(method="head_table", measure=measure),
        note="Mean over patch queries." if over_patches else "",
    )


_UNITS: dict[str, tuple[str, ValueRange, bool]] = {
    "distance": ("pixels of the model input", (0.0, math.inf), True),
    "entropy": ("share of the largest entropy, ln N nats", (0.0, 1.0), False),
    "prefix_mass": ("share of the attention", (0.0, 1.0), True),
    "suffix_mass": ("share of the attention", (0.0, 1.0), True),
    "diagonal_mass": ("share of the attention", (0.0, 1.0), True),
    "rollout_share": ("share of the layer", (0.0, 1.0), False),
    "norm": ("attention weight x value norm", (0.0, math.inf), False),
}


@dataclass(frozen=True)
class SinkReport:
    """Tokens whose residual norm stands far out, and how much of the attention they receive.

    Args:
        tokens: indices of the outlier tokens.
        names: the same in words.
        norms: norm of every token, [tokens].
        threshold: norm above which a token is an outlier.
        received: share of all attention of the layer that the outlier tokens receive, per head, [heads].
    """

    layer: int
    tokens: tuple[int, ...]
    names: tuple[str, ...]
    norms: NDArray[np.float32]
    threshold: float
    received: NDArray[np.float32]


def sinks(trace: Trace, *, layer: int, factor: float = 5.0) -> SinkReport:
    """Tokens that enter a layer with a norm above `factor` times the median, and the share of its attention they receive.

    Raises:
        ParameterError: the layer does not exist, or the factor is not positive.
        CaptureError: the trace did not keep the residual stream.

    Source: Darcet et al. 2024, arXiv:2309.16588, section 2.
    """
    check_layer(trace, layer)
    if not factor > 0:
        raise ParameterError(f"The outlier factor is positive, not {factor}.")
    if trace.residual is None:
        raise CaptureError("Token norms need a trace that kept the residual stream (keep_residual=True).")
    norms = trace.residual[layer].norm(dim=-1)  # [tokens]
    threshold = factor * float(norms.quantile(0.5))
    tokens = (norms > threshold).nonzero().flatten().tolist()
    received = torch.zeros(trace.num_heads, device=trace.device)
    for _, attention in trace.tiles(layer):
        received += attention[..., tokens].sum((-2, -1)) / trace.num_tokens
    names = tuple(trace.layout.name(token) for token in tokens)
    return SinkReport(layer, tuple(tokens), names, to_numpy(norms), threshold, to_numpy(received))


# --- parts

Statistic = Callable[[Tensor, Tensor], Tensor]
"""(query indices [block], attention [heads, block, tokens]) -> one number per head and query, [heads, block]."""


def _statistic(trace: Trace, layer: int, measure: Measure, patch_size: tuple[int, int] | None) -> Statistic:
    layout = trace.layout
    if measure == "distance":
        return _of_patches(layout, _distance(trace, patch_size))
    if measure == "entropy":
        most = math.log(trace.num_tokens) or 1.0
        return lambda _, attention: -torch.special.xlogy(attention, attention).sum(-1) / most
    if measure == "prefix_mass":
        return _of_patches(layout, lambda _, attention: attention[..., : layout.num_prefix].sum(-1))
    if measure == "suffix_mass":
        return _of_patches(layout, lambda _, attention: attention[..., layout.suffix_slice].sum(-1))
    if measure == "diagonal_mass":
        return _of_patches(layout, _on_itself)
    norms = trace.value_norms(layer)
    return lambda _, attention: torch.einsum("hqn,hn->hq", attention, norms.to(attention))


def _of_patches(layout: TokenLayout, statistic: Statistic) -> Statistic:
    """The statistic on patch queries only: rows of prefix and suffix tokens are left out of the mean."""
    patches = layout.patch_slice

    def on_patches(queries: Tensor, attention: Tensor) -> Tensor:
        kept = (queries >= patches.start) & (queries < patches.stop)
        return statistic(queries[kept], attention[:, kept])

    return on_patches


def _on_itself(queries: Tensor, attention: Tensor) -> Tensor:
    return attention.gather(-1, queries.expand(len(attention), -1)[..., None])[..., 0]


def _distance(trace: Trace, patch_size: tuple[int, int] | None) -> Statistic:
    """Mean distance in pixels between a patch and the patches that it looks at."""
    patches, (rows, cols) = trace.layout.patch_slice, trace.layout.grid
    height, width = _patch_size(trace, patch_size)
    row, col = torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")
    centres = torch.stack((row.flatten() * height, col.flatten() * width), dim=-1)  # [patches, 2]
    centres = centres.float().to(trace.device)

    def distance(queries: Tensor, attention: Tensor) -> Tensor:
        between = torch.cdist(
            centres[queries - patches.start], centres, compute_mode="donot_use_mm_for_euclid_dist"
        )  # [block, patches]
        on_patches = attention[..., patches]
        return (on_patches * between).sum(-1) / on_patches.sum(-1)

    return distance


def _patch_size(trace: Trace, patch_size: tuple[int, int] | None) -> tuple[float, float]:
    """Height and width of a patch in pixels of the model's input."""
    if patch_size is not None:
        return float(patch_size[0]), float(patch_size[1])
    if trace.crop_box is None:
        raise ParameterError("Distances in pixels need the size of a patch: pass patch_size=(height, width).")
    (height, width), (rows, cols) = trace.crop_box.input_size, trace.layout.grid
    return height / rows, width / cols


def _extent(trace: Trace, patch_size: tuple[int, int] | None) -> tuple[float, float]:
    """Distance between the first and the last patch centre, per axis."""
    height, width = _patch_size(trace, patch_size)
    return height * (trace.layout.grid[0] - 1), width * (trace.layout.grid[1] - 1)


def _mean_over_queries(trace: Trace, layer: int, statistic: Statistic) -> Tensor:
    """The statistic of each head, [heads], averaged over the queries that it speaks of."""
    parts = [statistic(queries, attention) for queries, attention in _blocks(trace, layer)]
    return torch.cat(parts, dim=1).mean(1)


def _blocks(trace: Trace, layer: int) -> Iterator[tuple[Tensor, Tensor]]:
    index = torch.arange(trace.num_tokens, device=trace.device)
    for queries, attention in trace.tiles(layer):
        yield index[queries], attention


def _rollout_shares(trace: Trace, query: Query | None) -> Tensor:
    """Share of each head in the patch mass that the rollout row gathers in its layer, [layers, heads]."""
    chain = Chain("attention", 0.5)
    row = start_row(trace, output_query(trace) if query is None else query)
    shares = []
    for layer in reversed(range(trace.num_layers)):
        mass = torch.zeros(trace.num_heads, device=row.device, dtype=row.dtype)
        for queries, attention in _blocks(trace, layer):
            mass += torch.einsum(
                "q,hqn->h", row[queries].to(attention), attention[..., trace.layout.patch_slice]
            )
        shares.append(mass / mass.sum())
        (row,) = run_chains(trace, [chain], [row], layers=(layer, layer + 1))
    return torch.stack(shares[::-1])
