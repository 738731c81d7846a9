"""Untrusted bytes -> an upright RGB picture, or one sentence that says what is wrong and what would work.

Size, shape and kind are checked in the header, before any pixel is decoded. The limits follow from memory: what Pillow and its
libraries need per pixel while they decode was measured (in bytes: JPEG 4, progressive JPEG 10, PNG, GIF and BMP at most 4,
TIFF up to 10, AVIF 12, WebP 16), and no file that is refused may have needed more than 150 MB with its own bytes.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, TiffImagePlugin

from vit_viz.errors import ImageError, ParameterError
from vit_viz.images.colours import rgb_over_white
from vit_viz.images.signatures import (
    CHOOSE,
    MOST_PARTS,
    READABLE,
    check_gif,
    check_jpeg,
    foreign_kind,
    readable_format,
    webp_size,
)
from vit_viz.silence import without_warnings

MAX_BYTES = 20_000_000
MAX_PIXELS = 64_000_000
MAX_ASPECT = 20.0
MIN_SIDE = 2

_PIXELS_BY_FORMAT = {
    "JPEG": 64_000_000,  # decoded at half size above _FULL_SIZE_PIXELS
    **dict.fromkeys(("PNG", "GIF", "BMP"), 25_000_000),
    **dict.fromkeys(("TIFF", "WEBP", "AVIF", "HEIF"), 12_500_000),
}
_BUFFERED_JPEG_PIXELS = 16_000_000  # several scans: libjpeg keeps all coefficients, 6 bytes per pixel
_FULL_SIZE_PIXELS = 16_000_000
_MAX_JPEG_SCANS = 64  # usual are 1 to 20; each costs a pass over the whole picture
_TIFF_COMPRESSIONS = {
    *("raw", "tiff_ccitt", "group3", "group4", "tiff_lzw", "jpeg", "tiff_adobe_deflate"),
    *("tiff_raw_16", "packbits", "tiff_deflate", "lzma", "zstd"),
}
_TILE_WIDTH, _TILE_LENGTH = 322, 323

_ORIENTATION = 274
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

_log = logging.getLogger(__name__)


def decode(
    source: bytes | str | os.PathLike[str] | Image.Image,
    *,
    max_bytes: int = MAX_BYTES,
    max_pixels: int = MAX_PIXELS,
    max_aspect: float = MAX_ASPECT,
) -> Image.Image:
    """The picture as a viewer shows it: upright, RGB, transparent parts white, the first frame of an animation.

    JPEGs above 16 megapixels are decoded at half size; `.info["reduced_from"]` of the result then holds their (height, width).
    Nothing else of the file's metadata is kept.

    Args:
        source: the content of a file, a path, or a PIL image, which stays as it is.
        max_bytes: bound on the file.
        max_pixels: bound on width x height as the header claims it; formats that need more memory per pixel have lower bounds.
        max_aspect: bound on the long side over the short side.
    """
    if isinstance(source, Image.Image):
        with _one_sentence(_label(source)):
            return _finish(source, None, max_pixels=max_pixels, max_aspect=max_aspect)
    data = read_source(source, max_bytes)
    kind = readable_format(data)
    if kind is None:
        foreign = foreign_kind(data)
        if foreign == "a HEIC photo":
            raise ImageError(
                "This is a HEIC photo, which this computer cannot read (pillow-heif is missing); please send it as JPEG."
            )
        raise ImageError(f"This file is {foreign}; {CHOOSE}.")
    with _one_sentence(READABLE[kind]), _open(data, kind) as image:
        return _finish(image, data, max_pixels=max_pixels, max_aspect=max_aspect)


def read_source(source: bytes | str | os.PathLike[str], max_bytes: int) -> bytes:
    """The content of what `decode` takes, never more than the limit; nothing but regular files is opened."""
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source[: max_bytes + 1])
    elif isinstance(source, str | os.PathLike):
        data = _read_file(Path(source), max_bytes)
    else:
        raise ImageError(
            f"An image is given as bytes, as a path or as a PIL image, not as {type(source).__name__}."
        )
    if not data:
        raise ImageError(f"This file is empty; {CHOOSE}.")
    if len(data) > max_bytes:
        raise ImageError(
            f"This file has more than {_mega(max_bytes)} MB; please send a smaller one, a JPEG for example."
        )
    return data


def decode_mask(data: bytes, size: tuple[int, int]) -> Image.Image:
    """A mask as its file has it, with its palette and its transparency, but upright.

    Args:
        data: the content of a PNG.
        size: (height, width) of the photo that it lies on; nothing of another size is decoded.
    """
    expected = f"A mask is a PNG of the photo's {size[1]} x {size[0]} pixels, as base64"
    if readable_format(data) != "PNG":
        raise ParameterError(f"{expected}; this is none.")
    with _one_sentence("PNG"), _open(data, "PNG") as image:
        upright = image
        if sorted(image.size) == sorted(size) and (method := _UPRIGHT.get(_orientation(image))) is not None:
            upright = image.transpose(method)
        if upright.size != size[::-1]:
            raise ParameterError(f"{expected}; this one has {upright.width} x {upright.height}.")
        return upright.copy()


def image_hash(image: Image.Image) -> str:
    """The identity of a picture: SHA-256 of its mode, size and pixels, in hex."""
    digest = hashlib.sha256(f"{image.mode} {image.height} x {image.width}\n".encode())
    digest.update(image.tobytes())
    return digest.hexdigest()


def is_upright_rgb(image: Image.Image) -> bool:
    """Whether `decode` would change nothing but metadata."""
    return image.mode == "RGB" and "transparency" not in image.info and _orientation(image) not in _UPRIGHT


def _read_file(path: Path, max_bytes: int) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ImageError(f"{path} is not a file; {CHOOSE}.")
        with path.open("rb") as file:
            return file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the name is not valid"
        raise ImageError(f"{path} cannot be opened ({reason.lower()}); please check the path.") from error


@contextmanager
def _one_sentence(label: str) -> Iterator[None]:
    """Turn whatever Pillow raises into one sentence, and suppress its warnings; one picture at a time, which bounds the memory."""
    with without_warnings(Image.DecompressionBombWarning):
        try:
            yield
        except (ImageError, ParameterError):
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            claimed = re.search(r"\((\d+) pixels\)", str(error))
            pixels = int(claimed[1]) if claimed else 2 * MAX_PIXELS
            raise ImageError(_too_many_pixels(label, pixels, MAX_PIXELS)) from error
        except MemoryError as error:
            raise ImageError(memory_refusal(label)) from error
        except Exception as error:  # the decoders raise nearly every built-in exception on hostile files
            _log.info("refused a %s: %s", label, type(error).__name__)
            if isinstance(error, EOFError) or "truncated" in str(error).lower():
                why = f"This {label} ends too early, so a part of it is missing; please copy or download it again."
                raise ImageError(why) from error
            raise ImageError(damage_refusal(label)) from error


def _open(data: bytes, kind: str) -> Image.Image:
    """Check the segments, then parse the header; no pixel is decoded yet."""
    if kind in _CHECKS:
        _CHECKS[kind](data)
    if kind == "HEIF":
        import pillow_heif  # type: ignore[import-not-found,unused-ignore]  # optional package

        pillow_heif.register_heif_opener()
    return Image.open(io.BytesIO(data), formats=(kind,))


def _finish(image: Image.Image, data: bytes | None, *, max_pixels: int, max_aspect: float) -> Image.Image:
    """Check what the header claims, decode, and make it upright RGB."""
    label = _label(image)
    claimed = image.size
    limit = min(max_pixels, _pixel_limit(image, data))
    _check_size(claimed, label, max_pixels=limit, max_aspect=max_aspect)
    _check_layout(image, limit)
    deep_source = _has_deep_samples(image)
    reduced = data is not None and label == "JPEG" and claimed[0] * claimed[1] > _FULL_SIZE_PIXELS
    if reduced:
        image.draft(None, (claimed[0] // 2, claimed[1] // 2))
    image.load()
    if image.size not in (claimed, claimed[::-1]):  # a draft, or a first frame larger than its canvas
        _check_size(image.size, label, max_pixels=limit, max_aspect=max_aspect)
    result = rgb_over_white(image, deep_source=deep_source)
    method = _UPRIGHT.get(_orientation(image))
    upright = result if method is None else result.transpose(method)
    if reduced:
        upright.info["reduced_from"] = claimed[::-1] if upright.size == result.size else claimed
    return upright


def _check_size(size: tuple[int, int], label: str, *, max_pixels: int, max_aspect: float) -> None:
    width, height = size
    if min(size) < MIN_SIDE:
        raise ImageError(
            f"This {label} is {width} x {height} pixels; each side needs at least {MIN_SIDE}, and 224 or more show details."
        )
    if width * height > max_pixels:
        raise ImageError(_too_many_pixels(label, width * height, max_pixels))
    if max(size) > max_aspect * min(size):
        raise ImageError(
            f"This {label} is {width} x {height} pixels; one side may be at most {max_aspect:g} times the other, so please crop it."
        )


def _pixel_limit(image: Image.Image, data: bytes | None) -> int:
    """How many pixels of this kind of file fit the memory that decoding may take."""
    if image.format in ("JPEG", "MPO") and data is not None:
        return _BUFFERED_JPEG_PIXELS if _jpeg_has_many_scans(data) else _PIXELS_BY_FORMAT["JPEG"]
    return _PIXELS_BY_FORMAT.get(image.format or "", MAX_PIXELS)


def _check_layout(image: Image.Image, max_pixels: int) -> None:
    """Refuse TIFFs whose compression would make libtiff complain on stderr, or whose tiles are larger than any picture."""
    if not isinstance(image, TiffImagePlugin.TiffImageFile):
        return
    if image.info.get("compression", "raw") not in _TIFF_COMPRESSIONS:
        raise ImageError(
            "This TIFF is compressed in a way that is not read here; please save it as PNG or JPEG."
        )
    tile = int(image.tag_v2.get(_TILE_WIDTH, 1)) * int(image.tag_v2.get(_TILE_LENGTH, 1))
    if tile > max_pixels:
        raise ImageError(_too_many_pixels("TIFF", tile, max_pixels))


def _check_png(data: bytes) -> None:
    """Refuse a PNG whose pixels do not match their checksums; Pillow reads it without a word."""
    position = 8
    for _ in range(MOST_PARTS):
        if position + 12 > len(data):
            raise EOFError
        end = position + 12 + int.from_bytes(data[position : position + 4], "big")
        kind = data[position + 4 : position + 8]
        needed = kind[:1].isupper()
        if needed and zlib.crc32(data[position + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            raise EOFError if end > len(data) else ValueError("checksum")
        if kind == b"IEND":
            return
        position = end
    raise ValueError("too many parts")


def _check_webp(data: bytes) -> None:
    """Refuse a WebP whose claim is too large before it is opened, because opening it takes memory for all pixels twice."""
    width, height = webp_size(data) or (0, 0)
    if width * height > _PIXELS_BY_FORMAT["WEBP"]:
        raise ImageError(_too_many_pixels("WebP", width * height, _PIXELS_BY_FORMAT["WEBP"]))


_CHECKS = {"WEBP": _check_webp, "PNG": _check_png, "JPEG": check_jpeg, "GIF": check_gif}


def _jpeg_has_many_scans(data: bytes) -> bool:
    """Whether libjpeg will keep all coefficients: progressive, or the first scan lacks components; too many are refused."""
    position, progressive, components = 2, False, 0
    while position + 10 <= len(data) and data[position] == 0xFF:
        marker, length = data[position + 1], int.from_bytes(data[position + 2 : position + 4], "big")
        if marker in (0xC0, 0xC1, 0xC2, 0xC9, 0xCA):  # start of frame; C2 and CA are progressive
            progressive, components = marker in (0xC2, 0xCA), data[position + 9]
        elif marker == 0xDA:
            break
        position += 2 + length if marker != 0xFF else 1
    else:
        return True  # Pillow will find what is wrong with it; until then expect the worst
    if data.count(b"\xff\xda", position) > _MAX_JPEG_SCANS:
        raise ImageError(
            f"This JPEG has more than {_MAX_JPEG_SCANS} scans; please save it again with usual settings."
        )
    return progressive or data[position + 4] < components


def _has_deep_samples(image: Image.Image) -> bool:
    """Whether Pillow will drop the lower 8 of 16 bits; known only before loading."""
    tile = getattr(image, "tile", None)
    rawmode = tile[0][3] if tile else ""
    return ";16" in str(rawmode[0] if isinstance(rawmode, tuple) and rawmode else rawmode)


def _orientation(image: Image.Image) -> int:
    """EXIF orientation; 1 (upright) where there is none, or where the metadata is damaged."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except Exception as error:  # damaged metadata is no reason to refuse a good picture
        _log.debug("EXIF of a picture ignored: %s", type(error).__name__)
        return 1
    return value if isinstance(value, int) else 1


def _label(image: Image.Image) -> str:
    """The kind of file as people call it; a phone's photo with a second picture inside (MPO) is a JPEG."""
    return READABLE.get(image.format or "", "JPEG" if image.format == "MPO" else "picture")


def _mega(number: int) -> str:
    return f"{number / 1e6:.3g}"


def _too_many_pixels(label: str, pixels: int, limit: int) -> str:
    return f"This {label} claims {_mega(pixels)} megapixels and at most {_mega(limit)} are read; please make it smaller."


def memory_refusal(label: str) -> str:
    """The sentence about a picture that does not fit into memory."""
    return f"This {label} needs too much memory; please make it smaller."


def damage_refusal(label: str) -> str:
    """The sentence about a file of a known format that a decoder rejects."""
    return f"This {label} is damaged or of an unusual kind; please open it in an image program and save it as PNG or JPEG."
