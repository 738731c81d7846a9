"""Measures of heads, computed from sums over a layer's attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from vit_viz.analyses.head_sums import Offsets, are_outliers, token_norms
from vit_viz.answer import ValueRange
from vit_viz.capture.trace import Trace
from vit_viz.geometry import TokenLayout
from vit_viz.lazy import Tensor, torch

Measure = Literal[
    "distance",
    "entropy",
    "prefix_mass",
    "class_mass",
    "suffix_mass",
    "diagonal_mass",
    "left_neighbour",
    "right_neighbour",
    "upper_neighbour",
    "lower_neighbour",
    "strongest_offset",
    "positional_share",
    "content_correlation",
    "sink_share",
    "norm",
    "rollout_share",
]


@dataclass(frozen=True)
class Statistic:
    """How a measure is made of the sums over the layers.

    Args:
        sums: names of what it reads.
        of: (the trace, its sums [layers, ...] on the CPU) -> one number per head, [layers, heads].
        unit, value_range: of these numbers.
        over_patches: whether queries that are no patches are left out.
    """

    sums: tuple[str, ...]
    of: Callable[[Trace, Mapping[str, Tensor]], Tensor]
    unit: str = "share of the attention"
    value_range: ValueRange = (0.0, 1.0)
    over_patches: bool = True


def _mean(name: str, trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    """A sum over the queries that are patches, divided by their number."""
    return sums[name] / trace.layout.num_patches


def _received(
    tokens: Callable[[TokenLayout], slice | list[int]], trace: Trace, sums: Mapping[str, Tensor]
) -> Tensor:
    """Share of the attention of patches that falls on some tokens."""
    layout = trace.layout
    return sums["columns"][:, :, 1, tokens(layout)].sum(-1) / layout.num_patches


def _class_tokens(layout: TokenLayout) -> list[int]:
    """Of several all, also those that the output does not read."""
    names = (*layout.class_tokens, *layout.unread)
    return [layout.token(name) for name in names if name != "distillation"]


def _sinks(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    received = sums["columns"][:, :, 0]  # [layers, heads, tokens]
    outliers = are_outliers(token_norms(trace, slice(trace.num_layers)), OUTLIER_FACTOR).to(received.device)
    return received.where(outliers[:, None], 0.0).sum(-1) / trace.num_tokens


def _norm(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    norms = torch.stack([trace.value_norms(layer) for layer in range(trace.num_layers)])
    return (sums["columns"][:, :, 0] * norms.to(sums["columns"])).sum(-1) / trace.num_tokens


def _entropy(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    tokens = trace.num_tokens
    return (-sums["entropy"] / tokens / (math.log(tokens) or 1.0)).clamp(0, 1)


def _beside(down: int, right: int, trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    offsets = Offsets(trace.layout.grid)
    return offsets.at(sums["offsets"], down, right) / offsets.at(offsets.counts, down, right).clamp(min=1)


def _strongest(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    """The largest mean weight at an offset that at least half of the patches have, the patch itself left out."""
    counts, (rows, cols) = Offsets(trace.layout.grid).counts, trace.layout.grid
    usual = 2 * counts >= rows * cols
    usual[rows - 1, cols - 1] = False
    return torch.where(usual, sums["offsets"] / counts, -1.0).flatten(2).amax(-1).clamp(min=0)


def _positional(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    between, total = _variances(trace, sums)
    return torch.where(total > _NOTHING, between / total.clamp(min=_NOTHING), 0.0).clamp(0, 1)


def _content(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    """Correlation of what offsets leave over: sum A (C - C_d) with C_d the mean cosine at each offset."""
    between, total = _variances(trace, sums)
    heads, counts = between.shape[1], Offsets(trace.layout.grid).counts
    alike = sums["alike"].double()
    products, squares = alike[:, :heads], alike[:, heads, None]
    cosines = alike[:, None, heads + 1 :].reshape(-1, 1, *counts.shape)
    covariance = products - (sums["offsets"].double() * cosines / counts).sum((-2, -1))
    left = (squares - (cosines.square() / counts).sum((-2, -1))).clamp(min=0) * (total - between).clamp(min=0)
    return torch.where(left > _NOTHING, covariance / left.sqrt(), 0.0).clamp(-1, 1)


def _variances(trace: Trace, sums: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Of the weights between patches, per head, fp64: the variance of their means at each offset, and their own."""
    table, counts = sums["offsets"].double(), Offsets(trace.layout.grid).counts
    mean = table.sum((-2, -1)) / counts.sum()
    common = counts.sum() * mean.square()
    return (table.square() / counts).sum((-2, -1)) - common, sums["squares"].double() - common


_NOTHING = 1e-6
"""A variance below it is the rounding of fp32."""


def _rollout_share(trace: Trace, sums: Mapping[str, Tensor]) -> Tensor:
    mass = sums["columns"][:, :, 2, trace.layout.patch_slice].sum(-1)
    return mass / mass.sum(-1, keepdim=True)


_PIXELS, _ENTROPY = "pixels of the model input", "share of the largest entropy, ln N nats"
OUTLIER_FACTOR = 5.0
"""A token whose norm is above so many times the median stands out (Darcet et al. 2024)."""

