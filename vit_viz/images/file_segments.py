"""The segments of a file, checked before decoding: decoders search a hostile file for its next segment byte by byte.

Sources: JPEG, ITU-T T.81 annex B; GIF89a specification, sections 15 to 27; WebP, RFC 9649 and RFC 6386, section 9.1.
"""

from __future__ import annotations

MOST_PARTS = (
    50_000  # of a file of 20 MB; usual are a few hundred, and decoders need some microseconds for each
)
MOST_JUNK = 65_536  # bytes between the parts of a JPEG

_NEXT_SCAN, _END = 0xDA, 0xD9


def check_jpeg(data: bytes) -> None:
    """Refuse a JPEG whose pixels lie behind endless junk or endless segments.

    Raises:
        ValueError: there is too much of either.
    """
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
    """Refuse a GIF whose first frame lies behind endless blocks.

    Raises:
        ValueError: there are too many.
    """
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
