"""What an answer is made of: its parts as a sum, and from where each head took its part, on one signed scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.decomposition import Decomposition
from vit_viz.figures import blocks
from vit_viz.figures.blocks import TEXT, ColourBar
from vit_viz.figures.colormaps import Limits, clipped, limits, table as colour_table
from vit_viz.figures.lettering import inks, text_width
from vit_viz.figures.mosaics import mosaic_cells
from vit_viz.figures.overlay import overlay
from vit_viz.figures.scene import Drawn, Scene, drawn, joined
from vit_viz.figures.sheet import Box, FigureBlock, Mark, TextLine, moved, printed_size
from vit_viz.sentences import formatted

_INKS = inks("light")
_PHOTO = 0.44  # of the width; the sum stands beside it
_TALLEST = 1.35  # of the maps, in their widths: higher ones continue beside themselves
_STRENGTH = 0.6  # of the colours over the gray photo: both are seen
_STEP = 1.8  # from one part of the sum to the next, in units of its letters
_SHADE = 40  # of the diverging table, from its ends: dark enough to be seen on paper


@drawn.register(Decomposition)
def _decomposition(decomposed: Decomposition, scene: Scene) -> Drawn:
    """The photo with what its patches gave through all heads, the sum, a map for each head, and a number for each part."""
    merged = decomposed.maps.shape[1] < decomposed.heads.shape[1]
    whose = "the heads of each layer took their" if merged else "each head took its"
    body = [
        _overview(decomposed, scene),
        _heading(f"From where {whose} part", scene),
        *_maps(decomposed, scene),
        _heading("What each head and each MLP gave", scene),
        _numbers(decomposed, scene),
    ]
    seen = "On the photo: what each patch gave through all heads; " if scene.photo is not None else ""
    caption = joined(
        f"{seen}orange is for the {decomposed.unit}, blue against it",
        decomposed.note,
        scene.about(decomposed.provenance),
    )
    return Drawn(body, decomposed.provenance, decomposed.finding, caption)


def _heading(text: str, scene: Scene) -> FigureBlock:
    return blocks.title_block(text, scene.inner, size=TEXT)


def _overview(decomposed: Decomposition, scene: Scene) -> FigureBlock:
    """The photo with the map of all heads, and the sum beside it; the sum alone where there is no photo."""
    ordered = summands(decomposed)
    if scene.photo is None:
        return _sum(ordered, decomposed.total, scene.inner)
    wide = _PHOTO * scene.inner
    whole = decomposed.map_of()
    size = printed_size(scene.photo, wide, scene.output.dpi)
    image = overlay(
        scene.photo.resize(size, Image.Resampling.LANCZOS).convert("L").convert("RGB"),
        whole,
        alpha=_STRENGTH * scene.drawing.alpha,
        scale=_ends(whole.values, scene),
        smooth=scene.drawing.smooth,
    )
    photo = blocks.picture_block(image, wide)
    left = wide + 2 * TEXT
    beside = _sum(ordered, decomposed.total, scene.inner - left)
    down = max(0.0, (photo.height - beside.height) / 2)
    marks = (*photo.marks, *(moved(mark, left, down) for mark in beside.marks))
    return FigureBlock(max(photo.height, beside.height), marks)


def summands(decomposed: Decomposition) -> dict[str, float]:
    """The sum in a few summands: the embedding, all heads, all MLPs, then biases by name."""
    parts = dict(zip(decomposed.rest_names, decomposed.rest.tolist(), strict=True))
    parts["all heads"] = float(decomposed.heads.sum(dtype=np.float64))
    parts["all MLPs" if len(decomposed.mlps) > 1 else "MLP"] = float(decomposed.mlps.sum(dtype=np.float64))
    first = ("embedding", "all heads", "all MLPs", "MLP")
    return {name: parts[name] for name in first if name in parts} | parts


def _sum(parts: dict[str, float], total: float, width: float) -> FigureBlock:
    """The parts as bars from 0 to both sides, and their sum under a line."""
    names, values = (*parts, "together"), (*parts.values(), total)
    # four digits of the largest, so that they are seen to add up
    decimals = max(0, 3 - math.floor(math.log10(max(map(abs, values)) or 1.0)))
    words = [formatted(value, f"+.{decimals}f" if decimals < 8 else "+.3e") for value in values]
    left = max(text_width(name, TEXT) for name in names) + TEXT
    room = max(text_width(word, TEXT) for word in words) + 0.6 * TEXT
    low, high = min(0.0, *values), max(0.0, *values)
    unit = max(width - left - room, TEXT) / ((high - low) or 1.0)
    zero, colours = left - low * unit, colour_table("diverging")
    marks: list[Mark] = []
    for row, (name, value, word) in enumerate(zip(names, values, words, strict=True)):
        is_total = row == len(parts)
        top = row * _STEP * TEXT + is_total * 0.6 * TEXT
        red, green, blue = colours[-1 - _SHADE if value > 0 else _SHADE].tolist()
        fill = _INKS.quiet if is_total else (red, green, blue)
        start = zero + min(0.0, value) * unit
        marks.append(TextLine(left - 0.6 * TEXT, top + TEXT, name, TEXT, _INKS.text, "end"))
        marks.append(Box(start, top + 0.15 * TEXT, max(abs(value) * unit, 0.3), TEXT, fill=fill))
        marks.append(TextLine(max(zero, start + abs(value) * unit) + 3, top + TEXT, word, TEXT, _INKS.text))
    line = (len(parts) * _STEP + 0.1) * TEXT
    marks.append(Box(0, line, width, 0.4, fill=_INKS.line))
    return FigureBlock((len(names) * _STEP + 0.6) * TEXT, tuple(marks))


def _maps(decomposed: Decomposition, scene: Scene) -> list[FigureBlock]:
    """The patches' terms, layers downwards, all on one scale with 0 in its middle; and the scale."""
    maps = decomposed.maps
    ends = _ends(maps, scene)
    cells = mosaic_cells(maps, np.broadcast_to(ends, (*maps.shape[:2], 2)), style="heat", table="diverging")
    shape = (maps.shape[0], maps.shape[1])
    heads = tuple(map(str, range(shape[1]))) if shape[1] == decomposed.heads.shape[1] else ("all",)
    grid = blocks.wrapped_grid(
        cells, shape, scene.inner, tallest=_TALLEST, labels=(decomposed.layers, heads), ringed=scene.ringed
    )
    unit = f"part of the {decomposed.unit}, one scale for all maps"
    return [
        grid,
        blocks.bar_block(ColourBar("diverging", *ends, unit=unit, clips=scene.drawing.clip), scene.inner),
    ]


def _ends(values: NDArray[np.float32], scene: Scene) -> Limits:
    return (clipped if scene.drawing.clip else limits)(values, signed=True)


def _numbers(decomposed: Decomposition, scene: Scene) -> FigureBlock:
    """A number for every head, for all heads of a layer together, and for its MLP."""
    values = np.column_stack((decomposed.heads, decomposed.heads.sum(1), decomposed.mlps)).astype(np.float32)
    heads = tuple(map(str, range(decomposed.heads.shape[1])))
    return blocks.grid_block(
        blocks.cells_image(values, "diverging", limits(values, signed=True)),
        (values.shape[0], values.shape[1]),
        scene.inner,
        labels=(decomposed.layers, (*heads, "all", "MLP")),
        values=values,
        tallest=0.6,
    )
