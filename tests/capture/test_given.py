"""What people hand over is taken for what it plainly means, and else refused in a sentence that says what to pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import nn

from vit_viz.capture.given import as_picture, as_pixels
from vit_viz.errors import ParameterError


def test_a_text_is_the_path_of_a_picture() -> None:
    assert as_picture("photos/a b.png") == Path("photos/a b.png")


def test_a_picture_a_path_and_pixels_are_taken_as_they_are() -> None:
    for given in (Image.new("RGB", (7, 5)), Path("a.png"), torch.zeros(1, 3, 5, 7)):
        assert as_picture(given) is given


@pytest.mark.parametrize(
    ("given", "what"),
    [(None, "none was given"), (3.5, "not an object of type float"), (nn.Linear(2, 3), "not a model")],
)
def test_what_is_no_picture_is_refused(given: object, what: str) -> None:
    with pytest.raises(ParameterError, match=f"as a tensor, {what}"):
        as_picture(given)


def test_one_number_that_is_none_is_counted() -> None:
    pixels = torch.zeros(1, 3, 4, 6)
    pixels[0, 2, 1, 5] = torch.nan
    with pytest.raises(ParameterError, match="but 1 of 72 are NaN or infinite"):
        as_pixels(pixels, nn.Linear(2, 3))


def test_finite_pixels_whose_sum_overflows_are_taken() -> None:
    pixels = torch.full((1, 3, 4, 6), 3e4).half()
    assert pixels.sum().isinf()
    assert torch.equal(as_pixels(pixels, nn.Linear(2, 3).half()), pixels)
