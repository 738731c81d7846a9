"""Results as files: PNG, animated GIF and WebP, and NPZ. Each carries the same record of itself."""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin, UnidentifiedImageError

from vit_viz.drawing.record import KEY, parsed, record_text, xmp
from vit_viz.errors import ExportError
from vit_viz.geometry import CropBox
from vit_viz.results import Curve, HeadTable, PatchMap, Provenance, Ranking, TokenMatrix

Result = PatchMap | HeadTable | TokenMatrix | Curve | Ranking
Made = Mapping[str, Any] | None

_GIF_PIXELS = 1 << 26  # frames times pixels: beyond it a browser stalls
_GIF_SIDE = 900
_NPZ_BYTES = 1 << 30  # the attention of all heads of a ViT-L at 1024 patches for one query is 1.6 MB
_NPZ_FACTS_BYTES = 1 << 26


def png(
    picture: Image.Image,
    provenance: Provenance,
    *,
    title: str = "",
    caption: str = "",
    dpi: float | None = None,
    made: Made = None,
) -> bytes:
    """A picture as PNG whose text fields say what it is and where it came from.

    The picture is stored as it is: draw the caption and the colour bar with `vit_viz.render.captioned` first.

    Args:
        title: kept as the field Title, any letters.
        caption: kept as the field Description, any letters.
        dpi: pixels that belong on an inch.
        made: as `record_text` takes it.

    Raises:
        ExportError: the picture cannot be written.
    """
    info = PngImagePlugin.PngInfo()
    for key, text in (("Title", title), ("Description", caption), (KEY, record_text(provenance, made))):
        if text:
            info.add_itxt(key, text)
    info.add_text("Software", "vit_viz")
    density = {} if dpi is None else {"dpi": (dpi, dpi)}
    return _saved(picture, "PNG", pnginfo=info, compress_level=4, **density)


def png_provenance(file: bytes) -> dict[str, Any]:
    """The provenance in a PNG that `png` wrote.

    Raises:
        ExportError: the file is no PNG, or carries none.
    """
    try:
        with Image.open(io.BytesIO(file), formats=("PNG",)) as picture:
            text = picture.info.get(KEY)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ExportError("This file is not a PNG that can be read.") from error
    return parsed(text, "PNG")


def gif(
    frames: Sequence[Image.Image],
    provenance: Provenance,
    *,
    seconds: float = 0.8,
    longest_side: int = _GIF_SIDE,
    made: Made = None,
) -> bytes:
    """Pictures of equal size as an endless animation, for example one per layer.

    Args:
        frames: at least one; larger ones are reduced.
        seconds: how long each frame stays.
        longest_side: pixels of the longer side at most.

    Raises:
        ExportError: there is no frame, sizes differ, or there are more pixels than a browser can play.
    """
    reduced = _frames(frames, seconds, longest_side)
    coded = [_with_palette(frame) for frame in reduced]
    return _saved(
        coded[0],
        "GIF",
        save_all=True,
        append_images=coded[1:],
        duration=round(seconds * 1000),
        loop=0,
        comment=record_text(provenance, made).encode("ascii"),
    )


def webp(
    frames: Sequence[Image.Image],
    provenance: Provenance,
    *,
    seconds: float = 0.8,
    longest_side: int = _GIF_SIDE,
    made: Made = None,
) -> bytes:
    """The same as WebP: all colours, and a smaller file.

    Raises:
        ExportError: as for `gif`.
    """
    reduced = _frames(frames, seconds, longest_side)
    return _saved(
        reduced[0],
        "WEBP",
        save_all=True,
        append_images=reduced[1:],
        duration=round(seconds * 1000),
        loop=0,
        quality=88,
        method=4,
        xmp=xmp(record_text(provenance, made)).encode(),
    )


def _frames(frames: Sequence[Image.Image], seconds: float, longest_side: int) -> list[Image.Image]:
    """The pictures of an animation, no larger than is played."""
    if not frames:
        raise ExportError("An animation needs at least one frame.")
    if len({frame.size for frame in frames}) > 1:
        raise ExportError("The frames of an animation need the same size.")
    if not 0.02 <= seconds <= 60:
        raise ExportError(f"A frame stays between 0.02 and 60 seconds, not {seconds}.")
    reduced = [_reduced(frame.convert("RGB"), longest_side) for frame in frames]
    pixels = len(reduced) * reduced[0].width * reduced[0].height
    if pixels > _GIF_PIXELS:
        raise ExportError(f"An animation has at most {_GIF_PIXELS} pixels in all frames, not {pixels}.")
    return reduced


