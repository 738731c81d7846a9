"""Patches as parts of a figure: their grid on the photo, and their sequence; lines and words stay lines and words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

from vit_viz.analyses.patches import PatchPlaces, ReceivedImage
from vit_viz.figures.blocks import TEXT
from vit_viz.figures.lettering import inks, text_width
from vit_viz.figures.patches import first_and_last, patch_tiles, received_photo
from vit_viz.figures.scene import Drawn, Scene, drawn
from vit_viz.figures.sheet import Bitmap, Box, FigureBlock, Mark, TextLine, printed_size

_INKS = inks("light")
_DARK, _BRIGHT = (40, 40, 40), (255, 255, 255)
_LINE = 0.4  # points that a dark line and the bright one beside it take each
_NUMBER = 4.6  # size of the numbers of patches
_TILE, _GAP = 11.0, 1.1  # of the longer side of a patch in the sequence, and between two
_PIXELS = 28  # of that side


@drawn.register(PatchPlaces)
def _places(_places: PatchPlaces, scene: Scene) -> Drawn:
    """The photo, hatched where the model does not see it, with the lines between patches and perhaps their numbers."""
    trace, photo, width = scene.trace, scene.photo, scene.inner
    grid = trace.layout.grid
    assert trace.crop_box is not None
    assert photo is not None
    size = printed_size(photo, width, scene.output.dpi)
    image, (top, left, height, wide) = received_photo(
        photo, grid=grid, crop_box=trace.crop_box, longest_side=max(size)
    )
    tall = width * image.height / image.width
    place = (top * tall, left * width, height * tall, wide * width)
    marks: list[Mark] = [Bitmap(0, 0, width, tall, image)]
    marks += _lines(place, grid)
    if scene.parameters.get("numbers"):
        marks += _numbers(place, grid)
    title = f"Patch grid: {grid[0]} rows x {grid[1]} columns"
    return _of_patches(FigureBlock(tall, tuple(marks)), title, scene)


@drawn.register(ReceivedImage)
def _received(received: ReceivedImage, scene: Scene) -> Drawn:
    """The tokens in the order in which the model receives them: prefix tokens, patches, suffix tokens, wrapped like text."""
    layout, width = scene.trace.layout, scene.inner
    tiles = patch_tiles(received.picture, grid=layout.grid, tile=_PIXELS)
    left = text_width(f"{len(tiles)} - {len(tiles)}", TEXT) + TEXT
    marks, top = _names("prefix", layout.prefix, left=left, width=width)
    unit = _TILE / _PIXELS
    wide, tall = tiles[0].width * unit + _GAP, max(tiles[0].height * unit + _GAP, 1.1 * TEXT)
    across = max(1, int((width - left + _GAP) / wide))
    white = np.full((tiles[0].height, round(_GAP / unit), 3), 255, np.uint8)
    for line, start in enumerate(range(0, len(tiles), across)):
        held, y = tiles[start : start + across], top + line * tall
        words = f"{start} - {start + len(held) - 1}" if len(held) > 1 else f"{start}"
        at = y + tiles[0].height * unit / 2 + 0.35 * TEXT
        marks.append(TextLine(left - 0.6 * TEXT, at, words, TEXT, _INKS.text, "end"))
        parts = [part for one in held for part in (np.asarray(one), white)]
        strip = Image.fromarray(np.concatenate(parts[:-1], axis=1))
        marks.append(Bitmap(left, y, strip.width * unit, strip.height * unit, strip, sharp=True))
    below = top + -(-len(tiles) // across) * tall
    ending, foot = _names("suffix", first_and_last(layout.suffix), left=left, width=width, top=below + _GAP)
    title = "The sequence of tokens that the model receives"
    return _of_patches(FigureBlock(max(below, foot), (*marks, *ending)), title, scene)


def _of_patches(body: FigureBlock, title: str, scene: Scene) -> Drawn:
    provenance = scene.trace.provenance.with_parameters(method=scene.label.lower())
    return Drawn([body], provenance, title, scene.about(scene.trace.provenance))


def _lines(place: tuple[float, float, float, float], cells: tuple[int, int]) -> list[Mark]:
    """A dark line beside a bright one at each edge, so that one of them shows on any photo."""
    top, left, height, width = place
    marks: list[Mark] = []
    for shift, colour in ((-_LINE, _DARK), (0.0, _BRIGHT)):
        for row in range(cells[0] + 1):
            marks.append(Box(left, top + height * row / cells[0] + shift, width, _LINE, fill=colour))
        for col in range(cells[1] + 1):
            marks.append(Box(left + width * col / cells[1] + shift, top, _LINE, height, fill=colour))
    return marks


def _numbers(place: tuple[float, float, float, float], cells: tuple[int, int]) -> list[Mark]:
    """The number of each patch in its corner, on white; of every k-th one where they would not fit."""
    top, left, height, width = place
    tall, wide = height / cells[0], width / cells[1]
    room = text_width(str(cells[0] * cells[1] - 1), _NUMBER) + 1.2
    every = math.ceil(1.3 * _NUMBER / tall), math.ceil(1.15 * room / wide)
    marks: list[Mark] = []
    for row in range(0, cells[0], every[0]):
        for col in range(0, cells[1], every[1]):
            x, y, words = left + col * wide + _LINE, top + row * tall + _LINE, str(row * cells[1] + col)
            marks.append(Box(x, y, text_width(words, _NUMBER) + 1.2, 1.05 * _NUMBER, fill=_BRIGHT))
            marks.append(TextLine(x + 0.6, y + 0.85 * _NUMBER, words, _NUMBER, _INKS.text))
    return marks


def _names(
    what: str, names: Sequence[str], *, left: float, width: float, top: float = 0.0
) -> tuple[list[Mark], float]:
    """A box with the name of each token, wrapped; with it where the next part begins."""
    if not names:
        return [], top
    marks: list[Mark] = [TextLine(left - 0.6 * TEXT, top + 1.25 * TEXT, what, TEXT, _INKS.quiet, "end")]
    x, y, tall = left, top, 1.8 * TEXT
    for name in names:
        wide = text_width(name, TEXT) + TEXT
        if x > left and x + wide > width:
            x, y = left, y + tall + 3
        marks.append(Box(x, y, wide, tall, outline=_INKS.line))
        marks.append(TextLine(x + wide / 2, y + 1.25 * TEXT, name, TEXT, _INKS.text, "middle"))
        x += wide + 3
    return marks, y + tall + 5
