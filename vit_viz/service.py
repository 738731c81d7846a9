"""Questions from outside the page, over HTTP and MCP: JSON in; numbers, words, a picture and a link out.

Only names travel: of a model as the page offers it, of a sample; a picture of the caller's own comes as its bytes, is decoded as an
upload is, and is forgotten once it is answered. Never a path, never an address to fetch.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from vit_viz import samples
from vit_viz.analyses.registry import QUESTIONS
from vit_viz.analyses.spec import AnyQuestion
from vit_viz.capture import Trace
from vit_viz.errors import ImageError, ParameterError
from vit_viz.figures.files import Answered
from vit_viz.figures.request import FigureOptions, check_shared_scale
from vit_viz.images.part import format_part
from vit_viz.progress import duration
from vit_viz.session.inputs import Json, parse_arguments, properties, schema_of, sentence_of
from vit_viz.session.questions import request_for
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session
from vit_viz.session.uploads import GONE, UPLOAD
from vit_viz.surface import PICTURE_BYTES
from vit_viz.views.choices import default_name, model_reference
from vit_viz.views.places import showing
from vit_viz.views.state import ViewState

MODEL = "A name of the catalog, or a Hub id owner/name; else the model that the server was started with."

MOST_NUMBERS = 2**20
"""In one answer as JSON, which takes twenty bytes for each; NPZ takes any number."""

IMAGE = (
    'The photo: {"sample": NAME}, {"upload": ID} of a picture that you brought by POST /vit_viz/bring, {"survey": NAME} of a photo '
    'of the survey that the app shows, or {"base64": BYTES} with the bytes of a JPEG, PNG, WebP, ... file (over HTTP at most '
    "48 kB); or, as a text, the name of a sample, an ID or a data: address."
)

FIGURE = "How the figure of the answer is drawn and saved, by name, where it is asked for."


def schema_of_body(question: AnyQuestion) -> Json:
    """JSON Schema of what a question takes."""
    schemas: dict[str, Json] = {"model": {"description": MODEL, "type": "string", "default": ""}}
    if question.takes_image:
        sample = {"type": "string", "enum": list(samples.sample_names())}
        schemas["image"] = {
            "description": IMAGE,
            "type": ["object", "string"],
            "properties": {
                "sample": sample,
                "upload": {"type": "string"},
                "survey": {"type": "string"},
                "base64": {"type": "string", "contentEncoding": "base64"},
            },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
        }
    required = ["image"] if question.takes_image else []
    drawn = {field.name: schema_of(field) for field in FigureOptions.schema()}
    schemas["figure"] = {
        "description": FIGURE,
        "type": "object",
        "properties": drawn,
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": schemas | properties(question),
        "required": required,
        "additionalProperties": False,
    }


def described(question: AnyQuestion) -> Json:
    """A question in words and as a schema."""
    words = question.words
    return {
        "name": question.name,
        "label": words.label,
        "description": sentence_of(question),
        "source": words.source,
        "cost": question.cost,
        "body": schema_of_body(question),
    }


def cost_words(question: AnyQuestion, trace: Trace, seconds: float | None, *, done: int = 0) -> str:
    """How often the model runs for a question and, where a pass of one picture was measured, about how long that takes.

    Args:
        seconds: of one pass; None: nobody knows.
        done: passes that need not be made again.
    """
    runs, passes = question.words.runs, question.passes
    if done:
        runs += ", most of which are done"
    if passes is None or seconds is None:
        return runs
    return f"{runs}: {passes.bound} {duration(seconds * (passes.of(trace) - done))}"


def cost_of(session: Session, request: Request) -> str:
    """What an answer of many passes would cost, in words."""
    question, subject = QUESTIONS.named(request.question), request.subject
    parts = question.passes.shared if question.passes else ()
    done = sum(part.forwards for part in parts if session.keeps(request.about(part.name)))
    return cost_words(question, session.trace_of(subject), session.pass_seconds(subject), done=done)


def drawing_bytes(width_cm: float, dpi: int) -> int:
    """Of memory, about, while a figure as wide as high is drawn."""
    return round(12 * (width_cm / 2.54 * dpi) ** 2)


BodyParts: TypeAlias = tuple[Subject, Json, bytes | None, FigureOptions]


def read_body(question: AnyQuestion, body: object) -> BodyParts:
    """Read what is asked; model and picture are not looked at yet.

    Returns:
        What it is about, with the model as the page would call it, "" for the server's own, and the name of a sample or the id of
        an upload; query, target and options, as `request_for` takes them; the bytes of the caller's own picture; how the figure
        of the answer is drawn, where that is what is wanted.
    """
    if not isinstance(body, dict) or not all(isinstance(name, str) for name in body):
        raise ParameterError("The body of a question is a JSON object.")
    fields: dict[str, object] = dict(body)
    model, image = fields.pop("model", "") or "", fields.pop("image", None)
    if not isinstance(model, str) or len(model) > 200:
        raise ParameterError("The name of a model must be a text.")
    if question.takes_image == (image is None):
        there = IMAGE if question.takes_image else "It takes no image."
        raise ParameterError(
            f"{question.name!r} is about {'a photo' if question.takes_image else 'a model'}. {there}"
        )
    name, picture = ("", None) if image is None else _image(image)
    figure = _figure(question, fields.pop("figure", None))
    inputs, arguments = parse_arguments(question, fields)
    subject = Subject(model, name, **(inputs.fields if question.takes_image else {}))
    return subject, arguments, picture, figure


def _figure(question: AnyQuestion, fields: object) -> FigureOptions:
    """How the figure of a question is drawn."""
    if not isinstance(fields, dict | None):
        raise ParameterError(f"The figure of a question is an object. {FIGURE}")
    options = {field.name: field for field in FigureOptions.schema()}
    read = {
        name: options[name].read(f"figure's {name}", value) if name in options else value
        for name, value in (fields or {}).items()
    }
    figure = FigureOptions.of(read.items())
    if figure.shared_scale:
        check_shared_scale(question)
    return figure


def _image(image: object) -> tuple[str, bytes | None]:
    """The name of a sample or the id of an upload, or the bytes of a picture."""
    if isinstance(image, str) and image[:5].lower() == "data:":
        form, comma, text = image[5:].partition(",")
        if not comma or not form.lower().endswith(";base64"):
            raise ParameterError(
                "A data: address of a picture is data:image/png;base64,BYTES, of any kind of picture."
            )
        image = {"base64": text}
    elif isinstance(image, str):
        image = {"upload" if UPLOAD.fullmatch(image) else "sample": image}
    if (
        not isinstance(image, dict)
        or len(image) != 1
        or not {"sample", "upload", "survey", "base64"} & set(image)
    ):
        raise ParameterError(IMAGE)
    ((kind, value),) = image.items()
    if not isinstance(value, str):
        raise ParameterError(IMAGE)
    if kind == "sample":
        if value not in samples.sample_names():
            raise ImageError(
                f"There is no sample {value[:40]!r}; there are: {', '.join(samples.sample_names())}."
            )
        return value, None
    if kind in ("upload", "survey"):  # whose it is, and whether it is there, is seen where it is looked up
        if bool(UPLOAD.fullmatch(value)) != (kind == "upload") or value in samples.sample_names():
            raise ImageError(GONE)
        return value, None
    if len(value) > PICTURE_BYTES * 4 // 3 + 4:
        raise ImageError("This picture is more than 20 MB; please send a smaller one.")
    try:
        return "", base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ParameterError("The base64 of a picture is not valid.") from None


@contextmanager
def requested(session: Session, question: AnyQuestion, read: BodyParts, *, owner: str) -> Iterator[Request]:
    """The request that a body makes of a question, as long as its picture is kept.

    Args:
        read: what `read_body` read in it.
        owner: who asks: of their slow questions one is computed at a time.
    """
    subject, arguments, picture, _figure_options = read
    subject = replace(subject, model=model_reference(session, subject.model), owner=owner)
    brought = None if picture is None else session.add_upload(picture, owner=owner)
    try:
        yield request_for(
            session, replace(subject, image=subject.image or brought or ""), question, **arguments
        )
    finally:
        if brought is not None:
            session.uploads.remove(brought, owner=owner)


def as_json(result: Answered, *, app: str, with_numbers: bool = True) -> Json:
    """Everything about an answer: its numbers, its facts, where they came from, what was asked, and where the app shows it.

    Args:
        app: address of the app, with a slash at the end.
    """
    return (
        {"question": result.request.question}
        | result.to_json(with_numbers=with_numbers)
        | {"link": link(result.session, result.request, app=app)}
    )


def link(session: Session, request: Request, *, app: str) -> str | None:
    """Where the app shows the answer; None for a picture of the caller's own, which it does not have."""
    question, subject = QUESTIONS.named(request.question), request.subject
    if question.takes_image and subject.image not in samples.sample_names():
        return None
    view = ViewState(
        model=default_name(session) if subject.model == session.default_model else subject.model,
        image=subject.image,
        mode=subject.mode,
        size=subject.size,
        part="" if subject.part is None else format_part(subject.part),
        edits=str(subject.edits),
        sentences=str(subject.prompts),
        templates=subject.prompts.template_words,
    )
    return f"{app}?{showing(view, question, dict(request.parameters)).to_address()}"
