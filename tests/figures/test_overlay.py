"""The map on the photo: where it lands, how it is blended, what it must never touch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.figures.colormaps import table
from vit_viz.figures.overlay import overlay, photo_region
from vit_viz.figures.styles import STYLES, Style, drawn
from vit_viz.geometry import CropBox
from vit_viz.results import PatchMap

SIZES = [(60, 180), (97, 100), (180, 60), (131, 53)]  # height, width: 1:3 to 3:1
GRID = (4, 6)


def boxes(size: tuple[int, int]) -> dict[str, CropBox]:
    """The four ways in which a photo of this size can become an input of 32 x 48 pixels."""
    height, width = size
    side = min(height, width)
    return {
        "fit": CropBox(size, (32, 48), (0, 0, height, width)),
        "stretch": CropBox(size, (48, 48), (0, 0, height, width)),
        "crop": CropBox(size, (32, 48), ((height - side) / 2, (width - side) / 2, side, side * 0.9)),
        "pad": CropBox(size, (32, 48), (-7.3, -4.6, height + 15.1, width + 9.2)),
    }


CASES = [(size, name) for size in SIZES for name in boxes(size)]


def photo_of(size: tuple[int, int], seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def map_of(values: Any, crop_box: CropBox | None = None, *, signed: bool = False) -> PatchMap:
    return PatchMap(np.asarray(values), "weight", (-9, 9), signed, "test", True, crop_box=crop_box)


def array(picture: Image.Image) -> NDArray[np.uint8]:
    return np.array(picture)


@pytest.mark.parametrize(("size", "name"), CASES)
def test_one_hot_maps_light_the_right_rectangle_of_the_original(size: tuple[int, int], name: str) -> None:
    box, black = boxes(size)[name], Image.new("RGB", size[::-1])
    for row, col in [(0, 0), (1, 4), (3, 5)]:
        values = np.zeros(GRID)
        values[row, col] = 1
        lit = array(overlay(black, map_of(values, box), alpha=1, table="gray"))[..., 0] == 255
        top, left, bottom, right = box.patch_rect(row, col, GRID)
        down, across = np.flatnonzero(lit.any(axis=1)), np.flatnonzero(lit.any(axis=0))
        assert abs(down[0] - max(top, 0)) <= 1
        assert abs(down[-1] + 1 - min(bottom, size[0])) <= 1
        assert abs(across[0] - max(left, 0)) <= 1
        assert abs(across[-1] + 1 - min(right, size[1])) <= 1
        assert lit[down[0] : down[-1] + 1, across[0] : across[-1] + 1].all()


@pytest.mark.parametrize(("size", "name"), CASES)
def test_every_pixel_has_the_colour_of_the_patch_that_it_lies_in(size: tuple[int, int], name: str) -> None:
    box, photo = boxes(size)[name], photo_of(size)
    places = np.arange(24, dtype=np.float64).reshape(GRID) * 10
    drawn = array(overlay(photo, map_of(places, box), alpha=1, table="viridis", scale=(0, 255)))
    for y in range(0, size[0], 3):
        for x in range(0, size[1], 3):
            patch = box.locate(y + 0.5, x + 0.5, GRID)
            expected = table("viridis")[int(places[patch])] if patch else array(photo)[y, x]
            assert (drawn[y, x] == expected).all(), (y, x, patch)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("smooth", [False, True])
def test_alpha_zero_is_the_photo_bit_for_bit(style: Style, smooth: bool) -> None:
    photo, box = photo_of((97, 100)), boxes((97, 100))["crop"]
    values = np.random.default_rng(0).random(GRID)
    drawn = overlay(photo, map_of(values, box), style=style, alpha=0, smooth=smooth)
    np.testing.assert_array_equal(array(drawn), array(photo))


@pytest.mark.parametrize("alpha", [0.01, 0.35, 0.6, 1.0])
def test_overlay_is_the_plain_convex_blend(alpha: float) -> None:
    photo = photo_of((40, 60))
    values = np.random.default_rng(0).random((4, 6))
    colour = array(overlay(photo, map_of(values), alpha=1)).astype(np.float64)
    drawn = array(overlay(photo, map_of(values), alpha=alpha))
    expected = (1 - alpha) * array(photo) + alpha * colour
    assert abs(drawn - expected).max() <= 0.501


@pytest.mark.parametrize("name", ["fit", "crop"])
def test_smooth_equals_torchs_bilinear_interpolation(name: str) -> None:
    size = (96, 102)
    region = {"fit": (0, 0, 96, 102), "crop": (10, 21, 60, 60)}[name]
    box = CropBox(size, (32, 48), region)
    values = np.random.default_rng(0).random(GRID, dtype=np.float32)
    drawn = array(
        overlay(photo_of(size), map_of(values, box), alpha=1, table="gray", scale=(0, 1), smooth=True)
    )
    wanted = torch.nn.functional.interpolate(
        torch.from_numpy(values)[None, None], region[2:], mode="bilinear", align_corners=False
    )
    inside = drawn[region[0] : region[0] + region[2], region[1] : region[1] + region[3], 0]
    assert abs(inside - 255 * wanted[0, 0].numpy()).max() <= 0.51


def test_smooth_interpolates_values_and_clips_afterwards() -> None:
    drawn = array(
        overlay(
            Image.new("RGB", (4, 1)), map_of([[0, 4.0]]), alpha=1, table="gray", scale=(0, 1), smooth=True
        )
    )
    np.testing.assert_array_equal(drawn[0, :, 0], [0, 255, 255, 255])


@pytest.mark.parametrize("grid", [(1, 1), (1, 5), (3, 1)])
def test_smooth_works_on_grids_of_one_row_or_column(grid: tuple[int, int]) -> None:
    values = np.full(grid, 0.5)
    drawn = array(
        overlay(photo_of((20, 30)), map_of(values), alpha=1, table="gray", scale=(0, 1), smooth=True)
    )
    assert (drawn == 128).all()


@pytest.mark.parametrize("smooth", [False, True])
def test_the_photo_outside_the_models_input_is_untouched(smooth: bool) -> None:
    size, photo = (60, 180), photo_of((60, 180))
    box = CropBox(size, (32, 32), (0, 60, 60, 60))
    drawn = array(overlay(photo, map_of(np.eye(4), box), smooth=smooth))
    np.testing.assert_array_equal(drawn[:, :60], array(photo)[:, :60])
    np.testing.assert_array_equal(drawn[:, 120:], array(photo)[:, 120:])
    assert (drawn[:, 60:120] != array(photo)[:, 60:120]).any()


def test_a_smaller_copy_of_the_photo_gets_the_map_at_the_same_place() -> None:
    box = CropBox((400, 1201), (32, 48), (100, 300, 200, 600))
    values = np.zeros(GRID)
    values[2, 3] = 1
    small = Image.new("RGB", (300, 100))
    lit = array(overlay(small, map_of(values, box), alpha=1, table="gray"))[..., 0] == 255
    np.testing.assert_array_equal(np.flatnonzero(lit.any(axis=1))[[0, -1]], [50, 61])
    np.testing.assert_array_equal(np.flatnonzero(lit.any(axis=0))[[0, -1]], [150, 174])


def test_a_photo_of_another_shape_is_refused() -> None:
    box = CropBox((400, 1200), (32, 48), (0, 0, 400, 1200))
    with pytest.raises(ParameterError, match="1200 x 400 pixels"):
        overlay(Image.new("RGB", (300, 300)), map_of(np.eye(4), box))


@pytest.mark.parametrize("original", [(100, 37), (37, 100), (911, 53), (53, 911)])
def test_a_copy_of_any_size_is_still_the_same_photo(original: tuple[int, int]) -> None:
    height, width = original
    box = CropBox(original, (32, 48), (0, 0, height, width))
    for longest in range(max(original) // 9, max(original)):
        factor = longest / max(original)
        size = max(1, round(width * factor)), max(1, round(height * factor))
        assert photo_region(Image.new("RGB", size), box) == (
            0,
            0,
            pytest.approx(size[1]),
            pytest.approx(size[0]),
        )


@pytest.mark.parametrize(
    ("original", "height", "accepted"),
    [
        ((100, 37), 50, range(18, 20)),  # 18.5 across, and 1.37 either way
        ((37, 100), 20, range(51, 58)),  # 54.05 across, and 3.70 either way
    ],
)
def test_rounding_explains_a_pixel_and_no_more(
    original: tuple[int, int], height: int, accepted: range
) -> None:
    box = CropBox(original, (32, 48), (0, 0, *original))
    for width in range(accepted.start - 3, accepted.stop + 3):
        photo = Image.new("RGB", (width, height))
        if width in accepted:
            assert photo_region(photo, box)[3] == pytest.approx(width)
        else:
            with pytest.raises(ParameterError, match=f"this one, {width} x {height}, has another shape"):
                photo_region(photo, box)


def test_signed_maps_are_drawn_on_a_diverging_scale_centred_at_zero() -> None:
    drawn = array(overlay(Image.new("RGB", (3, 1)), map_of([[-0.5, 0, 1]], signed=True), alpha=1))
    np.testing.assert_array_equal(drawn[0], table("diverging")[[64, 128, 255]])


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("smooth", [False, True])
def test_constant_maps_have_a_defined_picture(signed: bool, smooth: bool) -> None:
    value = 0.0 if signed else 0.37
    drawn = array(
        overlay(photo_of((8, 12)), map_of(np.full((2, 3), value), signed=signed), alpha=1, smooth=smooth)
    )
    assert (drawn == table("diverging" if signed else "viridis")[128]).all()


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_strength_outside_zero_and_one_is_refused(alpha: float) -> None:
    with pytest.raises(ParameterError, match="between 0 and 1"):
        overlay(photo_of((8, 8)), map_of(np.eye(2)), alpha=alpha)


def test_a_photo_that_is_not_rgb_is_refused() -> None:
    with pytest.raises(ParameterError, match="mode L"):
        overlay(Image.new("L", (8, 8)), map_of(np.eye(2)))


def test_infinite_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="infinite"):
        overlay(photo_of((8, 8)), map_of([[np.inf, 1]]))


def test_the_photo_that_was_given_stays_as_it_was() -> None:
    photo = photo_of((20, 20))
    before = array(photo)
    overlay(photo, map_of(np.eye(2)))
    np.testing.assert_array_equal(array(photo), before)


@pytest.mark.parametrize("style", ["light", "tint"])
@pytest.mark.parametrize("smooth", [False, True])
def test_a_style_draws_each_pixel_by_the_share_of_its_value(style: Style, smooth: bool) -> None:
    size, box = (40, 66), CropBox((40, 66), (32, 48), (4, 6, 32, 54))
    photo, values = photo_of(size), np.random.default_rng(4).random(GRID, dtype=np.float32)
    pixels = array(overlay(photo, map_of(values, box), style=style, alpha=0.7, smooth=smooth))
    gray = array(overlay(photo, map_of(values, box), alpha=1, table="gray", smooth=smooth))[..., 0] / 255
    wanted = drawn(array(photo), gray, style=style, strength=0.7, colours=table("gray"))
    inside = (slice(4, 36), slice(6, 60))
    assert abs(pixels[inside].astype(int) - wanted[inside]).max() <= 1
    outside = np.ones(size, bool)
    outside[inside] = False
    np.testing.assert_array_equal(pixels[outside], array(photo)[outside])


def test_a_map_of_both_signs_is_not_drawn_in_light() -> None:
    with pytest.raises(ParameterError, match="both signs"):
        overlay(photo_of((8, 8)), map_of(np.eye(2), signed=True), style="light")
