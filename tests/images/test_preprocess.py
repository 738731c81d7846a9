"""The recipe: equal to timm's and torchvision's, true to the geometry, and reversible."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings, strategies as st
from PIL import Image, ImageDraw

from vit_viz.errors import ParameterError
from vit_viz.geometry import CropBox
from vit_viz.images import Mode, Preprocess

ODD = Preprocess((48, 80), patch_size=(12, 8), resize_to=56, mean=(0.1, 0.4, 0.7), std=(0.2, 0.3, 0.9))


def picture(height: int, width: int, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (7, 11, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def timm_transform(**options: Any) -> Any:
    data = pytest.importorskip("timm.data", reason="timm is the oracle here", exc_type=ImportError)
    return data.create_transform(**options)


SIZES = [
    (375, 500),
    (500, 375),
    (224, 224),
    (97, 301),
    (301, 97),
    (100, 2000),
    (640, 427),
    (225, 223),
    (1000, 333),
]


RECIPES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"crop_pct": 0.9}, {"resize_to": 248}),
    ({"crop_pct": 0.875, "interpolation": "bilinear"}, {"resize_to": 256}),
    ({"input_size": (3, 37, 37), "crop_pct": 1.0, "interpolation": "lanczos"}, {}),
    ({"input_size": (3, 96, 160), "crop_pct": 1.0}, {}),
    ({"crop_pct": 1.0, "crop_mode": "squash"}, {"crop": "squash"}),
    ({"crop_pct": 0.9, "crop_mode": "squash"}, {"crop": "squash", "resize_to": 248}),
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("theirs", "ours"), RECIPES)
def test_crop_equals_timm_bit_for_bit(
    size: tuple[int, int], theirs: dict[str, Any], ours: dict[str, Any]
) -> None:
    usual = {"interpolation": "bicubic", "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
    theirs = {"input_size": (3, 224, 224), "crop_mode": "center"} | usual | theirs
    recipe = Preprocess(theirs["input_size"][1:], **{key: theirs[key] for key in usual}, **ours)
    image = picture(*size)
    assert torch.equal(recipe.apply(image, mode="crop").pixels[0], timm_transform(**theirs)(image))


@pytest.mark.parametrize("size", SIZES)
def test_crop_equals_torchvision_also_where_it_pads(size: tuple[int, int]) -> None:
    transforms = pytest.importorskip(
        "torchvision.transforms", reason="torchvision is the oracle here", exc_type=ImportError
    )
    image = picture(*size)
    steps = [
        transforms.Resize(91),
        transforms.CenterCrop(120),
        transforms.ToTensor(),
        transforms.Normalize(0.5, 0.5),
    ]
    recipe = Preprocess((120, 120), resize_to=91, interpolation="bilinear")
    assert torch.equal(recipe.apply(image, mode="crop").pixels[0], transforms.Compose(steps)(image))


def test_a_gray_model_gets_luminance() -> None:
    image = Image.new("RGB", (40, 40), (255, 0, 0))
    pixels = Preprocess((32, 32), channels=1, mean=0.5, std=0.5).apply(image).pixels  # type: ignore[arg-type]
    assert pixels.shape == (1, 1, 32, 32)
    torch.testing.assert_close(pixels, torch.full_like(pixels, (round(0.299 * 255) / 255 - 0.5) / 0.5))


def test_the_hand_case_of_a_centre_crop() -> None:
    """400 x 300 -> short side 100: 133 x 100 -> crop 80 x 80 at top round(26.5) = 26, left 10."""
    prepared = Preprocess((80, 80), resize_to=100).apply(picture(400, 300), mode="crop")
    assert prepared.crop_box.original_size == (400, 300)
    assert prepared.crop_box.input_size == (80, 80)
    np.testing.assert_allclose(prepared.crop_box.region, (26 * 400 / 133, 30.0, 80 * 400 / 133, 240.0))


def test_the_region_reaches_beyond_the_picture_where_it_was_padded() -> None:
    top, left, height, width = (
        Preprocess((120, 120), resize_to=90).apply(picture(90, 90), mode="crop").crop_box.region
    )
    assert (top, left, height, width) == (-15, -15, 120, 120)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((224, 224), (224, 224)),
        ((300, 600), (224, 448)),
        ((600, 300), (448, 224)),
        ((500, 333), (336, 224)),
        ((50, 50), (224, 224)),
        ((224, 250), (224, 256)),
    ],
)
def test_fit_scales_the_short_side_to_the_input_size(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    assert Preprocess((224, 224)).fit_size(*size) == expected


def test_fit_keeps_the_shape_where_the_patches_would_be_too_many() -> None:
    assert Preprocess((518, 518), patch_size=(14, 14)).fit_size(600, 600) == (32 * 14, 32 * 14)
    assert Preprocess((224, 224)).fit_size(300, 600, max_patches=50) == (5 * 16, 10 * 16)
    assert Preprocess((224, 224)).fit_size(100, 2000, max_patches=1) == (16, 16)
    assert Preprocess((224, 224)).fit_size(50, 50, max_patches=196) == (224, 224)
    assert Preprocess((224, 224)).fit_size(50, 50, max_patches=195) == (13 * 16, 13 * 16)


sides = st.integers(min_value=2, max_value=3000)


@settings(deadline=None, derandomize=True)
@given(
    sides,
    sides,
    st.sampled_from([1, 7, 64, 196, 1024]),
    st.sampled_from([(16, 16), (14, 14), (8, 8), (12, 8)]),
)
def test_fit_gives_whole_patches_within_the_limit_and_near_the_true_shape(
    height: int, width: int, max_patches: int, patch: tuple[int, int]
) -> None:
    assume(max(height, width) <= 20 * min(height, width))
    rows, cols = (
        np.array(Preprocess((224, 224), patch_size=patch).fit_size(height, width, max_patches=max_patches))
        / patch
    )
    assert (rows, cols) == (int(rows), int(cols))
    assert 1 <= rows * cols <= max_patches
    true = (height / patch[0]) / (width / patch[1])
    if max_patches >= 196 and max(height, width) <= 3 * min(height, width):
        nearest = min(
            abs(np.log(r / c / true)) for r in (rows - 1, rows, rows + 1) for c in (cols - 1, cols, cols + 1)
        )
        assert abs(np.log(rows / cols / true)) <= nearest + np.log(1 + 1 / rows) + np.log(1 + 1 / cols)
        assert rows * cols >= min(0.8 * max_patches, 0.9 * 14 * 14)


def lit(pixels: torch.Tensor, grid: tuple[int, int]) -> np.ndarray:
    """Brightness of each patch of the model's input, [rows, cols], in 0..1."""
    rows, cols = grid
    gray = (pixels[0].mean(0) * 0.5 + 0.5).numpy()
    return gray.reshape(rows, gray.shape[0] // rows, cols, gray.shape[1] // cols).mean((1, 3))


def with_rectangle(size: tuple[int, int], rect: tuple[float, float, float, float]) -> Image.Image:
    """A black picture, white in the rectangle (top, left, bottom, right); the edges are anti-aliased exactly."""
    top, left, bottom, right = rect
    rows = np.clip(np.minimum(np.arange(size[0]) + 1, bottom) - np.maximum(np.arange(size[0]), top), 0, 1)
    cols = np.clip(np.minimum(np.arange(size[1]) + 1, right) - np.maximum(np.arange(size[1]), left), 0, 1)
    gray = np.rint(255 * rows[:, None] * cols[None, :]).astype(np.uint8)
    return Image.fromarray(np.dstack([gray] * 3))


shapes = st.tuples(st.integers(200, 700), st.floats(1 / 3, 3)).map(
    lambda s: (s[0], max(200, round(s[0] * s[1])))
)
modes = st.sampled_from(["fit", "crop", "stretch"])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(shapes, modes, st.data())
def test_a_bright_rectangle_of_the_original_lights_exactly_its_patch(
    size: tuple[int, int], mode: Mode, data: st.DataObject
) -> None:
    recipe = Preprocess((96, 96), resize_to=104, interpolation="bilinear")
    box = recipe.apply(Image.new("RGB", size[::-1]), mode=mode).crop_box
    grid = (box.input_size[0] // 16, box.input_size[1] // 16)
    row = data.draw(st.integers(0, grid[0] - 1))
    col = data.draw(st.integers(0, grid[1] - 1))
    prepared = recipe.apply(with_rectangle(size, box.patch_rect(row, col, grid)), mode=mode)
    light = lit(prepared.pixels, grid)
    assert light[row, col] > 0.85
    light[row, col] = 0
    assert light.max() < 0.06


@settings(max_examples=60, deadline=None, derandomize=True)
@given(shapes, modes, st.data())
def test_a_patch_of_the_input_lies_where_its_rectangle_says(
    size: tuple[int, int], mode: Mode, data: st.DataObject
) -> None:
    """The centroid of what a patch receives, found from coordinates painted into the picture, within 1 px of the rectangle's."""
    recipe = Preprocess((96, 96), resize_to=104, interpolation="bilinear")
    rows, cols = (np.arange(n) * (255 / (n - 1)) for n in size)
    painted = np.zeros((*size, 3))
    painted[..., 0], painted[..., 1] = rows[:, None], cols[None, :]
    prepared = recipe.apply(Image.fromarray(np.rint(painted).astype(np.uint8)), mode=mode)
    box = prepared.crop_box
    grid = (box.input_size[0] // 16, box.input_size[1] // 16)
    row = data.draw(st.integers(0, grid[0] - 1))
    col = data.draw(st.integers(0, grid[1] - 1))
    patch = (
        prepared.pixels[0, :2, row * 16 : row * 16 + 16, col * 16 : col * 16 + 16].mean((1, 2)) * 0.5 + 0.5
    )
    top, left, bottom, right = box.patch_rect(row, col, grid)
    at = patch.numpy() * (np.array(size) - 1) + 0.5  # pixel centres lie at half numbers
    step = max(size) / 255  # the paint has 256 levels
    assert abs(at[0] - (top + bottom) / 2) < 1 + step / 4
    assert abs(at[1] - (left + right) / 2) < 1 + step / 4
    assert box.locate((top + bottom) / 2, (left + right) / 2, grid) == (row, col)


@pytest.mark.parametrize("mode", ["fit", "stretch"])
def test_fit_and_stretch_show_the_whole_picture(mode: Mode) -> None:
    prepared = ODD.apply(picture(61, 173), mode=mode)
    assert prepared.crop_box.region == (0, 0, 61, 173)
    assert prepared.crop_box.covers == 1
    assert prepared.crop_box.input_size == tuple(prepared.pixels.shape[2:])


@pytest.mark.parametrize("mode", ["fit", "crop", "stretch"])
def test_reverse_gives_the_resized_picture_back_to_the_bit(mode: Mode) -> None:
    image = picture(144, 240)
    prepared = ODD.apply(image, mode=mode)
    expected = {
        "fit": image.resize((80, 48), Image.Resampling.BICUBIC),
        "stretch": image.resize((80, 48), Image.Resampling.BICUBIC),
        "crop": image.resize((93, 56), Image.Resampling.BICUBIC).crop((6, 4, 86, 52)),
    }[mode]
    np.testing.assert_array_equal(np.asarray(ODD.reverse(prepared.pixels)), np.asarray(expected))
    np.testing.assert_array_equal(np.asarray(ODD.reverse(prepared.pixels[0])), np.asarray(expected))


def test_reverse_of_a_gray_input_is_gray() -> None:
    recipe = Preprocess((32, 32), channels=1)
    image = picture(32, 32)
    assert recipe.reverse(recipe.apply(image).pixels) == image.convert("L")


def test_reverse_clips_what_no_picture_holds() -> None:
    recipe = Preprocess((16, 16))
    assert set(np.asarray(recipe.reverse(torch.full((1, 3, 16, 16), 9.0))).flat) == {255}
    assert set(np.asarray(recipe.reverse(torch.full((1, 3, 16, 16), -9.0))).flat) == {0}


@pytest.mark.parametrize("shape", [(2, 3, 8, 8), (1, 8, 8), (3, 8), (1, 4, 8, 8)])
def test_reverse_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="pixels are"):
        ODD.reverse(torch.zeros(shape))


def test_a_picture_that_nobody_decoded_is_made_upright_and_opaque_first() -> None:
    sideways, buffer = Image.new("RGB", (60, 90)), io.BytesIO()
    sideways.getexif()[274] = 6
    sideways.save(buffer, "JPEG", exif=sideways.getexif())
    for image in (sideways, Image.open(buffer)):
        assert ODD.apply(image).crop_box.original_size == (60, 90)
    assert ODD.reverse(ODD.apply(Image.new("RGBA", (80, 48))).pixels).getpixel((3, 3)) == (255, 255, 255)


LEFT_OVER = Preprocess(
    (50, 61), patch_size=(14, 12), crop="squash", drop_remainder=True
)  # 3 x 5 patches of 42 x 60


@pytest.mark.parametrize("mode", ["crop", "stretch"])
def test_pixels_that_no_patch_covers_are_left_out_of_the_input_and_of_the_crop_box(mode: Mode) -> None:
    image = picture(70, 90)
    whole = replace(LEFT_OVER, drop_remainder=False).apply(image, mode=mode)
    prepared = LEFT_OVER.apply(image, mode=mode)
    assert torch.equal(prepared.pixels, whole.pixels[..., :42, :60])
    assert prepared.crop_box.input_size == (42, 60)
    top, left, height, width = whole.crop_box.region
    assert prepared.crop_box.region == pytest.approx((top, left, height * 42 / 50, width * 60 / 61))
    assert prepared.crop_box.covers < whole.crop_box.covers


@pytest.mark.parametrize("mode", ["crop", "stretch", "fit"])
def test_a_lit_patch_of_the_photo_lights_that_patch_of_an_input_with_a_remainder(mode: Mode) -> None:
    grid = (4, 5) if mode == "fit" else (3, 5)
    box = LEFT_OVER.apply(picture(700, 900), mode=mode).crop_box
    for row, col in ((0, 0), (1, 3), (2, grid[1] - 1)):
        top, left, bottom, right = box.patch_rect(row, col, grid)
        image = Image.new("RGB", (900, 700))
        image.paste("white", (round(left), round(top), round(right), round(bottom)))
        light = LEFT_OVER.apply(image, mode=mode).pixels[0, 0] * 0.5 + 0.5
        patches = light.reshape(grid[0], 14, grid[1], 12).mean((1, 3))
        assert patches[row, col] > 0.9
        assert patches.sum() - patches[row, col] < 0.3


def test_fit_leaves_nothing_out() -> None:
    prepared = LEFT_OVER.apply(picture(70, 90), mode="fit")
    assert prepared.crop_box.covers == 1
    assert (prepared.pixels.shape[-2] % 14, prepared.pixels.shape[-1] % 12) == (0, 0)


def test_a_recipe_says_how_much_the_patches_cover() -> None:
    assert "of which patches cover 42 x 60" in LEFT_OVER.describe(mode="stretch")
    assert "cover" not in LEFT_OVER.describe(mode="fit")
    assert "cover" not in replace(LEFT_OVER, input_size=(42, 60)).describe(mode="stretch")


def test_an_input_smaller_than_a_patch_is_refused() -> None:
    with pytest.raises(ParameterError, match="No patch of 14 x 12 fits into an input of 13 x 61"):
        replace(LEFT_OVER, input_size=(13, 61))


def test_the_picture_stays_as_it_is() -> None:
    image = picture(50, 70)
    before = image.tobytes()
    pixels = Preprocess((50, 70)).apply(image, mode="stretch").pixels
    pixels.zero_()
    assert image.tobytes() == before


def test_a_recipe_survives_json() -> None:
    assert Preprocess.from_dict(json.loads(json.dumps(ODD.to_dict()))) == ODD


def test_what_a_recipe_leaves_out_is_usual() -> None:
    assert Preprocess((8, 8), mean=(0.25,), std=(0.5,)).mean == (0.25, 0.25, 0.25)
    assert Preprocess((8, 8), channels=1).mean == (0.5,)
    assert Preprocess((96, 160)).resize_to == 96


@pytest.mark.parametrize(
    "bad",
    [
        {"input_size": (0, 8)},
        {"input_size": (10**9, 8)},
        {"input_size": 224},
        {"input_size": (8.0, 8)},
        {"patch_size": (True, 8)},
        {"resize_to": 10**9},
        {"interpolation": "magic"},
        {"mean": (0.5, 0.5)},
        {"mean": (float("nan"),)},
        {"std": (0.5, 0.0, 0.5)},
        {"channels": 0},
        {"crop": "random"},
        {"drop_remainder": 1},
    ],
)
def test_a_recipe_out_of_bounds_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Preprocess(**{"input_size": (224, 224), **bad})


def test_a_model_of_other_channels_keeps_its_recipe_but_takes_no_pictures() -> None:
    recipe = Preprocess((32, 32), channels=4)
    assert recipe.mean == (0.5,) * 4
    with pytest.raises(ParameterError, match="4 channels"):
        recipe.apply(picture(50, 50))


def test_a_recipe_with_unknown_fields_is_refused() -> None:
    with pytest.raises(ParameterError, match="not a preprocessing recipe"):
        Preprocess.from_dict({"input_size": [8, 8], "colour": "red"})
    with pytest.raises(ParameterError):
        Preprocess.from_dict({})


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="mode is"):
        ODD.apply(picture(50, 50), mode="tile")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="max_patches"):
        ODD.apply(picture(50, 50), max_patches=0)


