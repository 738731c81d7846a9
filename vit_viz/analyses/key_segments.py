"""Patches that a layer treats alike, as regions of the photo: k-means or a normalised cut of its keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import to_numpy
from vit_viz.analyses.localisation import Box, object_on_grid
from vit_viz.analyses.options import Option, Options
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.analyses.tokens import Role, token_states
from vit_viz.capture.given import as_trace
from vit_viz.capture.trace import Trace
from vit_viz.errors import ParameterError
from vit_viz.indices import Index, layer_index
from vit_viz.lazy import F, torch
from vit_viz.results import Segments

Grouping = Literal["k-means", "cut"]

ALIKE = 0.2
"""Cosine from which on two patches count as alike in the cut, as in TokenCut."""

_STARTS, _STEPS = 4, 40
_MOST_IN_A_CUT = 1600  # patches: the eigenvectors of a matrix of all pairs take seconds beyond
_UNLIKE = 1e-5  # weight of patches that are not alike, so that the graph is connected


def key_segments(
    trace: Trace,
    *,
    layer: Index | None = None,
    role: Role = "keys",
    method: Grouping = "k-means",
    count: int | None = None,
    seed: int = 0,
    boxes: Sequence[Box] = (),
) -> Segments:
    """Which patches a layer treats alike: the photo in regions, without a label.

    The vectors of the patches (keys of all heads side by side) have length 1 first, so that only their direction counts.

    - k-means: `count` segments of least squared distance to their means; the best of four starts by k-means++, 40 steps each.
    - cut: two segments. W_ij = 1 where cos > 0.2, else 1e-5; the second smallest solution y of (D - W) y = lambda D y, D the row
      sums of W, split at its mean; `strength` is y.

    Args:
        layer: None means the last.
        role: keys, queries, or the tokens after the layer.
        count: of segments; None means 4 by k-means; a cut has 2.
        seed: of the random starts.
        boxes: where an object lies in the original; what each segment shares with it is `overlap`.

    Returns:
        Segments by size, the largest first; of a cut, strength is above 0 on the side of the largest |y|.

    Raises:
        ParameterError: layer, role or method do not exist, there are fewer different patches than segments, or too many for a cut.
        CaptureError: tokens without the residual stream.

    Source: Amir et al. 2021, arXiv:2112.05814; Arthur & Vassilvitskii 2007; Shi & Malik 2000; Wang et al. 2022, arXiv:2202.11539.

    Example:
        >>> import vit_viz as vv
        >>> from vit_viz.samples import sample
        >>> vv.key_segments(vv.trace("mini", sample("shapes"))).count
        4
    """
    trace = as_trace(trace)
    if method not in get_args(Grouping):
        raise ParameterError(f"Segments are made by {', '.join(get_args(Grouping))}, not by {method!r}.")
    states = token_states(trace, role)
    number = trace.num_layers - 1 if layer is None else layer_index(layer, trace.num_layers)
    state = states[number + 1 if role == "tokens" else number]  # [tokens, dim]
    vectors = to_numpy(F.normalize(state[trace.layout.patch_slice].double(), dim=-1))
    labels, strength = _grouped(vectors, method, count, seed)
    parameters = {"layer": number, "role": role, "count": int(labels.max()) + 1, "seed": seed}
    segments = Segments(
        _by_size(labels).reshape(trace.layout.grid),
        method=f"{method} of {role}",
        provenance=trace.provenance.with_parameters(method=f"key segments ({method})", **parameters),
        strength=None if strength is None else strength.reshape(trace.layout.grid).astype(np.float32),
        crop_box=trace.crop_box,
    )
    return replace(segments, overlap=segment_overlap(segments, boxes=boxes)) if boxes else segments


def segment_overlap(
    segments: Segments, *, boxes: Sequence[Box] = (), mask: Any = None
) -> NDArray[np.float32]:
    """Intersection over union of each segment with the object, in areas of patches, [segments].

    Args:
        boxes: one or several, in pixels of the original; together they are the object.
        mask: instead of boxes, [height, width] of the original, as `vit_viz.images.masks` has it; what it leaves out counts
            neither way.
    """
    if segments.crop_box is None:
        raise ParameterError(
            "Overlap needs segments with a crop box, which says where they lie in the image."
        )
    rows, cols = segments.labels.shape
    there = object_on_grid(segments.crop_box, (rows, cols), boxes=boxes, mask=mask)
    return np.array([there.iou(segments.labels == one) for one in range(segments.count)], dtype=np.float32)


def k_means(vectors: NDArray[np.float64], count: int, *, seed: int) -> NDArray[np.int64]:
    """The segment of each vector, [n]: the best of some seeded starts. See `key_segments`."""
    from scipy.cluster.vq import ClusterError, kmeans2  # a start need not wait for it

    different = len(np.unique(vectors, axis=0))
    if not 1 <= count <= different:
        raise ParameterError(f"{different} different patches make 1 to {different} segments, not {count}.")
    random, best, least = np.random.default_rng(seed), None, np.inf
    for _ in range(_STARTS):
        try:
            means, labels = kmeans2(vectors, count, iter=_STEPS, minit="++", missing="raise", seed=random)
        except ClusterError:  # a segment ran empty: this start leads to fewer than asked for
            continue
        cost = float(np.square(vectors - means[labels]).sum())
        if cost < least:
            best, least = labels, cost
    if best is None:
        raise ParameterError(f"The patches fall into fewer than {count} segments: please choose fewer.")
    segments: NDArray[np.int64] = best.astype(np.int64)
    return segments


def normalised_cut(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """On which side of the cheapest cut each unit vector lies, [n]: above or below 0. See `key_segments`."""
    weights = np.where(vectors @ vectors.T > ALIKE, 1.0, _UNLIKE)
    root = np.sqrt(weights.sum(1))
    # with z = D^1/2 y it is the ordinary problem of D^-1/2 W D^-1/2, whose second largest value is asked for
    _, directions = torch.linalg.eigh(torch.from_numpy(weights / root / root[:, None]))
    second: NDArray[np.float64] = directions[:, -2].numpy() / root
    second = second - second.mean()
    turned: NDArray[np.float64] = second * (np.sign(second[np.abs(second).argmax()]) or 1)
    return turned


# --- parts


def _grouped(
    vectors: NDArray[np.float64], method: Grouping, count: int | None, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """The segment of each vector, and of a cut what it is split at."""
    if method == "k-means":
        return k_means(vectors, 4 if count is None else count, seed=seed), None
    if count not in (None, 2):
        raise ParameterError(f"A cut makes 2 segments, not {count}; k-means makes any number.")
    if not 2 <= len(vectors) <= _MOST_IN_A_CUT:
        raise ParameterError(f"A cut needs 2 to {_MOST_IN_A_CUT} patches, not {len(vectors)}.")
    strength = normalised_cut(vectors)
    return (strength > 0).astype(np.int64), strength


def _by_size(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same segments, the largest as 0; of equals the one whose first patch comes first."""
    present, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    ranks = np.empty(present.max() + 1, dtype=np.int64)
    ranks[present[order]] = np.arange(len(present))
    return ranks[labels]


