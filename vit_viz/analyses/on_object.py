"""Whether a map lies on an object that the user marks: by a box, as patches, or by a mask."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from vit_viz.analyses.attention import LOOK, OneHeadOptions
from vit_viz.analyses.explain import map_of
from vit_viz.analyses.key_segments import BOX, corners_of
from vit_viz.analyses.localisation import object_at_centres, object_share
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import AnyQuestion, Job, Question, Words
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox, Grid, TokenLayout, parse_query
from vit_viz.images import decode
from vit_viz.results import PatchMap, StateMatrix

MOST_MASK = 65_536
"""Characters of a mask: 48 KB of PNG."""

_ORDERS = 200  # random orders of the patches, whose mean IoU stands beside the map's


def on_object(
    patch_map: PatchMap, share: NDArray[np.float64], centres: NDArray[np.bool_], *, seed: int = 0
) -> StateMatrix:
    """How well a map meets an object, beside what chance, the centre and the best map on this grid would reach.

    With m the map, s the share of each patch that lies on the object and k = sum s, rounded, at least 1:
    - pointing: 1 if the centre of the patch with the highest m lies on the object, else 0; no tolerance.
    - energy: sum (m)+ s / sum (m)+.
    - IoU: i / (k + sum s - i), with i the sum of s over the k patches with the highest m: as many as the object has.

    Args:
        share: [rows, cols], as `object_share` has it.
        centres: whether the centre of each patch lies on the object, [rows, cols].
        seed: of 200 random orders.

    Returns:
        [4, 3] in [0, 1]. Rows: the map; random orders, in the mean; the nearness to the middle of the grid; and s itself, which
        keeps below 1 where patches lie on the edge of the object.

    Raises:
        ParameterError: the object covers no patch, or lies on another grid.

    Source: Zhang et al. 2018, arXiv:1608.00507 (pointing game); Wang et al. 2020, arXiv:1910.01279 (energy).
    """
    if share.shape != patch_map.grid or not share.any():
        raise ParameterError("The object covers no patch of this map.")
    rows, cols = patch_map.grid
    down, across = np.ogrid[:rows, :cols]
    far = np.hypot(down - (rows - 1) / 2, across - (cols - 1) / 2)
    random = np.random.default_rng(seed)
    by_chance = [_iou(random.permutation(share.size), share.ravel()) for _ in range(_ORDERS)]
    values = [
        _scores(patch_map.values.astype(np.float64), share, centres),
        (centres.mean(), share.mean(), np.mean(by_chance)),
        _scores(far.max() - far, share, centres),
        _scores(share, share, centres),
    ]
    return StateMatrix(
        np.array(values, dtype=np.float32),
        ("the map", "random orders", "nearness to the middle", "the best map on this grid"),
        unit="share",
        value_range=(0.0, 1.0),
        method=f"{patch_map.method} on an object",
        provenance=patch_map.provenance,
        others=("pointing", "energy inside", "IoU"),
        note=f"The object covers {share.mean():.1%} of the model's input.",
    )


def _scores(
    values: NDArray[np.float64], share: NDArray[np.float64], centres: NDArray[np.bool_]
) -> tuple[float, float, float]:
    """Pointing, energy and IoU of a map."""
    positive = values.clip(min=0)
    energy = float((positive * share).sum() / positive.sum()) if positive.any() else 0.0
    order = np.argsort(-values.ravel(), kind="stable")
    return float(centres.ravel()[order[0]]), energy, _iou(order, share.ravel())


def _iou(order: NDArray[np.int64], share: NDArray[np.float64]) -> float:
    size = float(share.sum())
    count = max(1, round(size))
    inside = float(share[order[:count]].sum())
    return inside / (count + size - inside)


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
            "A PNG of the photo's size as base64, bright where the object is.",
            pattern=rf"[A-Za-z0-9+/=]{{0,{MOST_MASK}}}",
        ),
    ] = ""
    seed: Annotated[int, Option("seed", "Of the random orders.", high=9999)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.question  # noqa: B018 - refuses what is no map
        if self.box:
            corners_of(self.box)

    @property
    def question(self) -> AnyQuestion:
        """Whose answer is the map."""
        return LOOK if self.map == LOOK.name else METHODS.named(self.map)

    def object(self, crop_box: CropBox, layout: TokenLayout) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Share of each patch on the object, and whether its centre is, both [rows, cols].

        Raises:
            ParameterError: none or several are given, or the mask is no PNG of the photo's size.
            ImageError: the PNG cannot be read.
        """
        if sum(map(bool, (self.box, self.region, self.png))) != 1:
            raise ParameterError("Say where the object is: by a box, a region, or a mask.")
        if self.region:
            weights = layout.patches(layout.weights(parse_query(self.region))) > 0
            return weights.astype(np.float64), weights
        where = (
            {"boxes": [corners_of(self.box)]}
            if self.box
            else {"mask": _bright(self.png, crop_box.original_size)}
        )
        grid: Grid = layout.grid
        return object_share(crop_box, grid, **where), object_at_centres(crop_box, grid, **where)


def _bright(text: str, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Where a mask of the photo's size is bright, [height, width]."""
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        data = b""
    if data[:8] != b"\x89PNG\r\n\x1a\n" or (int.from_bytes(data[20:24]), int.from_bytes(data[16:20])) != size:
        raise ParameterError(f"A mask is a PNG of the photo's {size[1]} x {size[0]} pixels, as base64.")
    bright: NDArray[np.bool_] = np.asarray(decode(data).convert("L")) > 127
    return bright


def _on_object(job: Job, options: OnObjectOptions) -> StateMatrix:
    trace, question = job.trace, options.question
    assert trace.crop_box is not None  # of a picture
    share, centres = options.object(trace.crop_box, trace.layout)
    of_head = {"layer": options.layer, "head": options.head} if question is LOOK else {}
    answer = map_of(job, question, question.options.of(of_head.items()))
    return on_object(answer, share, centres, seed=options.seed)


ON_OBJECT = Question(
    name="on_object",
    words=Words(
        label="On the object",
        shows="whether a map lies on an object that you mark, beside chance, the centre, and the best map that its grid can hold.",
        hides="whether the model needs the object: a faithful map may point beside it.",
        formula=r"peak inside; $\sum (m)^{+} s / \sum (m)^{+}$; $\mathrm{IoU}$ of as many top patches as the object has",
        source="Zhang et al. 2018, arXiv:1608.00507; Wang et al. 2020, arXiv:1910.01279",
        runs="one pass, or as many as the method needs",
    ),
    options=OnObjectOptions,
    run=_on_object,
    reads="image",
    cost="many passes",
    forwards=4,
    takes_query=True,
    takes_target=True,
)