def test_the_description_names_what_was_done() -> None:
    recipe = Preprocess((224, 224), resize_to=248)
    assert recipe.describe() == "short side 248, centre crop 224 x 224, bicubic, mean 0.5, std 0.5"
    assert recipe.describe(mode="stretch").startswith("stretched to 224 x 224")
    assert "patches of 16 x 16" in recipe.describe(mode="fit")


def test_a_crop_box_of_the_recipe_is_drawn_on_the_photo_where_it_belongs() -> None:
    """Cutting the region out of the original and shrinking it gives what the model received."""
    image = picture(640, 480)
    ImageDraw.Draw(image).line((0, 0, 480, 640), fill="red", width=9)
    prepared = Preprocess((96, 96), resize_to=110).apply(image, mode="crop")
    box: CropBox = prepared.crop_box
    top, left, height, width = box.region
    cut = image.resize((96, 96), Image.Resampling.BICUBIC, box=(left, top, left + width, top + height))
    shown = Preprocess((96, 96)).reverse(prepared.pixels)
    assert np.abs(np.asarray(cut, int) - np.asarray(shown, int))[2:-2, 2:-2].max() <= 3


# --- a model of one size


def test_a_photo_that_would_not_fit_a_model_of_one_size_is_cropped_and_says_so() -> None:
    fixed, photo = replace(ODD, one_size=True), picture(120, 130)
    given, cropped = fixed.apply(photo), ODD.apply(photo, mode="crop")
    assert torch.equal(given.pixels, cropped.pixels)
    assert given.crop_box == cropped.crop_box
    assert given.note == 'as in mode "crop", since this model takes no other size than 48 x 80 pixels'
    assert given.words == f"{cropped.words}; {given.note}"
    assert fixed.grid(120, 130) == (4, 10)


