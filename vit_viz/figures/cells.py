"""Tables as cells: heads, pairs of states, pairs of positions, and patches or heads that belong to groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.head_names import HeadNames
from vit_viz.analyses.sink_kinds import Kind, SinkKinds
from vit_viz.analyses.value_paths import SentencePatches
from vit_viz.figures import blocks
from vit_viz.figures.blocks import ColourBar
from vit_viz.figures.colormaps import default_table, limits
from vit_viz.figures.lettering import capital
from vit_viz.figures.overlay import photo_region
from vit_viz.figures.scene import Drawn, Scene, drawn, joined
from vit_viz.figures.sheet import FigureBlock
from vit_viz.geometry import CropBox
from vit_viz.results import HeadTable, Segments, StateMatrix, TokenMatrix
from vit_viz.sentences import counted

_GROUP_COLOURS = (
    *((59, 130, 196), (213, 94, 0), (0, 158, 115), (201, 106, 156), (176, 125, 0), (122, 111, 208)),
    *((86, 180, 233), (240, 228, 66), (140, 140, 140), (140, 70, 40), (0, 90, 90), (190, 30, 45)),
)
"""After Okabe and Ito; of more groups than colours, the further ones begin again."""


@drawn.register(HeadTable)
def _heads(table: HeadTable, scene: Scene) -> Drawn:
    """A number for every head, written into its cell."""
    body = _cells(table.values, scene, ("layer", "head"), unit=table.unit, signed=table.signed)
    caption = joined(scene.about(table.provenance), table.note)
    return Drawn(body, table.provenance, capital(table.method), caption)


@drawn.register(StateMatrix)
def _matrix(matrix: StateMatrix, scene: Scene) -> Drawn:
    """A number for every pair of states, by name."""
    body = _cells(matrix.values, scene, ("", ""), unit=matrix.unit, labels=(matrix.names, matrix.others))
    caption = joined(scene.about(matrix.provenance), matrix.note)
    return Drawn(body, matrix.provenance, capital(matrix.method), caption)


def _cells(
    values: NDArray[np.float32],
    scene: Scene,
    names: tuple[str, str],
    *,
    unit: str,
    signed: bool = False,
    labels: tuple[Sequence[str], Sequence[str]] | None = None,
) -> list[FigureBlock]:
    ends, table = limits(values, signed=signed), default_table(signed=signed)
    grid = blocks.grid_block(
        blocks.cells_image(values, table, ends),
        (values.shape[0], values.shape[1]),
        scene.inner,
        names=names,
        labels=labels,
        ringed=scene.ringed,
        values=values,
        tallest=0.75,
    )
    return [grid, blocks.bar_block(ColourBar(table, *ends, unit=unit), scene.inner)]


@drawn.register(TokenMatrix)
def _positions(matrix: TokenMatrix, scene: Scene) -> Drawn:
    """All positions as small maps, each where it lies in the photo."""
    (rows, cols), ends = matrix.grid, limits(matrix.values, signed=matrix.signed)
    table = default_table(signed=matrix.signed)
    tiles = matrix.values.reshape(rows, cols, rows, cols).transpose(0, 2, 1, 3)
    image = blocks.cells_image(tiles.reshape(rows * rows, cols * cols), table, ends)
    body = [
        blocks.grid_block(
            blocks.spaced(image, matrix.grid), matrix.grid, scene.inner, names=("row", "column")
        ),
        blocks.bar_block(ColourBar(table, *ends, unit=matrix.unit), scene.inner),
    ]
    title = f"{capital(matrix.method)}, grid {rows} x {cols}"
    words = f"Each position with all {rows} x {cols} patch positions, laid out like the patches; one scale for all maps"
    caption = joined(words, scene.about(matrix.provenance), matrix.note)
    return Drawn(body, matrix.provenance, title, caption)


@drawn.register(Segments)
def _segments(segments: Segments, scene: Scene) -> Drawn:
    """The patches of each segment in one colour, over the photo where there is one."""
    names = [f"segment {place}" for place in range(segments.count)]
    body = _regions(segments.labels, names, segments.crop_box, scene)
    caption = joined(scene.about(segments.provenance), segments.note)
    return Drawn(body, segments.provenance, capital(segments.method), caption)


@drawn.register(SentencePatches)
def _sentences(patches: SentencePatches, scene: Scene) -> Drawn:
    """The map of each sentence, and below them which fits each patch best."""
    maps = drawn(patches.maps, scene)
    above = blocks.title_block("The sentence that fits each patch best", scene.inner, size=blocks.TEXT)
    regions = _regions(patches.best, patches.maps.names, patches.maps.crop_box, scene)
    return Drawn([*maps.blocks, above, *regions], maps.provenance, maps.title, maps.caption)


def _regions(
    labels: NDArray[np.int64], names: Sequence[str], crop_box: CropBox | None, scene: Scene
) -> list[FigureBlock]:
    """The patches of each label in one colour, over the photo where there is one, and a key that says how many there are."""
    image = _grouped(labels)
    if scene.photo is None or crop_box is None:
        body = blocks.grid_block(blocks.enlarged(image), _shape(labels), scene.inner, names=("row", "column"))
    else:
        top, left, height, width = photo_region(scene.photo, crop_box)
        size = max(1, round(width)), max(1, round(height))
        covered = scene.photo.copy()  # by the colours, where the model received it
        covered.paste(
            Image.fromarray(image).resize(size, Image.Resampling.NEAREST), (round(left), round(top))
        )
        body = blocks.picture_block(Image.blend(scene.photo, covered, 0.55), scene.inner)
    sizes = np.bincount(labels.ravel(), minlength=len(names))
    words = [f"{name}: {counted(int(size), 'patch')}" for name, size in zip(names, sizes, strict=True)]
    colours = _GROUP_COLOURS * len(words)
    return [body, blocks.key_block(list(zip(words, colours, strict=False)), scene.inner)]


@drawn.register(HeadNames)
def _names(names: HeadNames, scene: Scene) -> Drawn:
    """What every head is called, a colour for each name."""
    shape = _shape(next(iter(names.numbers.values())))
    kinds = sorted({head.name for head in names.heads})
    groups = np.array([kinds.index(head.name) for head in names.heads]).reshape(shape)
    caption = scene.about(names.provenance)
    return Drawn(_in_colours(groups, kinds, scene), names.provenance, "Names of the heads", caption)


@drawn.register(SinkKinds)
def _sinks(sinks: SinkKinds, scene: Scene) -> Drawn:
    """How many queries each head sends to one token, and where they are enough for a sink, of which kind it is."""
    body = _cells(sinks.queries, scene, ("layer", "head"), unit="share of queries with half on one token")
    kinds = get_args(Kind)
    groups = np.array([[kinds.index(kind) for kind in row] for row in sinks.kinds])
    caption = scene.about(sinks.provenance)
    if groups.any():
        body += _in_colours(groups, kinds, scene)
    else:
        none = "No head has a sink: one token to which 90% of the queries send half of their attention."
        caption = joined(caption, none)
    return Drawn(body, sinks.provenance, "Kinds of sinks", caption)


def _in_colours(groups: NDArray[np.int64], names: Sequence[str], scene: Scene) -> list[FigureBlock]:
    """The group of every head by its colour, and a key that says how many there are of each."""
    grid = blocks.grid_block(blocks.enlarged(_grouped(groups)), _shape(groups), scene.inner, tallest=0.75)
    sizes = np.bincount(groups.ravel(), minlength=len(names))
    key = [
        (f"{name}: {counted(int(size), 'head')}", colour)
        for name, size, colour in zip(names, sizes, _GROUP_COLOURS, strict=False)
        if size
    ]
    return [grid, blocks.key_block(key, scene.inner)]


def _grouped(groups: NDArray[np.int64]) -> NDArray[np.uint8]:
    """A colour for the group of each cell, [rows, cols, 3]."""
    colours: NDArray[np.uint8] = np.array(_GROUP_COLOURS, np.uint8)[groups % len(_GROUP_COLOURS)]
    return colours


def _shape(values: NDArray[np.generic]) -> tuple[int, int]:
    rows, cols = values.shape
    return rows, cols
