"""Figures of questions by name: from Python, and as the lines of Python and of the command line that make a figure again."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import Any

from vit_viz import samples
from vit_viz.analyses.attention import LOOK
from vit_viz.analyses.explanations import EXPLAIN_ALL
from vit_viz.analyses.mosaic import MOSAIC
from vit_viz.analyses.patches import PATCHES
from vit_viz.analyses.positions import POSITIONS, as_pair
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import Method
from vit_viz.drawing.figures import Output, file_of
from vit_viz.drawing.options import DrawingOptions
from vit_viz.drawing.pictures import Encoded
from vit_viz.drawing.request import FigureKind, FigureRequest
from vit_viz.geometry import Query, format_query
from vit_viz.images import Mode
from vit_viz.images.part import Part, format_part
from vit_viz.progress import Progress
from vit_viz.session.edits import EditsLike, ModelEdits
from vit_viz.session.questions import TargetWord, request_for
from vit_viz.session.request import Request
from vit_viz.session.run import session_of, subject_of

_FIRST = {"layer": 0, "head": 1, "query": 2}  # how one speaks of a map
_DRAWING = tuple(field.name for field in fields(DrawingOptions))


def figure(
    loaded: ModelLike,
    image: Picture | None,
    name: str,
    *,
    format: str = "png",  # noqa: A002 - as every file dialog calls it
    width_cm: float = 12.0,
    dpi: int = 300,
    title: str = "",
    mode: Mode = "fit",
    size: int = 0,
    part: Part | None = None,
    edits: EditsLike = "",
    query: Query | None = None,
    target: TargetWord = None,
    shared_scale: bool = False,
    progress: Progress | None = None,
    **options: object,
) -> Encoded:
    """The figure, or the table, of a question by its name: what the page saves, byte for byte, and the paths as they were given.

        >>> import vit_viz as vv
        >>> saved = vv.figure("mini", "lion", "look", layer=3, head=1, query="7,9", format="svg", width_cm=8)
        >>> saved.file_name
        'vit_viz_lion_map_mini_layer-3_head-1.svg'

    Args:
        loaded, image, name, mode, size, part, edits, query, target, progress: as `vit_viz.run` takes them.
        format: png, svg, pdf, csv, npz; gif and webp go through the layers of "look".
        width_cm: in print.
        dpi: of a PNG, and of the pictures in SVG and PDF.
        title: first line; "" has the usual one.
        shared_scale: whether an explanation is drawn as shares on one scale for all methods.
        options: of the question, and of the drawing: style, scale, clip, alpha, table, smooth, mask.

    Returns:
        The bytes as `data`, with `media_type`, `file_name` and `save`.

    Raises:
        CheckpointError, ImageError, ParameterError, ExportError: as the steps say.
    """
    output = Output.of({"format": format, "width_cm": float(width_cm), "dpi": dpi}.items())
    drawing = DrawingOptions.of((key, value) for key, value in options.items() if key in _DRAWING)
    session = session_of(loaded)  # type: ignore[arg-type]  # a protocol does not say that it can be a key
    changed = ModelEdits.parse(edits)
    subject = subject_of(session, image, mode=mode, size=size, part=part, edits=changed)
    asked = {key: value for key, value in options.items() if key not in _DRAWING}
    request = request_for(session, subject, name, query=query, target=target, **asked)
    session.run(request, progress=progress)
    return file_of(session, figure_for(request, drawing, shared_scale=shared_scale, title=title), output)


def figure_for(
    request: Request,
    drawing: DrawingOptions | None = None,
    *,
    shared_scale: bool = False,
    ringed: tuple[int, int] | None = None,
    title: str = "",
) -> FigureRequest:
    """The figure of what is asked: a map over its photo, all heads as a mosaic, or the result by itself.

    Args:
        shared_scale: of an explanation, whether all methods have one scale.
        ringed: (layer, head) that a mosaic marks.
    """
    drawing, parameters = drawing or DrawingOptions(), dict(request.parameters)
    beside = None
    question = QUESTIONS.named(request.question)
    if question is LOOK and drawing.scale != "own" and not parameters.get("norm"):
        beside = request.about(MOSAIC.name, query=parameters["query"], direction=parameters["direction"])
    if isinstance(question, Method) and shared_scale:
        beside = request.about(EXPLAIN_ALL.name, target=parameters.get("target"), mirror=False)
    kind: FigureKind = question.figure or "result"
    if question is PATCHES and parameters.get("numbers"):
        kind = "numbered"
    if question is POSITIONS and (place := str(parameters.get("place", ""))):
        kind, beside, ringed = (
            "result",
            request.about(POSITIONS.name, **parameters | {"place": ""}),
            _cell(place),
        )
    return FigureRequest(request, kind, drawing, beside, ringed, title)


def _cell(place: str) -> tuple[int, int] | None:
    """The patch that is named; None where it is another token."""
    return as_pair(place) if place[0].isdigit() else None


# --- the same in words


def as_python(figure: FigureRequest, output: Output) -> str:
    """Lines of Python that save this figure, whose photo has its name (`vit_viz.drawing.figures.named`)."""
    name, options = _question(figure)
    options |= _subject_options(figure) | _drawing_options(figure) | _output_options(output)
    given = "".join(f", {key}={value!r}" for key, value in options.items())
    image = None if not figure.subject.image else _photo(figure)
    file = f"figure.{output.format}"
    return (
        "import vit_viz as vv\n\n"
        f"vv.figure({figure.subject.model!r}, {image!r}, {name!r}{given}).save({file!r})\n"
    )


def as_command(figure: FigureRequest, output: Output) -> str:
    """The command that saves this figure; as `as_python`."""
    name, options = _question(figure)
    options |= _subject_options(figure) | _drawing_options(figure) | _output_options(output)
    options.pop("format", None)  # the file's ending says it
    words = [
        "vit-viz",
        name,
        *([_photo(figure)] if figure.subject.image else []),
        "--model",
        figure.subject.model,
    ]
    for key, value in options.items():
        flag = key.replace("_", "-")
        words += (
            [f"--{'' if value else 'no-'}{flag}"] if isinstance(value, bool) else [f"--{flag}", _word(value)]
        )
    return shlex.join([*words, "-o", f"figure.{output.format}"]) + "\n"


def _question(figure: FigureRequest) -> tuple[str, dict[str, Any]]:
    """The name of the question that a figure answers, and what is asked with."""
    name, given = figure.request.question, figure.parameters
    given = {key: value for key, value in given.items() if value is not None}
    if "query" in given:
        given["query"] = format_query(given["query"])
    usual = {field.name: field.default for field in QUESTIONS.named(name).options.schema()}
    chosen = {key: value for key, value in given.items() if key not in usual or value != usual[key]}
    return name, dict(sorted(chosen.items(), key=lambda pair: _FIRST.get(pair[0], len(_FIRST))))


def _subject_options(figure: FigureRequest) -> dict[str, Any]:
    """How the photo becomes the model's input, where it is not as usual."""
    subject = figure.subject
    chosen: dict[str, Any] = {"mode": subject.mode} if subject.mode != "fit" else {}
    chosen |= {"size": subject.size} if subject.size else {}
    chosen |= {"edits": str(subject.edits)} if subject.edits else {}
    return chosen | ({"part": subject.part} if subject.part else {})


def _drawing_options(figure: FigureRequest) -> dict[str, Any]:
    """How it is drawn, where it is not as usual."""
    shared = figure.kind == "explain" and figure.beside is not None
    options = dict(figure.drawing.changed()) | ({"shared_scale": True} if shared else {})
    return options | ({"title": figure.title} if figure.title else {})


def _output_options(output: Output) -> dict[str, Any]:
    return dict(output.changed())


def _photo(figure: FigureRequest) -> str:
    """What the photo is called; the extension of a file is not known here."""
    image = figure.subject.image
    return image if image in samples.sample_names() else figure.photo or "photo.jpg"


def _word(value: object) -> str:
    """A value as the command line takes it."""
    if isinstance(value, tuple) and len(value) == 4:
        return format_part(value)
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
