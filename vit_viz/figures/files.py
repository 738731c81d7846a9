"""Figures as files: a figure request and a format in, bytes out; what the page, Python and the command line save, all alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from vit_viz import samples
from vit_viz.analyses.attention import LOOK
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.answer import Answer, Provenance
from vit_viz.errors import ExportError
from vit_viz.figures import blocks, cells, curves, export, maps, mosaics, patchwork, sums
from vit_viz.figures.raster import raster
from vit_viz.figures.record import record_text
from vit_viz.figures.request import DrawingOptions, FigureRequest, Output, figure_for
from vit_viz.figures.scene import Scene, drawn
from vit_viz.figures.sheet import Sheet, stacked
from vit_viz.results import PatchMap
from vit_viz.session.inputs import Json
from vit_viz.session.request import Request, Subject
from vit_viz.session.serialization import facts_of, numbers_of, provenance_in
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
    """One figure as a file; equal arguments give equal bytes."""
    output, figure = output or Output(), named(session, figure)
    data = _WRITERS[output.format](session, figure, output)
    name = file_name(session, figure.request, output.format, photo=figure.photo)
    return Encoded(data, MEDIA_TYPES[output.format], name)


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
    subject = figure.subject
    shown = figure.about(elsewhere(session, subject))
    weights = session.model(subject.model).provenance.weights
    facts: dict[str, Any] = {"model": shown.subject.model, "weights": weights}
    if subject.image:
        facts["image"] = session.digest(subject.image, owner=subject.owner)
    paths = {
        what: session.given_paths[key]
        for what, key in (("model", subject.model), ("image", subject.image))
        if key in session.given_paths
    }
    facts |= {"paths": paths} if paths else {}
    request = json.loads(shown.request.to_json())
    return facts | {"request": request, "figure": shown.to_dict(), "output": asdict(output)}


def elsewhere(session: Session, subject: Subject) -> Subject:
    """The subject with names that mean something elsewhere: never a path, and of pictures those of samples."""
    loaded, image = session.model(subject.model), subject.image
    model = loaded.provenance.model or loaded.name
    return replace(subject, model=model, image=image if image in samples.sample_names() else "", owner="")


def file_name(session: Session, request: Request, form: str, *, photo: str = "") -> str:
    """A name that says what a file holds: photo (by default as the session calls it), question, model, layer and head."""
    subject, parameters = request.subject, dict(request.parameters)
    if subject.image and not photo:
        photo = session.name_of(subject.image, owner=subject.owner)
    parts = ["vit_viz", slug(photo), slug(request.question), slug(session.model(subject.model).name)]
    parts += [f"{name}-{slug(str(parameters[name]))}" for name in ("layer", "head") if name in parameters]
    return "_".join(part for part in parts if part) + f".{form}"


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
    """The sheet of an answer: its title, what is drawn of it, and its caption."""
    part = drawn(answer, scene)
    title = scene.title or part.title or scene.label
    below = [blocks.caption_block(part.caption, scene.inner)] if part.caption else []
    body = [blocks.title_block(title, scene.inner), *part.blocks, *below]
    return Composed(stacked(body, scene.output.width), part.provenance, title, part.caption)


# --- formats


def encoded(figure: Composed, output: Output, made: Mapping[str, Any] | None = None) -> bytes:
    """A figure as PNG, SVG or PDF."""
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
    return export.NUMBERS[output.format](*_with_record(session, figure, output))


def _with_record(session: Session, figure: FigureRequest, output: Output) -> export.Recorded:
    answer: Answer = session.run(figure.request)
    provenance = provenance_in(answer)
    if provenance is None and figure.subject.image:
        traced = session.checked_trace_of(figure.subject).provenance
        provenance = traced.with_parameters(method=figure.request.question, **figure.parameters)
    provenance = provenance or session.model(figure.subject.model).provenance
    return answer, record_text(provenance, made_of(session, figure, output))


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


# --- the answer to any question: as figures are saved, and as JSON


FORMATS = (*MEDIA_TYPES, "json")
TOGETHER = (*export.TOGETHER, "json")
"""Formats of which one file takes the answers about several photos."""
ANIMATIONS = ("gif", "webp")


def formats_of(question: str) -> tuple[str, ...]:
    """The formats in which the answers to a question are saved, by its name."""
    return FORMATS if question == LOOK.name else tuple(form for form in FORMATS if form not in ANIMATIONS)


def check_format(question: str, form: str) -> None:
    """Refuse a format in which the answer to a question is not saved, before it is computed."""
    if form not in FORMATS:
        raise ExportError(f"A file ends in .{', .'.join(FORMATS)}, not in .{form}.")
    if form not in formats_of(question):
        raise ExportError(
            f"An animation goes through the layers of an attention map, the answer to 'look'; {question!r} has none."
        )


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer with what was asked."""

    session: Session
    request: Request
    answer: Any

    @property
    def provenance(self) -> Provenance:
        """Where the numbers came from."""
        provenance, subject = provenance_in(self.answer), self.request.subject
        if provenance is None and subject.image:
            provenance = self.session.trace_of(subject).provenance
        return provenance or self.session.model(subject.model).provenance

    @property
    def request_json(self) -> Json:
        """The request as JSON, with names that mean something elsewhere."""
        subject = elsewhere(self.session, self.request.subject)
        request: Json = json.loads(replace(self.request, subject=subject).to_json())
        return request

    def to_json(self, *, with_numbers: bool = True) -> Json:
        """All of it: the numbers exactly, the facts, what they say, where they came from, and what was asked."""
        return ({"numbers": numbers_of(self.answer)} if with_numbers else {}) | {
            "facts": facts_of(self.answer),
            "words": self.answer.to_words() if isinstance(self.answer, Answer) else "",
            "provenance": self.provenance.to_dict(),
            "request": self.request_json,
        }


def as_file(
    answered: Answered,
    form: str,
    *,
    figure: FigureRequest | None = None,
    width_cm: float = 12.0,
    dpi: int = 300,
) -> bytes:
    """An answer as the bytes of a file.

    Args:
        form: one of FORMATS.
        figure: how it is drawn; None: as usual.
        width_cm, dpi: of a figure, as `Output` has them.
    """
    if form not in FORMATS:
        raise ExportError(f"A file ends in .{', .'.join(FORMATS)}, not in .{form}.")
    if form == "json":
        return json.dumps(answered.to_json(), allow_nan=False).encode()
    figure = figure or figure_for(answered.request, DrawingOptions())
    output = Output.of({"format": form, "width_cm": width_cm, "dpi": dpi}.items())
    return file_of(answered.session, figure, output).data


def as_one_file(answers: Mapping[str, Answered], form: str) -> bytes:
    """The answers to one question, by the photos' names, as the bytes of one file of numbers in a form of TOGETHER."""
    if form == "json":
        parts = [{"photo": photo} | answered.to_json() for photo, answered in answers.items()]
        return json.dumps(parts, allow_nan=False).encode()
    output = Output.of({"format": form}.items())

    def with_record(answered: Answered) -> export.Recorded:
        figure = named(answered.session, figure_for(answered.request, DrawingOptions()))
        return _with_record(answered.session, figure, output)

    return export.TOGETHER[form]({photo: with_record(answered) for photo, answered in answers.items()})
