"""Many small maps on one sheet: one query in every head of every layer, and the states of the tokens one after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.attention import HeadMaps
from vit_viz.analyses.position_tables import FilterComponents
from vit_viz.answer import Provenance
from vit_viz.errors import ParameterError
from vit_viz.figures import blocks, styles
from vit_viz.figures.blocks import ColourBar
from vit_viz.figures.colormaps import (
    Scale,
    Table,
    default_table,
    finite,
    grid_limits,
    indices,
    limits,
    table as colour_table,
)
from vit_viz.figures.lettering import capital, number
from vit_viz.figures.maps import drawn_words, query_patches, with_fused_heads
from vit_viz.figures.overlay import between_centres
from vit_viz.figures.request import DrawingOptions
from vit_viz.figures.scene import Drawn, Scene, drawn, joined
from vit_viz.figures.styles import Look
from vit_viz.results import TokenMaps

_TALLEST = 1.35  # of a mosaic, in its widths: higher ones continue beside themselves
_ACROSS = 4  # states beside each other
_FILTERS_ACROSS = 7
_LEVELS = 254  # 255 values, whose middle one a constant map has
_CELL_PIXELS = 96  # of the longer side of a map at least
_MOST_PIXELS = 64  # of a patch


@drawn.register(HeadMaps)
def _mosaic(maps: HeadMaps, scene: Scene) -> Drawn:
    """One query in every head of every layer, with axes; layers that a page has no height for continue beside the first."""
    how, parameters = scene.drawing, scene.parameters
    query, direction = parameters["query"], parameters["direction"]
    trace, photo = scene.trace, received_part(scene)
    style, why = styles.chosen(how.style, scene.photo or photo)
    ends = mosaic_ends(maps.values, how)
    cells = mosaic_cells(maps.values, ends, style=style, photo=photo, table=how.table, smooth=how.smooth)
    bar = scale_bar(
        ends, table=how.table, scale=how.scale, unit="attention weight", style=style, clips=how.clip
    )
    provenance = trace.provenance.with_parameters(method="attention", query=query, direction=direction)
    body = blocks.wrapped_grid(
        cells,
        maps.values.shape[:2],
        scene.inner,
        tallest=_TALLEST,
        ringed=scene.ringed,
        marks=_cell_marks(query_patches(provenance, parameters), maps.values.shape[2:]),
    )
    looks = "looks at" if direction == "row" else "is looked at by"
    title = capital(f"{trace.layout.describe(query)} {looks}, in every head of every layer")
    ends_words = f"Values {number(maps.values.min())} to {number(maps.values.max())}"
    drawing = (
        f"{ends_words}; {drawn_words(why or style, smooth=how.smooth)}{'; peaks clipped' if how.clip else ''}"
    )
    caption = joined(scene.about(trace.provenance), drawing)
    return Drawn([body, blocks.bar_block(bar, scene.inner)], provenance, title, caption)


def _cell_marks(
    places: list[tuple[int, int]], grid: tuple[int, ...]
) -> list[tuple[float, float, float, float]]:
    """Where the patches that ask lie in every map, (top, left, height, width) in shares of it."""
    rows, cols = grid
    return [(row / rows, col / cols, 1 / rows, 1 / cols) for row, col in places]


def mosaic_ends(maps: NDArray[np.float32], how: DrawingOptions) -> NDArray[np.float64]:
    """The ends of the scale of each map of a mosaic, [layers, heads, 2]: as the explorer draws them."""
    ends = grid_limits(with_fused_heads(maps), scale=how.scale, clip=how.clip)
    return ends[:, : maps.shape[1]]


def mosaic_cells(
    maps: NDArray[np.floating],
    ends: NDArray[np.float64],
    *,
    style: Look,
    table: Table,
    photo: Image.Image | None = None,
    cell: int = _CELL_PIXELS,
    smooth: bool = False,
) -> Image.Image:
    """All maps side by side, layers downwards and heads to the right, without anything between them.

    Args:
        maps: [layers, heads, rows, cols].
        ends: of the scale of each map, [layers, heads, 2].
        photo: as the model received it; heat does without.
        cell: pixels of the longer side of a map, about.
        smooth: bilinear between patch centres, each map for itself, instead of patches as they are.
    """
    rows, cols = maps.shape[2:]
    factor = min(max(1, -(-cell // max(rows, cols))), _MOST_PIXELS)
    shares = _shares(finite(maps), ends).astype(np.float32)
    if smooth:
        shares, factor = between_centres(shares, factor), 1
    shares, size = shares.clip(0, 1), (shares.shape[3] * factor, shares.shape[2] * factor)
    colours = colour_table(table)
    if style == "heat":
        levels = colours[indices(np.arange(_LEVELS + 1), vmin=0, vmax=_LEVELS)]
        tight = _side_by_side(levels[np.floor(shares * _LEVELS + 0.5).astype(np.uint8)])
        return tight.resize((tight.width * factor, tight.height * factor), Image.Resampling.NEAREST)
    if photo is None:
        raise ParameterError(f"A mosaic in {style} needs the photo.")
    pixels = np.array(photo.convert("RGB").resize(size, Image.Resampling.LANCZOS))
    large = shares.repeat(factor, axis=2).repeat(factor, axis=3)
    behind = np.broadcast_to(pixels, (*large.shape, 3))
    return _side_by_side(styles.drawn(behind, large, style=style, strength=1.0, colours=colours))


def _shares(maps: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values as their places between the ends of their map, 0 to 1 and beyond; a constant map lies in the middle."""
    low, high = ends[..., 0, None, None], ends[..., 1, None, None]
    width = np.where(high > low, high - low, 1.0)
    shares: NDArray[np.float64] = np.where(high > low, (maps - low) / width, 0.5)
    return shares


