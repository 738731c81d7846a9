"""Figures of questions by name: from Python, and as the lines of Python and of the command line that make a figure again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, overload

from vit_viz import samples
from vit_viz.analyses.explain import COMPARISON, EXPLAIN_ALL
from vit_viz.analyses.prepared_image import ModelLike, Picture
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.checkpoints.digest import held_states
from vit_viz.figures.files import Encoded, file_of
from vit_viz.figures.request import DrawingOptions, FigureRequest, Output as FileOutput, figure_for
from vit_viz.geometry import Query, TokenLayout, format_query
from vit_viz.images import Mode
from vit_viz.images.part import Part, format_part
from vit_viz.labels import Labels
from vit_viz.outputs import Output
from vit_viz.progress import ProgressLike, StopCheck, bar, part_of
from vit_viz.prompts import PLAIN, Prompts
from vit_viz.session.edits import EditsLike
from vit_viz.session.questions import TargetWord, request_for
from vit_viz.session.run import Images, images_of, session_and_subjects

_FIRST = {"layer": 0, "head": 1, "query": 2}  # how one speaks of a map
_DRAWING = tuple(field.name for field in fields(DrawingOptions))


@overload
def figure(
    loaded: ModelLike, image: Picture | None, name: str | AnyQuestion, **parameters: Any
) -> Encoded: ...


@overload
def figure(loaded: ModelLike, image: Images, name: str | AnyQuestion, **parameters: Any) -> Any: ...


@held_states()
def figure(
    loaded: ModelLike,
    image: Picture | Images | None,
    name: str | AnyQuestion,
    *,
    layout: TokenLayout | None = None,
    labels: Labels | Sequence[str] | None = None,
    format: str = "png",  # noqa: A002 - as every file dialog calls it
    width_cm: float = 12.0,
    dpi: int = 300,
    title: str = "",
    mode: Mode = "fit",
    size: int = 0,
    part: Part | None = None,
    edits: EditsLike = "",
    sentences: Sequence[str] | str = (),
    templates: Sequence[str] | str = PLAIN,
    query: Query | None = None,
    target: TargetWord = None,
    output: Output | None = None,
    shared_scale: bool = False,
    progress: ProgressLike = None,
    cancelled: StopCheck | None = None,
    **options: object,
) -> Any:
    """The figure, or the table, of a question by its name: byte for byte the file that the page saves.

        >>> import vit_viz as vv
        >>> saved = vv.figure("mini", "lion", "look", layer=3, head=1, query="7,9", format="svg", width_cm=8)
        >>> saved.file_name
        'vit_viz_lion_look_mini_layer-3_head-1.svg'

    Args:
        loaded, image, name, layout, labels, mode, size, part, edits, sentences, templates, query, output, progress, cancelled: as
            `vit_viz.run` takes them. Under the map of pixels is what they show where their normalisation is known, else nothing.
        target: likewise, but no function, which a file could not name.
        format: png, svg, pdf, csv, npz; gif and webp go through the layers of "look".
        width_cm: in print.
        dpi: of a PNG, and of the pictures in SVG and PDF.
        title: first line; "" has the usual one.
        shared_scale: whether the map of a method, or several side by side, are drawn as shares on one scale.
        options: of the question, and of the drawing: style, scale, clip, alpha, table, smooth, mask.

    Returns:
        The bytes as `data`, with `media_type`, `file_name` and `save`; of several images a list of these.

    Raises:
        CheckpointError, ImageError, ParameterError, CaptureError: as `vit_viz.run`.
        ExportError: the answer has no such format, or it cannot be drawn as wanted.
        Cancelled: `cancelled` said so.
    """
    file = FileOutput.of({"format": format, "width_cm": float(width_cm), "dpi": dpi}.items())
    drawing = DrawingOptions.of((key, value) for key, value in options.items() if key in _DRAWING)
    images, is_batch = images_of(image)
    session, subjects = session_and_subjects(
        loaded,
        images,
        layout=layout,
        labels=labels,
        output=output,
        mode=mode,
        size=size,
        part=part,
        edits=edits,
        prompts=Prompts(sentences, templates),
    )
    parameters = {key: value for key, value in options.items() if key not in _DRAWING}
    figures = []
    with bar(name if isinstance(name, str) else name.name, progress) as report:
        for number, subject in enumerate(subjects):
            request = request_for(session, subject, name, query=query, target=target, **parameters)
            part_done = part_of(report, number / len(subjects), (number + 1) / len(subjects))
            session.run(request, progress=part_done, cancelled=cancelled)
            drawn = figure_for(request, drawing, shared_scale=shared_scale, title=title)
            figures.append(file_of(session, drawn, file))
    return figures if is_batch else figures[0]


# --- the same in words


def as_python(figure: FigureRequest, output: FileOutput, *, output_kind: Output | None = None) -> str:
    """Lines of Python that save this figure, whose photo has its name (`vit_viz.figures.files.named`).

    Args:
        output_kind: what one output of the model is, where the model does not say it of itself.
    """
    options = _options(figure, output) | ({} if output_kind is None else {"output": output_kind})
    arguments = "".join(f", {key}={value!r}" for key, value in options.items())
    image = None if not figure.subject.image else _photo(figure)
    file = f"figure.{output.format}"
    return (
        "import vit_viz as vv\n\n"
        f"vv.figure({figure.subject.model!r}, {image!r}, {figure.request.question!r}{arguments}).save({file!r})\n"
    )


def as_command(figure: FigureRequest, output: FileOutput, *, output_kind: Output | None = None) -> str:
    """The command that saves this figure; as `as_python`. "" where no command has the options of its method, or what was told."""
    options = _options(figure, output)
    if "options" in options or output_kind is not None:
        return ""
    options.pop("format", None)  # the file's ending says it
    words = [
        "vit-viz",
        figure.request.question,
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


def _options(figure: FigureRequest, output: FileOutput) -> dict[str, Any]:
    """What a figure is asked for with, where that is not as usual: its question, its photo, how it is drawn, and its file."""
    parameters = {key: value for key, value in figure.parameters.items() if value is not None}
    if "query" in parameters:
        parameters["query"] = format_query(parameters["query"])
    if "options" in parameters:
        of_methods = dict(parameters["options"])  # of one method, or of each
        parameters["options"] = {
            key: dict(one) if isinstance(one, tuple) else one for key, one in of_methods.items()
        }
    usual = {field.name: field.default for field in QUESTIONS.named(figure.request.question).options.schema()}
    chosen = {key: value for key, value in parameters.items() if key not in usual or value != usual[key]}
    options = dict(sorted(chosen.items(), key=lambda pair: _FIRST.get(pair[0], len(_FIRST))))
    subject = figure.subject
    options |= {"mode": subject.mode} if subject.mode != "fit" else {}
    options |= {"size": subject.size} if subject.size else {}
    options |= {"edits": str(subject.edits)} if subject.edits else {}
    options |= {"part": subject.part} if subject.part else {}
    options |= {"sentences": str(subject.prompts)} if subject.prompts else {}
    options |= {"templates": subject.prompts.template_words} if subject.prompts.template_words else {}
    options |= dict(figure.drawing.changed())
    if figure.beside is not None and figure.beside.question in (EXPLAIN_ALL.name, COMPARISON.name):
        options["shared_scale"] = True
    options |= {"title": figure.title} if figure.title else {}
    return options | dict(output.changed())


def _photo(figure: FigureRequest) -> str:
    """What the photo is called; the extension of a file is not known here."""
    image = figure.subject.image
    return image if image in samples.sample_names() else figure.photo or "photo.jpg"


def _word(value: object) -> str:
    """A value as the command line takes it."""
    if isinstance(value, tuple) and len(value) == 4:
        return format_part(value)
    return "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
