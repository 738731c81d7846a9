"""Marks as pixels: each where its points say, at so many pixels for an inch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vit_viz.errors import ExportError
from vit_viz.figures.raster import raster
from vit_viz.figures.sheet import MOST_PIXELS, Bitmap, Box, Mark, Path, Sheet, TextLine, checked

WIDTH, HEIGHT = 70, 40  # points
RED = (200, 30, 60)


def drawn(*marks: Mark, dpi: float = 144) -> NDArray[np.uint8]:
    """The pixels of a sheet with these marks; there are two for each point."""
    return np.asarray(raster(Sheet(WIDTH, HEIGHT, marks), dpi=dpi))


def assert_covers(pixels: NDArray[np.uint8], left: int, top: int, right: int, bottom: int) -> None:
    """All of the rectangle is red; beyond the pixels at its edges all is white."""
    assert (pixels[top + 1 : bottom - 1, left + 1 : right - 1] == RED).all()
    outside = np.ones(pixels.shape[:2], bool)
    outside[top - 1 : bottom + 1, left - 1 : right + 1] = False
    assert (pixels[outside] == 255).all()


@pytest.mark.parametrize(("dpi", "shape"), [(72, (40, 70)), (144, (80, 140)), (100, (56, 97))])
def test_a_sheet_has_so_many_pixels_for_an_inch(dpi: float, shape: tuple[int, int]) -> None:
    pixels = drawn(dpi=dpi)
    assert pixels.shape == (*shape, 3)
    assert (pixels == 255).all()


def test_a_filled_path_lies_where_its_points_lie() -> None:
    corners = ((45.0, 6.0), (62.0, 6.0), (62.0, 17.0), (45.0, 17.0))
    assert_covers(drawn(Path(corners, RED, is_filled=True)), 90, 12, 124, 34)


@pytest.mark.parametrize(
    ("points", "place"),
    [(((41.0, 9.0), (66.0, 9.0)), (82, 15, 132, 21)), (((53.0, 4.0), (53.0, 31.0)), (103, 8, 109, 62))],
)
def test_a_line_has_its_stroke_around_its_points(
    points: tuple[tuple[float, float], ...], place: tuple[int, int, int, int]
) -> None:
    assert_covers(drawn(Path(points, RED, stroke=3)), *place)


def test_a_box_is_filled_within_its_edges_and_outlined_along_them() -> None:
    pixels = drawn(
        Box(30, 5, 20, 9, fill=RED), Box(8, 22, 15, 11, outline=RED, stroke=2), Box(60, 30, 0.1, 0.1, RED)
    )
    expected = np.full((80, 140), False)
    expected[10:28, 60:100] = True
    expected[44:66, 16:46] = True
    expected[48:62, 20:42] = False
    expected[60, 120] = True  # never less than a pixel
    np.testing.assert_array_equal((pixels == RED).all(axis=-1), expected)
    assert (pixels[~expected] == 255).all()


def test_pixels_of_a_sharp_picture_stay_squares_at_their_place() -> None:
    small = np.random.default_rng(0).integers(0, 200, (2, 3, 3), dtype=np.uint8)
    pixels = drawn(Bitmap(33, 12, 15, 8, Image.fromarray(small), sharp=True))
    np.testing.assert_array_equal(pixels[24:40, 66:96], small.repeat(8, axis=0).repeat(10, axis=1))
    pixels = pixels.copy()
    pixels[24:40, 66:96] = 255
    assert (pixels == 255).all()


@pytest.mark.parametrize(
    ("anchor", "left", "right"), [("start", 0, 1), ("middle", -0.5, 0.5), ("end", -1, 0)]
)
def test_text_stands_on_its_baseline_and_begins_is_centred_or_ends_at_its_point(
    anchor: str, left: float, right: float
) -> None:
    text = TextLine(38, 25, "MHM", 9, RED, anchor)  # type: ignore[arg-type]
    inked = (drawn(text) != 255).any(axis=-1)
    down, across = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    assert down[-1] + 1 == pytest.approx(2 * 25, abs=1)  # letters that reach down to the line
    assert across[0] == pytest.approx(2 * (38 + left * text.width), abs=3)
    assert across[-1] == pytest.approx(2 * (38 + right * text.width), abs=3)
    assert text.start == pytest.approx(38 + left * text.width)


def test_a_picture_has_an_end() -> None:
    assert MOST_PIXELS == 8192 * 4096
    assert checked(8192, 4096) == (8192, 4096)
    with pytest.raises(
        ExportError, match=r"at most 33554432 pixels, not 8193 x 4096: .* fewer dots per inch"
    ):
        checked(8193, 4096)


@pytest.mark.parametrize("letters", ["WiW", "pqy"])
def test_turned_text_is_the_same_text_reading_upwards(letters: str) -> None:
    flat = drawn(TextLine(20, 20, letters, 8, RED)) != 255
    upwards = drawn(TextLine(20, 20, letters, 8, RED, turned=True)) != 255
    around = flat[10:54, 30:96, 0]  # of the point (40, 40): 30 pixels up, 14 down, 10 left, 56 right
    turned = np.rot90(around, 1)  # 56 up, 10 down; 30 left, 14 right
    found = np.zeros((66, 44), bool)
    found[16:] = upwards[0:50, 10:54, 0]
    assert around.any()
    assert (turned != found).mean() < 0.02  # letters sit on a pixel's edge in one of the two at most
