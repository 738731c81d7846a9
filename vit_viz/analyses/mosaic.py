"""One query in every head: of one layer, over all tokens, and of all layers, as small maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import Direction, mosaic_maps, weighted_columns, weighted_rows
from vit_viz.analyses.job import Job
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Part, Place, Question, Words
from vit_viz.answer import Answer, axes
from vit_viz.indices import layer_index


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


@dataclass(frozen=True)
class MosaicOptions(Options):
    """Which attention of a query is asked for, in all heads of all layers."""

    direction: Annotated[
        Direction,
        Option("direction", "What the query looks at (a row of A), or who looks at it (a column of A)."),
    ] = "row"


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


MOSAIC = Question(
    name="mosaic",
    words=Words(
        label="All heads",
        shows="what a token looks at in every head of every layer.",
        hides="whether the answer depends on it: what is looked at need not be used.",
        formula=r"$A_{l h}[q, :]$ for all $l$, $h$",
        source="Vaswani et al. 2017, arXiv:1706.03762",
        class_blind=True,
    ),
    options=MosaicOptions,
    run=lambda job, options: HeadMaps(mosaic_maps(job.trace, query=job.query, **options.values())),
    reads="trace",
    place=Place("look"),
    takes_query=True,
)

HEAD_ROWS = Part(name="head rows", run=_head_rows, reads="trace")
