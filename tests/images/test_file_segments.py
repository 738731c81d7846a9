"""Files of endless parts are refused at once, and nothing that people use is."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from PIL import Image

from tests.images.image_files import SIGNATURE, chunk
from vit_viz.errors import ImageError
from vit_viz.images import decode
from vit_viz.images.signatures import MOST_JUNK, MOST_PARTS, check_gif, check_jpeg, webp_size


def encoded(kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (60, 40), (200, 30, 60)).save(file, kind, **options)
    return file.getvalue()


def of_twenty_megabytes(start: bytes, part: bytes, end: bytes = b"") -> bytes:
    return start + part * ((19_900_000 - len(start) - len(end)) // len(part)) + end


JPEG, PNG, GIF = encoded("JPEG"), encoded("PNG"), encoded("GIF")
ENDLESS = {
    "noise behind the header of a JPEG": of_twenty_megabytes(JPEG[:300], bytes(range(256))),
    "padding in a JPEG": of_twenty_megabytes(JPEG[:2], b"\xff", JPEG[2:]),
    "escapes in a JPEG": of_twenty_megabytes(JPEG[:2], b"\xff\x00", JPEG[2:]),
    "zeros in a JPEG": of_twenty_megabytes(JPEG[:20], b"\x00", JPEG[20:]),
    "empty parts of a JPEG": of_twenty_megabytes(JPEG[:2], b"\xff\xe1\x00\x02", JPEG[2:]),
    "restarts in a JPEG": of_twenty_megabytes(JPEG[:2], b"\xff\xd0", JPEG[2:]),
    "empty chunks of a PNG": of_twenty_megabytes(PNG[:33], chunk(b"zzZz", b""), PNG[33:]),
    "empty text in a PNG": of_twenty_megabytes(PNG[:33], chunk(b"tEXt", b"a\0"), PNG[33:]),
    "empty pixels of a PNG": of_twenty_megabytes(SIGNATURE + PNG[8:33], chunk(b"IDAT", b"")),
    "short blocks of a GIF": of_twenty_megabytes(GIF[:25] + b"!\xfe", b"\x01a"),
    "empty extensions of a GIF": of_twenty_megabytes(GIF[:25], b"!\xfe\x00"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_file_of_endless_parts_is_refused_at_once(kind: str) -> None:
    started = time.thread_time()
    with pytest.raises(ImageError, match="damaged"):
        decode(ENDLESS[kind])
    assert time.thread_time() - started < 1


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
def test_a_file_with_as_much_metadata_as_may_be_is_read(kind: str) -> None:
    more = {
        "JPEG": JPEG[:2] + (b"\xff\xe1\xff\xff" + bytes(65533)) * 250 + bytes(1000) + JPEG[2:],
        "PNG": PNG[:33] + chunk(b"tEXt", b"a\0b") * 1000 + PNG[33:],
        "GIF": GIF[:25] + b"!\xfe" + b"\xff" * 256 * 1000 + b"\0" + GIF[25:],
    }
    assert decode(more[kind]).size == (60, 40)


def test_junk_up_to_its_limit_is_passed_over() -> None:
    check_jpeg(JPEG[:2] + bytes(MOST_JUNK) + JPEG[2:])
    with pytest.raises(ValueError, match="junk"):
        check_jpeg(JPEG[:2] + bytes(MOST_JUNK + 1))
    with pytest.raises(ValueError, match="parts"):
        check_jpeg(JPEG[:2] + b"\xff\xd0" * MOST_PARTS + JPEG[2:])


def test_no_published_file_has_too_many_parts(shared_data: Path) -> None:
    seen = {"jpeg": 0, "gif": 0}
    for path in sorted((shared_data / "odd_images").rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        if data.startswith(b"\xff\xd8\xff"):
            check_jpeg(data)
            seen["jpeg"] += 1
        elif data.startswith(b"GIF8"):
            check_gif(data)
            seen["gif"] += 1
    assert seen["jpeg"] > 20
    assert seen["gif"] > 5


@pytest.mark.parametrize("size", range(8))
@pytest.mark.parametrize("has_table", [False, True])
def test_the_blocks_of_a_gif_begin_behind_its_table_of_colours(has_table: bool, size: int) -> None:
    """A comma begins a picture; those in the table, and within blocks, are none."""
    flags = 0x70 | size | (0x80 if has_table else 0)  # the colours of a pixel, which say nothing of a table
    start = b"GIF89a" + b"\5\0\3\0" + bytes([flags, 0, 0])
    table = b"," * (3 * 2 ** (size + 1)) if has_table else b""
    blocks = b"!\xfe" + (b"\xff" + b"," * 255) * 9 + b"\0"
    check_gif(start + table + blocks + b",")
    with pytest.raises(ValueError, match="too many blocks"):
        check_gif(start + table + blocks + b"!\xfe\0" * MOST_PARTS + b",")


@pytest.mark.parametrize("size", [(2, 3), (301, 47), (16383, 5), (7, 16383)])
@pytest.mark.parametrize("form", ["lossy", "lossless", "extended"])
def test_the_size_of_a_webp_stands_in_its_first_part(form: str, size: tuple[int, int]) -> None:
    file = io.BytesIO()
    mode = "RGBA" if form == "extended" else "RGB"
    Image.new(mode, size).save(file, "WEBP", lossless=form == "lossless")
    assert file.getvalue()[12:16] == {"lossy": b"VP8 ", "lossless": b"VP8L", "extended": b"VP8X"}[form]
    assert webp_size(file.getvalue()) == size


@pytest.mark.parametrize("data", [b"", b"RIFF\0\0\0\0WEBP", b"RIFF\0\0\0\0WEBPALPH\1\0\0\0" + bytes(20)])
def test_what_begins_with_another_part_has_no_size(data: bytes) -> None:
    assert webp_size(data) is None


def test_a_webp_is_not_opened_when_its_claim_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    Image.new("RGB", (60, 40)).save(file, "WEBP", lossless=True)
    data = bytearray(file.getvalue())
    monkeypatch.setattr(Image, "open", None)  # which takes the memory for all pixels

    def claim(width: int, height: int) -> str:
        data[21:25] = (width - 1 | height - 1 << 14).to_bytes(4, "little")
        with pytest.raises(ImageError) as caught:
            decode(bytes(data))
        return str(caught.value)

    assert "damaged" in claim(5000, 2500)  # 12.5 megapixels go on to be opened
    assert (
        claim(5000, 2501)
        == "This WebP claims 12.5 megapixels and at most 12.5 are read; please make it smaller."
    )
    assert "claims 268 megapixels" in claim(16383, 16383)
