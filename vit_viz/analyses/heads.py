"""All heads at a glance: one number per head and layer, and the tokens that attention drains into.

All measures of a table are read from the same pass over blocks of rows, so that no N x N matrix of a whole layer is held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.chains import start_row
from vit_viz.analyses.head_statistics import STATISTICS, Measure
from vit_viz.analyses.head_sums import LayerInput, Lengths, Offsets, layer_sums
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.answer import Answer
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import CaptureError, ParameterError
from vit_viz.geometry import Query
from vit_viz.lazy import torch
from vit_viz.progress import Progress, StopCheck, Watch
from vit_viz.results import HeadTable

OF_THE_STREAM: frozenset[Measure] = frozenset({"sink_share", "content_correlation"})
"""The measures that read the residual stream."""

UNSEEN = (
    "The tokens inside this model cannot be recorded: whether a head looks at what is alike is not known, nor which tokens are "
    "outliers, so no head can be called content, and few a sink."
)


def head_table(
    trace: Trace, *, measure: Measure, query: Query | None = None, patch_size: tuple[int, int] | None = None
) -> HeadTable:
    """One statistic of every head, [layers, heads].

    - distance: how far patches look, sum_j a_ij d_ij averaged over patches i, with a renormalised over patch keys and d in pixels
      of the model's input between patch centres. Other keys are left out of a: with them a head that sends 60% of its mass to the
      class token would be understated by 60%.
    - entropy: how spread a row is, -sum a ln a / ln N, averaged over all queries: 0 for one key, 1 for all alike.
    - prefix_mass: share of the attention of patches that falls on prefix tokens; class_mass on the class token.
    - suffix_mass: share of the attention of patches that falls on suffix tokens; 0 in a model without any.
    - diagonal_mass: share of the attention of patches that stays on the patch itself.
    - left_neighbour, right_neighbour, upper_neighbour, lower_neighbour: share of the attention of patches that falls on the patch
      beside it, averaged over the patches that have one there.
    - strongest_offset: the same for the offset that gets most, of those that at least half of the patches have, the patch itself
      left out.
    - positional_share: share of the variance of the weights from patch to patch that their mean at each offset explains: 1 where
      a patch's weights depend on the offset alone, however the photo looks.
    - content_correlation: correlation between these weights and the cosine of the two tokens as they enter the layer (the mean
      token subtracted), both without their mean at each offset: above 0 where patches look at what is like them, wherever it is.
    - sink_share: share of all attention of the layer that goes to tokens with an outlying norm, as `sinks` finds them.
    - norm: sum_j A_ij ||v_j W_O,h|| averaged over all queries: how much a head moves.
    - rollout_share: of what the query draws from the patches through this layer of its rollout, the part that comes in through
      this head; the heads of a layer sum to 1.

    Args:
        query: the token from which rollout_share follows the rollout; None asks for what the model's output is read from.
        patch_size: (height, width) of a patch in pixels, for the distance; None takes it from the trace's crop box.

    Raises:
        ParameterError: there is no such measure, or the distance lacks the size of a patch.
        CaptureError: norm without captured values; sink_share or content_correlation without the residual stream; rollout_share
            where the layers do not follow one another.

    Source: Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7 and 11 (distance); Kobayashi et al. 2020, arXiv:2004.10102 (norm);
    Darcet et al. 2024, arXiv:2309.16588 (sinks).

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> vv.head_table(vv.trace("mini", sample("shapes")), measure="entropy").values[5].round(1)
        array([0.6, 0.8, 0.8, 0.3, 0.8, 0.9], dtype=float32)
    """
    return head_tables(trace, measures=(measure,), query=query, patch_size=patch_size)[measure]


def head_tables(
    trace: Trace,
    *,
    measures: Sequence[Measure] | None = None,
    query: Query | None = None,
    patch_size: tuple[int, int] | None = None,
    progress: Progress | None = None,
    cancelled: StopCheck | None = None,
) -> dict[Measure, HeadTable]:
    """Several statistics of every head from one pass over the attention, as `head_table` describes them.

    Args:
        measures: which; None takes all that this trace can give.
        progress: told the share that is done, layer by layer.
        cancelled: asked block by block; True ends it with `Cancelled`.

    Raises:
        ParameterError, CaptureError: as `head_table`.
        Cancelled: `cancelled` said so.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> tables = vv.head_tables(vv.trace("mini", sample("shapes")), measures=["entropy", "class_mass"])
        >>> tables["class_mass"].values[5].round(1)
        array([0.4, 0.2, 0.1, 0.8, 0.2, 0. ], dtype=float32)
    """
    trace = as_trace(trace)
    chosen = available_measures(trace, patch_size) if measures is None else tuple(measures)
    for measure in chosen:
        if measure not in get_args(Measure):
            raise ParameterError(f"Heads are measured by {', '.join(get_args(Measure))}, not by {measure!r}.")
    reach = _patch_size(trace, patch_size) if "distance" in chosen else None
    by_measure = _layer_values(
        trace, chosen, query, reach, Watch(trace.num_layers, progress=progress, cancelled=cancelled)
    )
    return {measure: _table(trace, measure, values, reach) for measure, values in by_measure.items()}


@dataclass(frozen=True, eq=False, repr=False)
class HeadTables(Answer):
    """Every measure of the heads that a trace can give, as `head_tables` computes them.

    Args:
        note: what is not known of these heads; "" where all is.
    """

    tables: Mapping[Measure, HeadTable]
    note: str = ""

    @classmethod
    def of(
        cls, trace: Trace, *, progress: Progress | None = None, cancelled: StopCheck | None = None
    ) -> HeadTables:
        """Read out of a trace."""
        tables = head_tables(trace, progress=progress, cancelled=cancelled)
        return cls(tables, "" if tables.keys() >= OF_THE_STREAM else UNSEEN)


def available_measures(trace: Trace, patch_size: tuple[int, int] | None = None) -> tuple[Measure, ...]:
    """The measures for which a trace holds what they need."""
    missing: set[Measure] = set()
    if patch_size is None and trace.crop_box is None:
        missing.add("distance")
    norms = [layer.value_norms for layer in trace.layers]
    if any(one is None or bool(one.isnan().any()) for one in norms):
        missing.add("norm")
    if trace.residual is None:
        missing |= OF_THE_STREAM
    if trace.structure.complete.status == "fails" or not _has_start(trace):
        missing.add("rollout_share")
    return tuple(measure for measure in get_args(Measure) if measure not in missing)


# --- parts


def _has_start(trace: Trace) -> bool:
    """Whether some query stands for what the answer is read from."""
    try:
        return bool(trace.output_query())
    except (CaptureError, ParameterError):
        return False


def _layer_values(
    trace: Trace,
    measures: Sequence[Measure],
    query: Query | None,
    patch_size: tuple[float, float] | None,
    watch: Watch,
) -> dict[Measure, NDArray[np.float32]]:
    """Every measure, [layers, heads]; from the last layer to the first, as a rollout goes."""
    names = sorted({name for measure in measures for name in STATISTICS[measure].sums})
    offsets, sums_per_layer, row = Offsets(trace.layout.grid), [], None
    if "kept" in names:
        trace.check_layers_follow()
        row = start_row(trace, trace.output_query(query))
    lengths = None if patch_size is None else Lengths(offsets, patch_size, trace.device)
    for layer in reversed(range(trace.num_layers)):
        one = layer_sums(LayerInput(trace, layer, offsets, row, lengths), names, cancelled=watch.cancelled)
        sums_per_layer.append(one)
        watch.advance()
        if row is not None:  # before the layer: half through its attention, half through the skip connection
            row = (0.5 * one["columns"][:, 2].mean(0) + 0.5 * one["kept"]).to(row)
    sums = {name: torch.stack([one[name] for one in sums_per_layer[::-1]]).cpu() for name in names}
    return {measure: to_numpy(STATISTICS[measure].of(trace, sums).float()) for measure in measures}


def _table(
    trace: Trace, measure: Measure, values: NDArray[np.float32], patch_size: tuple[float, float] | None
) -> HeadTable:
    statistic = STATISTICS[measure]
    value_range = statistic.value_range
    if measure == "distance":
        (rows, cols), (height, width) = trace.layout.grid, patch_size or (1.0, 1.0)
        value_range = (0.0, math.hypot(height * (rows - 1), width * (cols - 1)) or 1.0)
    return HeadTable(
        values,
        unit=statistic.unit,
        value_range=value_range,
        signed=value_range[0] < 0,
        method=measure,
        provenance=trace.provenance.with_parameters(method="head_table", measure=measure),
        note="Mean over patch queries." if statistic.over_patches else "",
    )


def _patch_size(trace: Trace, patch_size: tuple[int, int] | None) -> tuple[float, float]:
    """Height and width of a patch in pixels of the model's input."""
    if patch_size is not None:
        return float(patch_size[0]), float(patch_size[1])
    if trace.crop_box is None:
        raise ParameterError("Distances in pixels need the size of a patch: pass patch_size=(height, width).")
    (height, width), (rows, cols) = trace.crop_box.input_size, trace.layout.grid
    return height / rows, width / cols