STATISTICS: dict[Measure, Statistic] = {
    "distance": Statistic(("distance",), partial(_mean, "distance"), _PIXELS, (0.0, math.inf)),
    "entropy": Statistic(("entropy",), _entropy, _ENTROPY, over_patches=False),
    "prefix_mass": Statistic(("columns",), partial(_received, lambda layout: slice(layout.num_prefix))),
    "class_mass": Statistic(("columns",), partial(_received, _class_tokens)),
    "suffix_mass": Statistic(("columns",), partial(_received, lambda layout: layout.suffix_slice)),
    "diagonal_mass": Statistic(("diagonal",), partial(_mean, "diagonal")),
    "left_neighbour": Statistic(("offsets",), partial(_beside, 0, -1)),
    "right_neighbour": Statistic(("offsets",), partial(_beside, 0, 1)),
    "upper_neighbour": Statistic(("offsets",), partial(_beside, -1, 0)),
    "lower_neighbour": Statistic(("offsets",), partial(_beside, 1, 0)),
    "strongest_offset": Statistic(("offsets",), _strongest),
    "positional_share": Statistic(("offsets", "squares"), _positional, "share of the variance"),
    "content_correlation": Statistic(("offsets", "squares", "alike"), _content, "correlation", (-1.0, 1.0)),
    "sink_share": Statistic(("columns",), _sinks, over_patches=False),
    "norm": Statistic(
        ("columns",), _norm, "attention weight x value norm", (0.0, math.inf), over_patches=False
    ),
    "rollout_share": Statistic(("columns", "kept"), _rollout_share, "share of the layer", over_patches=False),
}


@dataclass(frozen=True)
class MeasureWords:
    """A measure as people read it.

    Args:
        group: of measures that stand together in the chooser.
        label: its name.
        sentence: what it means, and what low and high values say.
        also_called: what else people call heads that have much of it, by which the page finds it, with commas.
    """

    group: str
    label: str
    sentence: str
    also_called: str = ""


_REACH, _WHERE, _BESIDE = "How far and how widely", "On what it falls", "On the patch beside"
_WHY, DOES = "By what it is decided", "What it does"

MEASURES: dict[str, MeasureWords] = {
    "distance": MeasureWords(
        _REACH,
        "mean attention distance",
        "How far patches look, in pixels of the model's input: low is local, high is all over the photo.",
    ),
    "entropy": MeasureWords(
        _REACH,
        "entropy",
        "How widely tokens look: 0 where each looks at a single token, 1 where each looks at all alike.",
    ),
    "prefix_mass": MeasureWords(
        _WHERE,
        "attention on prefix tokens",
        "Share of the patches' attention that falls on the class token and the registers.",
    ),
    "class_mass": MeasureWords(
        _WHERE,
        "attention on the class token",
        "Share of the patches' attention that falls on the class token; 0 in a model without one.",
    ),
    "suffix_mass": MeasureWords(
        _WHERE,
        "attention on tokens after the patches",
        "Share of the patches' attention that falls on tokens after the patches, such as detection tokens; often there are none.",
    ),
    "diagonal_mass": MeasureWords(
        _WHERE,
        "attention on the patch itself",
        "Share of the patches' attention that stays on the patch that looks.",
    ),
    "sink_share": MeasureWords(
        _WHERE,
        "attention on outlier tokens",
        "Share of all attention that goes to tokens whose norm is more than 5 times the median, called sinks.",
    ),
    "left_neighbour": MeasureWords(
        _BESIDE,
        "attention on the left neighbour",
        "Share of the patches' attention that falls on the patch to the left, the previous one.",
        "previous token head, previous patch head",
    ),
    "right_neighbour": MeasureWords(
        _BESIDE,
        "attention on the right neighbour",
        "Share of the patches' attention that falls on the patch to the right, the next one.",
        "next token head, next patch head",
    ),
    "upper_neighbour": MeasureWords(
        _BESIDE,
        "attention on the upper neighbour",
        "Share of the patches' attention that falls on the patch above.",
    ),
    "lower_neighbour": MeasureWords(
        _BESIDE,
        "attention on the lower neighbour",
        "Share of the patches' attention that falls on the patch below.",
    ),
    "strongest_offset": MeasureWords(
        _BESIDE,
        "attention at the strongest offset",
        "Share of the patches' attention that falls on the patch at one step, such as two to the right: the step that gets most.",
    ),
    "positional_share": MeasureWords(
        _WHY,
        "share explained by position",
        "How much of where patches look follows from the step between two patches alone; at 1 the photo changes nothing.",
    ),
    "content_correlation": MeasureWords(
        _WHY,
        "likeness of what is looked at",
        "Whether patches look at patches whose tokens are like their own, wherever these are: above 0 likeness attracts, below 0 "
        "it repels.",
    ),
    "norm": MeasureWords(
        DOES,
        "size of what it moves",
        "Attention weight times the size of the value that it carries, mean over all tokens: how much the head writes.",
    ),
    "rollout_share": MeasureWords(
        DOES,
        "share of the rollout",
        "Of what the output draws from the patches through this layer, the part that comes through this head; a layer sums to 1.",
    ),
}
"""In the order of choosers."""
