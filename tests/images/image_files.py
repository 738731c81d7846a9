"""Small image files written by hand, and a PNG reader from the specification: oracles that share no code with Pillow."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    samples: Array, *, colour: int, depth: int = 8, extra: bytes = b"", size: tuple[int, int] | None = None
) -> bytes:
    """A PNG of samples [rows, cols, channels]; `size` makes the header claim another (height, width)."""
    rows, cols = samples.shape[:2]
    if depth < 8:
        bits = np.unpackbits(samples.astype(np.uint8).reshape(rows, -1, 1), axis=-1)[:, :, 8 - depth :]
        raw = [np.packbits(row.reshape(-1)).tobytes() for row in bits]
    else:
        raw = [row.astype(">u2" if depth == 16 else "u1").tobytes() for row in samples]
    height, width = size or (rows, cols)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + line for line in raw))
    return SIGNATURE + chunk(b"IHDR", header) + extra + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def tiff(
    samples: Array,
    *,
    photometric: int = 1,
    sample_format: int = 1,
    bits: int | None = None,
    big: bool = False,
) -> bytes:
    """An uncompressed TIFF of one strip of samples [rows, cols] or [rows, cols, channels]."""
    order = ">" if big else "<"
    rows, cols = samples.shape[:2]
    channels = samples.shape[2] if samples.ndim == 3 else 1
    pixels = samples.astype(samples.dtype.newbyteorder(order)).tobytes()
    depth = bits or samples.dtype.itemsize * 8
    entries = 11
    after = 8 + 2 + entries * 12 + 4
    depths = struct.pack(f"{order}{channels}H", *[depth] * channels)
    formats = struct.pack(f"{order}{channels}H", *[sample_format] * channels)
    data_at = after + len(depths) + len(formats)

    def short(tag: int, value: int) -> bytes:
        return struct.pack(order + "HHIHH", tag, 3, 1, value, 0)

    def long(tag: int, value: int) -> bytes:
        return struct.pack(order + "HHII", tag, 4, 1, value)

    def shorts(tag: int, packed: bytes, at: int) -> bytes:
        place = packed.ljust(4, b"\0") if len(packed) <= 4 else struct.pack(order + "I", at)
        return struct.pack(order + "HHI", tag, 3, channels) + place

    directory = [
        *(
            long(256, cols),
            long(257, rows),
            shorts(258, depths, after),
            short(259, 1),
            short(262, photometric),
        ),
        *(long(273, data_at), short(274, 1), short(277, channels), long(278, rows), long(279, len(pixels))),
        shorts(339, formats, after + len(depths)),
    ]
    head = (b"MM\0*" if big else b"II*\0") + struct.pack(order + "I", 8)
    return (
        head
        + struct.pack(order + "H", entries)
        + b"".join(directory)
        + b"\0\0\0\0"
        + depths
        + formats
        + pixels
    )


def read_png_over_white(data: bytes) -> NDArray[np.float64]:
    """What a PNG looks like over white, [rows, cols, 3] in 0..255, unrounded; from the specification, gamma ignored."""
    chunks = _chunks(data)
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    stream = memoryview(zlib.decompress(chunks[b"IDAT"]))
    channels = _CHANNELS[colour]
    samples = np.zeros((height, width, channels), dtype=np.int64)
    position = 0
    for top, left, down, right in _ADAM7 if interlaced else [(0, 0, 1, 1)]:
        rows, cols = -(-(height - top) // down), -(-(width - left) // right)
        if rows > 0 and cols > 0:
            part, position = _unfilter(stream, position, rows, cols, channels, depth)
            samples[top::down, left::right] = part
    rgb, alpha = _colours(samples, chunks, colour, 2**depth - 1)
    return 255 * (rgb * alpha + 1 - alpha)


def _chunks(data: bytes) -> dict[bytes, bytes]:
    """Chunks by name; equal ones are joined, as IDAT needs it."""
    found: dict[bytes, bytes] = {}
    position = 8
    while position < len(data):
        length = int.from_bytes(data[position : position + 4], "big")
        kind = data[position + 4 : position + 8]
        found[kind] = found.get(kind, b"") + data[position + 8 : position + 8 + length]
        position += 12 + length
    return found


def _unfilter(
    stream: memoryview, position: int, rows: int, cols: int, channels: int, depth: int
) -> tuple[NDArray[np.int64], int]:
    stride, back = -(-cols * channels * depth // 8), max(1, channels * depth // 8)
    above = bytearray(stride)
    lines = []
    for _ in range(rows):
        kind, line = stream[position], bytearray(stream[position + 1 : position + 1 + stride])
        for i in range(stride):
            a, b = (line[i - back], above[i]) if i >= back else (0, above[i])
            c = above[i - back] if i >= back else 0
            line[i] = (line[i] + (0, a, b, (a + b) // 2, _paeth(a, b, c))[kind]) & 255
        lines.append(line)
        above = line
        position += 1 + stride
    block = np.array(lines, dtype=np.uint8)
    if depth == 16:
        values = block.view(">u2").astype(np.int64)
    elif depth == 8:
        values = block.astype(np.int64)
    else:
        bits = np.unpackbits(block, axis=1).reshape(rows, -1, depth)
        values = bits @ (1 << np.arange(depth)[::-1])
    return values[:, : cols * channels].reshape(rows, cols, channels).astype(np.int64), position


def _paeth(a: int, b: int, c: int) -> int:
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def _colours(
    samples: NDArray[np.int64], chunks: dict[bytes, bytes], colour: int, top: int
) -> tuple[Array, Array]:
    """RGB [rows, cols, 3] and alpha [rows, cols, 1], in 0..1."""
    transparent = chunks.get(b"tRNS", b"")
    if colour == 3:
        palette = np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3) / 255
        alphas = np.ones(256)
        alphas[: len(transparent)] = np.frombuffer(transparent, np.uint8) / 255
        return palette[samples[..., 0]], alphas[samples]
    if colour in (4, 6):
        return np.broadcast_to(samples[..., :-1] / top, (*samples.shape[:2], 3)), samples[..., -1:] / top
    alpha = np.ones((*samples.shape[:2], 1))
    if transparent:
        alpha[(samples == np.frombuffer(transparent, ">u2")).all(-1)] = 0
    return np.broadcast_to(samples / top, (*samples.shape[:2], 3)), alpha
