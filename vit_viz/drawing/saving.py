"""What results do with themselves (vit_viz.drawable): save, lie over a photo, show themselves small."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from PIL import Image

from vit_viz.drawing import export
from vit_viz.drawing.alone import Numbers, of_result
from vit_viz.drawing.figures import encoded, map_figure
from vit_viz.drawing.layout import Composed, Format, Output
from vit_viz.drawing.options import DrawingOptions
from vit_viz.drawing.record import record_text
from vit_viz.drawing.tables import csv_text
from vit_viz.errors import ExportError
from vit_viz.images import decode
from vit_viz.render.captioned import map_title
from vit_viz.render.colormaps import clipped
from vit_viz.render.overlay import overlay
from vit_viz.render.styles import STRENGTHS, Style, chosen
from vit_viz.results import PatchMap

Photo = Image.Image | str | Path

_PREVIEW = Output("png", 8.0, 120)


def save(
    result: Numbers,
    path: Path,
    *,
    image: Photo | None = None,
    style: Style = "light",
    title: str = "",
    width_cm: float = 12.0,
    dpi: int = 300,
) -> Path:
    """Save a result in the format of a file's ending; see `Drawable.save`.

    Raises:
        ExportError: there is no such format.
        ImageError, ParameterError: the photo cannot be read, or is not the map's.
    """
    form = path.suffix.lower().removeprefix(".")
    if form == "csv":
        data = csv_text(result, record_text(result.provenance))
    elif form == "npz":
        data = export.npz(result)
    elif form not in get_args(Format):
        raise ExportError(
            f"A result is saved as .png, .svg, .pdf, .csv or .npz, not as {path.suffix or path.name!r}."
        )
    else:
        output = Output.of({"format": form, "width_cm": float(width_cm), "dpi": dpi}.items())
        data = encoded(_composed(result, output, image, style, title), output)
    path.write_bytes(data)
    return path


def preview(result: Numbers) -> bytes:
    """A result as a small PNG, as notebooks show it."""
    return encoded(of_result(result, _PREVIEW), _PREVIEW)


def overlaid(
    patch_map: PatchMap,
    image: Photo,
    *,
    style: Style = "light",
    alpha: float | None = None,
    smooth: bool = True,
) -> Image.Image:
    """The photo with a map over it; see `DrawableMap.overlay`."""
    photo = _opened(image)
    drawn, _ = chosen(style, photo, signed=patch_map.signed)
    strength = STRENGTHS[drawn] if alpha is None else alpha
    ends = clipped(patch_map.values, signed=patch_map.signed)
    return overlay(photo, patch_map, style=drawn, alpha=strength, scale=ends, smooth=smooth)


def _composed(result: Numbers, output: Output, image: Photo | None, style: Style, title: str) -> Composed:
    if image is None:
        return of_result(result, output, title=title)
    if not isinstance(result, PatchMap):
        raise ExportError("Only a map lies over a photo; please save this result without one.")
    photo = _opened(image)
    drawn, _ = chosen(style, photo, signed=result.signed)
    how = DrawingOptions(style=drawn, alpha=STRENGTHS[drawn])
    ends, title = clipped(result.values, signed=result.signed), title or map_title(result)
    return map_figure(photo, result, how, output, ends=ends, whose="own, peaks clipped", title=title)


def _opened(image: Photo) -> Image.Image:
    """The photo, upright, mode RGB.

    Raises:
        ImageError: it cannot be read.
    """
    return decode(image if isinstance(image, Image.Image) else Path(image))
