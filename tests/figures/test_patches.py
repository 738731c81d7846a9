"""The patch grid at true geometry, what was left out, and the order of the sequence."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures.lettering import inks
from vit_viz.figures.patches import patch_grid, patch_sequence, received_photo, visible_area
from vit_viz.geometry import CropBox

GRID = (4, 6)


def gray(size: tuple[int, int]) -> Image.Image:
    return Image.new("RGB", size[::-1], (100, 100, 100))


def bright_starts(line: NDArray[np.uint8]) -> list[int]:
    """First pixels of the bright runs of a line of gray."""
    bright = line.astype(int) > 100
    return np.flatnonzero(bright & ~np.r_[False, bright[:-1]]).tolist()


@pytest.mark.parametrize("size", [(120, 360), (201, 199), (360, 120)])
@pytest.mark.parametrize("mode", ["fit", "crop"])
def test_grid_lines_lie_where_the_patches_meet(size: tuple[int, int], mode: str) -> None:
    height, width = size
    region = (
        (0, 0, height, width) if mode == "fit" else (height * 0.1, width * 0.2, height * 0.7, width * 0.55)
    )
    box = CropBox(size, (32, 48), region)
    pixels = np.array(patch_grid(gray(size), grid=GRID, crop_box=box))[..., 0]
    assert pixels.shape == size
    middle = (round(region[0] + region[2] * 0.5 / 4), round(region[1] + region[3] * 0.5 / 6))
    inside = (slice(int(region[0]) + 2, int(region[0] + region[2]) - 2), slice(int(region[1]) + 2, None))
    wanted_rows = [box.patch_rect(row, 0, GRID)[0] for row in range(1, 4)]
    wanted_cols = [box.patch_rect(0, col, GRID)[1] for col in range(1, 6)]
    rows = [y + inside[0].start for y in bright_starts(pixels[inside[0], middle[1]])]
    right = int(region[1] + region[3]) - 2
    cols = [x + inside[1].start for x in bright_starts(pixels[middle[0], inside[1].start : right])]
    np.testing.assert_allclose(rows, wanted_rows, atol=1)
    np.testing.assert_allclose(cols, wanted_cols, atol=1)


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
    picture = patch_grid(gray(size), grid=GRID, crop_box=box)
    assert picture.size == (240, 120)
    assert visible_area(size, box.region) == (-10, -20, 110, 220)


def test_the_visible_area_of_a_crop_is_the_photo() -> None:
    assert visible_area((100, 200), (5, 50, 90, 90)) == (0, 0, 100, 200)


def test_large_photos_are_reduced_and_small_ones_enlarged_for_lines() -> None:
    large, small = (3000, 1000), (16, 24)
    reduced = patch_grid(gray(large), grid=GRID, crop_box=CropBox(large, (32, 48), (0, 0, *large)))
    assert reduced.size == (533, 1600)
    enlarged = patch_grid(gray(small), grid=GRID, crop_box=CropBox(small, (32, 48), (0, 0, *small)))
    assert enlarged.size == (6 * 8, 4 * 8)


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(ParameterError, match="0 x 4"):
        patch_grid(gray((8, 8)), grid=(0, 4), crop_box=CropBox((8, 8), (8, 8), (0, 0, 8, 8)))


def one_colour_per_patch() -> Image.Image:
    """24 patches of 8 x 8 pixels whose red is 10 x index and whose green marks a patch."""
    red = np.kron(np.arange(24).reshape(GRID) * 10, np.ones((8, 8)))
    return Image.fromarray(np.stack([red, np.full_like(red, 77), np.full_like(red, 33)], -1).astype(np.uint8))


@pytest.mark.parametrize("width", [120, 300, 2000])
@pytest.mark.parametrize(
    "prefix", [(), ("class",), ("class", "register 0", "register 1", "distillation", "x")]
)
def test_the_sequence_reads_row_by_row(width: int, prefix: tuple[str, ...]) -> None:
    strip = np.array(patch_sequence(one_colour_per_patch(), grid=GRID, prefix=prefix, width=width, tile=16))
    marked = (strip[..., 1] == 77) & (strip[..., 2] == 33)
    read = []
    for y in range(strip.shape[0]):  # the first pixel row of each line of patches
        if marked[y].any() and not marked[y - 1].any():
            reds = strip[y, marked[y], 0]
            read += (reds.reshape(-1, 16)[:, 0] // 10).tolist()
    assert read == list(range(24))


def test_patches_keep_their_own_pixels_when_enlarged() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8 * 4, 8 * 6, 3), dtype=np.uint8)
    strip = np.array(patch_sequence(Image.fromarray(pixels), grid=GRID, width=4000, tile=16))
    wanted = pixels[8:16, 16:24].repeat(2, axis=0).repeat(2, axis=1)  # patch (1, 2)
    left = next(x for x in range(strip.shape[1] - 16) if (strip[:16, x : x + 16] == wanted).all())
    assert left > 0


def test_prefix_tokens_come_before_the_patches() -> None:
    without = patch_sequence(one_colour_per_patch(), grid=GRID)
    with_prefix = patch_sequence(one_colour_per_patch(), grid=GRID, prefix=("class", "register 0"))
    added = with_prefix.height - without.height
    assert added > 10
    np.testing.assert_array_equal(np.array(with_prefix)[added:], np.array(without))
    assert (np.array(with_prefix)[:added] == inks("light").line).all(axis=-1).any()


def test_an_input_that_the_grid_does_not_divide_is_refused() -> None:
    with pytest.raises(ParameterError, match="33 x 48"):
        patch_sequence(Image.new("RGB", (48, 33)), grid=GRID)


@pytest.mark.parametrize("size", [(120, 360), (202, 198)])
def test_the_grid_is_closed_on_all_four_sides(size: tuple[int, int]) -> None:
    box = CropBox(size, (32, 48), (0, 0, *size))
    pixels = np.array(patch_grid(gray(size), grid=GRID, crop_box=box))[..., 0].astype(int)
    middle = (round(size[0] * 1.5 / 4), round(size[1] * 1.5 / 6))
    column, row = pixels[:, middle[1]], pixels[middle[0]]
    for line in (column, row):
        assert line[0] != 100
        assert line[-1] != 100
        assert (line[len(line) // 8 : len(line) // 7] == 100).all()
