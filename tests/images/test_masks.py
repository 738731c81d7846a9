"""Masks as annotators write them, each read by its own rule; the oracle is the object that they were drawn from."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from vit_viz.errors import ImageError, ParameterError
from vit_viz.images.masks import mask_labels
from vit_viz.images.reading import decode_mask

SIZE = (50, 70)
RED, BLACK, CREAM = (128, 0, 0), (0, 0, 0), (224, 224, 192)


def ellipse(size: tuple[int, int] = SIZE, grown: int = 0) -> Any:
    """An object, [height, width], or one with a border around it."""
    picture = Image.new("L", size[::-1])
    ImageDraw.Draw(picture).ellipse((9 - grown, 5 - grown, 41 + grown, 38 + grown), fill=255)
    return np.asarray(picture) > 0


OBJECT = ellipse()
BORDER = ellipse(grown=3) & ~OBJECT
WITH_BORDER = np.where(BORDER, -1, OBJECT)


def classes(value: int, void: int | None = None, kind: Any = np.uint8) -> Any:
    array = np.where(OBJECT, value, 0).astype(kind)
    return array if void is None else np.where(BORDER, void, array).astype(kind)


def palette(colours: dict[int, tuple[int, int, int]], numbers: Any) -> Image.Image:
    picture = Image.new("P", SIZE[::-1])
    picture.putdata(numbers.astype(int).ravel().tolist())
    table = [0] * 768
    for number, colour in colours.items():
        table[3 * number : 3 * number + 3] = colour
    picture.putpalette(table)
    return picture


def rgb(inside: Any, outside: Any, void: Any = None) -> Image.Image:
    array = np.where(OBJECT[..., None], np.broadcast_to(inside, 3), np.broadcast_to(outside, 3))
    return Image.fromarray(
        (array if void is None else np.where(BORDER[..., None], void, array)).astype(np.uint8)
    )


def with_alpha(picture: Image.Image, alpha: Any = None) -> Image.Image:
    copy = picture.copy()
    copy.putalpha(Image.fromarray((OBJECT if alpha is None else alpha).astype(np.uint8) * 255))
    return copy


def as_jpeg(picture: Image.Image, quality: int = 60) -> Image.Image:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file)


def softened() -> Image.Image:
    large = Image.fromarray(OBJECT.astype(np.uint8) * 255).resize((280, 200), Image.Resampling.BICUBIC)
    return large.resize(SIZE[::-1], Image.Resampling.LANCZOS)


NOISE = np.random.default_rng(3).integers(0, 256, (*SIZE, 3))
GRAY = Image.fromarray(OBJECT.astype(np.uint8) * 255)
VOC = {0: BLACK, 1: RED, 15: (192, 128, 128), 255: CREAM}

EXACT = {
    "bits": GRAY.convert("1"),
    "gray": GRAY,
    "one class": Image.fromarray(classes(1)),
    "one class of many": Image.fromarray(classes(200)),
    "sixteen bits": Image.fromarray(classes(65535, kind=np.uint16)),
    "sixteen bits of a class": Image.fromarray(classes(1, kind=np.uint16)),
    "sixteen bits of an instance": Image.fromarray(classes(26001, kind=np.uint16)),
    "32 bits": Image.fromarray(classes(1, kind=np.int32)),
    "floats": Image.fromarray(classes(1, kind=np.float32)),
    "palette": palette(VOC, classes(15)),
    "palette whose object comes first": palette({0: RED, 1: BLACK}, ~OBJECT),
    "palette without black": palette({0: (0, 128, 0), 1: RED}, OBJECT),
    "palette of grays turned": palette({0: (255, 255, 255), 1: BLACK}, ~OBJECT),
    "gray colours": rgb(255, 0),
    "colours": rgb(RED, BLACK),
    "white on black with an alpha that says nothing": with_alpha(rgb(255, 0), np.ones(SIZE)),
    "a cut-out": with_alpha(Image.fromarray(NOISE.astype(np.uint8))),
    "a white cut-out on white": with_alpha(rgb(255, 255)),
    "gray and alpha": with_alpha(GRAY),
    "an opaque gray with alpha": with_alpha(GRAY, np.ones(SIZE)),
    "opaque black": with_alpha(rgb(0, 255)),
    "booleans": OBJECT,
    "bytes": classes(255),
    "a class": classes(7),
    "longs": classes(1, kind=np.int64),
    "shares": OBJECT.astype(float),
    "whole floats": classes(255, kind=np.float64),
    "a batch": OBJECT[None],
    "a channel": classes(1)[..., None],
    "colours as an array": np.asarray(rgb(RED, BLACK)),
    "a tensor": torch.tensor(OBJECT),
    "a tensor with a gradient": torch.tensor(OBJECT, dtype=torch.float32)[None].requires_grad_(),
}


@pytest.mark.parametrize("name", EXACT)
def test_a_mask_without_noise_is_read_to_the_pixel(name: str) -> None:
    np.testing.assert_array_equal(mask_labels(EXACT[name]), OBJECT)


@pytest.mark.parametrize(
    "mask",
    [
        classes(1, 255),
        classes(20, 255),
        palette(VOC, classes(15, 255)),
        rgb(RED, BLACK, CREAM),
        classes(1, 65535, np.uint16),
        Image.fromarray(classes(257, 65535, np.uint16)),
    ],
    ids=["class 1", "class 20", "palette", "colours", "16 bits", "8 bits as 16"],
)
def test_255_beside_a_class_is_left_out(mask: Any) -> None:
    np.testing.assert_array_equal(mask_labels(mask), WITH_BORDER)


@pytest.mark.parametrize(
    "mask",
    [
        as_jpeg(GRAY),
        as_jpeg(GRAY.convert("RGB"), 30),
        softened(),
        np.asarray(softened()) / 255,
        np.asarray(softened()).astype(np.uint16) * 257,
        np.where(OBJECT, 236, 17).astype(np.uint8),
        np.where(OBJECT, 253, 0) + np.indices(SIZE)[0] % 3,
    ],
    ids=["JPEG", "bad JPEG of colours", "soft edges", "as shares", "16 bits", "grays near the ends", "noise"],
)
def test_of_noisy_grays_the_bright_half_is_the_object(mask: Any) -> None:
    labels = mask_labels(mask)
    assert set(np.unique(labels)) == {0, 1}
    assert (labels != OBJECT).mean() < 0.01


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.zeros(SIZE, np.uint8), "holds 0, which"),
        (np.full(SIZE, 255, np.uint8), "holds 255, which"),
        (Image.new("RGBA", SIZE[::-1], (9, 9, 9, 0)), "holds 9, which"),
        (classes(3) + np.arange(70, dtype=np.uint8) // 40, "holds 0, 1, 3, 4, which"),
        (np.where(BORDER, 128, classes(255)), "holds 0, 128, 255, which"),
        (classes(3) + 1, "holds 1, 4, which"),
        (rgb(RED, (255, 255, 255)), "holds #800000, #ffffff, which"),
        (Image.fromarray(NOISE.astype(np.uint8)), r"and 34\d\d more, which"),
        (palette({0: BLACK, 1: RED, 2: (0, 128, 0)}, classes(1) + 2 * BORDER), "holds black, 1, 2, which"),
        (np.where(OBJECT, 1, np.nan), "holds NaN or infinity"),
        (np.where(OBJECT, 1, -1), "from -1 to 1"),
        (np.where(OBJECT, 2.5, 0), "from 0 to 2.5"),
        (np.zeros((3, *SIZE)), r"an array \[height, width\]"),
        (np.array(["a"]), r"an array \[height, width\]"),
        (np.zeros((0, 4)), r"an array \[height, width\]"),
    ],
)
def test_what_does_not_say_what_the_object_is_is_refused_with_what_it_holds(mask: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        mask_labels(mask)
    assert str(caught.value).count(". ") == 0


RAMP = np.arange(SIZE[0] * SIZE[1]).reshape(SIZE)
FEW = RAMP % 20 == 0
"""A twentieth of all pixels."""


def grays_of(kinds: int) -> Any:
    """So many grays from black to white, as often each."""
    return np.linspace(0, 255, kinds).astype(np.uint8)[RAMP % kinds]


def of_grays(numbers: Any, step: int) -> Image.Image:
    return palette({i: (i * step,) * 3 for i in range(255 // step + 1)}, numbers)


LIMITS: dict[str, tuple[Any, Any]] = {
    "alpha of 128": (np.dstack([np.full(SIZE, 9), np.where(OBJECT, 128, 127)]).astype(np.uint8), OBJECT),
    "class 100 beside 255": (classes(100, 255), WITH_BORDER),
    "class 101 beside 255": (classes(101, 255), "holds 0, 101, 255, which"),
    "64 grays": (grays_of(64), grays_of(64) > 127),
    "63 grays": (grays_of(63), "holds 0, 4, 8, 12, 16, 20, 24, 28 and 55 more, which"),
    "a tenth of middle grays": (np.where(OBJECT, 250, (RAMP % 10 == 0) * 100), OBJECT),
    "more than that": (np.where(OBJECT, 250, (RAMP % 6 == 0) * 100), "holds 0, 100, 250, which"),
    "few pixels of 183": (np.where(FEW, 183, RAMP % 2), FEW),
    "few pixels of 182": (np.where(FEW, 182, RAMP % 2), "holds 0, 1, 182, which"),
    "half as a share": (np.where(BORDER, 0.5, OBJECT), "holds 0, 128, 255, which"),
    "255 without a ground": (classes(255) // 51 * 50 + 5, "holds 5, 255, which"),
    "channels that differ by 8": (rgb((255, 247, 250), 0, (250, 249, 250)), OBJECT | BORDER),
    "channels of one pixel that differ by 9": (
        np.where((RAMP == 0)[..., None], (9, 0, 9), np.asarray(rgb(255, 0))).astype(np.uint8),
        "holds #000000, #090009, #ffffff, which",
    ),
    "a palette of all grays": (of_grays(np.asarray(softened()), 1), np.asarray(softened()) > 127),
    "a palette of some grays": (of_grays(np.asarray(softened()) // 3, 3), np.asarray(softened()) > 128),
    "cream that is no 255": (palette({0: BLACK, 1: RED, 2: CREAM}, classes(1) + 2 * BORDER), WITH_BORDER),
}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_of_the_rule_lies_where_it_is_said(name: str) -> None:
    mask, expected = LIMITS[name]
    if isinstance(expected, str):
        with pytest.raises(ParameterError, match=expected):
            mask_labels(mask)
    else:
        np.testing.assert_array_equal(mask_labels(mask), expected)


def png(picture: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", **options)
    return file.getvalue()


@pytest.mark.parametrize(
    "name",
    [name for name, mask in EXACT.items() if isinstance(mask, Image.Image) and mask.mode not in ("F", "I")],
)
def test_a_file_is_read_as_the_picture_that_it_holds(name: str) -> None:
    np.testing.assert_array_equal(mask_labels(decode_mask(png(EXACT[name]), SIZE)), OBJECT)


def test_a_file_that_was_turned_is_read_upright_with_its_palette_and_its_transparency() -> None:
    exif = Image.Exif()
    exif[274] = 6
    for picture, options in (
        (palette(VOC, classes(15)), {}),
        (palette({0: BLACK, 1: BLACK}, OBJECT), {"transparency": 0}),
        (GRAY, {}),
    ):
        lying = picture.transpose(Image.Transpose.ROTATE_90)
        read = decode_mask(png(lying, exif=exif, **options), SIZE)
        np.testing.assert_array_equal(mask_labels(read), OBJECT)
    with pytest.raises(ParameterError, match="70 x 50 pixels, as base64; this one has 50 x 70"):
        decode_mask(png(lying), SIZE)


def test_a_file_of_few_bits_or_with_a_transparent_gray_is_read() -> None:
    assert (mask_labels(decode_mask(png(palette(VOC, OBJECT), bits=1), SIZE)) == OBJECT).all()
    assert (mask_labels(decode_mask(png(GRAY, transparency=0), SIZE)) == OBJECT).all()
    turned = Image.fromarray(np.where(OBJECT, 0, 255).astype(np.uint8))
    assert (mask_labels(decode_mask(png(turned, transparency=255), SIZE)) == OBJECT).all()


def test_nothing_but_a_png_of_the_photos_size_is_decoded() -> None:
    file = io.BytesIO()
    GRAY.save(file, "JPEG")
    for data in (file.getvalue(), b"", b"text"):
        with pytest.raises(ParameterError, match="PNG of the photo's 70 x 50 pixels"):
            decode_mask(data, SIZE)
    with pytest.raises(ParameterError, match="this one has 69 x 50"):
        decode_mask(png(GRAY.crop((0, 0, 69, 50))), SIZE)
    with pytest.raises(ImageError, match=r"damaged|too early"):
        decode_mask(png(GRAY)[:60], SIZE)
