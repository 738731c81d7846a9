"""The answer to any question as a file: as figures are saved (vit_viz.figures.files), and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vit_viz import samples
from vit_viz.analyses.attention import LOOK
from vit_viz.answer import Provenance
from vit_viz.errors import ExportError
from vit_viz.figures.files import MEDIA_TYPES, file_of
from vit_viz.figures.request import DrawingOptions, FigureRequest, Output, figure_for
from vit_viz.session.answers import facts_of, numbers_of, provenance_in
from vit_viz.session.inputs import Json
from vit_viz.session.request import Request, Subject
from vit_viz.session.session import Session

FORMATS = (*MEDIA_TYPES, "json")
_ANIMATIONS = ("gif", "webp")


def formats_of(question: str) -> tuple[str, ...]:
    """The formats in which the answers to a question are saved, by its name."""
    return FORMATS if question == LOOK.name else tuple(form for form in FORMATS if form not in _ANIMATIONS)


def check_format(question: str, form: str) -> None:
    """Refuse a format in which the answer to a question is not saved, before it is computed.

    Raises:
        ExportError: the message says which there are.
    """
    if form not in FORMATS:
        raise ExportError(f"A file ends in .{', .'.join(FORMATS)}, not in .{form}.")
    if form not in formats_of(question):
        raise ExportError(
            f"An animation goes through the layers of an attention map, the answer to 'look'; {question!r} has none."
        )


@dataclass(frozen=True, eq=False)
class Answered:
    """An answer with what was asked.

    Args:
        options: of the question, as they were given.
    """

    session: Session
    request: Request
    answer: Any
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def chosen(self) -> Json:
        """The parameters of the request, by name."""
        return dict(self.request.parameters)

    @property
    def subject(self) -> Subject:
        """What it is about."""
        return FigureRequest(self.request).subject

    @property
    def provenance(self) -> Provenance:
        """Where the numbers came from."""
        provenance = provenance_in(self.answer)
        if provenance is None and self.subject.image:
            provenance = self.session.trace_of(self.subject).provenance
        return provenance or self.session.model(self.subject.model).provenance

    @property
    def shown(self) -> Request:
        """The request with names that mean something elsewhere: never a path, and of pictures those of samples."""
        loaded, image = self.session.model(self.subject.model), self.subject.image
        model = loaded.provenance.model or loaded.name
        return (
            FigureRequest(self.request)
            .about(model=model, image=image if image in samples.sample_names() else "")
            .request
        )

    def to_json(self) -> Json:
        """All of it: the numbers exactly, the facts, where they came from, and what was asked."""
        return {
            "numbers": numbers_of(self.answer),
            "facts": facts_of(self.answer),
            "provenance": self.provenance.to_dict(),
            "request": json.loads(self.shown.to_json()),
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

    Raises:
        ExportError: there is no such format of this kind of answer.
    """
    if form not in FORMATS:
        raise ExportError(f"A file ends in .{', .'.join(FORMATS)}, not in .{form}.")
    if form == "json":
        return json.dumps(answered.to_json(), allow_nan=False).encode()
    figure = figure or figure_for(answered.request, DrawingOptions())
    output = Output.of({"format": form, "width_cm": width_cm, "dpi": dpi}.items())
    return file_of(answered.session, figure, output).data
