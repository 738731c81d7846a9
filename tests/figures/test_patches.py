"""The patch grid at true geometry, what was left out, and the order of the sequence."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures.patches import patch_tiles, received_photo
from vit_viz.geometry import CropBox

GRID = (4, 6)


def gray(size: tuple[int, int]) -> Image.Image:
    return Image.new("RGB", size[::-1], (100, 100, 100))


def test_hatching_changes_only_what_the_model_did_not_receive() -> None:
    size = (60, 180)
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8))
    box = CropBox(size, (32, 32), (5, 60, 50, 60))
    hatched, place = received_photo(photo, grid=(4, 4), crop_box=box, longest_side=180)
    np.testing.assert_allclose(place, (5 / 60, 60 / 180, 50 / 60, 60 / 180))
    changed = (np.array(photo) != np.array(hatched)).any(axis=-1)
    assert not changed[5:55, 60:120].any()
    changed[5:55, 60:120] = True
    assert changed.mean() > 0.99


def test_padding_is_shown_beyond_the_photo() -> None:
    size = (100, 200)
    box = CropBox(size, (32, 48), (-10, -20, 120, 240))
    picture, place = received_photo(gray(size), grid=GRID, crop_box=box, longest_side=240)
    assert picture.size == (240, 120)
    assert place == (0, 0, 1, 1)
    assert (np.array(picture)[10:110, 20:220] == np.array(gray(size))).all()


def test_large_photos_are_reduced_and_small_ones_enlarged_for_their_patches() -> None:
    large, small = (3000, 1000), (16, 24)
    boxes = (CropBox(size, (32, 48), (0, 0, *size)) for size in (large, small))
    reduced, enlarged = (
        received_photo(gray(box.original_size), grid=GRID, crop_box=box, longest_side=1600)[0]
        for box in boxes
    )
    assert reduced.size == (533, 1600)
    assert enlarged.size == (6 * 8, 4 * 8)


def test_an_empty_grid_is_refused() -> None:
    box = CropBox((8, 8), (8, 8), (0, 0, 8, 8))
    with pytest.raises(ParameterError, match="0 x 4"):
        received_photo(gray((8, 8)), grid=(0, 4), crop_box=box, longest_side=8)


def test_patches_keep_their_own_pixels_when_enlarged_row_by_row() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8 * 4, 8 * 6, 3), dtype=np.uint8)
    tiles = patch_tiles(Image.fromarray(pixels), grid=GRID, tile=16)
    assert len(tiles) == 24
    wanted = pixels[8:16, 16:24].repeat(2, axis=0).repeat(2, axis=1)  # patch (1, 2)
    np.testing.assert_array_equal(np.array(tiles[8]), wanted)


def test_an_input_that_the_grid_does_not_divide_is_refused() -> None:
    with pytest.raises(ParameterError, match="33 x 48"):
        patch_tiles(Image.new("RGB", (48, 33)), grid=GRID, tile=16)
