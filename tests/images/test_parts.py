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
from vit_viz.images.parts import MOST_JUNK, MOST_PARTS, check_gif, check_jpeg


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
