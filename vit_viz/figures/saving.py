"""What answers do with themselves (`vit_viz.answer`): save, lie over a photo, show themselves small, stand on axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from PIL import Image

from vit_viz.answer import Answer, Provenance, parts_of
from vit_viz.errors import ExportError
from vit_viz.figures import export
from vit_viz.figures.colormaps import clipped, default_table, limits, table as colour_table
from vit_viz.figures.files import composed, encoded
from vit_viz.figures.lettering import capital
from vit_viz.figures.overlay import overlay
from vit_viz.figures.record import record_text
from vit_viz.figures.request import DrawingOptions, Format, Output
from vit_viz.figures.scene import Scene
from vit_viz.figures.styles import STRENGTHS, Style, chosen
from vit_viz.images import decode
from vit_viz.lazy import extra
from vit_viz.results import Curve, PatchMap, Ranking
from vit_viz.session.serialization import provenance_in

Photo = Image.Image | str | Path

_PREVIEW = Output("png", 8.0, 120)


def save(
    answer: Answer,
    path: Path,
    *,
    image: Photo | None = None,
    style: Style = "light",
    title: str = "",
    width_cm: float = 12.0,
    dpi: int = 300,
) -> Path:
    """Save an answer in the format of a file's ending; see `Answer.save`."""
    form = path.suffix.lower().removeprefix(".")
    if form not in get_args(Format):
        raise ExportError(
            f"An answer is saved as .png, .svg, .pdf, .csv or .npz, not as {path.suffix or path.name!r}."
        )
    if form in export.NUMBERS:
        data = export.NUMBERS[form](answer, record_text(provenance_in(answer) or Provenance()))
    else:
        output = Output.of({"format": form, "width_cm": float(width_cm), "dpi": dpi}.items())
        data = encoded(composed(answer, _scene(output, image, style, title, answer)), output)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror}.") from error
    return path


def preview(answer: Answer) -> bytes:
    """An answer as a small PNG, as notebooks show it."""
    return encoded(composed(answer, Scene(_PREVIEW, label=_name(answer))), _PREVIEW)


def overlaid(
    patch_map: PatchMap,
    image: Photo,
    *,
    style: Style = "light",
    alpha: float | None = None,
    smooth: bool = True,
) -> Image.Image:
    """The photo with a map over it; see `PatchMap.overlay`."""
    photo = _opened(image)
    drawn, _ = chosen(style, photo, signed=patch_map.signed)
    strength = STRENGTHS[drawn] if alpha is None else alpha
    ends = clipped(patch_map.values, signed=patch_map.signed)
    return overlay(photo, patch_map, style=drawn, alpha=strength, scale=ends, smooth=smooth)


def _scene(output: Output, image: Photo | None, style: Style, title: str, answer: Answer) -> Scene:
    if image is None:
        return Scene(output, title=title, label=_name(answer))
    photo = _opened(image)
    drawn, _ = chosen(style, photo, signed=getattr(answer, "signed", False))
    how = DrawingOptions(style="light" if drawn == "signed" else drawn, alpha=STRENGTHS[drawn])
    return Scene(output, how, title=title, label=_name(answer), open_photo=lambda: photo)


def _name(answer: Answer) -> str:
    """What is shown, in words."""
    return capital(getattr(answer, "method", "")) or type(answer).__name__


def _opened(image: Photo) -> Image.Image:
    """The photo, upright, mode RGB."""
    return decode(image if isinstance(image, Image.Image) else Path(image))


# --- on axes of matplotlib, for whoever lays out figures of their own; the only place that uses it


def plotted(answer: Answer, ax: Any) -> Any:
    """Draw an answer; see `Answer.plot`."""
    if ax is None:
        with extra("plots", needed_for="A plot"):
            from matplotlib.pyplot import gca
        ax = gca()
    if isinstance(answer, Curve):
        if answer.band is not None:
            ax.fill_between(answer.x, *answer.band, alpha=0.2, linewidth=0)
        ax.plot(answer.x, answer.y)
        ax.set_xlabel(answer.x_label)
        ax.set_ylabel(answer.y_label)
    elif isinstance(answer, Ranking):
        ax.barh(answer.names[::-1], answer.scores[::-1])
        ax.set_xlabel(answer.unit)
    elif getattr(getattr(answer, "values", None), "ndim", 0) == 2:
        _plot_cells(answer, ax)
    else:
        parts = [name for name, part in parts_of(answer).items() if isinstance(part, Answer)]
        there = f"; plot one of its parts: {', '.join(parts)}" if parts else ""
        raise ExportError(f"A {type(answer).__name__} is not a single table or curve{there}.")
    ax.set_title(getattr(answer, "method", ""))
    return ax


def _plot_cells(answer: Any, ax: Any) -> None:
    from matplotlib.colors import ListedColormap

    is_signed = getattr(answer, "signed", False)
    low, high = limits(answer.values, signed=is_signed)
    colours = ListedColormap(colour_table(default_table(signed=is_signed)) / 255)
    image = ax.imshow(answer.values, vmin=low, vmax=high, cmap=colours)
    rows, cols = answer.AXES.get("values", ("", ""))
    ax.set_ylabel(rows)
    ax.set_xlabel(cols)
    ax.figure.colorbar(image, ax=ax, label=answer.unit)
