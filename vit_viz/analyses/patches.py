"""The pixels that a model receives of a photo, and where they are cut into patches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.options import Option
from vit_viz.analyses.spec import Job, Place, asks
from vit_viz.answer import Answer, Table, array_table
from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.images.preprocess import Preprocess


@dataclass(frozen=True, eq=False, repr=False)
class PatchPlaces(Answer):
    """Where each patch lies on the photo, and what becomes of its pixels.

    Args:
        values: (top, left, bottom, right), [rows, cols, 4]; beyond the edges of the photo where it was padded.
        shapes: of the model's input, "image", and of one "patch", both (channels, height, width), and of all "patches" and all
            "tokens" as vectors.
        note: the sizes of photo and input, and what is left out of the photo.
    """

    values: NDArray[np.float32]
    unit: str = "pixels of the photo"
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    note: str = ""

    def to_table(self) -> Table:
        """Row, column, and the edges of the patch there."""
        rows, cols = self.values.shape[:2]
        places = ((row, col, *self.values[row, col]) for row in range(rows) for col in range(cols))
        return Table(("row", "col", "top", "left", "bottom", "right"), places)


@dataclass(frozen=True, eq=False, repr=False)
class ReceivedImage(Answer):
    """The input of a model as a picture, its normalisation undone: bytes [height, width] or [height, width, 3]."""

    values: NDArray[np.uint8]

    def to_table(self) -> Table:
        """Every channel of every pixel."""
        return array_table(self.values, ("pixel_row", "pixel_col", "channel")[: self.values.ndim])

    @property
    def picture(self) -> Image.Image:
        """As a picture, mode RGB or L."""
        return Image.fromarray(self.values)


def _patches(
    job: Job,
    *,
    numbers: Annotated[bool, Option("numbers", "In a picture, write the number of each patch.")] = False,  # noqa: ARG001 - of pictures
) -> PatchPlaces:
    box, grid = job.trace.crop_box, job.trace.layout.grid
    if box is None:
        raise ParameterError("This trace is of pixels, not of a photo: it does not know where they lie.")
    rows, cols = grid
    places = [[box.patch_rect(row, col, grid) for col in range(cols)] for row in range(rows)]
    loaded, recipe, trace = job.loaded, job.loaded.preprocess, job.trace
    patch = (recipe.channels, *recipe.patch_size)
    dim = loaded.config.embed_dim if loaded.config is not None else trace.num_heads * trace.head_dim
    shapes = {
        "image": (recipe.channels, *box.input_size),
        "patch": patch,
        "patches": (trace.layout.num_patches, math.prod(patch)),
        "tokens": (trace.layout.num_tokens, dim),
    }
    return PatchPlaces(np.array(places, np.float32), shapes=shapes, note=_left_out(box, recipe))


def _left_out(box: CropBox, recipe: Preprocess) -> str:
    """What of the photo the model does not see, and why where its patches do not fill its own input."""
    share = 1 - box.covers
    seen = "the whole photo" if share < 0.0005 else f"{share:.1%} of the photo left out"
    (height, width), (tall, wide) = box.original_size, box.input_size
    if share >= 0.0005 and (tall, wide) == recipe.covered_size != recipe.input_size:
        rows, cols = recipe.input_size
        seen += (
            f": the last {rows - tall} rows and {cols - wide} columns of its {rows} x {cols} px fill no patch"
        )
    return f"photo {height} x {width} px to input {tall} x {wide} px, {seen}"


def _sequence(job: Job) -> ReceivedImage:
    (picture, how), recipe = job.see(), job.loaded.preprocess
    return ReceivedImage(np.asarray(recipe.reverse(recipe.apply(picture, **how).pixels)))


PATCHES = asks(
    _patches,
    label="Patches",
    also_called="patchify, grid of patches",
    shows="where the model cuts the photo: the rectangle of each patch in its pixels.",
    hides="what the model makes of a patch.",
    formula=r"patches $[n, P^2 C]$ with $n = \frac{H}{P} \cdot \frac{W}{P}$",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1",
    class_blind=True,
    reads="trace",
    place=Place("patches"),
)


SEQUENCE = asks(
    _sequence,
    label="Sequence",
    also_called="tokenization, tokens, input",
    shows="the pixels that the model receives, cut into patches in the order of its tokens.",
    hides="what the model makes of a patch.",
    formula=r"tokens $[p + n, D]$",
    source="Dosovitskiy et al. 2021, arXiv:2010.11929, section 3.1",
    class_blind=True,
    reads="photo",
    place=Place("patches"),
)
