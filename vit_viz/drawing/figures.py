"""A figure request and a format in, the bytes of a file out: what the page, Python and the command line save, all three alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from PIL import Image

from vit_viz import samples
from vit_viz.analyses.mosaic import HeadMaps
from vit_viz.analyses.patches import PatchPlaces, ReceivedImage
from vit_viz.drawing import charts, export, patchwork
from vit_viz.drawing.alone import Numbers, ends_of, of_positions, of_result
from vit_viz.drawing.layout import Composed, Output, capital, composed_of, sheet_of
from vit_viz.drawing.options import DrawingOptions
from vit_viz.drawing.pictures import (
    Encoded,
    Task,
    head_maps,
    masked,
    mosaic_ends,
    of_model,
    received_part,
    scaled,
    slug,
)
from vit_viz.drawing.raster import checked, raster
from vit_viz.drawing.record import record_text
from vit_viz.drawing.request import FigureRequest
from vit_viz.drawing.tables import csv_text
from vit_viz.errors import ExportError
from vit_viz.render.captioned import ColourBar, drawn_words, map_caption, map_title
from vit_viz.render.colormaps import Limits
from vit_viz.render.lettering import number
from vit_viz.render.mosaic import mosaic_cells, scale_bar
from vit_viz.render.overlay import overlay
from vit_viz.render.styles import chosen
from vit_viz.results import PatchMap, Provenance, TokenMatrix
from vit_viz.session.session import Session

__all__ = [
    "MEDIA_TYPES",
    "Composed",
    "Numbers",
    "Output",
    "Raw",
    "encoded",
    "file_of",
    "made_of",
    "map_figure",
    "named",
    "of_result",
]

Raw = HeadMaps | PatchPlaces | ReceivedImage
"""Numbers without a provenance of their own: that of the trace is theirs."""

MEDIA_TYPES: dict[str, str] = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8",
    "npz": "application/octet-stream",
    "gif": "image/gif",
    "webp": "image/webp",
}
_SECONDS = 0.8


def file_of(session: Session, figure: FigureRequest, output: Output | None = None) -> Encoded:
    """One figure as a file; equal arguments give equal bytes.

    Raises:
        ExportError: this figure has no such format.
        VitVizError: as the request's analysis says.
    """
    output, figure = output or Output(), named(session, figure)
    task, made = Task(session, figure, bare=False), made_of(session, figure, output or Output())
    data = _WRITERS[output.format](task, output, made)
    return Encoded(data, MEDIA_TYPES[output.format], file_name(session, figure, output))


def named(session: Session, figure: FigureRequest) -> FigureRequest:
    """The figure with the name that its photo goes by, which is part of its words."""
    image = figure.subject.image
    if figure.photo or not image:
        return figure
    return replace(figure, photo=session.name_of(image, owner=figure.subject.owner))


def made_of(session: Session, figure: FigureRequest, output: Output) -> dict[str, Any]:
    """What a file says of how it was made: everything that is needed to make it again, and nothing of whose it is.

    A photo that is no sample has no name here that anybody else could use: it is known by the hash of its pixels. A model is known
    by its name and the hash of its weights. The paths of both are told as they were given on the command line or in Python, and
    never where the app saves a file.
    """
    subject, loaded = figure.subject, session.model(figure.subject.model)
    image = subject.image if subject.image in samples.sample_names() else ""
    model = loaded.provenance.model or loaded.name
    facts: dict[str, Any] = {"model": model, "weights": loaded.provenance.weights}
    if subject.image:
        facts["image"] = session.digest(subject.image, owner=subject.owner)
    paths = {
        what: session.given_paths[key]
        for what, key in (("model", subject.model), ("image", subject.image))
        if key in session.given_paths
    }
    facts |= {"paths": paths} if paths else {}
    shown = figure.about(model=model, image=image)
    asked = json.loads(shown.request.to_json())
    return facts | {"request": asked, "figure": shown.to_dict(), "output": asdict(output)}


def file_name(session: Session, figure: FigureRequest, output: Output) -> str:
    """A name that says what the file holds: photo, kind, model, layer and head."""
    model = session.model(figure.subject.model).name
    kind = figure.kind if figure.kind != "result" else figure.request.question
    parts = ["vit_viz", slug(figure.photo), slug(kind), slug(model)]
    parts += [
        f"{name}-{slug(str(figure.parameters[name]))}"
        for name in ("layer", "head")
        if name in figure.parameters
    ]
    return "_".join(part for part in parts if part) + f".{output.format}"


# --- formats


def encoded(figure: Composed, output: Output, made: Mapping[str, Any] | None = None) -> bytes:
    """A figure as PNG, SVG or PDF.

    Raises:
        ExportError: the format is another.
    """
    record = record_text(figure.provenance, made)
    if output.format == "svg":
        from vit_viz.drawing.svg import svg

        return svg(figure.sheet, title=figure.title, record=record)
    if output.format == "pdf":
        from vit_viz.drawing.pdf import pdf

        return pdf(figure.sheet, title=figure.title, record=record)
    if output.format != "png":
        raise ExportError(f"A figure is a PNG, SVG or PDF, not {output.format}.")
    words: dict[str, Any] = {"title": figure.title, "caption": figure.caption, "dpi": output.dpi}
    return export.png(raster(figure.sheet, dpi=output.dpi), figure.provenance, made=made, **words)


def _figure(task: Task, output: Output, made: dict[str, Any]) -> bytes:
    return encoded(composed(task, output), output, made)


def _csv(task: Task, _output: Output, made: dict[str, Any]) -> bytes:
    numbers, provenance = _numbers(task)
    return csv_text(numbers, record_text(provenance, made))


def _npz(task: Task, _output: Output, made: dict[str, Any]) -> bytes:
    numbers, provenance = _numbers(task)
    if isinstance(numbers, Raw):
        kind = {"kind": type(numbers).__name__}
        return export.npz_of({"values": numbers.values}, kind, record_text(provenance, made))
    return export.npz(numbers, made=made)


def _numbers(task: Task) -> tuple[Numbers | Raw, Provenance]:
    """What was computed, and where it came from."""
    numbers, asked = task.session.run(task.figure.request), task.figure.request
    if isinstance(numbers, Raw):
        method = "attention" if isinstance(numbers, HeadMaps) else asked.question
        return numbers, task.trace.provenance.with_parameters(method=method, **task.figure.parameters)
    if isinstance(numbers, Numbers):
        return numbers, numbers.provenance
    raise ExportError("There are no numbers to save here.")


def _gif(task: Task, output: Output, made: dict[str, Any]) -> bytes:
    return export.gif(_frames(task, output), task.trace.provenance, seconds=_SECONDS, made=made)


def _webp(task: Task, output: Output, made: dict[str, Any]) -> bytes:
    return export.webp(_frames(task, output), task.trace.provenance, seconds=_SECONDS, made=made)


_WRITERS: dict[str, Callable[[Task, Output, dict[str, Any]], bytes]] = {
    "png": _figure,
    "svg": _figure,
    "pdf": _figure,
    "csv": _csv,
    "npz": _npz,
    "gif": _gif,
    "webp": _webp,
}


def _frames(task: Task, output: Output) -> list[Image.Image]:
    """The map of each layer in turn, with its number."""
    if task.figure.kind != "map":
        raise ExportError("An animation goes through the layers of an attention map; this figure has none.")
    frames, request = [], task.figure.request
    for layer in range(task.trace.num_layers):
        asked = request.about(request.question, **task.figure.parameters | {"layer": layer})
        one = replace(task, figure=replace(task.figure, request=asked))
        patch_map, ends, _ = scaled(one)
        how = task.figure.drawing
        image, _, bar = _over_photo(task.original, masked(patch_map, how.mask), ends, how, output)
        inner = output.inner
        title = charts.title_block(f"Layer {layer} of {task.trace.num_layers}", inner)
        blocks = [title, charts.picture_block(image, inner), charts.bar_block(bar, inner)]
        frames.append(raster(sheet_of(blocks, output), dpi=min(output.dpi, 150)))
    return frames


# --- figures


def composed(task: Task, output: Output) -> Composed:
    """What a figure shows, laid out.

    Raises:
        ExportError: there is no picture of what was asked.
    """
    inner = output.inner
    kind = task.figure.kind
    if kind in ("map", "explain", "card"):
        return _map(task, output)
    if kind == "mosaic":
        return _mosaic(task, inner, output)
    if kind in ("patches", "numbered", "sequence"):
        return _patches(task, inner, output)
    numbers = task.session.run(task.figure.request)
    if not isinstance(numbers, Numbers):
        raise ExportError("There is no figure of this; please save another picture.")
    if isinstance(numbers, TokenMatrix) and kind == "positions":
        return of_positions(numbers, output, title=task.figure.title)
    ends = None if task.figure.beside is None else ends_of(task.session.run(task.figure.beside))
    return of_result(numbers, output, title=task.figure.title, ends=ends, ringed=task.figure.ringed)


def _patches(task: Task, inner: float, output: Output) -> Composed:
    """The photo with its patches, or the patches in the order of the tokens."""
    kind, (rows, cols) = task.figure.kind, task.trace.layout.grid
    if kind == "sequence":
        title, body = "The sequence of tokens that the model receives", patchwork.sequence(task, inner)
    else:
        title = f"Patch grid: {rows} rows x {cols} columns"
        body = patchwork.grid(task, inner, dpi=output.dpi, numbers=kind == "numbered")
    provenance = task.trace.provenance.with_parameters(method=task.figure.request.question)
    return composed_of([body], provenance, output, title=task.figure.title or title, caption=of_model(task))


def _map(task: Task, output: Output) -> Composed:
    """A map over its photo."""
    patch_map, ends, whose = scaled(task)
    how, title = task.figure.drawing, task.figure.title or f"{task.name}: {map_title(patch_map)}"
    return map_figure(task.original, patch_map, how, output, ends=ends, whose=whose, title=title)


def map_figure(
    photo: Image.Image,
    patch_map: PatchMap,
    how: DrawingOptions,
    output: Output,
    *,
    ends: Limits,
    whose: str,
    title: str,
) -> Composed:
    """A map over its photo, with its scale and what it is in words.

    Args:
        ends: of its scale.
        whose: that scale in words.
    """
    inner = output.inner
    patch_map = masked(patch_map, how.mask)
    image, words, bar = _over_photo(photo, patch_map, ends, how, output)
    caption = map_caption(patch_map, scale_name=whose, smooth=how.smooth, alpha=how.alpha, style_name=words)
    blocks = [charts.picture_block(image, inner), charts.bar_block(bar, inner)]
    return composed_of(blocks, patch_map.provenance, output, title=title, caption=caption)


def _over_photo(
    photo: Image.Image, patch_map: PatchMap, ends: Limits, how: DrawingOptions, output: Output
) -> tuple[Image.Image, str, ColourBar]:
    """The photo with the map, as large as it is printed; how it is drawn in words; the scale."""
    style, why = chosen(how.style, photo, signed=patch_map.signed)
    table = "diverging" if patch_map.signed else how.table
    drawn = overlay(
        _sized(photo, output),
        patch_map,
        style=style,
        alpha=how.alpha,
        table=table,
        scale=ends,
        smooth=how.smooth,
    )
    return drawn, why or style, ColourBar(table, *ends, unit=patch_map.unit, style=style)


def _sized(photo: Image.Image, output: Output) -> Image.Image:
    """The photo at the pixels that it is printed with; enlarged where it has fewer, so that patches keep their edges."""
    across = round((output.inner) / 72 * output.dpi)
    size = checked(across, max(1, round(across * photo.height / photo.width)))
    return photo.resize(size, Image.Resampling.LANCZOS)


def _mosaic(task: Task, inner: float, output: Output) -> Composed:
    """One query in every head of every layer, with axes."""
    figure, trace, how = task.figure, task.trace, task.figure.drawing
    maps = head_maps(task, figure.request)
    query, direction = figure.parameters["query"], figure.parameters["direction"]
    style, why = chosen(how.style, task.original)
    ends = mosaic_ends(maps, how)
    layers, heads = maps.shape[:2]
    cells = mosaic_cells(maps, ends, style=style, photo=received_part(task), table=how.table)
    looks = "looks at" if direction == "row" else "is looked at by"
    title = figure.title or capital(f"{trace.layout.describe(query)} {looks}, in every head of every layer")
    bar = scale_bar(ends, table=how.table, scale=how.scale, unit="attention weight", style=style)
    words = f"Values {number(maps.min())} to {number(maps.max())}; {drawn_words(why or style, smooth=False)}"
    peaks = "; peaks clipped" if how.clip else ""
    image = charts.spaced(cells, (layers, heads))
    blocks = [
        charts.grid_block(image, (layers, heads), inner, ringed=figure.ringed),
        charts.bar_block(bar, inner),
    ]
    provenance = trace.provenance.with_parameters(method="attention", query=query, direction=direction)
    caption = f"{of_model(task)} {words}{peaks}."
    return composed_of(blocks, provenance, output, title=title, caption=caption)
