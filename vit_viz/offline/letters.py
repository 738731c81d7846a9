"""Bytes as text in a page: 13 bits are two of 91 letters, so that 100 bytes take 123 letters, where base64 takes 133.

The other half is `bytesIn` in start.js.
"""

from __future__ import annotations

import numpy as np

LETTERS = "".join(letter for letter in map(chr, range(33, 127)) if letter not in "&<>")
"""Printable ASCII without what means something to HTML."""

_BITS, _BYTES = 13, 13  # bits of a pair of letters; bytes that are a whole number of pairs, 8
_CODES = np.frombuffer(LETTERS.encode(), np.uint8)


def as_letters(data: bytes) -> str:
    """Bytes as letters, from the lowest bit of the first byte on; the last letter is left out where 6 bits or less are left."""
    count = -(-8 * len(data) // _BITS)
    padded = np.zeros(-(-len(data) // _BYTES) * _BYTES + 2, np.uint32)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    values = np.empty((len(padded) // _BYTES, 8), np.uint32)
    for pair in range(8):
        byte, shift = divmod(_BITS * pair, 8)
        low, middle, high = (padded[byte + i :: _BYTES][: len(values)] for i in range(3))
        values[:, pair] = (low | middle << 8 | high << 16) >> shift & (2**_BITS - 1)
    pairs = np.stack(np.divmod(values.ravel()[:count], len(LETTERS))[::-1], axis=-1)
    text: str = _CODES[pairs].tobytes().decode("ascii")
    return text[:-1] if 0 < 8 * len(data) % _BITS <= 6 else text
