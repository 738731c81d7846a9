"""How a file is cut into parts, looked at before a decoder does: decoders of hostile files look for the next part byte by byte.

Sources: JPEG, ITU-T T.81 annex B; GIF89a specification, sections 15 to 27.
"""

from __future__ import annotations

MOST_PARTS = (
    50_000  # of a file of 20 MB; usual are a few hundred, and decoders need some microseconds for each
)
MOST_JUNK = 65_536  # bytes between the parts of a JPEG

_NEXT_SCAN, _END = 0xDA, 0xD9


def check_jpeg(data: bytes) -> None:
    """Refuse a JPEG whose pixels lie behind endless junk or endless parts.

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