def _heads(
    job: Job,
    *,
    measure: Annotated[Measure, Option("measure", "What is measured of each head.")] = "distance",
) -> HeadTable:
    return head_table(job.tokens if measure in OF_THE_STREAM else job.trace, measure=measure)


def _head_tables(job: Job) -> HeadTables:
    """With the residual stream, where this model's can be recorded."""
    try:
        return HeadTables.of(job.tokens, **job.watched)
    except CaptureError:
        return HeadTables.of(job.trace, **job.watched)


HEADS = asks(
    _heads,
    label="Heads",
    also_called="head statistics, metrics of heads",
    shows="one number for each head of each layer: how far it looks, how widely, at what.",
    hides="whether the answer depends on the head: see its ablation.",
    formula=r"distance: $\mathrm{mean}_i \sum_j a_{ij} d_{ij}$; entropy: $-\sum_j a_{ij} \ln a_{ij} / \ln N$; "
    "the others: shares of attention",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
    class_blind=True,
    reads="image",
    place=Place("heads", {"face": "atlas"}),
    forwards=1,
)

HEAD_TABLES = asks(
    _head_tables,
    label="All measures of heads",
    also_called="table of heads, head metrics",
    shows="every measure of each head of each layer, from one pass over the attention.",
    hides="whether the answer depends on the head: see its ablation.",
    formula="as the measures one by one",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, Fig. 7",
    class_blind=True,
    reads="image",
    place=Place("heads", {"face": "atlas"}),
    forwards=1,
)
