"""Untrusted files: an upright picture, or one sentence."""

from __future__ import annotations

import io
import os
import threading
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from tests.images.image_files import SIGNATURE, chunk, png
from tests.spending import python_memory
from vit_viz.errors import ImageError
from vit_viz.images import decode, image_hash

WHITE = np.full((6, 9, 3), 255, np.uint8)
PATTERN = np.arange(12 * 20 * 3, dtype=np.uint8).reshape(12, 20, 3)  # no two pixels equal, no symmetry


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def refusal(source: object, **options: float) -> str:
    """The sentence of a refusal; fails where it is not one plain sentence."""
    with pytest.raises(ImageError) as caught:
        decode(source, **options)  # type: ignore[arg-type]
    text = str(caught.value)
    assert text[0].isupper()
    assert text.endswith(".")
    assert ". " not in text
    assert "\n" not in text
    assert 20 < len(text) < 180
    assert not [
        word for word in ("Error", "Traceback", "cannot identify", "BytesIO", "object at") if word in text
    ]
    return text


def picture(height: int = 40, width: int = 60) -> Image.Image:
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(noise)


FOREIGN = {
    "a PDF document": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj",
    "an SVG drawing": b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="10"/>',
    "a web page": b"<!DOCTYPE html><html><body>hello</body></html>",
    "a text file": "just words, grüße".encode(),
    "a Photoshop file": b"8BPS\0\1" + bytes(100),
    "an EPS drawing": b"%!PS-Adobe-3.0 EPSF-3.0\n",
    "a JPEG 2000 image": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(50),
    "a JPEG XL image": b"\xff\x0a" + bytes(50),
    "a ZIP archive": b"PK\3\4" + bytes(50),
    "a video": b"\0\0\0\x20ftypisom" + bytes(50),
    "a NumPy array": b"\x93NUMPY\1\0" + bytes(50),
    "not an image": bytes(1000),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_of_another_kind_is_named(kind: str) -> None:
    assert kind in refusal(FOREIGN[kind])
    assert "PNG" in refusal(FOREIGN[kind])


def test_an_empty_file_is_called_empty() -> None:
    assert "empty" in refusal(b"")


def test_a_heic_photo_without_its_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vit_viz.images.signatures.find_spec", lambda _: None)
    assert "pillow-heif" in refusal(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(50))


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(encoded(picture(), "PNG"))
    assert decode(path).size == (60, 40)
    (tmp_path / "photo.jpg").write_text("not a photo")
    assert "a text file" in refusal(tmp_path / "photo.jpg")


WRITABLE = ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF"]


@pytest.mark.parametrize("kind", WRITABLE)
def test_every_readable_format_keeps_its_pixels(kind: str) -> None:
    smooth = Image.linear_gradient("L").resize((60, 40))
    image = Image.merge(
        "RGB", (smooth, smooth.rotate(180), smooth.transpose(Image.Transpose.FLIP_LEFT_RIGHT))
    )
    lossy = {"JPEG": 4, "AVIF": 8, "GIF": 24}.get(kind, 0)
    data = encoded(image, kind, **({"lossless": True} if kind == "WEBP" else {}))
    difference = np.abs(np.asarray(decode(data), int) - np.asarray(image, int))
    assert difference.max() <= lossy


@pytest.mark.parametrize("kind", WRITABLE)
def test_a_file_cut_in_half_and_its_first_bytes_alone_are_refused(kind: str) -> None:
    data = encoded(picture(200, 300), kind)
    text = refusal(data[: len(data) // 2])
    assert {"WEBP": "WebP"}.get(kind, kind) in text
    assert "ends too early" in text or kind in ("WEBP", "AVIF")  # whose libraries only say that it failed
    refusal(data[:16])


def test_a_png_with_a_wrong_checksum_is_refused() -> None:
    data = bytearray(encoded(picture(), "PNG"))
    data[data.index(b"IDAT") - 6 + 30] ^= 1
    assert "damaged" in refusal(bytes(data))


def test_a_png_whose_line_ends_were_translated_is_called_damaged() -> None:
    data = encoded(picture(), "PNG")
    assert "PNG" in refusal(data.replace(b"\r\n", b"\n"))


def test_a_decompression_bomb_in_metadata_is_refused() -> None:
    text = chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(80_000_000)))
    with python_memory() as memory:
        refusal(png(WHITE, colour=2, extra=text))
    assert memory.bytes < 8 * 2**20  # of the 80 MB that it would become


def claims(kind: str, width: int, height: int) -> bytes:
    """A small valid file whose header claims another size."""
    data = bytearray(encoded(picture(16, 16), kind, **({"lossless": True} if kind == "WEBP" else {})))
    if kind == "PNG":
        return png(WHITE, colour=2, size=(height, width))
    if kind == "GIF":
        data[6:10] = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    elif kind == "BMP":
        data[18:26] = width.to_bytes(4, "little") + height.to_bytes(4, "little")
    elif kind == "JPEG":
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    elif kind == "WEBP":  # VP8L: 14 bits each, after the signature byte
        at = data.index(b"VP8L") + 9
        rest = int.from_bytes(data[at : at + 4], "little") >> 28 << 28
        data[at : at + 4] = ((width - 1) | (height - 1) << 14 | rest).to_bytes(4, "little")
    elif kind == "AVIF":
        at = data.index(b"ispe") + 8
        data[at : at + 8] = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    else:
        directory = int.from_bytes(data[4:8], "little")
        for at in range(directory + 2, directory + 2 + 12 * data[directory], 12):
            tag = int.from_bytes(data[at : at + 2], "little")
            if tag in (256, 257):
                value = width if tag == 256 else height
                data[at + 2 : at + 12] = b"\4\0\1\0\0\0" + value.to_bytes(4, "little")
    return bytes(data)


@pytest.fixture
def undecodable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every attempt to decode pixels."""
    attempts: list[str] = []

    def load(self: Image.Image) -> None:
        attempts.append(str(self.format))
        raise OSError("decoding was forbidden")

    for plugin in (ImageFile.ImageFile, *(Image.OPEN[kind][0] for kind in ("WEBP", "AVIF"))):
        if isinstance(plugin, type):
            monkeypatch.setattr(plugin, "load", load)
    return attempts


Image.init()


@pytest.mark.parametrize(
    "size", [(9000, 8000), (13000, 13000), (65000, 65000)]
)  # below and above the bound at which Pillow warns, and far beyond all
@pytest.mark.parametrize("kind", WRITABLE)
def test_a_header_that_claims_many_megapixels_is_refused_before_decoding(
    kind: str, size: tuple[int, int], undecodable: list[str]
) -> None:
    text = refusal(claims(kind, *(min(side, 16383 if kind == "WEBP" else side) for side in size)))
    assert "megapixels" in text or kind == "AVIF"  # libavif itself refuses sizes that disagree
    assert undecodable == []


def test_a_twenty_kilobyte_bomb_is_refused_before_decoding(undecodable: list[str]) -> None:
    header = chunk(b"IHDR", b"\0\0\x32\xc8\0\0\x32\xc8\1\0\0\0\0")
    lines = zlib.compress(bytes(13000 * (1 + 13000 // 8)), 9)
    data = SIGNATURE + header + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
    assert len(data) < 40_000
    with python_memory() as memory:
        assert (
            refusal(data) == "This PNG claims 169 megapixels and at most 64 are read; please make it smaller."
        )
    assert undecodable == []
    assert memory.bytes < 2**20


def test_the_limits_are_parameters(tmp_path: Path) -> None:
    data, path = encoded(picture(40, 60), "PNG"), tmp_path / "a.png"
    path.write_bytes(data)
    for source in (data, path):
        assert decode(source, max_pixels=2400, max_bytes=len(data)).size == (60, 40)
        assert "megapixels" in refusal(source, max_pixels=2399)
        assert "MB" in refusal(source, max_bytes=len(data) - 1)


@pytest.mark.parametrize("size", [(1, 1), (1, 50), (50, 1), (1, 5000)])
def test_a_side_of_one_pixel_is_too_small(size: tuple[int, int]) -> None:
    text = refusal(encoded(Image.new("RGB", size), "PNG"))
    assert f"{size[0]} x {size[1]} pixels" in text
    assert "at least 2" in text


def test_the_aspect_ratio_is_bounded() -> None:
    assert decode(Image.new("RGB", (400, 20))).size == (400, 20)
    assert "at most 20 times" in refusal(encoded(Image.new("RGB", (420, 20)), "PNG"))
    assert "at most 20 times" in refusal(encoded(Image.new("RGB", (20, 420)), "PNG"))
    assert decode(Image.new("RGB", (420, 20)), max_aspect=21).size == (420, 20)


def test_a_very_large_jpeg_is_decoded_at_half_size() -> None:
    ramp = Image.linear_gradient("L").resize((5000, 3400))
    small = decode(encoded(ramp, "JPEG"))
    assert small.size == (2500, 1700)
    assert small.info == {"reduced_from": (3400, 5000)}
    assert np.abs(np.asarray(small, int)[..., 0] - np.asarray(ramp.reduce(2), int)).max() <= 2


def test_the_size_before_reduction_is_that_of_the_upright_picture() -> None:
    exif = Image.Exif()
    exif[274] = 6
    small = decode(encoded(Image.new("L", (5000, 3400)), "JPEG", exif=exif))
    assert small.size == (1700, 2500)
    assert small.info == {"reduced_from": (5000, 3400)}


def test_a_progressive_jpeg_that_needs_much_memory_is_refused() -> None:
    large = Image.new("L", (5000, 3400))
    assert "at most 16" in refusal(encoded(large, "JPEG", progressive=True))
    assert decode(encoded(large.resize((1000, 680)), "JPEG", progressive=True)).size == (1000, 680)


def test_a_jpeg_that_brings_its_colours_one_after_the_other_counts_as_progressive(
    undecodable: list[str],
) -> None:
    data = bytearray(claims("JPEG", 5000, 3400))
    data[data.index(b"\xff\xda") + 4] = 1  # components in the first scan
    assert "at most 16" in refusal(bytes(data))
    assert undecodable == []


def test_a_jpeg_of_very_many_scans_is_refused() -> None:
    data = encoded(picture(), "JPEG", progressive=True)
    scan = data[data.index(b"\xff\xda") : data.index(b"\xff\xda", data.index(b"\xff\xda") + 2)]
    assert "scans" in refusal(data[:-2] + scan * 100 + data[-2:])


def orientations() -> dict[int, Callable[[np.ndarray], np.ndarray]]:
    """How the stored pixels of an upright array look for each EXIF orientation, from the specification."""
    return {
        1: lambda a: a,
        2: lambda a: a[:, ::-1],
        3: lambda a: a[::-1, ::-1],
        4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1),
        6: lambda a: a.swapaxes(0, 1)[::-1],
        7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
        8: lambda a: a.swapaxes(0, 1)[:, ::-1],
    }


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_turned_upright(kind: str, orientation: int) -> None:
    stored = Image.fromarray(np.ascontiguousarray(orientations()[orientation](PATTERN)))
    exif = Image.Exif()
    exif[274] = orientation
    options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    upright = decode(encoded(stored, kind, exif=exif, **options))
    np.testing.assert_array_equal(np.asarray(upright), PATTERN)


def test_damaged_metadata_does_not_spoil_a_good_photo() -> None:
    data = encoded(Image.new("RGB", (20, 10), "teal"), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert decode(data).size == (20, 10)


def test_nothing_of_the_metadata_is_kept() -> None:
    exif = Image.Exif()
    exif[0x010E] = "where I live"
    assert decode(encoded(picture(), "JPEG", exif=exif, comment=b"secret")).info == {}


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF", "AVIF"])
def test_an_animation_shows_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (20, 10), colour) for colour in ("red", "lime", "blue")]
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    red, green, blue = np.asarray(decode(data), int).reshape(-1, 3).mean(0)
    assert (red > 240, green < 15, blue < 15) == (True, True, True)


def test_a_phone_photo_with_a_second_picture_inside_is_read() -> None:
    data = encoded(
        Image.new("RGB", (20, 10), "red"), "MPO", save_all=True, append_images=[Image.new("RGB", (8, 8))]
    )
    assert decode(data).getpixel((5, 5))[0] > 240


def test_a_pil_image_stays_as_it_is() -> None:
    source = picture()
    before = source.tobytes()
    result = decode(source)
    result.paste("red", (0, 0, 60, 40))
    assert source.tobytes() == before


def test_a_pil_image_is_turned_upright() -> None:
    source = Image.fromarray(np.ascontiguousarray(orientations()[6](PATTERN)))
    source.getexif()[274] = 6
    np.testing.assert_array_equal(np.asarray(decode(source)), PATTERN)


def test_a_pil_image_that_is_still_a_broken_file_is_refused() -> None:
    data = encoded(picture(200, 300), "JPEG")
    assert "JPEG" in refusal(Image.open(io.BytesIO(data[: len(data) // 2])))


@pytest.mark.parametrize("source", [None, 3, np.zeros((4, 4, 3)), ["a"]])
def test_other_things_than_pictures_are_refused(source: object) -> None:
    assert "not as" in refusal(source)


def test_only_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ImageError, match="not a file"):
        decode(tmp_path / "pipe")
    with pytest.raises(ImageError, match="not a file"):
        decode(tmp_path)
    with pytest.raises(ImageError, match="no such file"):
        decode(tmp_path / "absent.png")
    with pytest.raises(ImageError, match="not valid"):
        decode("a\0b")


@pytest.mark.parametrize(
    "raised", [KeyError("x"), RecursionError(), ZeroDivisionError(), IndexError(), MemoryError(), EOFError()]
)
def test_whatever_a_decoder_raises_becomes_one_sentence(
    raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(self: Image.Image) -> None:
        raise raised

    monkeypatch.setattr(ImageFile.ImageFile, "load", load)
    refusal(encoded(picture(), "PNG"))


def test_warnings_of_decoders_are_kept_and_the_filters_restored(shared_data: Path) -> None:
    warning_file = shared_data / "odd_images" / "pillow" / "hopper_unknown_pixel_mode.tif"
    filters = list(warnings.filters)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        refusal(warning_file)
    assert [str(w.message) for w in seen] == []
    assert warnings.filters == filters


def test_threads_get_their_own_pictures() -> None:
    images = [Image.new("RGB", (50 + i, 40), (i, 2 * i, 3 * i)) for i in range(24)]
    files = [encoded(image, "PNG") for image in images]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(5):
            if decode(files[i]) != images[i]:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(files))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_hash_depends_on_pixels_and_shape_only() -> None:
    image = picture()
    same = image.copy()
    same.info["comment"] = "x"
    assert image_hash(image) == image_hash(same)
    assert len(image_hash(image)) == 64
    changed = image.copy()
    changed.putpixel((3, 3), (0, 0, 1))
    reshaped = Image.frombytes("RGB", (40, 60), image.tobytes())
    assert len({image_hash(i) for i in (image, changed, reshaped, image.convert("L"))}) == 4
