"""Maps over their photo: the scale that they are drawn on, the mark of the token that asks, and several beside each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vit_viz.analyses.attention import HeadMaps, mass_mask
from vit_viz.analyses.explain import Explanations
from vit_viz.analyses.methods import METHODS
from vit_viz.analyses.share_maps import OwnParts, shares
from vit_viz.answer import Provenance
from vit_viz.figures import blocks
from vit_viz.figures.blocks import ColourBar
from vit_viz.figures.colormaps import Limits, clipped, default_table, limits
from vit_viz.figures.lettering import capital, number
from vit_viz.figures.overlay import overlay, photo_region
from vit_viz.figures.request import DrawingOptions
from vit_viz.figures.scene import Drawn, Scene, drawn, joined
from vit_viz.figures.sheet import FigureBlock, Mark, printed_size
from vit_viz.figures.styles import Look, chosen
from vit_viz.geometry import CropBox
from vit_viz.results import PatchMap, TokenMatrix

Scaled = tuple[PatchMap, Limits, str]
"""A map as it is drawn, the ends of its scale, and the scale in words."""

CLIPPED = ", peaks clipped"
"""How the words of a scale end beyond which there are values."""


@drawn.register(PatchMap)
def _map(patch_map: PatchMap, scene: Scene) -> Drawn:
    """A map over its photo, or by itself where there is none."""
    if scene.photo is None:
        return _alone(patch_map, scene)
    patch_map, ends, whose = scaled(patch_map, scene.beside, scene.drawing, scene.parameters)
    patch_map = _told_where(masked(patch_map, scene.drawing.mask), scene.photo.size)
    image, words, bar = over_photo(scene.photo, patch_map, ends, scene)
    bar = replace(bar, clips=whose.endswith(CLIPPED))
    how = scene.drawing
    caption = map_caption(patch_map, scale_name=whose, smooth=how.smooth, alpha=how.alpha, style_name=words)
    marks = query_marks(patch_map, scene.parameters, scene.photo.size, scene.inner)
    body = [blocks.picture_block(image, scene.inner, marks), blocks.bar_block(bar, scene.inner)]
    name = f"{scene.photo_name}: " if scene.photo_name else ""
    return Drawn(body, patch_map.provenance, name + capital(patch_map.method), caption)


def _alone(patch_map: PatchMap, scene: Scene) -> Drawn:
    """A map as a table of its patches, on the scale of what stands beside it."""
    beside = scene.beside
    whole = beside if isinstance(beside, PatchMap | TokenMatrix) else patch_map
    ends, table = limits(whole.values, signed=whole.signed), default_table(signed=patch_map.signed)
    grid = blocks.grid_block(
        blocks.cells_image(patch_map.values, table, ends),
        patch_map.grid,
        scene.inner,
        names=("row", "column"),
        ringed=scene.ringed,
    )
    bar = blocks.bar_block(ColourBar(table, *ends, unit=patch_map.unit), scene.inner)
    caption = joined(patch_map.caption, scene.about(patch_map.provenance), patch_map.note)
    return Drawn([grid, bar], patch_map.provenance, capital(patch_map.method), caption)


@drawn.register(Explanations)
def _comparison(maps: Explanations, scene: Scene) -> Drawn:
    """Several maps of one photo beside each other, each on its own scale, or as shares on one."""
    across = min(len(maps.maps), 3 if scene.inner > 200 else 2)
    wide = blocks.tile_width(across, scene.inner)
    tiles, bars = [], dict[bool, FigureBlock]()
    for name, one in maps.maps.items():
        patch_map, ends, whose = scaled(one, scene.beside, scene.drawing, {})
        table = default_table(signed=patch_map.signed)
        if scene.photo is None:
            image, bar = (
                blocks.cells_image(patch_map.values, table, ends),
                ColourBar(table, *ends, unit=patch_map.unit),
            )
        else:
            shown = masked(patch_map, scene.drawing.mask)
            image, _, bar = over_photo(scene.photo, shown, ends, scene, width=wide)
        if scene.beside is not None:  # of maps with both signs another one
            bars[one.signed] = blocks.bar_block(replace(bar, clips=whose.endswith(CLIPPED)), scene.inner)
        tiles.append((METHODS[name].words.label, image))
    body = blocks.tiles_block(tiles, scene.inner, across=across, sharp=scene.photo is None)
    provenance = next((one.provenance for one in maps.maps.values()), Provenance())
    caption = joined(
        scene.about(provenance),
        f"Each map has its own scale{CLIPPED if scene.drawing.clip else ''}" if not bars else whose,
        *maps.missing.values(),
    )
    return Drawn([body, *bars.values()], provenance, scene.label, caption)


def _told_where(patch_map: PatchMap, size: tuple[int, int]) -> PatchMap:
    """The map of pixels that were given in place of a photo with a note, where the photo (width, height) is not those pixels."""
    box = patch_map.crop_box
    if patch_map.provenance.image or box is None or box.original_size == size[::-1]:
        return patch_map
    return replace(
        patch_map, note=f"{patch_map.note} Placed as if the model had received all of this picture.".strip()
    )


def over_photo(
    photo: Image.Image, patch_map: PatchMap, ends: Limits, scene: Scene, *, width: float = 0.0
) -> tuple[Image.Image, str, ColourBar]:
    """The photo with the map, as large as it is printed, `width` points across or all; how it is drawn in words; the scale."""
    style, why = chosen(scene.drawing.style, photo, signed=patch_map.signed)
    photo_region(photo, patch_map.crop_box)  # refused by its own size, before it has another
    # enlarged where it has fewer pixels than are printed, so that patches keep their edges
    size = printed_size(photo, width or scene.inner, scene.output.dpi)
    image = laid_over(photo.resize(size, Image.Resampling.LANCZOS), patch_map, ends, scene.drawing, style)
    table = "diverging" if patch_map.signed else scene.drawing.table
    return image, why or style, ColourBar(table, *ends, unit=patch_map.unit, style=style)


def laid_over(
    photo: Image.Image, patch_map: PatchMap, ends: Limits, how: DrawingOptions, style: Look
) -> Image.Image:
    """A map over a photo as large as it is shown, in a style that suits it."""
    table = None if patch_map.signed else how.table
    return overlay(photo, patch_map, style=style, alpha=how.alpha, table=table, scale=ends, smooth=how.smooth)


# --- the token that asks


def query_patches(provenance: Provenance, parameters: Mapping[str, Any]) -> list[tuple[int, int]]:
    """The patches (row, col) from which a map starts; none where it starts from another token."""
    query = parameters.get("query") or dict(provenance.parameters).get("query", "")
    return [(int(row), int(col)) for row, col in re.findall(r"(\d+), ?(\d+)", str(query))]


def query_marks(
    patch_map: PatchMap, parameters: Mapping[str, Any], size: tuple[int, int], width: float
) -> tuple[Mark, ...]:
    """Frames around the patches from which a map starts, on a picture, `width` points across, of a photo of (width, height)."""
    box = patch_map.crop_box or CropBox.of_pixels(size[1], size[0])
    to_points = width / box.original_size[1]
    marks: list[Mark] = []
    for place in query_patches(patch_map.provenance, parameters):
        rect, sides = box.patch_rect(*place, patch_map.grid), box.original_size * 2
        top, left, bottom, right = (
            min(max(edge, 0), side) * to_points for edge, side in zip(rect, sides, strict=True)
        )  # a patch may reach beyond the picture
        marks += blocks.frame(left, top, right - left, bottom - top)
    return tuple(marks)


# --- scales


def scaled(patch_map: PatchMap, beside: object, how: DrawingOptions, parameters: Mapping[str, Any]) -> Scaled:
    """A map on the scale of what stands beside it: all heads of a mosaic, all quick methods, or nothing but itself.

    Methods measure different things, so that their raw values cannot share a scale. What can be compared is each patch's share of
    its map: that is the common scale, which ends at the largest share in any of the quick maps.
    """
    if isinstance(beside, OwnParts):
        apart = np.concatenate([other.values.ravel() for other in beside.maps.values()])
        return patch_map, *_ends(apart, "one for all methods: share less the mean of all", how, signed=True)
    if isinstance(beside, Explanations):
        sizes = np.concatenate([np.abs(shares(other).values).ravel() for other in beside.maps.values()])
        (_, top), words = _ends(sizes, "one for all methods: each patch's share of its map", how)
        return shares(patch_map), (-top if patch_map.signed else 0.0, top), words
    values, whose = patch_map.values, "own"
    if isinstance(beside, HeadMaps):
        values, whose = with_fused_heads(beside.values), "shared by all heads of all layers"
        if how.scale == "layer":
            values, whose = values[parameters["layer"]], f"layer {parameters['layer']}"
    ends, words = _ends(values, whose, how, signed=patch_map.signed)
    return patch_map, ends, words


def _ends(
    values: NDArray[np.float32], whose: str, how: DrawingOptions, *, signed: bool = False
) -> tuple[Limits, str]:
    """The ends of the scale on which these values are drawn, and the scale in words."""
    whole = limits(values, signed=signed)
    ends = clipped(values, signed=signed) if how.clip else whole
    return ends, whose if ends == whole else f"{whose}{CLIPPED}"


def masked(patch_map: PatchMap, share: float) -> PatchMap:
    """The map with everything outside the top that is kept at zero, and a note that says so.

    As it is where nothing is left out (share 0), and where it has no top: with both signs, or the same everywhere, as is noted.
    """
    if not share or patch_map.signed:
        return patch_map
    if patch_map.peak is None:
        return replace(patch_map, note=f"{patch_map.note} It is the same everywhere, and has no top.".strip())
    kept = np.where(mass_mask(patch_map, share), patch_map.values, 0)
    note = f"{patch_map.note} Only the top {share:.0%}: the fewest patches that hold this share of the map.".strip()
    return replace(patch_map, values=kept, note=note)


def with_fused_heads(maps: NDArray[np.float32]) -> NDArray[np.float32]:
    """The maps of all heads and, as in the explorer, their mean, maximum and minimum: [layers, heads + 3, rows, cols]."""
    fused = [fuse(maps, axis=1, keepdims=True) for fuse in (np.mean, np.max, np.min)]
    return np.concatenate([maps, *fused], axis=1)


# --- in words


def map_caption(
    patch_map: PatchMap,
    *,
    scale_name: str,
    smooth: bool = False,
    alpha: float | None = None,
    style_name: str = "",
) -> str:
    """A map in words: what it is, of which model, how it was drawn, and what it does not show; one line for each."""
    low, high = float(patch_map.values.min()), float(patch_map.values.max())
    values = f"this map's own values {number(low)} to {number(high)}"
    drawing = drawn_words(style_name, smooth=smooth, alpha=alpha)
    of_model = patch_map.provenance.model_words
    lines = [
        _sentence(patch_map.caption),
        _sentence("; ".join(part for part in (of_model, patch_map.provenance.preprocess) if part)),
        _sentence(_beside_patches(patch_map)),
        _sentence(f"Scale: {scale_name}; {values}; {drawing}"),
        "Class-blind: does not depend on the predicted class." if patch_map.class_blind else "",
        _sentence(patch_map.note),
    ]
    return "\n".join(line for line in lines if line)


def drawn_words(style_name: str, *, smooth: bool, alpha: float | None = None) -> str:
    """How a map was drawn, as captions say it: the style, smooth or patches, and the strength where it is not full."""
    strength = "" if alpha is None or alpha == 1 else f"strength {alpha:.0%}"
    drawing = "smooth between patch centres" if smooth else "patches as they are"
    return "; ".join(part for part in (style_name, drawing, strength) if part)


def _beside_patches(patch_map: PatchMap) -> str:
    """What fell on prefix tokens, and on suffix tokens by kind: a patch map alone hides it."""
    lines = []
    for where, values in (("Prefix", patch_map.prefix), ("Suffix", patch_map.suffix_kinds)):
        parts = [f"{name} = {number(value)}" for name, value in values.items()]
        lines += [f"{where} tokens, not drawn: {', '.join(parts)}"] if parts else []
    return ". ".join(lines)


def _sentence(text: str) -> str:
    """The text with a capital and a full stop, or nothing."""
    text = text.strip()
    return capital(text) + ("" if text.endswith((".", "!", "?")) else ".") if text else ""
