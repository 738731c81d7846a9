"""Layers x heads in one picture: every value at its pixel, gaps, labels, and a scale that is said."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.render.colormaps import Scale, Table, grid_limits, table
from vit_viz.render.lettering import inks
from vit_viz.render.mosaic import mosaic_cells, mosaic_picture, scale_bar
from vit_viz.render.styles import Style, drawn

LAYERS, HEADS, ROWS, COLS = 3, 5, 4, 6


def some_maps() -> NDArray[np.float64]:
    return np.random.default_rng(0).random((LAYERS, HEADS, ROWS, COLS))


def sheet(
    maps: NDArray[np.float64], *, colours: Table = "gray", scale: Scale = "shared", signed: bool = False
) -> NDArray[np.uint8]:
    """The cells at one pixel per patch, [layers * rows, heads * cols, 3]."""
    ends = grid_limits(maps, scale=scale, signed=signed)
    return np.array(mosaic_cells(maps, ends, style="heat", photo=None, table=colours, cell=1))


def cell(pixels: NDArray[np.uint8], layer: int, head: int) -> NDArray[np.uint8]:
    return pixels[layer * ROWS : (layer + 1) * ROWS, head * COLS : (head + 1) * COLS]


def test_cells_have_one_pixel_per_patch_and_nothing_between_them() -> None:
    assert sheet(some_maps()).shape[1::-1] == (HEADS * COLS, LAYERS * ROWS)


def test_mosaic_shows_every_value_at_its_place() -> None:
    maps = some_maps()
    pixels = sheet(maps)[..., 0].astype(float)
    share = (maps - maps.min()) / (maps.max() - maps.min())
    for layer, head in np.ndindex(LAYERS, HEADS):
        assert abs(cell(pixels, layer, head) - 255 * share[layer, head]).max() <= 1.5


def test_the_brightest_pixel_is_the_one_hot_patch() -> None:
    maps = np.zeros((LAYERS, HEADS, ROWS, COLS))
    maps[2, 3, 1, 4] = 1
    pixels = sheet(maps)[..., 0]
    assert list(zip(*np.nonzero(pixels), strict=True)) == [(2 * ROWS + 1, 3 * COLS + 4)]


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


def test_zero_is_neutral_in_signed_maps() -> None:
    maps = some_maps() - 0.7
    maps[1, 2, 3, 4] = 0
    pixels = sheet(maps, colours="diverging", signed=True)
    assert (cell(pixels, 1, 2)[3, 4] == table("diverging")[128]).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_mosaic_refuses_values_that_are_no_numbers(wrong: float) -> None:
    maps = some_maps()
    maps[0, 0, 0, 0] = wrong
    with pytest.raises(ParameterError, match="1 of 360"):
        mosaic_picture(maps)


def test_mosaic_refuses_maps_that_lack_an_axis() -> None:
    with pytest.raises(ParameterError, match="3 axes"):
        mosaic_picture(np.zeros((3, 4, 6)))


def test_labelled_mosaic_has_whole_pixels_per_patch() -> None:
    maps = np.zeros((LAYERS, HEADS, ROWS, COLS))
    maps[1, 2, 3, 4] = 1
    pixels = np.array(mosaic_picture(maps, cell=60, table="viridis"))
    lit = (pixels[:330] == table("viridis")[255]).all(axis=-1)
    assert lit.sum() == 100  # 60 / 6 columns = 10 pixels a side
    down, across = np.flatnonzero(lit.any(axis=1)), np.flatnonzero(lit.any(axis=0))
    assert down[-1] - down[0] == across[-1] - across[0] == 9


def test_the_ring_of_the_selected_head_hides_no_pixel_of_a_map() -> None:
    plain, ringed = (np.array(mosaic_picture(some_maps(), selected=chosen)) for chosen in (None, (1, 2)))
    changed = (plain != ringed).any(axis=-1)
    assert changed.any()
    assert (ringed[changed] == inks("light").mark).all()
    assert (plain[changed] == inks("light").paper).all()


def test_names_must_fit_the_maps() -> None:
    with pytest.raises(ParameterError, match="5 heads need 5 names"):
        mosaic_picture(some_maps(), heads=["0", "1"])


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


@pytest.mark.parametrize("chosen", [(0, 0), (2, 4), (0, 4), (2, 0), (1, 3)])
def test_the_ring_lies_around_the_map_of_the_selected_layer_and_head(chosen: tuple[int, int]) -> None:
    maps = np.zeros((LAYERS, HEADS, ROWS, COLS))
    maps[chosen] = 1
    plain, ringed = (
        np.array(mosaic_picture(maps, cell=60, selected=one)).astype(int) for one in (None, chosen)
    )
    ring = (plain != ringed).any(axis=-1)
    lit = (ringed[:330] == table("viridis")[255]).all(axis=-1)
    assert lit.sum() == (ROWS * 10) * (COLS * 10)
    for axis in (0, 1):
        of_ring, of_map = np.flatnonzero(ring.any(axis=axis)), np.flatnonzero(lit.any(axis=axis))
        assert 0 < of_map[0] - of_ring[0] <= 4
        assert 0 < of_ring[-1] - of_map[-1] <= 4


def test_names_stand_beside_their_layer_and_above_their_head() -> None:
    """Where the picture changes with one name is in line with the one map that is lit."""
    maps = np.zeros((LAYERS, HEADS, ROWS, COLS))
    maps[2, 3] = 1
    heads, layers = [str(i) for i in range(HEADS)], [str(i) for i in range(LAYERS)]
    plain, other_head, other_layer = (
        np.array(mosaic_picture(maps, cell=60, heads=h, layers=y)).astype(int)
        for h, y in [(heads, layers), ([*heads[:3], "8", heads[4]], layers), (heads, [*layers[:2], "8"])]
    )
    lit = (plain[:330] == table("viridis")[255]).all(axis=-1)
    down, across = np.flatnonzero(lit.any(axis=1)), np.flatnonzero(lit.any(axis=0))
    changed = (plain != other_head).any(axis=-1)
    columns, rows = np.flatnonzero(changed.any(axis=0)), np.flatnonzero(changed.any(axis=1))
    assert across[0] < columns[0] <= columns[-1] < across[-1]
    assert rows[-1] < down[0] - 2 * (ROWS * 10)
    changed = (plain != other_layer).any(axis=-1)
    columns, rows = np.flatnonzero(changed.any(axis=0)), np.flatnonzero(changed.any(axis=1))
    assert down[0] < rows[0] <= rows[-1] < down[-1]
    assert columns[-1] < across[0] - 3 * (COLS * 10)


@pytest.mark.parametrize("style", ["light", "tint"])
def test_every_cell_of_a_mosaic_is_the_photo_drawn_by_its_map(style: Style) -> None:
    """One patch of one map is at the top of the scale and all others are at its low end."""
    maps = np.zeros((LAYERS, HEADS, ROWS, COLS))
    maps[1, 2, 3, 4] = 1
    photo = Image.fromarray(
        np.random.default_rng(2).integers(0, 256, (ROWS * 10, COLS * 10, 3), dtype=np.uint8)
    )
    page = np.array(mosaic_picture(maps, style=style, photo=photo, cell=60))
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


def test_a_mosaic_in_light_needs_its_photo() -> None:
    with pytest.raises(ParameterError, match="light needs the photo"):
        mosaic_picture(some_maps(), style="light")


def test_a_mosaic_of_signed_maps_keeps_its_colours_in_every_style() -> None:
    maps = some_maps() - 0.7
    plain, lit = (np.array(mosaic_picture(maps, signed=True, style=style)) for style in ("heat", "light"))
    np.testing.assert_array_equal(plain, lit)
