"""Figures as files: a figure request and a format in, bytes out; what the page, Python and the command line save, all alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from vit_viz import samples
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import Answer, Provenance
from vit_viz.errors import ExportError
from vit_viz.figures import blocks, cells, curves, export, maps, mosaics, patchwork, sums
from vit_viz.figures.raster import raster
from vit_viz.figures.record import record_text
from vit_viz.figures.request import FigureRequest, Output
from vit_viz.figures.scene import Scene, drawn
from vit_viz.figures.sheet import Sheet, stacked
from vit_viz.results import PatchMap
from vit_viz.session.answers import provenance_in
from vit_viz.session.session import Session

MEDIA_TYPES: dict[str, str] = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv; charset=utf-8",
    "npz": "application/octet-stream",
    "gif": "image/gif",
    "webp": "image/webp",
}
KINDS = (maps, mosaics, cells, curves, patchwork, sums)
"""Where the types of answers are drawn; whatever else there is, is drawn part by part."""


@dataclass(frozen=True)
class Encoded:
    """Bytes with their media type and the name of the file that they would be saved as."""

    data: bytes
    media_type: str
    file_name: str

    def save(self, path: str | Path) -> Path:
        """Write it to a file, or into a folder under its own name; returns the file."""
        file = Path(path)
        file = file / self.file_name if file.is_dir() else file
        file.write_bytes(self.data)
        return file


def slug(name: str) -> str:
    """A name in characters that every system takes in the name of a file."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in name)[:60].strip("-")


def file_of(session: Session, figure: FigureRequest, output: Output | None = None) -> Encoded:
    """One figure as a file; equal arguments give equal bytes.

    Raises:
        ExportError: this figure has no such format.
        VitVizError: as the request's analysis says.
    """
    output, figure = output or Output(), named(session, figure)
    data = _WRITERS[output.format](session, figure, output)
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
    parts = ["vit_viz", slug(figure.photo), slug(figure.request.question), slug(model)]
    parts += [
        f"{name}-{slug(str(figure.parameters[name]))}"
        for name in ("layer", "head")
        if name in figure.parameters
    ]
    return "_".join(part for part in parts if part) + f".{output.format}"


def scene_of(session: Session, figure: FigureRequest, output: Output) -> Scene:
    """What a figure shows beside its numbers: photo and pass of its subject, once it is known that its pictures do not mislead."""
    subject, has_photo = figure.subject, bool(figure.subject.image)
    return Scene(
        output,
        figure.drawing,
        title=figure.title,
        label=QUESTIONS.named(figure.request.question).words.label,
        parameters=figure.parameters,
        open_photo=(lambda: session.photo_of(subject)) if has_photo else None,
        photo_name=figure.photo,
        open_trace=(lambda: session.checked_trace_of(subject)) if has_photo else None,
        beside=None if figure.beside is None else session.run(figure.beside),
        ringed=figure.ringed,
    )


# --- the sheet


@dataclass(frozen=True, eq=False)
class Composed:
    """A figure without a format: its sheet, and what is said of it."""

    sheet: Sheet
    provenance: Provenance
    title: str
    caption: str = ""


def composed(answer: object, scene: Scene) -> Composed:
    """The sheet of an answer: its title, what is drawn of it, and its caption.

    Raises:
        ExportError: there is nothing to draw.
    """
    part = drawn(answer, scene)
    title = scene.title or part.title or scene.label
    below = [blocks.caption_block(part.caption, scene.inner)] if part.caption else []
    body = [blocks.title_block(title, scene.inner), *part.blocks, *below]
    return Composed(stacked(body, scene.output.width), part.provenance, title, part.caption)


# --- formats


def encoded(figure: Composed, output: Output, made: Mapping[str, Any] | None = None) -> bytes:
    """A figure as PNG, SVG or PDF.

    Raises:
        ExportError: the format is another.
    """
    record = record_text(figure.provenance, made)
    if output.format == "svg":
        from vit_viz.figures.svg import svg

        return svg(figure.sheet, title=figure.title, record=record)
    if output.format == "pdf":
        from vit_viz.figures.pdf import pdf

        return pdf(figure.sheet, title=figure.title, record=record)
    if output.format != "png":
        raise ExportError(f"A figure is a PNG, SVG or PDF, not {output.format}.")
    words: dict[str, Any] = {"title": figure.title, "caption": figure.caption, "dpi": output.dpi}
    return export.png(raster(figure.sheet, dpi=output.dpi), figure.provenance, made=made, **words)


def _figure(session: Session, figure: FigureRequest, output: Output) -> bytes:
    sheet = composed(session.run(figure.request), scene_of(session, figure, output))
    return encoded(sheet, output, made_of(session, figure, output))


def _numbers(session: Session, figure: FigureRequest, output: Output) -> bytes:
    """What was computed, with its record."""
    answer: Answer = session.run(figure.request)
    provenance = provenance_in(answer)
    if provenance is None and figure.subject.image:
        traced = session.checked_trace_of(figure.subject).provenance
        provenance = traced.with_parameters(method=figure.request.question, **figure.parameters)
    provenance = provenance or session.model(figure.subject.model).provenance
    return export.NUMBERS[output.format](answer, record_text(provenance, made_of(session, figure, output)))


def _moving(session: Session, figure: FigureRequest, output: Output) -> bytes:
    """An animation: the map of each layer in turn, with its number."""
    answer = session.run(figure.request)
    if not (isinstance(answer, PatchMap) and "layer" in figure.parameters):
        raise ExportError("An animation goes through the layers of an attention map; this figure has none.")
    trace = session.checked_trace_of(figure.subject)
    frames = []
    for layer in range(trace.num_layers):
        request = figure.request.about(figure.request.question, **figure.parameters | {"layer": layer})
        scene = scene_of(session, replace(figure, request=request), output)
        title = blocks.title_block(f"Layer {layer} of {trace.num_layers}", scene.inner)
        sheet = stacked([title, *drawn(session.run(request), scene).blocks], output.width)
        frames.append(raster(sheet, dpi=min(output.dpi, 150)))
    form: Literal["gif", "webp"] = "gif" if output.format == "gif" else "webp"
    return export.animation(frames, trace.provenance, form, made=made_of(session, figure, output))


_WRITERS: dict[str, Callable[[Session, FigureRequest, Output], bytes]] = {
    **dict.fromkeys(("png", "svg", "pdf"), _figure),
    **dict.fromkeys(export.NUMBERS, _numbers),
    **dict.fromkeys(("gif", "webp"), _moving),
}
