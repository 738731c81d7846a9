"""Layers x heads in one picture: every value at its pixel, and a scale that is said."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures.colormaps import Scale, Table, grid_limits, table
from vit_viz.figures.files import composed, scene_of
from vit_viz.figures.mosaics import mosaic_cells, mosaic_ends, scale_bar
from vit_viz.figures.overlay import overlay
from vit_viz.figures.request import DrawingOptions, Output, figure_for
from vit_viz.figures.sheet import Bitmap
from vit_viz.figures.styles import Style, drawn
from vit_viz.results import PatchMap
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

LAYERS, HEADS, ROWS, COLS = 3, 5, 4, 6


def some_maps() -> NDArray[np.float64]:
    return np.random.default_rng(0).random((LAYERS, HEADS, ROWS, COLS))


def sheet(
    maps: NDArray[np.float64], *, colours: Table = "gray", scale: Scale = "shared"
) -> NDArray[np.uint8]:
    """The cells at one pixel per patch, [layers * rows, heads * cols, 3]."""
    ends = grid_limits(maps, scale=scale)
    return np.array(
        mosaic_cells(maps, ends, style="heat", photo=Image.new("RGB", (1, 1)), table=colours, cell=1)
    )


def cell(pixels: NDArray[np.uint8], layer: int, head: int) -> NDArray[np.uint8]:
    return pixels[layer * ROWS : (layer + 1) * ROWS, head * COLS : (head + 1) * COLS]


def test_mosaic_shows_every_value_at_its_place() -> None:
    maps = some_maps()
    pixels = sheet(maps)[..., 0].astype(float)
    share = (maps - maps.min()) / (maps.max() - maps.min())
    for layer, head in np.ndindex(LAYERS, HEADS):
        assert abs(cell(pixels, layer, head) - 255 * share[layer, head]).max() <= 1.5


def test_own_scale_fills_the_table_in_every_map() -> None:
    maps = some_maps() * np.arange(1, 16).reshape(LAYERS, HEADS, 1, 1)
    pixels = sheet(maps, scale="own")[..., 0]
    for layer, head in np.ndindex(LAYERS, HEADS):
        assert cell(pixels, layer, head).min() == 0
        assert cell(pixels, layer, head).max() == 255


def test_layer_scale_fills_the_table_once_in_every_layer() -> None:
    maps = some_maps() * np.arange(1, 16).reshape(LAYERS, HEADS, 1, 1)
    pixels = sheet(maps, scale="layer")[..., 0]
    by_layer = pixels.reshape(LAYERS, -1)
    assert by_layer.min(axis=1).tolist() == [0] * LAYERS
    assert by_layer.max(axis=1).tolist() == [255] * LAYERS
    assert (pixels == 255).sum() == LAYERS


def test_constant_maps_are_drawn_in_the_middle_of_the_table() -> None:
    pixels = sheet(np.full((2, 3, 4, 6), 0.2), colours="viridis")
    assert abs(pixels.astype(int) - table("viridis")[128]).max() <= 1


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_mosaic_refuses_values_that_are_no_numbers(wrong: float) -> None:
    maps = some_maps()
    maps[0, 0, 0, 0] = wrong
    with pytest.raises(ParameterError, match="1 of 360"):
        sheet(maps)


@pytest.mark.parametrize("scale", ["own", "layer"])
def test_a_bar_of_many_scales_says_that_colours_cannot_be_compared(scale: str) -> None:
    bar = scale_bar(grid_limits(some_maps(), scale=scale), table="viridis", scale=scale, unit="weight")  # type: ignore[arg-type]
    assert "not comparable" in bar.unit
    assert isinstance(bar.low, str)


def test_a_bar_of_one_scale_has_its_numbers() -> None:
    bar = scale_bar(grid_limits(some_maps()), table="viridis", unit="weight")
    assert (bar.low, bar.high, bar.unit) == (some_maps().min(), some_maps().max(), "weight")


def test_a_bar_of_given_ends_reaches_from_the_lowest_to_the_highest() -> None:
    ends = np.stack([np.arange(15.0).reshape(LAYERS, HEADS) - 4, np.arange(15.0).reshape(LAYERS, HEADS) + 7])
    for given in (ends, ends[:, ::-1, ::-1]):
        bar = scale_bar(np.moveaxis(given, 0, -1), table="gray", unit="nats", style="tint")
        assert (bar.low, bar.high) == (-4, 21)
        assert (bar.table, bar.unit, bar.style) == ("gray", "nats", "tint")


@pytest.mark.parametrize("style", ["light", "tint"])
def test_every_cell_of_a_mosaic_is_the_photo_drawn_by_its_map(style: Style) -> None:
    """One patch of one map is at the top of the scale and all others are at its low end."""
    maps = np.zeros((LAYERS, HEADS, ROWS, COLS))
    maps[1, 2, 3, 4] = 1
    photo = Image.fromarray(
        np.random.default_rng(2).integers(0, 256, (ROWS * 10, COLS * 10, 3), dtype=np.uint8)
    )
    page = np.array(mosaic_cells(maps, grid_limits(maps), style=style, photo=photo, table="gray", cell=60))
    low, high = (
        drawn(
            np.array(photo),
            np.full((ROWS * 10, COLS * 10), w),
            style=style,
            strength=1,
            colours=table("gray"),
        )
        for w in (0.0, 1.0)
    )
    assert count(page, low[20:40, 10:30]) == LAYERS * HEADS
    assert count(page, high[30:40, 40:50]) == 1
    assert count(page, low[30:40, 40:50]) == LAYERS * HEADS - 1


def count(page: NDArray[np.uint8], part: NDArray[np.uint8]) -> int:
    """How often a part stands in a page, pixel for pixel."""
    windows = np.lib.stride_tricks.sliding_window_view(page, part.shape)[:, :, 0]
    return int((windows == part).all(axis=(-1, -2, -3)).sum())


@pytest.mark.parametrize("style", ["heat", "light"])
def test_a_smooth_mosaic_is_each_map_drawn_smooth_over_the_photo(style: Style) -> None:
    """A peak beyond its scale at the edge of one map: neither its width nor the map beside it changes."""
    maps = np.random.default_rng(3).random((LAYERS, HEADS, ROWS, COLS)) / 2
    maps[1, 2, 3, COLS - 1] = 3
    ends = np.broadcast_to([0.0, 1.0], (LAYERS, HEADS, 2))
    photo = Image.fromarray(
        np.random.default_rng(2).integers(0, 256, (ROWS * 10, COLS * 10, 3), dtype=np.uint8)
    )
    page = np.array(
        mosaic_cells(
            maps, ends, style=style, photo=photo, table="gray", cell=10 * max(ROWS, COLS), smooth=True
        )
    )
    for layer, head in ((1, 2), (1, 3), (0, 0)):
        cell = page[layer * ROWS * 10 :, head * COLS * 10 :][: ROWS * 10, : COLS * 10]
        patch_map = PatchMap(maps[layer, head].astype(np.float32), "", (0, 3), False, "", True)
        alone = overlay(photo, patch_map, style=style, alpha=1.0, table="gray", scale=(0.0, 1.0), smooth=True)
        np.testing.assert_allclose(cell.astype(int), np.array(alone).astype(int), atol=1)


@pytest.mark.parametrize(
    ("smooth", "words"), [(True, "smooth between patch centres"), (False, "patches as they are")]
)
def test_a_saved_mosaic_is_as_smooth_as_the_screen_and_says_so(smooth: bool, words: str) -> None:
    session = Session(model="mini", device="cpu")
    how = DrawingOptions(smooth=smooth, style="heat")
    request = request_for(session, Subject(session.default_model, "twins"), "mosaic", query="class")
    figure = figure_for(request, how)
    maps = session.run(figure.request)
    drawing = composed(maps, scene_of(session, figure, Output()))
    assert words in drawing.caption
    ends = mosaic_ends(maps.values, how)
    layers, heads = maps.values.shape[:2]
    pages = [np.array(mark.image) for mark in drawing.sheet.marks if isinstance(mark, Bitmap)]
    for drawn_smooth in (True, False):
        cells = np.array(mosaic_cells(maps.values, ends, style="heat", table=how.table, smooth=drawn_smooth))
        first = cells[: cells.shape[0] // layers, : cells.shape[1] // heads]
        height, width = first.shape[:2]
        found = any((page[:height, :width] == first).all() for page in pages if page.shape[0] >= height)
        assert found == (drawn_smooth == smooth)
