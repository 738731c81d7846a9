"""How two files of one kind differ: in nothing, in bytes that are no numbers, or in numbers, and then by how much.

The record of a file (vit_viz.figures.record) is no number: two files that differ in it alone hold equal numbers.
"""

from __future__ import annotations

import base64
import csv
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from vit_viz.errors import ExportError
from vit_viz.figures import export

Values = NDArray[np.float64]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_RECORD = re.compile(rb"<vit_viz:record>[^<]*</vit_viz:record>")
_PICTURE = re.compile(rb"data:image/png;base64,([A-Za-z0-9+/=]+)")
_STREAM = re.compile(rb"stream\r?\n(.*?)\r?\nendstream", re.DOTALL)


@dataclass(frozen=True)
class Difference:
    """What tells one file from another.

    Args:
        has_equal_bytes: whether nothing does.
        largest: between two numbers at the same place; None where not the same numbers stand there at all.
        unit: what it is counted in, in words; "" for that of the answer.
    """

    has_equal_bytes: bool
    largest: float | None
    unit: str = ""


class _OtherPlacesError(Exception):
    """Two files do not hold numbers at the same places."""


def difference(first: bytes, second: bytes) -> Difference:
    """How a file differs from another of its kind, which was made here and bounds what is unpacked of the first."""
    if first == second:
        return Difference(True, 0.0)
    for start, numbers, unit in _KINDS:
        if second.startswith(start):
            try:
                pairs = list(numbers(first, second))
            except (_OtherPlacesError, ExportError, OSError, ValueError, SyntaxError):
                return Difference(False, None, unit)
            return Difference(False, max((_largest(*pair) for pair in pairs), default=0.0), unit)
    return Difference(False, None)


def _largest(first: Values, second: Values) -> float:
    """The largest difference of two arrays; NaN at the same place is none."""
    if first.shape != second.shape:
        raise _OtherPlacesError
    is_other = ~((first == second) | (np.isnan(first) & np.isnan(second)))
    if not is_other.any():
        return 0.0
    largest = np.abs(first[is_other] - second[is_other]).max()
    return float("inf") if np.isnan(largest) else float(largest)


def _arrays(first: bytes, second: bytes) -> Iterator[tuple[Values, Values]]:
    """Those of two NPZ files."""
    expected, _ = export.npz_contents(second)
    size = sum(values.nbytes for values in expected.values())
    arrays, _ = export.npz_contents(first, max_bytes=2 * size + (1 << 26))
    if {name: _kind(values) for name, values in arrays.items()} != {
        name: _kind(values) for name, values in expected.items()
    }:
        raise _OtherPlacesError
    for name, values in expected.items():
        if values.dtype.kind in "US":
            if not np.array_equal(arrays[name], values):
                raise _OtherPlacesError
        else:
            yield arrays[name].astype(np.float64), values.astype(np.float64)


def _kind(values: NDArray[np.generic]) -> tuple[tuple[int, ...], str]:
    return values.shape, values.dtype.kind


def _table(first: bytes, second: bytes) -> Iterator[tuple[Values, Values]]:
    """The cells of two CSV files that are numbers; the others must be equal."""
    lines = (file.decode("utf-8-sig").splitlines() for file in (first, second))
    rows, expected = (list(csv.reader(line for line in one if not line.startswith("#"))) for one in lines)
    if [len(row) for row in rows] != [len(row) for row in expected]:
        raise _OtherPlacesError
    yield _numbers_between([cell for row in rows for cell in row], [cell for row in expected for cell in row])


def _numbers_between(first: Sequence[str], second: Sequence[str]) -> tuple[Values, Values]:
    """Two rows of words as the numbers in which they may differ."""
    pairs = [(one, other) for one, other in zip(first, second, strict=True) if one != other]
    try:
        return np.array([float(one) for one, _ in pairs]), np.array([float(other) for _, other in pairs])
    except ValueError:
        raise _OtherPlacesError from None


def _pixels(first: bytes, second: bytes) -> Iterator[tuple[Values, Values]]:
    """Those of two pictures, frame by frame."""
    with Image.open(io.BytesIO(first)) as picture, Image.open(io.BytesIO(second)) as expected:
        if (picture.size, _frames(picture)) != (expected.size, _frames(expected)):
            raise _OtherPlacesError
        for one, other in zip(ImageSequence.Iterator(picture), ImageSequence.Iterator(expected), strict=True):
            yield tuple(np.asarray(frame.convert("RGBA"), np.float64) for frame in (one, other))  # type: ignore[misc]


def _frames(picture: Image.Image) -> int:
    return int(getattr(picture, "n_frames", 1))


def _drawn(first: bytes, second: bytes) -> Iterator[tuple[Values, Values]]:
    """Coordinates, printed numbers and embedded pictures of two drawings, as SVG and the pages of a PDF have them."""
    first, second = (_RECORD.sub(b"", file) for file in (first, second))
    pictures = [_PICTURE.findall(file) for file in (first, second)]
    if len(pictures[0]) != len(pictures[1]):
        raise _OtherPlacesError
    for one, other in zip(*pictures, strict=True):
        if one != other:
            yield from _pixels(base64.b64decode(one), base64.b64decode(other))
    texts = [_PICTURE.sub(b"", file).decode("utf-8") for file in (first, second)]
    if _NUMBER.sub("0", texts[0]) != _NUMBER.sub("0", texts[1]):
        raise _OtherPlacesError
    yield _numbers_between(_NUMBER.findall(texts[0]), _NUMBER.findall(texts[1]))


def _pages(first: bytes, second: bytes) -> Iterator[tuple[Values, Values]]:
    """What two PDF files draw, and the pictures in them."""
    expected = [_unpacked(one, len(second) << 10) for one in _STREAM.findall(second)]
    most = max(map(len, expected), default=0) + 1
    streams = [_unpacked(one, most) for one in _STREAM.findall(first)]
    if len(streams) != len(expected):
        raise _OtherPlacesError
    for one, other in zip(streams, expected, strict=True):
        one, other = _RECORD.sub(b"", one), _RECORD.sub(b"", other)
        if one == other:
            continue
        try:
            yield from _drawn(one, other)
        except UnicodeDecodeError:  # pixels, or a typeface
            if len(one) != len(other):
                raise _OtherPlacesError from None
            yield (
                np.frombuffer(one, np.uint8).astype(np.float64),
                np.frombuffer(other, np.uint8).astype(np.float64),
            )


def _unpacked(stream: bytes, most: int) -> bytes:
    """A stream of a PDF, at most so many bytes of it; as it is where it is not packed."""
    try:
        return zlib.decompressobj().decompress(stream, most)
    except zlib.error:
        return stream


_KINDS: tuple[tuple[bytes, Callable[[bytes, bytes], Iterator[tuple[Values, Values]]], str], ...] = (
    (b"PK", _arrays, ""),
    (b"#", _table, ""),
    (b"\x89PNG", _pixels, "of 255, of a pixel"),
    (b"GIF8", _pixels, "of 255, of a pixel"),
    (b"RIFF", _pixels, "of 255, of a pixel"),
    (b"<?xml", _drawn, "of what is drawn"),
    (b"%PDF", _pages, "of what is drawn"),
)
"""How a file begins, what of it is compared, and what its numbers count."""