BOX = r"|\d{1,6}(,\d{1,6}){3}"
"""A box as text, left,top,right,bottom in pixels of the photo; or nothing."""


def corners_of(box: str) -> Box:
    """A box as four numbers."""
    left, top, right, bottom = (int(side) for side in box.split(","))
    if not (left < right and top < bottom):
        raise ParameterError(f"A box is left,top,right,bottom, each side before the other, not {box}.")
    return left, top, right, bottom


@dataclass(frozen=True)
class SegmentOptions(Options):
    """How patches are grouped."""

    layer: Annotated[
        int, Option("layer", "The layer, counted from 0; -1 is the last.", low=-999, high=999, is_layer=True)
    ] = -1
    role: Annotated[Role, Option("role", "Which vectors: keys, queries, or tokens after the layer.")] = "keys"
    method: Annotated[Grouping, Option("method", "k-means, or a cut into two.")] = "k-means"
    count: Annotated[int, Option("segments", "How many, by k-means; a cut has 2.", low=1, high=24)] = 4
    seed: Annotated[int, Option("seed", "Seed of the random starts.", low=0, high=9999)] = 0
    box: Annotated[
        str,
        Option(
            "box",
            "Where an object lies, for its overlap with each segment: left,top,right,bottom in photo pixels.",
            pattern=BOX,
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.box:
            corners_of(self.box)

    def for_layers(self, count: int) -> SegmentOptions:
        """The same for a model of so many layers; a cut has two segments."""
        fitted = super().for_layers(count)
        return replace(fitted, count=2) if self.method == "cut" else fitted


def _segments(job: Job, options: SegmentOptions) -> Segments:
    chosen = options.values()
    box = chosen.pop("box")
    return key_segments(job.tokens, **chosen, boxes=[corners_of(box)] if box else ())


SEGMENTS = asks(
    _segments,
    label="Segments",
    also_called="segmentation, clusters, clustering, k-means, kmeans, tokencut, ncut, regions",
    shows="which patches a layer treats alike, as regions of the photo.",
    hides="what a region is: nothing here has names.",
    formula=r"k-means, or the second solution of $(D - W) y = \lambda D y$",
    source="Amir et al. 2021, arXiv:2112.05814; Wang et al. 2022, arXiv:2202.11539",
    class_blind=True,
    options=SegmentOptions,
    reads="tokens",
    place=Place(
        "tokens",
        {"token_measure": "segments"},
        {"role": "token_segment_role", "method": "token_method", "count": "token_count", "box": "token_box"},
        # the map over the photo: tokens of a layer stand behind those that enter the first
        also=lambda given: {"token_state": str(given["layer"] + (given["role"] == "tokens"))},
    ),
)