@pytest.mark.parametrize("mode", ["fit", "crop", "stretch"])
def test_a_photo_that_fits_a_model_of_one_size_is_given_as_ever(mode: Mode) -> None:
    fixed, photo = replace(ODD, one_size=True).apply(picture(96, 160), mode=mode), picture(96, 160)
    assert torch.equal(fixed.pixels, ODD.apply(photo, mode=mode).pixels)
    assert (fixed.note, fixed.words) == ("", ODD.describe(mode=mode))


def test_a_model_of_one_size_is_cropped_where_fewer_patches_are_allowed() -> None:
    assert replace(ODD, one_size=True).apply(picture(96, 160), max_patches=12).pixels.shape[2:] == (48, 80)


def test_another_size_of_a_model_of_one_size_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"takes inputs of 48 x 80 pixels and no others.*\.$"):
        replace(ODD, one_size=True).apply(picture(96, 160), size=5)


def test_a_model_of_one_size_leaves_out_the_last_pixels_itself() -> None:
    odd = Preprocess((50, 83), patch_size=(12, 8), drop_remainder=True)
    fixed = replace(odd, one_size=True).apply(picture(120, 130), mode="crop")
    assert fixed.pixels.shape[2:] == (50, 83)
    assert fixed.crop_box == odd.apply(picture(120, 130), mode="crop").crop_box