def gif_provenance(file: bytes) -> dict[str, Any]:
    """The provenance in an animation that `gif` wrote.

    Raises:
        ExportError: the file is no GIF, or carries none.
    """
    try:
        with Image.open(io.BytesIO(file), formats=("GIF",)) as picture:
            comment = picture.info.get("comment")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ExportError("This file is not a GIF that can be read.") from error
    return parsed(comment, "GIF")


def npz(result: Result, *, made: Made = None) -> bytes:
    """A result's numbers in full precision, with everything that is not an array as JSON in the entry `vit_viz`.

    Read it with numpy.load(file, allow_pickle=False); arrays have the names of the result's fields.

    Raises:
        ExportError: a field cannot be written.
    """
    arrays: dict[str, NDArray[Any]] = {}
    facts: dict[str, Any] = {"kind": type(result).__name__}
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif field.name == "extra":
            arrays.update({f"extra.{name}": row for name, row in value.items()})
        elif field.name == "band":
            arrays.update(zip(("band.low", "band.high"), value or (), strict=False))
        else:
            facts[field.name] = _plain(value)
    facts["provenance"] = json.loads(record_text(result.provenance, made))
    try:
        text = json.dumps(facts, ensure_ascii=True, sort_keys=True)
    except TypeError as error:
        raise ExportError(f"A {facts['kind']} holds something that cannot be written.") from error
    return _npz(arrays, text)


def npz_of(arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], record: str) -> bytes:
    """Arrays that are no result, with facts and a record, as `npz` writes them."""
    text = json.dumps(dict(facts) | {"provenance": json.loads(record)}, ensure_ascii=True, sort_keys=True)
    return _npz(arrays, text)


def _npz(arrays: Mapping[str, NDArray[Any]], text: str) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{KEY: np.array(text)}, **arrays)
    return file.getvalue()


def npz_contents(
    file: bytes, *, max_bytes: int = _NPZ_BYTES
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the facts of a file that `npz` wrote; nothing in it is ever run.

    Args:
        max_bytes: of all arrays, unpacked.

    Raises:
        ExportError: the file is no NPZ, was not written by `npz`, or unpacks to more than that.
    """
    arrays = _npz_arrays(file, None, max_bytes)
    text = arrays.pop(KEY, None)
    return arrays, parsed(None if text is None else str(text), "NPZ")


def npz_facts(file: bytes) -> dict[str, Any]:
    """The facts of a file that `npz` wrote; its arrays are not unpacked.

    Raises:
        ExportError: the file is no NPZ, or was not written by `npz`.
    """
    text = _npz_arrays(file, (KEY,), _NPZ_FACTS_BYTES).get(KEY)
    return parsed(None if text is None else str(text), "NPZ")


def _npz_arrays(file: bytes, wanted: Sequence[str] | None, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of these names, or all; each entry says how long it is, and zipfile reads no more of it than that."""
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as archive:
            sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
            names = [name for name in sizes if wanted is None or name in wanted]
            if sum(sizes[name] for name in names) > max_bytes:
                raise ExportError(
                    f"This NPZ unpacks to more than {max_bytes >> 20} MB, which no answer does."
                )
        with np.load(io.BytesIO(file), allow_pickle=False) as entries:
            return {name: entries[name] for name in names}
    except (
        OSError,
        ValueError,
        EOFError,
        KeyError,
        MemoryError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ExportError("This file is not an NPZ that can be read.") from error
    except (
        AttributeError,
        RuntimeError,
        SyntaxError,
        TypeError,
    ) as error:  # of a file that only looks like one
        raise ExportError("This file is not an NPZ that can be read.") from error


def _saved(picture: Image.Image, file_format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    try:
        picture.save(file, file_format, **options)
    except (OSError, ValueError) as error:
        raise ExportError(f"The picture could not be written as {file_format}.") from error
    return file.getvalue()


def _with_palette(frame: Image.Image) -> Image.Image:
    """The frame in 255 colours of its own, dithered so that colour bars stay smooth."""
    return frame.quantize(palette=frame.quantize(255), dither=Image.Dither.FLOYDSTEINBERG)


def _reduced(picture: Image.Image, longest_side: int) -> Image.Image:
    """The picture, made smaller where its longer side exceeds a limit."""
    factor = longest_side / max(picture.size)
    if factor >= 1:
        return picture
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture.resize(size, Image.Resampling.LANCZOS)


def _plain(value: Any) -> Any:
    """A field as JSON knows it; an infinite end of a range is written as text."""
    if isinstance(value, CropBox):
        return value.to_dict()
    if isinstance(value, Provenance):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(value)
    return value
