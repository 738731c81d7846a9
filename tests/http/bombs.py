"""Files that cost more than they look: huge claims, endless metadata, many frames; most are small and all are quickly made."""

from __future__ import annotations

import io
import struct
import zlib

from PIL import Image

from tests.http.hostile import encoded, photo
from tests.images.image_files import SIGNATURE, chunk


def png_of_blank_pixels() -> bytes:
    """20 kB that really hold 13000 x 13000 pixels."""
    return encoded(Image.new("1", (13000, 13000)), "PNG")


def png_claim() -> bytes:
    """A header of 30000 x 30000 colour pixels, and next to nothing behind it."""
    header = struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1 << 20), 9)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def tiff_of(entries: list[tuple[int, int, int, int]], *, following: int = 0) -> bytes:
    """A TIFF of one directory without pixels: (tag, type, count, value) each."""
    packed = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + packed + struct.pack("<I", following) + bytes(64)


def tiff_claim(**options: int) -> bytes:
    """A TIFF that claims 30000 x 30000 in one strip."""
    size = [(256, 4, 1, 30000), (257, 4, 1, 30000), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)]
    strip = [(273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, 30000), (279, 4, 1, 900_000_000)]
    return tiff_of(size + strip, **options)


def tiff_in_a_circle() -> bytes:
    """A TIFF whose next directory is itself."""
    return tiff_claim(following=8)


def tiff_of_many_values() -> bytes:
    """A TIFF whose strips are two thousand million."""
    return tiff_of([(256, 4, 1, 60), (257, 4, 1, 40), (273, 4, 0x7FFFFFFF, 8), (279, 4, 0x7FFFFFFF, 8)])


def tiff_of_many_directories() -> bytes:
    """A valid picture, followed by 30,000 directories."""
    data = bytearray(encoded(photo(6), "TIFF"))
    first = struct.unpack_from("<I", data, 4)[0]
    link = first + 2 + 12 * struct.unpack_from("<H", data, first)[0]
    struct.pack_into("<I", data, link, len(data))
    for _ in range(30_000):
        place = len(data)
        data += struct.pack("<HHHIII", 1, 256, 4, 1, 60, place + 18)
    return bytes(data)


def gif_of_many_frames() -> bytes:
    """1,500 frames, of which the first is the picture."""
    frames = [photo(i % 7) for i in range(1500)]
    return encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=20)


def png_of_endless_text() -> bytes:
    """A kilobyte of text that grows to a gigabyte, and a colour profile of the same kind."""
    packed = zlib.compress(bytes(1 << 28), 9)
    good = encoded(photo(7), "PNG")
    extra = chunk(b"zTXt", b"Comment\0\0" + packed) + chunk(b"iCCP", b"profile\0\0" + packed)
    return good[:33] + extra + good[33:]


def jpeg_of_endless_metadata() -> bytes:
    """300 blocks of EXIF and of a colour profile, 64 kB each."""
    good = encoded(photo(8), "JPEG")
    block = b"\xff\xe1" + struct.pack(">H", 65535) + b"Exif\0\0II*\0" + bytes(65523)
    profile = b"\xff\xe2" + struct.pack(">H", 65535) + b"ICC_PROFILE\0\1\1" + bytes(65519)
    return good[:2] + block * 150 + profile * 150 + good[2:]


def noise_behind_a_header() -> bytes:
    """As much as may be uploaded, of which only the beginning is a JPEG."""
    return encoded(photo(9), "JPEG")[:300] + bytes(range(256)) * 77_000


def large_progressive_cut_short() -> bytes:
    """The largest progressive JPEG that is read, without its end."""
    file = io.BytesIO()
    photo(10, width=4600, height=3400).save(file, "JPEG", progressive=True, quality=40)
    return file.getvalue()[:-2000]


REFUSED = (
    *(png_of_blank_pixels, png_claim, tiff_claim, tiff_in_a_circle, tiff_of_many_values),
    *(noise_behind_a_header, large_progressive_cut_short),
)
EITHER = (tiff_of_many_directories, gif_of_many_frames, png_of_endless_text, jpeg_of_endless_metadata)
