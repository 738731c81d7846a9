"""Hostile files: valid small pictures of every kind that is read, damaged in the ways that files are damaged or forged."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
from PIL import Image

Rng = np.random.Generator
KINDS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
EXTENSIONS = ("jpg", "png", "webp", "gif", "bmp", "tiff", "avif", "svg", "html", "exe", "")
HOSTILE_TEXT = "<img src=x onerror=\"document.title='owned'\">${7*7}`{{7*7}}"


def photo(seed: int, *, width: int = 60, height: int = 40) -> Image.Image:
    """Soft blobs, different for every seed."""
    blobs = np.random.default_rng(seed).integers(0, 256, (4, 5, 3), dtype=np.uint8)
    return Image.fromarray(blobs).resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """A picture as a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def valid_files() -> list[bytes]:
    """Small files of every kind, with and without what comes along in practice: EXIF, alpha, frames, palettes."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010F], exif[0x9286] = 6, "A camera", "x" * 300
    files = []
    for seed, kind in enumerate(KINDS):
        picture = photo(seed)
        files.append(encoded(picture, kind))
        files.append(encoded(photo(seed + 50, width=33, height=71), kind))
        if kind in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF"):
            files.append(encoded(picture, kind, exif=exif))
        if kind in ("PNG", "WEBP", "GIF", "TIFF", "AVIF"):
            more = [photo(seed + 10 + i) for i in range(3)]
            files.append(encoded(picture, kind, save_all=True, append_images=more))
    files.append(encoded(photo(90), "JPEG", progressive=True, quality=60))
    files.append(encoded(photo(91).convert("CMYK"), "JPEG"))
    files.append(encoded(photo(92).convert("RGBA"), "PNG"))
    files.append(encoded(photo(93).convert("P"), "PNG"))
    files.append(encoded(photo(94).convert("I;16"), "TIFF"))
    files.append(encoded(photo(95).convert("F"), "TIFF"))
    files.append(encoded(photo(96), "TIFF", compression="tiff_lzw"))
    return files


def flip_bits(data: bytes, rng: Rng) -> bytes:
    """A few bytes changed, most of them near the beginning, where the headers are."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 12))):
        reach = min(len(out), 400) if rng.random() < 0.7 else len(out)
        out[int(rng.integers(reach))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def truncate(data: bytes, rng: Rng) -> bytes:
    """A copy that was interrupted."""
    return data[: int(rng.integers(0, len(data)))]


def append(data: bytes, rng: Rng) -> bytes:
    """Something behind the end: noise, markup, or another picture."""
    tail = (rng.bytes(200), HOSTILE_TEXT.encode() * 9, data, b"PK\3\4" + rng.bytes(60))
    return data + tail[int(rng.integers(len(tail)))]


def duplicate_part(data: bytes, rng: Rng) -> bytes:
    """A part of the file twice, as a chunk that was written again."""
    start = int(rng.integers(len(data)))
    part = data[start : start + int(rng.integers(1, 400))]
    return data[:start] + part * int(rng.integers(2, 5)) + data[start + len(part) :]


def cut_out(data: bytes, rng: Rng) -> bytes:
    """A part of the file missing."""
    start = int(rng.integers(len(data)))
    return data[:start] + data[start + int(rng.integers(1, 200)) :]


def lie_about_size(data: bytes, rng: Rng) -> bytes:
    """A header whose width or height is another number."""
    lie = int(rng.choice([0, 1, 2, 13_000, 30_000, 65_535, 2**31 - 1, 2**32 - 1]))
    out = bytearray(data)
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        struct.pack_into(">I", out, 16 + 4 * int(rng.integers(2)), lie)
        struct.pack_into(">I", out, 29, zlib.crc32(out[12:29]))
    elif data[:3] == b"GIF":
        struct.pack_into("<H", out, 6 + 2 * int(rng.integers(2)), lie & 0xFFFF)
    elif data[:2] == b"BM":
        struct.pack_into("<I", out, 18 + 4 * int(rng.integers(2)), lie)
    elif data[:2] == b"\xff\xd8" and (at := data.find(b"\xff\xc0")) > 0:
        struct.pack_into(">H", out, at + 5 + 2 * int(rng.integers(2)), lie & 0xFFFF)
    elif (at := data.find(b"ispe")) > 0:
        struct.pack_into(">I", out, at + 8 + 4 * int(rng.integers(2)), lie)
    else:
        struct.pack_into("<H", out, int(rng.integers(8, min(80, len(out) - 2))), lie & 0xFFFF)
    return bytes(out)


def damage_exif(data: bytes, rng: Rng) -> bytes:
    """Metadata that lies: where there is EXIF, its bytes; else a block of it that is noise."""
    at = max(data.find(b"Exif\0\0"), data.find(b"EXIF"), data.find(b"eXIf"))
    out = bytearray(data)
    if at > 0:
        for _ in range(8):
            out[min(len(out) - 1, at + 6 + int(rng.integers(120)))] = int(rng.integers(256))
        return bytes(out)
    if data[:2] == b"\xff\xd8":
        noise = b"Exif\0\0II*\0" + rng.bytes(90)
        return data[:2] + b"\xff\xe1" + struct.pack(">H", len(noise) + 2) + noise + data[2:]
    return flip_bits(data, rng)


def keep(data: bytes, rng: Rng) -> bytes:
    """Nothing: only its name lies."""
    return data


MUTATIONS: tuple[Callable[[bytes, Rng], bytes], ...] = (
    *(flip_bits, flip_bits, flip_bits, truncate, append, duplicate_part, cut_out),
    *(lie_about_size, lie_about_size, damage_exif, keep),
)


def mutated(number: int, files: list[bytes]) -> tuple[str, bytes]:
    """The name and the content of a hostile file; the same for the same number."""
    rng = np.random.default_rng(number)
    data = MUTATIONS[number % len(MUTATIONS)](files[int(rng.integers(len(files)))], rng)
    name = (
        f"{HOSTILE_TEXT if number % 7 == 0 else 'holiday'}.{EXTENSIONS[int(rng.integers(len(EXTENSIONS)))]}"
    )
    return name, data
