"""Results as files: PNG, animated GIF, NPZ and a web page of its own. Each carries the same provenance."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, PngImagePlugin, UnidentifiedImageError

from vit_viz.errors import ExportError, ParameterError
from vit_viz.geometry import CropBox
from vit_viz.render.captioned import map_title
from vit_viz.render.colormaps import Limits, Table, limits
from vit_viz.render.overlay import default_table
from vit_viz.render.page import map_page
from vit_viz.results import Curve, HeadTable, PatchMap, Provenance, Ranking, TokenMatrix

Result = PatchMap | HeadTable | TokenMatrix | Curve | Ranking

_KEY = "vit_viz"  # keyword of the provenance in a PNG, name of the entry in an NPZ
_GIF_PIXELS = 1 << 26  # frames times pixels: beyond it a browser stalls
_GIF_SIDE = 900
_PAGE_SIDE = 1400


def provenance_text(provenance: Provenance) -> str:
    """Where the numbers came from, as the JSON text that every exported file carries."""
    return json.dumps({"software": "vit_viz"} | provenance.to_dict(), ensure_ascii=True, sort_keys=True)


def png(picture: Image.Image, provenance: Provenance, *, title: str = "", caption: str = "") -> bytes:
    """A picture as PNG whose text fields say what it is and where it came from.

    The picture is stored as it is: draw the caption and the colour bar with `vit_viz.render.captioned` first.

    Args:
        title: kept as the field Title, any letters.
        caption: kept as the field Description, any letters.

    Raises:
        ExportError: the picture cannot be written.
    """
    info = PngImagePlugin.PngInfo()
    for key, text in (("Title", title), ("Description", caption), (_KEY, provenance_text(provenance))):
        if text:
            info.add_itxt(key, text)
    info.add_text("Software", "vit_viz")
    return _saved(picture, "PNG", pnginfo=info, compress_level=4)


def png_provenance(file: bytes) -> dict[str, Any]:
    """The provenance in a PNG that `png` wrote.

    Raises:
        ExportError: the file is no PNG, or carries none.
    """
    try:
        with Image.open(io.BytesIO(file), formats=("PNG",)) as picture:
            text = picture.info.get(_KEY)
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ExportError("This file is not a PNG that can be read.") from error
    return _parsed(text, "PNG")


def gif(
    frames: Sequence[Image.Image],
    provenance: Provenance,
    *,
    seconds: float = 0.8,
    longest_side: int = _GIF_SIDE,
) -> bytes:
    """Pictures of equal size as an endless animation, for example one per layer.

    Args:
        frames: at least one; larger ones are reduced.
        seconds: how long each frame stays.
        longest_side: pixels of the longer side at most.

    Raises:
        ExportError: there is no frame, sizes differ, or there are more pixels than a browser can play.
    """
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
    coded = [_with_palette(frame) for frame in reduced]
    return _saved(
        coded[0],
        "GIF",
        save_all=True,
        append_images=coded[1:],
        duration=round(seconds * 1000),
        loop=0,
        comment=provenance_text(provenance).encode("ascii"),
    )


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
    return _parsed(comment, "GIF")


def npz(result: Result) -> bytes:
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
    facts["provenance"] = json.loads(provenance_text(result.provenance))
    try:
        text = json.dumps(facts, ensure_ascii=True, sort_keys=True)
    except TypeError as error:
        raise ExportError(f"A {facts['kind']} holds something that cannot be written.") from error
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{_KEY: np.array(text)}, **arrays)
    return file.getvalue()


def npz_contents(file: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays and the facts of a file that `npz` wrote; nothing in it is ever run.

    Raises:
        ExportError: the file is no NPZ, or was not written by `npz`.
    """
    try:
        with np.load(io.BytesIO(file), allow_pickle=False) as entries:
            arrays = {name: entries[name] for name in entries.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise ExportError("This file is not an NPZ that can be read.") from error
    text = arrays.pop(_KEY, None)
    return arrays, _parsed(None if text is None else str(text), "NPZ")


def page(
    photo: Image.Image,
    patch_map: PatchMap,
    *,
    title: str = "",
    table: Table | None = None,
    scale: Limits | None = None,
    scale_name: str = "own",
    alpha: float = 0.6,
) -> str:
    """A map over its photo as one HTML file: strength of the overlay, value under the pointer, all numbers as a table.

    The file needs no network and may load nothing; every text in it is escaped.

    Args:
        photo: mode RGB, the map's original; a large one is reduced.
        table: colour table; None means diverging for a signed map, else viridis.
        scale: values at the ends of the table; None means this map's own.
        scale_name: over what the ends were taken, in words.
        alpha: strength of the overlay when the page opens, in [0, 1].

    Raises:
        ParameterError: the photo is not the map's, or an option is out of range.
    """
    if not 0 <= alpha <= 1:
        raise ParameterError(f"The overlay's strength lies between 0 and 1, not at {alpha}.")
    return map_page(
        _reduced(photo, _PAGE_SIDE),
        patch_map,
        title=title or map_title(patch_map),
        table=table or default_table(signed=patch_map.signed),
        ends=limits(patch_map.values, signed=patch_map.signed) if scale is None else scale,
        scale_name=scale_name,
        alpha=alpha,
        provenance=provenance_text(patch_map.provenance),
    )


def _saved(picture: Image.Image, file_format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    try:
        picture.save(file, file_format, **options)
    except (OSError, ValueError) as error:
        raise ExportError(f"The picture could not be written as {file_format}.") from error
    return file.getvalue()


def _parsed(text: object, kind: str) -> dict[str, Any]:
    """Provenance or facts as data; the text comes from a file and may be anything."""
    if isinstance(text, bytes):
        text = text.decode("ascii", errors="replace")
    try:
        data = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ExportError(f"This {kind} carries no provenance of vit_viz.")
    return data


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
