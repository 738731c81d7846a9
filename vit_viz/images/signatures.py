"""What a file is, recognised by its first bytes (its name is never trusted), and its segments, checked before decoding.

Decoders search a hostile file for its next segment byte by byte.

Sources: the formats' specifications; PNG 1.2 section 3.1, ISO/IEC 14496-12 (ftyp brands), RFC 9649 (WebP); of the segments JPEG,
ITU-T T.81 annex B; GIF89a, sections 15 to 27; WebP, RFC 9649 and RFC 6386, section 9.1.
"""

from __future__ import annotations

from importlib.util import find_spec

READABLE = {
    "JPEG": "JPEG",
    "PNG": "PNG",
    "WEBP": "WebP",
    "GIF": "GIF",
    "BMP": "BMP",
    "TIFF": "TIFF",
    "AVIF": "AVIF",
    "HEIF": "HEIC",
}
"""Pillow's name of a format that is read here -> its name for people. HEIF only where pillow-heif is installed."""

CHOOSE = "please choose a JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF image"

_PREFIXES = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"BM", "BMP"),
)

_FOREIGN = (
    (b"%PDF", "a PDF document"),
    (b"8BPS", "a Photoshop file"),
    (b"%!PS", "an EPS drawing"),
    (b"\xc5\xd0\xd3\xc6", "an EPS drawing"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    (b"\xff\x4f\xff\x51", "a JPEG 2000 image"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL image"),
    (b"\xff\x0a", "a JPEG XL image"),
    (b"\0\0\1\0", "an icon file"),
    (b"DDS ", "a DDS texture"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"PK\3\4", "a ZIP archive or an office document"),
    (b"\xd0\xcf\x11\xe0", "an office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x1aE\xdf\xa3", "a video"),
)

_AVIF_BRANDS = (b"avif", b"avis")
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
_SNIFFED_BYTES = 512


def readable_format(data: bytes) -> str | None:
    """Pillow's name of the format that the first bytes announce, if it is one that is read here."""
    for prefix, name in _PREFIXES:
        if data.startswith(prefix):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] != b"ftyp":
        return None
    brands = {data[i : i + 4] for i in range(8, min(int.from_bytes(data[:4], "big"), 64), 4)}
    if brands.intersection(_AVIF_BRANDS):
        return "AVIF"
    return "HEIF" if brands.intersection(_HEIF_BRANDS) and find_spec("pillow_heif") else None


def foreign_kind(data: bytes) -> str:
    """What a file is that is not read here, in words: "a PDF document", "a text file"."""
    for prefix, kind in _FOREIGN:
        if data.startswith(prefix):
            return kind
    if b"PNG" in data[:8] and b"IHDR" in data[:24]:
        return "a PNG whose first bytes are damaged"
    if data[4:8] == b"ftyp":
        return "a HEIC photo" if data[8:12] in _HEIF_BRANDS else "a video"
    return _text_kind(data[:_SNIFFED_BYTES]) or "not an image that can be read here"


def _text_kind(start: bytes) -> str | None:
    """SVG, HTML or plain text; None for binary data."""
    if b"\0" in start:
        return None
    lowered = start.lower()
    if b"<svg" in lowered:
        return "an SVG drawing"
    if b"<html" in lowered or b"<!doctype html" in lowered:
        return "a web page"
    if any(byte < 32 and byte not in b"\t\r\n" for byte in start):
        return None
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 3:  # else the end cuts a character in two
            return None
    return "a text file"


MOST_PARTS = (
    50_000  # of a file of 20 MB; usual are a few hundred, and decoders need some microseconds for each
)
MOST_JUNK = 65_536  # bytes between the parts of a JPEG

_NEXT_SCAN, _END = 0xDA, 0xD9


def check_jpeg(data: bytes) -> None:
    """Refuse a JPEG whose pixels lie behind endless junk or endless segments."""
    position, junk = 2, 0
    for _ in range(MOST_PARTS):
        start = data.find(b"\xff", position)
        if start < 0 or start + 4 > len(data):
            junk += len(data) - position
            break
        junk += start - position
        marker = data[start + 1]
        if marker == _NEXT_SCAN or junk > MOST_JUNK:
            break
        if marker in (0x00, 0xFF):  # an escaped byte, or padding
            position, junk = start + 1, junk + 1
        elif 0xD0 <= marker <= _END or marker == 0x01:  # without a length
            position = start + 2
        else:
            position = start + 2 + max(2, int.from_bytes(data[start + 2 : start + 4], "big"))
    else:
        raise ValueError("too many parts")
    if junk > MOST_JUNK:
        raise ValueError("too much junk")


def check_gif(data: bytes) -> None:
    """Refuse a GIF whose first frame lies behind endless blocks."""
    position = 13 + (3 << ((data[10] & 7) + 1) if len(data) > 10 and data[10] & 0x80 else 0)
    for _ in range(MOST_PARTS):
        if position + 2 > len(data) or data[position : position + 1] == b",":
            return
        if data[position] == 0x21:  # an extension: its label, then blocks, of which the first may be short
            position += 2
        elif data[position] == 0:  # the end of an extension
            position += 1
        else:
            position += 1 + data[position]
    raise ValueError("too many blocks")


def webp_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) that the first part of a WebP claims; None where it claims none.

    Pillow's decoder takes the memory for it when it opens the file, before anybody can look at its size.
    """
    kind, body = data[12:16], data[20:30]
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF
    return None
