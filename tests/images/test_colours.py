"""Special pixel formats: every pixel, not only the size, against values worked out by hand."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.images.image_files import chunk, png, read_png_over_white, tiff
from tests.images.test_reading import encoded
from vit_viz.errors import ImageError
from vit_viz.images import MAX_PIXELS, decode

RAMP16 = np.linspace(0, 65535, 24 * 30).round().astype(np.uint16).reshape(24, 30)
RAMP8 = np.arange(240, dtype=np.uint8).reshape(12, 20)


def shown(data: bytes) -> np.ndarray:
    return np.asarray(decode(data), dtype=int)


def gray(data: bytes) -> np.ndarray:
    """Pixels of a picture that must be gray."""
    pixels = shown(data)
    assert (pixels[..., 0] == pixels[..., 1]).all()
    assert (pixels[..., 0] == pixels[..., 2]).all()
    return pixels[..., 0]


def test_sixteen_bit_gray_png_is_scaled_to_its_full_range() -> None:
    expected = np.rint(RAMP16 / 65535 * 255)
    np.testing.assert_array_equal(gray(png(RAMP16[..., None], colour=0, depth=16)), expected)


@pytest.mark.parametrize("big", [False, True])
def test_sixteen_bit_gray_tiff_is_scaled_in_either_byte_order(big: bool) -> None:
    np.testing.assert_array_equal(gray(tiff(RAMP16, big=big)), np.rint(RAMP16 / 257))


@pytest.mark.parametrize("values", [RAMP16, RAMP8], ids=["16 bits", "8 bits"])
def test_a_tiff_where_zero_is_white_is_turned_around_once(values: np.ndarray) -> None:
    top = np.iinfo(values.dtype).max
    np.testing.assert_array_equal(gray(tiff(values, photometric=0)), np.rint(255 - values * (255 / top)))


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_sixteen_bit_rgb_keeps_its_colours(form: str) -> None:
    samples = np.stack([RAMP16, RAMP16[::-1], RAMP16[:, ::-1]], axis=-1)
    data = png(samples, colour=2, depth=16) if form == "PNG" else tiff(samples, photometric=2)
    assert np.abs(shown(data) - samples / 257).max() <= 1


def test_twelve_bit_tiff_uses_its_own_white(shared_data: Path) -> None:
    path = shared_data / "odd_images" / "pillow" / "12bit.cropped.tif"
    with Image.open(path) as stored:
        values = np.asarray(stored).astype(float)
    assert values.max() <= 4095
    np.testing.assert_array_equal(np.asarray(decode(path))[..., 0], np.rint(values / 4095 * 255))


@pytest.mark.parametrize("big", [False, True])
def test_a_float_tiff_from_0_to_1_is_scaled_by_255(big: bool) -> None:
    values = (RAMP16 / 65535).astype(np.float32)
    np.testing.assert_array_equal(gray(tiff(values, sample_format=3, big=big)), np.rint(values * 255.0))


def test_a_float_tiff_from_0_to_255_is_kept() -> None:
    np.testing.assert_array_equal(gray(tiff(RAMP8.astype(np.float32), sample_format=3)), RAMP8)


def test_a_float_tiff_of_another_range_is_stretched() -> None:
    values = np.linspace(-3, 5, 200, dtype=np.float32).reshape(10, 20)
    np.testing.assert_array_equal(gray(tiff(values, sample_format=3)), np.rint((values + 3.0) / 8 * 255))


def test_what_is_not_a_number_is_black() -> None:
    values = np.linspace(0, 1, 200, dtype=np.float32).reshape(10, 20)
    values[3, 4], values[5, 6], values[7, 8] = np.nan, np.inf, -np.inf
    pixels = gray(tiff(values, sample_format=3))
    assert (pixels[3, 4], pixels[5, 6], pixels[7, 8], pixels[9, 19]) == (0, 255, 0, 255)


def test_a_float_tiff_without_any_number_is_refused() -> None:
    with pytest.raises(ImageError, match="no finite pixel"):
        decode(tiff(np.full((10, 20), np.nan, np.float32), sample_format=3))


@pytest.mark.parametrize(
    ("value", "expected"), [(0.0, 0), (0.5, 128), (1.0, 255), (77.0, 77), (4000.0, 128), (-4.0, 128)]
)
def test_a_constant_float_tiff_has_a_defined_gray(value: float, expected: int) -> None:
    assert set(gray(tiff(np.full((10, 20), value, np.float32), sample_format=3)).flat) == {expected}


def test_signed_and_32_bit_integers_are_stretched() -> None:
    values = np.linspace(-30000, 30000, 200).round().astype(np.int16).reshape(10, 20)
    expected = np.rint((values + 30000.0) / 60000 * 255)
    np.testing.assert_array_equal(gray(tiff(values, sample_format=2)), expected)
    np.testing.assert_array_equal(gray(tiff(values.astype(np.int32) * 100, sample_format=2)), expected)


def test_a_gray_band_boundary_leaves_no_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vit_viz.images.colours._BAND_PIXELS", 70)
    np.testing.assert_array_equal(gray(tiff(RAMP16)), np.rint(RAMP16 / 257))
    rgba = np.dstack([RAMP8, RAMP8[::-1], RAMP8, RAMP8[:, ::-1]])
    expected = rgba[..., :3] * (rgba[..., 3:] / 255) + 255 - rgba[..., 3:]
    assert np.abs(shown(png(rgba, colour=6)) - expected).max() <= 1


@pytest.mark.parametrize("alpha", [0, 1, 128, 254, 255])
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "AVIF"])
def test_alpha_lets_white_shine_through(kind: str, alpha: int) -> None:
    image = Image.new("RGBA", (32, 32), (10, 100, 200, alpha))
    options = {
        "WEBP": {"lossless": True, "exact": True},
        "AVIF": {"quality": 100, "subsampling": "4:4:4"},
    }.get(kind, {})
    expected = np.array([10, 100, 200]) * alpha / 255 + 255 - alpha
    assert np.abs(shown(encoded(image, kind, **options)) - expected).max() <= (4 if kind == "AVIF" else 1)


def test_gray_with_alpha_is_drawn_over_white() -> None:
    samples = np.dstack([RAMP8, RAMP8[::-1]])
    expected = RAMP8 * (RAMP8[::-1] / 255) + 255 - RAMP8[::-1]
    assert np.abs(gray(png(samples, colour=4)) - expected).max() <= 1


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_a_transparent_palette_entry_is_white(kind: str) -> None:
    image = Image.new("P", (20, 10), 1)
    image.putpalette([255, 0, 0, 0, 0, 255, 9, 9, 9])
    image.paste(0, (0, 0, 10, 10))
    pixels = shown(encoded(image, kind, transparency=0))
    assert set(map(tuple, pixels[:, :10].reshape(-1, 3))) == {(255, 255, 255)}
    assert set(map(tuple, pixels[:, 10:].reshape(-1, 3))) == {(0, 0, 255)}


def test_palette_entries_may_be_half_transparent() -> None:
    extra = chunk(b"PLTE", bytes([200, 0, 0, 0, 0, 100])) + chunk(b"tRNS", bytes([128]))
    pixels = shown(png(np.array([[[0], [1]]] * 2), colour=3, extra=extra))
    np.testing.assert_allclose(pixels[0], [[227, 127, 127], [0, 0, 100]], atol=1)


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_one_gray_level_may_be_transparent_at_any_depth(depth: int) -> None:
    samples = (np.arange(64).reshape(8, 8, 1) * (257 if depth == 16 else 1)) % 2**depth
    data = png(samples, colour=0, depth=depth, extra=chunk(b"tRNS", int(samples[0, 0, 0]).to_bytes(2, "big")))
    pixels = gray(data)
    assert pixels[0, 0] == 255
    assert np.abs(pixels - read_png_over_white(data)[..., 0]).max() <= 0.5


def test_one_deep_colour_may_be_transparent() -> None:
    samples = np.dstack([RAMP16, RAMP16[::-1], RAMP16[:, ::-1]])
    samples[2:5, 3:9] = (40000, 300, 7)
    data = png(samples, colour=2, depth=16, extra=chunk(b"tRNS", b"\x9c\x40\x01\x2c\x00\x07"))
    pixels = shown(data)
    assert set(pixels[2:5, 3:9].flat) == {255}
    assert np.abs(pixels - read_png_over_white(data)).max() <= 1


def test_black_and_white_stays_black_and_white() -> None:
    samples = np.arange(70).reshape(7, 10, 1) % 3 % 2
    np.testing.assert_array_equal(gray(png(samples, colour=0, depth=1)), samples[..., 0] * 255)
    fax = Image.fromarray(samples[..., 0].astype(bool))
    np.testing.assert_array_equal(gray(encoded(fax, "TIFF", compression="group4")), samples[..., 0] * 255)


INKS = {  # cyan, magenta, yellow, black -> the light that is left: (1 - ink) (1 - black)
    (0, 0, 0, 0): (255, 255, 255),
    (255, 0, 0, 0): (0, 255, 255),
    (0, 255, 255, 0): (255, 0, 0),
    (0, 0, 255, 0): (255, 255, 0),
    (0, 0, 0, 255): (0, 0, 0),
    (128, 0, 64, 32): (111, 223, 167),
}


@pytest.mark.parametrize("inks", INKS)
@pytest.mark.parametrize("form", ["TIFF", "JPEG of Adobe", "JPEG without a marker"])
def test_cmyk_shows_the_light_that_its_inks_leave(inks: tuple[int, ...], form: str) -> None:
    """Chromium and Firefox, too, take every CMYK JPEG for inverted, as Adobe writes it and nearly all are."""
    data = encoded(Image.new("CMYK", (16, 16), inks), form.split()[0], quality=100)
    assert (b"Adobe" in data) == form.startswith("JPEG")
    if form.endswith("marker"):
        at = data.index(b"\xff\xee")
        data = data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]
    np.testing.assert_allclose(shown(data)[3, 3], INKS[inks], atol=1 if form == "TIFF" else 3)


@pytest.mark.parametrize(
    "mode", ["L", "YCbCr", "HSV", "LA", "PA", "RGBX", "La", "RGBa", "1", "I", "F", "I;16"]
)
def test_every_mode_of_pillow_becomes_rgb(mode: str) -> None:
    middle = {"I": 128, "F": 128, "I;16": 128 * 257, "1": 1}.get(mode)
    if middle is not None:
        image = Image.new(mode, (9, 9), middle)
    elif mode in ("La", "PA"):
        image = Image.new("LA", (9, 9), (128, 255)).convert(mode)
    elif mode == "RGBa":
        image = Image.new("RGBA", (9, 9), (128, 128, 128, 255)).convert(mode)
    else:
        image = Image.new("RGB", (9, 9), (128, 128, 128)).convert(mode)
    assert set(np.asarray(decode(image)).flat) == {255 if mode == "1" else 128}


def test_lab_without_colour_is_gray() -> None:
    stored = Image.merge("LAB", [Image.new("L", (9, 9), value) for value in (255, 128, 128)])
    np.testing.assert_allclose(np.asarray(decode(stored)), 255, atol=1)


def test_a_mode_that_pillow_cannot_convert_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(self: Image.Image, mode: str) -> Image.Image:
        raise ValueError("conversion not supported")

    monkeypatch.setattr(Image.Image, "convert", convert)
    with pytest.raises(ImageError, match="save it as PNG or JPEG"):
        decode(Image.new("HSV", (9, 9)))


def pngsuite(root: Path) -> list[Path]:
    return sorted((root / "odd_images" / "pngsuite" / "png").glob("*.png"))


def test_pngsuite_equals_the_specification_pixel_by_pixel(shared_data: Path) -> None:
    wrong, seen = [], 0
    for path in pngsuite(shared_data):
        if path.name.startswith(("x", "s01")):
            continue
        seen += 1
        expected = read_png_over_white(path.read_bytes())
        mixed = path.stem.endswith("16") or path.stem[5] == "a" or path.stem[0] == "t"  # 16 bits, alpha, tRNS
        tolerance = 1.01 if mixed else 0.01
        if np.abs(np.asarray(decode(path)) - expected).max() > tolerance:
            wrong.append(path.name)
    assert wrong == []
    assert seen > 140


def test_pngsuite_corrupt_files_are_refused(shared_data: Path) -> None:
    corrupt = [path for path in pngsuite(shared_data) if path.name.startswith("x")]
    assert len(corrupt) == 14
    for path in corrupt:
        with pytest.raises(ImageError, match="PNG"):
            decode(path)


def test_pngsuite_as_bmp_equals_pngsuite(shared_data: Path) -> None:
    wrong, seen = [], 0
    for path in sorted((shared_data / "odd_images" / "pngsuite" / "bmp").glob("*.bmp")):
        twin = shared_data / "odd_images" / "pngsuite" / "png" / f"{path.stem}.png"
        if path.name.startswith("s01") or not twin.exists():
            continue
        seen += 1
        if np.abs(np.asarray(decode(path), int) - np.asarray(decode(twin), int)).max() > 1:
            wrong.append(path.name)
    assert wrong == []
    assert seen > 140


def outcome(source: bytes | Path) -> str:
    """ "picture", or the sentence of the refusal; anything else is a failure."""
    try:
        result = decode(source)
    except ImageError as error:
        text = str(error)
    else:
        assert (result.mode, result.info) == ("RGB", {})
        assert result.width * result.height <= MAX_PIXELS  # what decoding it may cost
        return "picture"
    assert text.endswith(".")
    assert "\n" not in text
    assert ". " not in text
    return text


def test_every_odd_file_gives_a_picture_or_one_sentence(shared_data: Path) -> None:
    pictures = 0
    for path in sorted((shared_data / "odd_images").rglob("*")):
        if path.is_file():
            pictures += outcome(path) == "picture"
    assert pictures > 400


@pytest.mark.slow
def test_hundreds_of_damaged_files_give_a_picture_or_one_sentence(shared_data: Path) -> None:
    rng = np.random.default_rng(0)
    folders = ("pngsuite/png", "exif-orientation", "pillow")
    seeds = [
        p.read_bytes()
        for f in folders
        for p in sorted((shared_data / "odd_images" / f).iterdir())
        if p.is_file()
    ]
    seeds = [data for data in seeds if 20 < len(data) < 400_000]
    for i in range(600):
        data = bytearray(seeds[i % len(seeds)])
        for _ in range(int(rng.integers(1, 12))):
            at = int(rng.integers(0, min(len(data), 600) if rng.random() < 0.7 else len(data)))
            data[at] = int(rng.integers(0, 256))
        outcome(bytes(data))


def test_a_heic_photo_is_read_where_its_package_is_installed() -> None:
    heif = pytest.importorskip("pillow_heif", reason="pillow-heif is optional")
    heif.register_heif_opener()
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (200, 30, 60)).save(buffer, "HEIF", quality=90)
    np.testing.assert_allclose(shown(buffer.getvalue())[20, 20], (200, 30, 60), atol=6)
