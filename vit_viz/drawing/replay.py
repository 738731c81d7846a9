"""A file made again from what it says of itself: equal bytes on the same machine with the same versions, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from vit_viz import samples
from vit_viz.drawing import export
from vit_viz.drawing.figures import Output, file_of
from vit_viz.drawing.pictures import Encoded
from vit_viz.drawing.record import found_in_xml
from vit_viz.drawing.request import FigureRequest
from vit_viz.drawing.tables import csv_record
from vit_viz.errors import ExportError, ParameterError, VitVizError
from vit_viz.session.session import Session

LARGEST_BYTES = 1 << 28
"""Of a file that is read; figures are far smaller."""


def replay(file: bytes | str | Path, session: Session, *, image: bytes | str | Path | None = None) -> Encoded:
    """Make a file again: the same request, drawn in the same way.

    Args:
        file: a figure or a table that was saved here, or its path.
        session: computes it; its own model is taken where it has the weights of the file, else the one that the file names.
        image: the photo, or its path, where it is no sample.

    Raises:
        ExportError: the file does not say how it was made, or the weights or the photo are others than it was made with.
        VitVizError: as the analysis says.
    """
    facts = record_of(file)
    figure, output = _asked(facts)
    model = _model(session, figure, str(facts.get("weights", "")))
    photo = _photo(session, figure, image, str(facts.get("image", "")))
    return file_of(session, figure.about(model=model, image=photo), output)


def record_of(file: bytes | str | Path) -> dict[str, Any]:
    """What a file says of itself: provenance, versions, request and drawing.

    Raises:
        ExportError: it cannot be read, or says nothing.
    """
    data = file if isinstance(file, bytes) else _bytes_of(Path(file))
    for start, read in _READERS:
        if data.startswith(start):
            return read(data)
    raise ExportError("This is no PNG, SVG, PDF, CSV, NPZ, GIF or WebP file.")


def _npz_record(data: bytes) -> dict[str, Any]:
    _, facts = export.npz_contents(data)
    record = facts.get("provenance")
    if not isinstance(record, dict):
        raise ExportError("This NPZ carries no provenance of vit_viz.")
    return record


_READERS: tuple[tuple[bytes, Callable[[bytes], dict[str, Any]]], ...] = (
    (b"\x89PNG", export.png_provenance),
    (b"GIF8", export.gif_provenance),
    (b"PK", _npz_record),
    (b"%PDF", lambda data: found_in_xml(data, "PDF")),
    (b"<?xml", lambda data: found_in_xml(data, "SVG")),
    (b"RIFF", lambda data: found_in_xml(data, "WebP")),
    (b"#", csv_record),
)
"""How a file begins, and how its record is read."""


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            raise ExportError(f"{path.name} is larger than any figure.")
        return path.read_bytes()
    except OSError as error:
        raise ExportError(f"{path.name} cannot be read.") from error


def _asked(facts: dict[str, Any]) -> tuple[FigureRequest, Output]:
    """The figure and the format that a record names."""
    figure, output = facts.get("figure"), facts.get("output")
    if not isinstance(figure, dict) or not isinstance(output, dict):
        raise ExportError(
            "This file says where its numbers came from, but not what was asked; it cannot be made again."
        )
    try:
        return FigureRequest.from_dict(figure), Output.of(output.items())
    except ParameterError as error:
        raise ExportError(f"This file does not say clearly how it was made: {error}") from error


def _model(session: Session, figure: FigureRequest, weights: str) -> str:
    """The name of the model with the file's weights.

    Raises:
        ExportError: it has others.
    """
    named = figure.subject.model
    for name in dict.fromkeys((session.default_model, named)):
        try:
            if session.model(name).provenance.weights == weights:
                return name
        except VitVizError:
            if name == named:
                raise
    raise ExportError(
        f"The weights of {named} are not those that this file was made with, so its numbers would be others."
    )


def _photo(session: Session, figure: FigureRequest, image: bytes | str | Path | None, digest: str) -> str:
    """The name of the file's photo in the session.

    Raises:
        ExportError: it is not at hand, or has other pixels.
    """
    name = figure.subject.image
    if image is not None:
        name = session.add_upload(Path(image) if isinstance(image, str) else image)
    elif not name and digest:
        raise ExportError("This file was made of a photo that is not part of it; please name the photo.")
    elif name and name not in samples.sample_names():
        raise ExportError("This file names no photo that is known here; please name the photo.")
    if name and session.digest(name) != digest:
        raise ExportError("This photo is not the one that the file was made of: its pixels are others.")
    return name
