"""A part of a picture: read, checked, written back, cut bit for bit, and placed in the whole again."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.images import Preprocess
from vit_viz.images.part import (
    MIN_PART_SIDE,
    checked_part,
    cut,
    format_part,
    parse_part,
    part_size,
    part_words,
)


def picture(height: int = 61, width: int = 83) -> Image.Image:
    values = np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def test_a_part_is_the_same_pixels_as_in_the_whole() -> None:
    whole = picture()
    assert np.array_equal(np.asarray(cut(whole, (7, 11, 33, 41))), np.asarray(whole)[7:40, 11:52])


def test_without_a_part_the_picture_is_the_whole_one() -> None:
    whole = picture()
    assert cut(whole, None) is whole


@pytest.mark.parametrize("part", [(0, 0, 61, 83), (29, 0, 32, 83), (0, 51, 61, 32)])
def test_a_part_may_reach_to_the_edges(part: tuple[int, int, int, int]) -> None:
    assert cut(picture(), part).size == (part[3], part[2])


@pytest.mark.parametrize("part", [(0, 0, 62, 83), (0, 0, 61, 84), (30, 0, 32, 83), (0, 52, 61, 32)])
def test_a_part_beyond_the_picture_is_refused(part: tuple[int, int, int, int]) -> None:
    with pytest.raises(ParameterError, match="reaches beyond the photo, which has 61 x 83 pixels"):
        cut(picture(), part)
    with pytest.raises(ParameterError, match="reaches beyond"):
        part_size(part, (61, 83))


def test_a_part_has_at_least_32_pixels_on_each_side() -> None:
    assert MIN_PART_SIDE == 32
    assert checked_part([5, 6, 32, 33]) == (5, 6, 32, 33)
    for part in ((5, 6, 31, 33), (5, 6, 33, 31)):
        with pytest.raises(ParameterError, match="at least 32 x 32 pixels"):
            checked_part(part)


@pytest.mark.parametrize(
    "value", [(1, 2, 40), (1, 2, 40, 50, 60), (-1, 2, 40, 50), (1.0, 2, 40, 50), (True, 2, 40, 50), 7]
)
def test_what_is_no_rectangle_of_whole_pixels_is_refused(value: object) -> None:
    with pytest.raises(ParameterError, match="whole pixels"):
        checked_part(value)


def test_a_part_is_read_as_it_is_written() -> None:
    assert format_part((120, 40, 300, 400)) == "120,40,300,400"
    assert parse_part("120,40,300,400") == parse_part(" 120, 40, 300, 400 ") == (120, 40, 300, 400)


@pytest.mark.parametrize(
    "text",
    ["", "1,2,40", "1,2,40,50,60", "a,b,c,d", "1;2;40;50", "100000,2,40,50", "-1,2,40,50", "१,2,40,50"],
)
def test_a_text_that_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="A part is"):
        parse_part(text)


def test_a_part_in_words_says_where_it_is() -> None:
    assert (
        part_words((120, 40, 300, 400)) == "part of 300 x 400 pixels of the photo, from row 120 and column 40"
    )


@pytest.mark.parametrize("mode", ["fit", "crop", "stretch"])
def test_a_patch_of_a_part_lies_where_it_lies_in_the_whole(mode: str) -> None:
    """The same point of the photo is in the same patch, asked of the part and asked of the whole."""
    part = (7, 11, 33, 41)
    box = Preprocess((32, 48), (8, 8)).apply(cut(picture(), part), mode=mode).crop_box  # type: ignore[arg-type]
    whole = box.within(part, (61, 83))
    assert whole.original_size == (61, 83)
    grid = (box.input_size[0] // 8, box.input_size[1] // 8)
    for row, col in ((0, 0), (1, 3), (grid[0] - 1, grid[1] - 1)):
        inner, outer = box.patch_rect(row, col, grid), whole.patch_rect(row, col, grid)
        assert outer == pytest.approx([a + b for a, b in zip(inner, (7, 11, 7, 11), strict=True)])
        centre = (outer[0] + outer[2]) / 2, (outer[1] + outer[3]) / 2
        assert whole.locate(*centre, grid) == (row, col)


def test_a_part_of_another_size_is_not_this_original() -> None:
    with pytest.raises(ParameterError, match="is not this original"):
        CropBox((33, 41), (32, 48), (0.0, 0.0, 33.0, 41.0)).within((0, 0, 41, 33), (61, 83))