def _side_by_side(cells: NDArray[np.uint8]) -> Image.Image:
    """Pictures [layers, heads, rows, cols, 3] as one, [layers * rows, heads * cols, 3]."""
    layers, heads, rows, cols, _ = cells.shape
    return Image.fromarray(cells.transpose(0, 2, 1, 3, 4).reshape(layers * rows, heads * cols, 3))


def scale_bar(
    ends: NDArray[np.float64],
    *,
    table: Table,
    scale: Scale = "shared",
    unit: str = "",
    style: Look = "heat",
    clips: bool = False,
) -> ColourBar:
    """The colour bar of a mosaic: numbers where all maps share a scale, words where they do not."""
    if scale == "shared":
        return ColourBar(table, float(ends[..., 0].min()), float(ends[..., 1].max()), unit, style, clips)
    whose = {"layer": "layer", "own": "map"}[scale]
    unlike = f"own scale per {whose}: colours of different {whose}s are not comparable"
    return ColourBar(table, f"min of {whose}", f"max of {whose}", f"{unit}; {unlike}", style)


def received_part(scene: Scene) -> Image.Image:
    """The part of the photo that the model received; black where it reaches beyond the photo."""
    box, photo = scene.trace.crop_box, scene.photo
    assert box is not None
    assert photo is not None
    top, left, height, width = box.region
    return photo.crop((round(left), round(top), round(left + width), round(top + height)))


@drawn.register(TokenMaps)
def _states(maps: TokenMaps, scene: Scene) -> Drawn:
    """The map of each state with its name, all on one scale; of several numbers a patch, the first three as red, green and blue."""
    if maps.values.ndim == 4:
        how = "The first three numbers of each patch as red, green and blue, each on one scale for all states"
        low, high = maps.values.min(axis=(0, 1, 2)), maps.values.max(axis=(0, 1, 2))
        share = (maps.values - low) / np.where(high > low, high - low, 1.0)
        count = min(3, maps.values.shape[3])
        colours = np.full((*maps.values.shape[:3], 3), 0.5)  # missing numbers lie in the middle
        colours[..., :count] = share[..., :count]
        pictures = [blocks.enlarged((255 * state + 0.5).astype(np.uint8)) for state in colours]
        bar = []
    else:
        how = "One scale for all maps"
        ends, table = limits(maps.values, signed=maps.signed), default_table(signed=maps.signed)
        pictures = [blocks.cells_image(state, table, ends) for state in maps.values]
        bar = [blocks.bar_block(ColourBar(table, *ends, unit=maps.unit), scene.inner)]
    marks = _cell_marks(query_patches(maps.provenance, scene.parameters), maps.grid)
    tiles = list(zip(maps.names, pictures, strict=True))
    body = blocks.tiles_block(tiles, scene.inner, across=_ACROSS, sharp=True, marks=marks)
    caption = joined(how, scene.about(maps.provenance), maps.note)
    return Drawn([body, *bar], maps.provenance, capital(maps.method), caption)


@drawn.register(FilterComponents)
def _filters(filters: FilterComponents, scene: Scene) -> Drawn:
    """Each direction as a small picture: three channels as red, green and blue, gray in the middle where it is 0."""
    sizes = np.abs(filters.values).max(axis=(1, 2, 3), keepdims=True)
    share = 0.5 + 0.5 * filters.values / np.where(sizes > 0, sizes, 1.0)
    colours = share if share.shape[1] == 3 else share.mean(axis=1, keepdims=True).repeat(3, axis=1)
    pixels = (255 * colours.transpose(0, 2, 3, 1) + 0.5).astype(np.uint8)
    names = [f"{part:.1%}" for part in filters.shares]
    tiles = [(name, blocks.enlarged(one)) for name, one in zip(names, pixels, strict=True)]
    caption = joined("Share of the variance of the filters above each; every picture has its own scale")
    body = blocks.tiles_block(tiles, scene.inner, across=_FILTERS_ACROSS, sharp=True)
    return Drawn([body], Provenance(), scene.label, caption)
