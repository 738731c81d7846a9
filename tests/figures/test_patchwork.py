"""Patches in a figure: how large it may be, and the sequence as lines of patches with white between them."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.ui.desk import odd_picture, odd_session
from vit_viz.errors import ExportError
from vit_viz.figures.files import file_of
from vit_viz.figures.request import Output, figure_for
from vit_viz.images import Preprocess
from vit_viz.session.questions import request_for
from vit_viz.session.request import Subject
from vit_viz.session.session import Session

ROWS, COLS, TALL, WIDE = 4, 9, 8, 6


@pytest.fixture(scope="module")
def session() -> Session:
    """Its model has 4 x 9 patches of 8 x 6 pixels."""
    session = odd_session(patch_size=(8, 6), img_size=(32, 54))
    session.add_model(
        replace(session.model("odd"), preprocess=Preprocess(input_size=(32, 54), patch_size=(8, 6)))
    )
    return session


def svg(
    session: Session, name: str, *, width_cm: float, dpi: int, turned: bool = False, enlarged: int = 1
) -> str:
    """The figure of a photo of 37 x 90 pixels, or of 90 x 37, or of so many times that."""
    photo = odd_picture().transpose(Image.Transpose.ROTATE_90) if turned else odd_picture()
    photo = photo.resize((photo.width * enlarged, photo.height * enlarged))
    subject = Subject("odd", session.add_upload(photo), "stretch", "")
    asked = figure_for(request_for(session, subject, name))
    return file_of(session, asked, Output("svg", width_cm, dpi)).data.decode()


def pictures_in(page: str) -> list[NDArray[np.uint8]]:
    found = re.findall(r"data:image/png;base64,([^\"]+)", page)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")) for data in found]


@pytest.mark.parametrize("name", ["look", "patches"])
@pytest.mark.parametrize(("turned", "dpi", "size"), [(False, 386, "9054 x 3722"), (True, 159, "3729 x 9071")])
def test_no_figure_has_more_pixels_than_a_picture_may(
    session: Session, name: str, turned: bool, dpi: int, size: str
) -> None:
    with pytest.raises(ExportError, match=f"not {size}: please choose fewer dots"):
        svg(session, name, width_cm=60, dpi=dpi, turned=turned)


@pytest.mark.parametrize(("turned", "dpi"), [(False, 385), (True, 158)])
def test_the_patches_of_a_photo_may_be_as_large_as_any_figure(
    session: Session, turned: bool, dpi: int
) -> None:
    assert "Patch grid: 4 rows x 9 columns" in svg(session, "patches", width_cm=60, dpi=dpi, turned=turned)


@pytest.mark.parametrize(("turned", "shape"), [(False, (53, 130)), (True, (316, 130))])
def test_the_photo_under_the_patches_has_the_pixels_that_are_printed(
    session: Session, turned: bool, shape: tuple[int, int]
) -> None:
    (photo,) = pictures_in(svg(session, "patches", width_cm=5, dpi=72, turned=turned, enlarged=5))
    assert photo.shape[:2] == shape


def test_the_lines_of_the_sequence_are_printed_below_each_other(session: Session) -> None:
    page = svg(session, "sequence", width_cm=5, dpi=72)
    number = r'="([\d.]+)"'
    found = re.findall(rf"<image x{number} y{number} width{number} height{number}", page)
    lefts, tops, widths, heights = np.array(found, float).T
    assert set(lefts) == {lefts[0]}
    np.testing.assert_allclose(np.diff(tops), 11 + 1.1, atol=0.011)  # written with two digits
    np.testing.assert_allclose(heights, 11, atol=0.006)
    printed = [strip.shape[1] * 11 / 28 for strip in pictures_in(page)]
    np.testing.assert_allclose(widths, printed, atol=0.006)
    assert (lefts + widths).max() <= 5 / 2.54 * 72 - 6


def test_patches_of_the_sequence_stand_side_by_side_with_white_between_them(session: Session) -> None:
    page = svg(session, "sequence", width_cm=5, dpi=72)
    subject = Subject("odd", session.add_upload(odd_picture()), "stretch", "")
    received = np.asarray(session.run(subject.request("sequence")).picture)  # type: ignore[union-attr]
    tall, wide, gap = 28, 21, 3  # of a patch of 8 x 6 at 28 pixels; 1.1 of 11 points between two
    strips = pictures_in(page)
    assert len({strip.shape for strip in strips}) == 2  # whole lines, and a shorter last one
    shown = []
    for strip in strips:
        assert strip.shape[0] == tall
        assert (strip.shape[1] + gap) % (wide + gap) == 0
        for left in range(0, strip.shape[1], wide + gap):
            assert (strip[:, left + wide : left + wide + gap] == 255).all()
            shown.append(strip[:, left : left + wide])
    patches = received.reshape(ROWS, TALL, COLS, WIDE, 3).swapaxes(1, 2).reshape(-1, TALL, WIDE, 3)
    assert len(shown) == len(patches) == 36
    for tile, patch in zip(shown, patches, strict=True):
        np.testing.assert_array_equal(tile[middles(TALL, tall)][:, middles(WIDE, wide)], patch)


def middles(cells: int, size: int) -> NDArray[np.intp]:
    """The pixels in the middle of so many equal cells of an axis."""
    return (2 * np.arange(cells) + 1) * size // (2 * cells)
