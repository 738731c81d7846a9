"""Whether a map lies on an object that the user marks: by a box, as patches, or by a mask."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import LOOK, OneHeadOptions
from vit_viz.analyses.correlation import check_ranks, highest
from vit_viz.analyses.explain import map_of
from vit_viz.analyses.key_segments import BOX, corners_of
from vit_viz.analyses.localisation import ObjectOnGrid, object_on_grid
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import AnyQuestion, Job, asks
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, TokenLayout, parse_query
from vit_viz.images.masks import IGNORED
from vit_viz.images.reading import decode_mask
from vit_viz.results import PatchMap, StateMatrix

MOST_MASK = 65_536
"""Characters of a mask: 48 KB of PNG."""

_TINY = 1e-12
_ORDERS = 200  # random orders of the patches, whose mean IoU stands beside the map's


def on_object(patch_map: PatchMap, there: ObjectOnGrid, *, seed: int = 0) -> StateMatrix:
    """How well a map meets an object, beside what chance, the centre and the best map on this grid would reach.

    With m the map, s the share of each patch that lies on the object, w the share of it that counts (1 without a mask that leaves
    pixels out) and k = sum s, rounded, at least 1:
    - pointing: 1 if the centre of the patch with the highest m lies on the object, else 0; no tolerance.
    - energy: sum (m)+ s / sum (m)+ w.
    - IoU: i / (u + sum s - i), i and u the sums of s and of w over the k patches with the highest m: as many as the object has.

    Where several patches are equally high, each counts in part. What a mask leaves out counts neither way, in the baselines too.

    Args:
        there: the object, as `object_on_grid` finds it.
        seed: of 200 random orders.

    Returns:
        [4, 3] in [0, 1]. Rows: the map; random orders, in the mean; the nearness to the middle of the grid; and s / w, which
        keeps below 1 where patches lie on the edge of the object.

    Source: Zhang et al. 2018, arXiv:1608.00507 (pointing game); Wang et al. 2020, arXiv:1910.01279 (energy).
    """
    share, counted = there.share, there.counted
    if share.shape != patch_map.grid or not share.any():
        raise ParameterError("The object covers no patch of this map.")
    check_ranks(patch_map)
    rows, cols = patch_map.grid
    down, across = np.ogrid[:rows, :cols]
    far = np.hypot(down - (rows - 1) / 2, across - (cols - 1) / 2)
    random = np.random.default_rng(seed)
    orders = (-np.argsort(random.permutation(share.size)).astype(float) for _ in range(_ORDERS))
    counts = there.centres != IGNORED
    values = [
        _scores(patch_map.values, there),
        (
            there.centres[counts].mean(),
            share.sum() / counted.sum(),
            np.mean([_iou(one.reshape(share.shape), there) for one in orders]),
        ),
        _scores(far.max() - far, there),
        _scores(share / np.maximum(counted, _TINY), there),
    ]
    left_out = (
        "" if counted.all() and counted.min() == 1 else f" {1 - counted.mean():.1%} is left out by the mask."
    )
    nothing = (
        "" if (patch_map.values > 0).any() else " The map has no positive value, so no energy is inside."
    )
    return StateMatrix(
        np.array(values, dtype=np.float32),
        ("the map", "random orders", "nearness to the middle", "the best map on this grid"),
        unit="share",
        value_range=(0.0, 1.0),
        method=f"{patch_map.method} on an object",
        provenance=patch_map.provenance,
        others=("pointing", "energy inside", "IoU"),
        note=f"The object covers {share.mean():.1%} of the model's input.{left_out}{nothing}",
    )


def _scores(values: NDArray[np.floating], there: ObjectOnGrid) -> tuple[float, float, float]:
    """Pointing, energy and IoU of a map."""
    return there.pointing(values), there.energy(values), _iou(values, there)


def _iou(values: NDArray[np.floating], there: ObjectOnGrid) -> float:
    counts = there.counted > 0
    chosen = np.zeros(counts.shape)
    chosen[counts] = highest(values[counts], max(1, round(float(there.share.sum()))))
    return there.iou(chosen)


@dataclass(frozen=True)
class OnObjectOptions(OneHeadOptions):
    """Which map, and where the object is: exactly one of box, region and PNG."""

    map: Annotated[
        str,
        Option("map", 'Name of a method, or "look" for the attention of a head.', pattern=r"[a-z][a-z0-9_]*"),
    ] = METHODS.usual.name
    box: Annotated[str, Option("box", "left,top,right,bottom in pixels of the photo.", pattern=BOX)] = ""
    region: Annotated[
        str,
        Option(
            "region", "Patches as row,col;row,col.", pattern=r"(\d{1,3},\d{1,3}(;\d{1,3},\d{1,3}){0,4095})?"
        ),
    ] = ""
    png: Annotated[
        str,
        Option(
            "PNG mask",
            "A PNG of the photo's size and at most 48 KB, as base64: the object is white, opaque, or one class beside 0; "
            "255 beside a class is left out.",
            pattern=rf"[A-Za-z0-9+/=]{{0,{MOST_MASK}}}",
        ),
    ] = ""
    seed: Annotated[int, Option("seed", "Seed of the random orders.", high=9999)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.question  # noqa: B018 - refuses what is no map
        if self.box:
            corners_of(self.box)

    @property
    def question(self) -> AnyQuestion:
        """Whose answer is the map."""
        return LOOK if self.map == LOOK.name else METHODS.named(self.map)

    def object(self, crop_box: CropBox, layout: TokenLayout) -> ObjectOnGrid:
        """Where the object lies on the patches."""
        if sum(map(bool, (self.box, self.region, self.png))) != 1:
            raise ParameterError("Say where the object is: by a box, a region, or a mask.")
        if self.region:
            weights = layout.patches(layout.weights(parse_query(self.region))) > 0
            return ObjectOnGrid(weights.astype(np.float64), np.ones(weights.shape), weights.astype(np.int8))
        if self.box:
            return object_on_grid(crop_box, layout.grid, boxes=[corners_of(self.box)])
        try:
            data = base64.b64decode(self.png, validate=True)
        except binascii.Error:
            data = b""
        return object_on_grid(crop_box, layout.grid, mask=decode_mask(data, crop_box.original_size))


def _on_object(job: Job, options: OnObjectOptions) -> StateMatrix:
    trace, question = job.trace, options.question
    assert trace.crop_box is not None  # of a picture
    there = options.object(trace.crop_box, trace.layout)
    of_head = {"layer": options.layer, "head": options.head} if question is LOOK else {}
    answer = map_of(job, question, question.options.of(of_head.items()))
    return on_object(answer, there, seed=options.seed)


ON_OBJECT = asks(
    _on_object,
    label="On the object",
    also_called="pointing game, localisation, localization, iou, bounding box, ground truth, mask",
    shows="whether a map lies on an object that you mark, beside chance, the centre, and the best map that its grid can hold.",
    hides="whether the model needs the object: a faithful map may point beside it.",
    formula=r"peak inside; $\sum (m)^{+} s / \sum (m)^{+}$; $\mathrm{IoU}$ of as many top patches as the object has",
    source="Zhang et al. 2018, arXiv:1608.00507; Wang et al. 2020, arXiv:1910.01279",
    runs="one pass, or as many as the method needs",
    options=OnObjectOptions,
    reads="image",
    cost="many passes",
    forwards=4,
    takes_query=True,
    takes_target=True,
)
